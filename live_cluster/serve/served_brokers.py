"""Listens for real clients on a port for each broker of the model."""

import selectors
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from itertools import count
from types import MappingProxyType
from typing import Final

from harrow.checks.evidence import ProducerSettings
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topology import is_internal, process_name
from harrow.live_cluster.serve.client_batches import RecordNames
from harrow.live_cluster.serve.client_connection import ClientConnection
from harrow.live_cluster.serve.listening import bound_socket
from harrow.live_cluster.serve.own_answers import OwnAnswers
from harrow.live_cluster.serve.plain_login import Users
from harrow.live_cluster.serve.record_identity import Identity
from harrow.live_cluster.serve.served_environment import ServedEnvironment
from harrow.live_cluster.serve.served_topics import ServedTopics
from harrow.live_cluster.serve.wire_contents import WireContents
from harrow.live_cluster.serve.wire_history import WireHistory
from harrow.live_cluster.wire.codec import Address, Naming

_BACKLOG: Final = 128
CONNECTIONS_MAX: Final = 500
"""Few enough for the usual limit of 1024 open files."""
_BUFFERED_MAX: Final = 256 * 1024 * 1024
"""How many bytes of requests and responses may wait in all connections together. Beyond that, the
connection with the most is closed (compare ``queued.max.request.bytes``)."""
_US_PER_S: Final = 1_000_000
_MS_PER_S: Final = 1_000
_US_PER_MS: Final = 1_000


class ServedBrokers:
    """The ports of all brokers, and the connections of clients to them.

    A broker that is down refuses connections, and a crash closes those that it has.
    """

    def __init__(
        self,
        cluster: Cluster,
        environment: ServedEnvironment,
        host: str,
        ports: Iterable[int],
        time_scale: float,
        configured_producers: Mapping[str, ProducerSettings] = MappingProxyType({}),
        identity: Identity | None = None,
        connections_max: int = CONNECTIONS_MAX,
        users: Users | None = None,
    ) -> None:
        self._cluster = cluster
        self._connections_max = connections_max
        self.users = users
        self._environment = environment
        # The data of each socket is a function to call with the events that it is ready for.
        self.selector = selectors.DefaultSelector()
        self._listeners: dict[int, socket.socket] = {}
        # The sockets that keep the ports of brokers that do not listen. They refuse connections.
        self._ports: dict[int, socket.socket] = {}
        # In the order in which they began, which is also the order in which they end.
        self._connections: dict[ClientConnection, None] = {}
        self.history = WireHistory(
            cluster.history,
            cluster.simulator,
            self._has_partition,
            configured_producers,
            RecordNames(identity),
        )
        self._processes: dict[str, Process] = {}
        self._numbers = count()
        self._scale = time_scale
        self._began_s = 0.0
        self._zero_ms = 0.0
        topics = ServedTopics(cluster)
        self.addresses: dict[int, Address] = {}
        self.own_answers = OwnAnswers(cluster, topics, self.addresses, with_login=users is not None)
        with ExitStack() as opened:
            opened.callback(self._close_sockets)
            for broker, port in zip(cluster.processes, ports, strict=True):
                self._ports[broker] = bound_socket(host, port)
                self.addresses[broker] = Address(host, self._ports[broker].getsockname()[1])
            opened.pop_all()
        self.naming = Naming(
            topics.names, addresses=self.addresses, ids=topics, contents=WireContents(self.model_time)
        )

    def begin(self) -> None:
        """Let brokers listen, and time pass."""
        passed_s = self._cluster.simulator.now_us / _US_PER_S / self._scale
        self._began_s = time.monotonic() - passed_s
        self._zero_ms = (time.time() - passed_s) * _MS_PER_S
        self.update()

    def model_time(self, client_ms: int) -> int:
        """Return the time of a client's clock as a time of the model."""
        return int((client_ms - self._zero_ms) * _US_PER_MS * self._scale)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        self.update()
        self.history.close()
        self._close_sockets()

    def _close_sockets(self) -> None:
        for sock in (*self._listeners.values(), *self._ports.values()):
            sock.close()
        self.selector.close()

    @property
    def wall_us(self) -> int:
        """The time that has passed, in microseconds of the model."""
        return int((time.monotonic() - self._began_s) * self._scale * _US_PER_S)

    def serve(self, until_us: int) -> None:
        """Serve clients until *until_us* or until something has happened."""
        self.update()
        wait_s = max(0.0, (until_us - self.wall_us) / _US_PER_S / self._scale)
        ready = self.selector.select(wait_s)
        if ready:
            now_us = self.wall_us
            self._cluster.simulator.run_until(min(now_us, until_us))
        for key, events in ready:
            key.data(events)
        if ready:
            self._limit_memory()
        self.update()

    def _limit_memory(self) -> None:
        buffered = sum([connection.buffered_bytes for connection in self._connections])
        if buffered > _BUFFERED_MAX:
            max(self._connections, key=lambda connection: connection.buffered_bytes).close()

    def update(self) -> None:
        """Let brokers listen that have started, and those refuse that have ended."""
        network = self._cluster.network
        for broker in self.addresses:
            listens = network.accepts(process_name(broker))
            if listens and broker not in self._listeners:
                self._listen(broker)
            elif not listens and broker in self._listeners:
                self._stop_listening(broker)
        for connection in list(self._connections):
            connection.send_own_answers()
            self._watch(connection)
            if not connection.is_open:
                del self._connections[connection]
                connection.socket.close()

    def _watch(self, connection: ClientConnection) -> None:
        """Wait for what a connection can do now; it may be nothing."""
        awaited_events = 0
        if connection.is_open:
            awaited_events |= selectors.EVENT_READ if connection.may_read else 0
            awaited_events |= selectors.EVENT_WRITE if connection.has_to_send else 0
        key = self.selector.get_map().get(connection.socket)
        if key is None:
            if awaited_events:
                self.selector.register(connection.socket, awaited_events, connection.handle)
        elif not awaited_events:
            self.selector.unregister(connection.socket)
        elif key.events != awaited_events:
            self.selector.modify(connection.socket, awaited_events, connection.handle)

    def _has_partition(self, name: str) -> bool:
        return self._cluster.partition_state(name) is not None and not is_internal(name)

    def _listen(self, broker: int) -> None:
        listener = self._listeners[broker] = self._ports.pop(broker)
        listener.listen(_BACKLOG)
        self.selector.register(listener, selectors.EVENT_READ, lambda _: self._accept(broker))

    def _stop_listening(self, broker: int) -> None:
        listener = self._listeners.pop(broker)
        self.selector.unregister(listener)
        listener.close()
        self._ports[broker] = bound_socket(*self.addresses[broker])

    def _accept(self, broker: int) -> None:
        try:
            sock, _ = self._listeners[broker].accept()
        except OSError:
            # The client has gone, or this process may not open another socket.
            return
        if len(self._connections) >= self._connections_max:
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = ClientConnection(sock, next(self._numbers), broker, self)
        self._connections[connection] = None
        self._watch(connection)

    def client_names(self) -> tuple[str, ...]:
        """Return the names of all clients that have connected, in that order."""
        return tuple(self._processes)

    def host_of(self, client_id: str) -> Host:
        name = self._environment.process_name_of(client_id)
        process = self._processes.get(name)
        if process is None:
            process = self._processes[name] = Process(name)
            self._environment.join(name)
        return self._cluster.host(process)

    def are_connected(self, client: str, broker: int) -> bool:
        """Return whether packets pass between a client and a broker that is not paused."""
        is_cut = self._cluster.network.is_cut(client, process_name(broker))
        return not is_cut and not self._environment.is_paused(broker)
