"""Listens for real clients on a port for each broker of the model."""

import errno
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from harrow.live_cluster.serve.contents.client_clock import ClientClock
from harrow.live_cluster.serve.ports.client_socket import ClientSocket
from harrow.live_cluster.serve.ports.listening import bound_socket
from harrow.live_cluster.serve.served_clients import ServedClients
from harrow.live_cluster.wire.codec import Address

_BACKLOG: Final = 128
CONNECTIONS_MAX: Final = 10_000
_OTHER_FILES: Final = 100
"""How many open files are for other things than the sockets of brokers and their clients."""
_NO_MORE_FILES: Final = (errno.EMFILE, errno.ENFILE)
_BUFFERED_MAX: Final = 256 * 1024 * 1024
"""How many bytes of requests and responses may wait in all connections together. Beyond that, the
connection with the most is closed (compare ``queued.max.request.bytes``)."""
_UNSENT_MAX: Final = 1 << 20
"""With more bytes that its client does not read, a connection is not read either."""
_UNREAD_MAX_S: Final = 0.01
"""How far a late model may catch up with the clock before it reads the sockets again. If the
machine was busy, a heartbeat that waits in a socket is then handled before its session times out.
"""
_US_PER_S: Final = 1_000_000
_MS_PER_S: Final = 1_000

Input = Callable[[], None]
"""Something that a client did. The call makes it happen to the model."""


class Arrival(NamedTuple):
    """Inputs that take effect at the same time of the model, in their order."""

    at_us: int
    inputs: list[Input]


