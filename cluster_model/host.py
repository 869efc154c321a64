"""What an actor sees of the machine it runs on: a clock, timers, connections, the trace.

Actors are state machines without I/O. They get messages and timers, and hand
messages and timers to their host; what carries them is the host's business, and a
test can be a host.
"""

from collections.abc import Callable
from typing import Any, Protocol

from cluster_model.choices import Choices
from cluster_model.connection import ClientEndpoint, Connection
from cluster_model.invariant_monitor import InvariantMonitor
from cluster_model.network import Network
from cluster_model.process import Process
from cluster_model.simulator import Simulator
from cluster_model.trace import Trace, TraceEvent


class Clock(Protocol):
    """Virtual time."""

    now_us: int


class Host(Protocol):
    """A machine with a process on it."""

    @property
    def clock(self) -> Clock:
        """The virtual clock."""

    trace: Callable[[TraceEvent], None]
    invariants: InvariantMonitor
    choices: Choices
    name: str

    def set_timer(self, delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call back after *delay_us*, unless the process has died by then."""

    def connect(self, server: str, listener: str, endpoint: ClientEndpoint) -> Connection:
        """Open a connection."""

    def send_request(self, connection: Connection, correlation_id: int, body: Any) -> None:
        """Send a request over a connection that this process opened."""

    def send_response(self, connection: Connection, correlation_id: int, body: Any) -> None:
        """Answer over a connection that this process accepted."""

    def close(self, connection: Connection) -> None:
        """Close a connection that this process opened."""

    def close_by_server(self, connection: Connection) -> None:
        """Close a connection that this process accepted."""


class SimulatedHost:
    """A host in the simulator."""

    __slots__ = (
        "_network",
        "_process",
        "_simulator",
        "choices",
        "clock",
        "close",
        "close_by_server",
        "invariants",
        "name",
        "send_request",
        "send_response",
        "trace",
    )

    def __init__(
        self,
        process: Process,
        simulator: Simulator,
        network: Network,
        choices: Choices,
        trace: Trace,
        invariants: InvariantMonitor,
    ) -> None:
        self._process = process
        self._simulator = simulator
        self._network = network
        self.clock: Clock = simulator
        self.choices = choices
        self.trace = trace.add
        self.invariants = invariants
        self.name = process.name
        self.send_request = network.send_request
        self.send_response = network.send_response
        self.close = network.close
        self.close_by_server = network.close_by_server

    def set_timer(self, delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call back after *delay_us*, unless the process has died by then."""
        self._simulator.schedule(self._simulator.now_us + delay_us, self._process, callback, argument)

    def connect(self, server: str, listener: str, endpoint: ClientEndpoint) -> Connection:
        """Open a connection."""
        return self._network.connect(self._process, server, listener, endpoint)
