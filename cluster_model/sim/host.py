"""Defines the host of an actor: a machine with a clock, timers, connections and the trace.

Actors, such as brokers and clients, are state machines without I/O. A host calls them with messages
and when timers fire, and they ask their host to send messages and to set timers. A test can be a
host, too.
"""

from collections.abc import Callable
from typing import Any

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.events import Event
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.connection import ClientEndpoint, Connection
from harrow.cluster_model.sim.idle_fetch import IdleFetch, RepeatableFetch
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator
from harrow.cluster_model.trace import Clock, Trace, Ts


@mypyc_attr(allow_interpreted_subclasses=True)
class Host:
    """A machine with a process on it."""

    __slots__ = ("choices", "clock", "name", "skew_us", "trace")

    clock: Clock
    trace: Trace
    choices: Choices
    name: str
    skew_us: int
    """Offset of the machine's wall clock.

    Timers ignore it; record timestamps and retention use it.
    """

    def emit(self, kind: Callable[[int, *Ts], Event], /, *fields: *Ts) -> None:
        """Add an event to the trace."""
        self.trace.record(kind, fields)

    def publish(self, kind: Callable[[int, *Ts], Event], /, *fields: *Ts) -> None:
        """Tell the subscribers of the trace about an event, but do not add it to the trace."""
        self.trace.announce(kind, fields)

    def set_timer(self, delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call ``callback(argument)`` after *delay_us*, unless the process has died by then.

        A negative delay, which a client may request, is over at once (``SystemTimer.java``).
        """
        raise NotImplementedError

    def connect(self, server: str, listener: str, endpoint: ClientEndpoint) -> Connection:
        """Open a connection."""
        raise NotImplementedError

    def send_request(self, connection: Connection, correlation_id: int, request: Body) -> None:
        """Send a request over a connection that this process opened."""
        raise NotImplementedError

    def send_response(self, connection: Connection, correlation_id: int, body: Body) -> None:
        """Send a response, or push a message, over a connection that this process accepted."""
        raise NotImplementedError

    def close(self, connection: Connection) -> None:
        """Close a connection that this process opened."""
        raise NotImplementedError

    def close_by_server(self, connection: Connection) -> None:
        """Close a connection that this process accepted."""
        raise NotImplementedError

    def exit(self) -> None:
        """Shut this process down cleanly, as SIGTERM does (``System.exit``)."""
        raise NotImplementedError

    def halt(self) -> None:
        """End this process at once (``Exit.halt``); the caller must do nothing afterwards."""
        raise NotImplementedError

    def repeat_while_idle(self, fetch: RepeatableFetch) -> IdleFetch | None:
        """Let a waiting fetch repeat itself until it is woken.

        Return None if it must wait itself.
        """
        return None


class SimulatedHost(Host):
    """A host in the simulator."""

    __slots__ = (
        "_network",
        "_process",
        "_simulator",
    )

    def __init__(
        self,
        process: Process,
        simulator: Simulator,
        network: Network,
        choices: Choices,
        trace: Trace,
    ) -> None:
        self._process = process
        self._simulator = simulator
        self._network = network
        self.clock = simulator
        self.choices = choices
        self.trace = trace
        self.name = process.name
        self.skew_us = process.skew_us

    def set_timer(self, delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        due_us = self._simulator.now_us + (max(0, delay_us))
        self._simulator.schedule(due_us, self._process, callback, argument)

    def connect(self, server: str, listener: str, endpoint: ClientEndpoint) -> Connection:
        return self._network.connect(self._process, server, listener, endpoint)

    def send_request(self, connection: Connection, correlation_id: int, request: Body) -> None:
        self._network.send_request(connection, correlation_id, request)

    def send_response(self, connection: Connection, correlation_id: int, body: Body) -> None:
        self._network.send_response(connection, correlation_id, body)

    def close(self, connection: Connection) -> None:
        self._network.close(connection)

    def close_by_server(self, connection: Connection) -> None:
        self._network.close_by_server(connection)

    def exit(self) -> None:
        self._process.on_exit()

    def halt(self) -> None:
        self._process.on_halt()

    def repeat_while_idle(self, fetch: RepeatableFetch) -> IdleFetch | None:
        return self._network.repeat_while_idle(fetch)