class ServedBrokers:
    """The ports of all brokers, and the sockets of clients.

    A broker that is down refuses connections, and a crash closes those that it has. All that
    clients do becomes an `Arrival`. It takes effect when the model has handled its events until
    then, and later than all that has happened before. So the times of arrivals say which events
    preceded them, and a recording can repeat the run.
    """

    def __init__(
        self,
        brokers: Iterable[int],
        host: str,
        ports: Iterable[int],
        time_scale: float = 1.0,
        connections_max: int = CONNECTIONS_MAX,
        note_limit: Callable[[int], None] = lambda _: None,
    ) -> None:
        # Called once, with the limit, when a connection exceeds it.
        self._note_limit: Callable[[int], None] | None = note_limit
        # The data of a client's socket is a `ClientSocket`, that of a listener its broker. That of
        # any other socket is a function to call with the events that it is ready for.
        self.selector = selectors.DefaultSelector()
        self._listeners: dict[int, socket.socket] = {}
        # The sockets that keep the ports of brokers that do not listen. They refuse connections.
        self._ports: dict[int, socket.socket] = {}
        # Gives its place to a client that would otherwise wait while no other file can be opened.
        self._spare = socket.socket()
        self._sockets: dict[int, ClientSocket] = {}
        # Those whose state may have changed, so that a step does not look at all connections. A
        # broken socket stays until its connection has ended.
        self._changed: dict[ClientSocket, None] = {}
        self._buffered_bytes = 0
        self._paused: set[int] = set()
        self._numbers = count()
        self._scale = time_scale
        self._unread_max_us = int(_UNREAD_MAX_S * time_scale * _US_PER_S)
        self._began_s = 0.0
        self._arrival: Arrival | None = None
        # Until when the model had no events left to handle when it last read the sockets.
        self._read_us = 0
        self._is_ending = False
        self.addresses: dict[int, Address] = {}
        with ExitStack() as opened:
            opened.callback(self._close_sockets)
            for broker, port in zip(brokers, ports, strict=True):
                self._ports[broker] = bound_socket(host, port)
                self.addresses[broker] = Address(host, self._ports[broker].getsockname()[1])
            opened.pop_all()
        other_files = _OTHER_FILES + len(self.addresses)
        files_max = _files_max(connections_max + other_files)
        self._connections_max = min(connections_max, max(1, files_max - other_files))

    def attach(self, clients: ServedClients) -> None:
        self._clients = clients

    def begin(self) -> None:
        """Let brokers listen, and time pass."""
        self._read_us = self._clients.now_us
        passed_s = self._read_us / _US_PER_S / self._scale
        self._began_s = time.monotonic() - passed_s
        self._clients.clock = ClientClock((time.time() - passed_s) * _MS_PER_S, self._scale)
        self._update()

    def close(self) -> None:
        self._clients.close_all()
        self._update()
        self._close_sockets()

    def _close_sockets(self) -> None:
        for sock in (*self._listeners.values(), *self._ports.values(), self._spare):
            sock.close()
        self.selector.close()

    @property
    def wall_us(self) -> int:
        """The time that has passed, in microseconds of the model."""
        return int((time.monotonic() - self._began_s) * self._scale * _US_PER_S)

    # Inputs

    def horizon_us(self) -> int:
        """Return until when the model may run before it must take inputs."""
        if self._arrival is not None:
            return self._arrival.at_us
        return min(self.wall_us, self._read_us + self._unread_max_us)

    def is_due(self, at_us: int) -> bool:
        """Return whether inputs take effect at the horizon, and that is *at_us*."""
        return self._arrival is not None and self._arrival.at_us <= at_us

    def take(self) -> None:
        """Let the inputs that are due happen to the model."""
        assert self._arrival is not None
        arrival, self._arrival = self._arrival, None
        self._clients.recorder.arrive(arrival.at_us)
        for happen in arrival.inputs:
            happen()
        self._update()

    def end(self) -> None:
        """Let clients use the cluster no longer."""
        if self._is_ending:
            return
        self._is_ending = True
        if self._arrival is None:
            self._arrival = Arrival(self._clients.now_us + 1, [])
        self._arrival.inputs.append(self._clients.end)

    def wait(self, until_us: int) -> None:
        """Wait for inputs until *until_us*, which is later than the model's time.

        If that time has passed already, inputs take effect right before it.
        """
        self._update()
        self._read_us = until_us
        is_broken = any(client.is_broken for client in self._changed)
        wait_s = 0.0 if is_broken else max(0.0, (until_us - self.wall_us) / _US_PER_S / self._scale)
        inputs: list[Input] = []
        for key, events in self.selector.select(wait_s):
            if isinstance(key.data, ClientSocket):
                self._serve(key.data, events, inputs)
            elif isinstance(key.data, int):
                self._accept(key.data, inputs)
            else:
                inputs.append(partial(key.data, events))
        clients = self._clients
        inputs += [partial(clients.close, each.number) for each in self._changed if each.is_broken]
        if clients.has_program_ended():
            inputs.append(clients.end_program)
        if inputs:
            self._arrival = Arrival(max(min(self.wall_us, until_us - 1), clients.now_us + 1), inputs)

    def _serve(self, client: ClientSocket, events: int, inputs: list[Input]) -> None:
        self._note_change(client)
        if events & selectors.EVENT_READ:
            receive = self._clients.receive
            inputs += [partial(receive, client.number, frame) for frame in client.read()]
        if events & selectors.EVENT_WRITE:
            client.write()

    def _accept(self, broker: int, inputs: list[Input]) -> None:
        try:
            sock, _ = self._listeners[broker].accept()
        except OSError as error:
            if error.errno in _NO_MORE_FILES:
                self._spare.close()
                with suppress(OSError):
                    self._refuse(self._listeners[broker].accept()[0])
                with suppress(OSError):
                    self._spare = socket.socket()
            return
        if len(self._sockets) >= self._connections_max:
            self._refuse(sock)
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = ClientSocket(sock, next(self._numbers), self._note_change)
        self._sockets[client.number] = client
        self._note_change(client)
        note_change = partial(self._note_change, client)
        inputs.append(partial(self._clients.open, client.number, broker, client.send, note_change))

    def _refuse(self, sock: socket.socket) -> None:
        """Close the socket of a client beyond the limit, and name the limit the first time."""
        sock.close()
        if self._note_limit is not None:
            self._note_limit(len(self._sockets))
            self._note_limit = None

    # Sockets

    def _note_change(self, client: ClientSocket) -> None:
        self._changed[client] = None

    def _update(self) -> None:
        """Let brokers listen that have started, and those refuse that have ended."""
        for broker in self.addresses:
            listens = self._clients.accepts(broker)
            if listens and broker not in self._listeners:
                self._listen(broker)
            elif not listens and broker in self._listeners:
                self._stop_listening(broker)
        paused = {broker for broker in self.addresses if not self._clients.reads(broker)}
        if paused != self._paused:
            self._paused = paused
            self._changed = dict.fromkeys(self._sockets.values())
        changed, self._changed = self._changed, {}
        for client in changed:
            self._watch(client)
        if self._buffered_bytes > _BUFFERED_MAX:
            greediest = max(self._sockets.values(), key=lambda client: client.buffered_bytes)
            greediest.is_broken = True
            self._watch(greediest)

    def _watch(self, client: ClientSocket) -> None:
        """Wait for what a client can do now, or close its socket if its connection has ended."""
        connection = self._clients.connections.get(client.number)
        awaited_events = 0
        if connection is not None:
            if connection.is_refused and not client.to_send:
                client.is_broken = True
            if client.is_broken:
                self._note_change(client)
            else:
                if (
                    len(client.to_send) <= _UNSENT_MAX
                    and connection.may_send
                    and connection.broker not in self._paused
                ):
                    awaited_events |= selectors.EVENT_READ
                awaited_events |= selectors.EVENT_WRITE if client.to_send else 0
        if awaited_events != client.awaited_events:
            self._await(client, awaited_events)
        self._buffered_bytes += client.buffered_bytes - client.counted_bytes
        client.counted_bytes = client.buffered_bytes
        if connection is None:
            self._buffered_bytes -= client.counted_bytes
            del self._sockets[client.number]
            client.socket.close()

    def _await(self, client: ClientSocket, events: int) -> None:
        if not client.awaited_events:
            self.selector.register(client.socket, events, client)
        elif not events:
            self.selector.unregister(client.socket)
        else:
            self.selector.modify(client.socket, events, client)
        client.awaited_events = events

    def _listen(self, broker: int) -> None:
        listener = self._listeners[broker] = self._ports.pop(broker)
        listener.listen(_BACKLOG)
        self.selector.register(listener, selectors.EVENT_READ, broker)

    def _stop_listening(self, broker: int) -> None:
        listener = self._listeners.pop(broker)
        self.selector.unregister(listener)
        listener.close()
        self._ports[broker] = bound_socket(*self.addresses[broker])


def _files_max(wanted: int) -> int:
    """Return how many files this process may open; raise a limit below *wanted* if possible."""
    try:
        import resource  # noqa: PLC0415 - POSIX only
    except ImportError:
        return sys.maxsize
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < raised:
        # macOS may have a lower limit than the hard one.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            return raised
    return soft
