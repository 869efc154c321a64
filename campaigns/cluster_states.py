"""The cluster at any moment of a run, replayed from what happened.

`ClusterState` is moved forward event by event; `state_at` goes to a time or to an event. Nothing is
simulated again: what the trace does not tell is not known here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from campaigns.replica_states import PartitionState
from campaigns.run_events import RunEvents
from cluster_model import zookeeper_protocol as zk
from cluster_model.disk import REPLICATION_OFFSET_CHECKPOINT
from cluster_model.message_rule import HOLD
from cluster_model.trace import TraceEvent

NO_CONTROLLER: Final = -1


@dataclass(slots=True)
class BrokerState:
    """A broker's process. ``is_registered`` says whether ZooKeeper has a session of it.

    ``stopped_by`` is ``process`` or ``power_loss`` while it is down, otherwise empty.
    ``is_active_controller`` says whether it takes itself for the controller (``KafkaController.isActive``),
    whatever ZooKeeper has.
    """

    broker: int
    is_live: bool = False
    is_paused: bool = False
    is_registered: bool = False
    stopped_by: str = ""
    is_active_controller: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInForce:
    """A fault that has struck and not ended.

    ``details`` are as in the trace; ``number`` is its event's, ``strike`` the fault's own among those that
    struck, None where the trace does not tell. ``left`` is how many messages more it touches before it is over,
    None where their number ends nothing.
    """

    fault: str
    details: tuple[tuple[str, Any], ...]
    at_us: int
    number: int
    strike: int | None = None
    left: int | None = None

    def detail(self, name: str) -> Any:
        """Return what was given for a field, None if nothing was."""
        return dict(self.details).get(name)


class ClusterState:
    """A cluster at one moment.

    ``number`` is the line of ``trace.jsonl`` of the last event that was taken into account, 0 before
    the first; ``at_us`` is its time. ``controller`` is the broker in ``/controller``, `NO_CONTROLLER` from when
    the znode goes until the next one says that it was elected; ``controller_epoch`` is that of the last one.
    """

    __slots__ = ("at_us", "brokers", "controller", "controller_epoch", "faults", "number", "partitions")

    def __init__(self, replicas: Mapping[str, Sequence[int]], brokers: Iterable[int] = ()) -> None:
        """Begin before the first event, with what each partition is assigned to."""
        self.at_us = 0
        self.number = 0
        self.controller = NO_CONTROLLER
        self.controller_epoch = 0
        self.brokers = {broker: BrokerState(broker) for broker in brokers}
        self.partitions = {name: PartitionState(name, assigned) for name, assigned in replicas.items()}
        self.faults: list[FaultInForce] = []

    def advance(self, event: TraceEvent, number: int | None = None) -> None:
        """Take the next event into account; *number* is its line, by default that after the last."""
        self.number = self.number + 1 if number is None else number
        self.at_us = event[0]
        apply = self._REPLAY.get(event[1])
        if apply is not None:
            apply(self, event)
        elif event[1] in _OF_PARTITION:
            self.partition(event[3]).replay(self.number, event)

    def partitions_of(self, event: TraceEvent) -> Iterable[str]:
        """Return the partitions that an event may change: one, or all where it is of a broker or the cluster."""
        if event[1] in _OF_PARTITION:
            return (event[3],)
        return tuple(self.partitions) if event[1] in self._REPLAY else ()

    def partition(self, name: str) -> PartitionState:
        """Return a partition; one that nobody knew of begins empty."""
        found = self.partitions.get(name)
        if found is None:
            found = self.partitions[name] = PartitionState(name)
        return found

    def broker(self, broker: int) -> BrokerState:
        """Return a broker; one that nobody knew of is down."""
        found = self.brokers.get(broker)
        if found is None:
            found = self.brokers[broker] = BrokerState(broker)
        return found

    # Processes and sessions

    def _start(self, event: TraceEvent) -> None:
        broker = self.broker(event[2])
        broker.is_live, broker.is_paused, broker.stopped_by = True, False, ""
        self._end_faults(lambda fault: fault.fault in _STOPPING and fault.detail("broker") == event[2])

    def _stop(self, event: TraceEvent) -> None:
        _, _, number, cause = event
        broker = self.broker(number)
        broker.is_live, broker.is_paused, broker.stopped_by = False, False, cause
        broker.is_active_controller = False
        # Who is dead does not stand still any more.
        self._end_faults(lambda fault: fault.fault == "broker_pause" and fault.detail("broker") == number)
        for partition in self.partitions.values():
            if number in partition.replicas:
                partition.replicas[number].close()

    def _pause(self, event: TraceEvent) -> None:
        self.broker(event[2]).is_paused = True

    def _resume(self, event: TraceEvent) -> None:
        self.broker(event[2]).is_paused = False
        self._end_faults(lambda fault: fault.fault == "broker_pause" and fault.detail("broker") == event[2])

    def _register(self, event: TraceEvent) -> None:
        self.broker(event[2]).is_registered = True

    def _expire(self, event: TraceEvent) -> None:
        _, _, broker, ephemerals = event
        # The znodes go with the session, whether its broker knows of that or not. A trace that does not
        # name them is taken for one of a session that holds all that the broker can.
        if ephemerals is None or zk.broker_path(broker) in ephemerals:
            self.broker(broker).is_registered = False
        if ephemerals is None or zk.CONTROLLER in ephemerals:
            self._depose(broker)

    # Controller

    def _elect_controller(self, event: TraceEvent) -> None:
        _, _, self.controller, self.controller_epoch = event
        self.broker(self.controller).is_active_controller = True

    def _resign(self, event: TraceEvent) -> None:
        self.broker(event[2]).is_active_controller = False
        self._depose(event[2])

    def _depose(self, broker: int) -> None:
        if broker == self.controller:
            self.controller = NO_CONTROLLER

    # Disks

    def _checkpoint(self, event: TraceEvent) -> None:
        _, _, broker, kind, offsets = event
        if kind == REPLICATION_OFFSET_CHECKPOINT:
            for partition, offset in offsets:
                self.partition(partition).replica(broker).checkpointed_high_watermark = offset

    # Faults

    def _strike(self, event: TraceEvent) -> None:
        at_us, _, name, _, details, strike = event
        fault = FaultInForce(fault=name, details=details, at_us=at_us, number=self.number, strike=strike)
        if name in _OF_MESSAGES and fault.detail("action") != HOLD:
            # What is held goes on its way when it is released, however much it is.
            count = fault.detail("count")
            fault = replace(fault, left=1 if count is None and name == "message" else count)
        if name == "release":
            self._end_faults(
                lambda other: (
                    other.fault == "message" and _rule_of(other) == (fault.detail("id") or "message")
                )
            )
        elif name in _LASTING or (name == "controller_failover" and fault.detail("how") in (None, "crash")):
            self.faults.append(fault)
        elif name == "controller_failover" and fault.detail("how") == "delete_znode":
            self._depose(self.controller)

    def _end_fault(self, event: TraceEvent) -> None:
        _, _, name, details, strike = event
        if strike is not None:
            self._end_faults(lambda fault: fault.strike == strike)
            return
        # A trace that does not number them: of equal ones, the first is as good a guess as any.
        equal = [fault for fault in self.faults if (fault.fault, fault.details) == (name, details)]
        self._end_faults(lambda fault: fault in equal[:1])

    def _touch(self, event: TraceEvent) -> None:
        rule, strike = event[2], event[-1]
        for position, fault in enumerate(self.faults):
            of_it = fault.strike == strike if strike is not None else _rule_of(fault) == rule
            if not of_it:
                continue
            if fault.left == 1:
                del self.faults[position]
            elif fault.left is not None:
                self.faults[position] = replace(fault, left=fault.left - 1)
            return

    def _heal(self, _: TraceEvent) -> None:
        self.faults.clear()

    def _heal_core(self, event: TraceEvent) -> None:
        core = frozenset(event[2])
        outside = self.brokers.keys() - core
        self._end_faults(lambda fault: not outside & _brokers_in(fault.details))

    def _end_faults(self, is_over: Callable[[FaultInForce], bool]) -> None:
        self.faults = [fault for fault in self.faults if not is_over(fault)]

    _REPLAY: ClassVar[Mapping[str, Callable[["ClusterState", TraceEvent], None]]] = {
        "broker_started": _start,
        "broker_stopped": _stop,
        "broker_paused": _pause,
        "broker_resumed": _resume,
        "broker_registered": _register,
        "session_expired": _expire,
        "controller_elected": _elect_controller,
        "controller_resigned": _resign,
        "checkpoint": _checkpoint,
        "fault": _strike,
        "fault_ended": _end_fault,
        "message_rule": _touch,
        "healed": _heal,
        "core_healed": _heal_core,
    }


def state_at(run: RunEvents, *, at_us: int | None = None, number: int | None = None) -> ClusterState:
    """Return the state after everything up to a time, or up to an event's line of ``trace.jsonl``.

    By default the state at the end. What clients were told up to the next event of the trace belongs to
    an event's moment, too.
    """
    state = ClusterState(run.replicas, (broker.id for broker in run.plan.cluster.brokers))
    for event, its_number in zip(run.events, run.numbers, strict=True):
        if (at_us is not None and event[0] > at_us) or (number is not None and its_number > number):
            break
        state.advance(event, its_number)
    return state


def _rule_of(fault: FaultInForce) -> str | None:
    """Return the name of a fault's rule for messages, None where it has none."""
    return fault.detail("id") or fault.fault if fault.fault in _OF_MESSAGES else None


def _brokers_in(details: Any) -> frozenset[int]:
    """Return the numbers in a fault's details that may be brokers'."""
    if isinstance(details, tuple):
        return frozenset().union(*map(_brokers_in, details))
    return frozenset((details,)) if type(details) is int else frozenset()


_STOPPING: Final = frozenset({"broker_crash", "controller_failover"})
_LASTING: Final = frozenset(
    {
        *("broker_crash", "broker_isolation", "broker_pause", "message"),
        *("network_ack_loss", "partition", "slow_follower"),
    }
)
"""Faults that go on until something ends them; the others are over at once."""

_OF_MESSAGES: Final = frozenset({"message", "network_ack_loss"})
"""Faults that a number of messages may end."""

_OF_PARTITION: Final = frozenset(
    {
        *("append", "replicate", "truncate", "unflushed_lost", "recover", "flush", "hw"),
        *("leader", "follower", "isr", "isr_written", "election", "isr_reduced", "acknowledged"),
        *("client_sent", "client_ended", "client_polled"),
    }
)
"""Events whose fourth part is a partition, and that change what is known of it."""
