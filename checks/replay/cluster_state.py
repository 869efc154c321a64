"""Replays the events of a trace into the state of the cluster at any moment of the run.

`ClusterState` advances event by event. It simulates nothing, so it has only the state that events
show. This is the only replay: rules, probes, `harrow diff`, `--watch` and HTML pages use it, and
tests/scenarios/test_every_moment.py compares it with the model after every step.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from harrow.checks.replay.partition_state import FREQUENT_HANDLERS, PARTITION_HANDLERS, PartitionState
from harrow.cluster_model import events
from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.events import NO_CONTROLLER
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.disk import REPLICATION_OFFSET_CHECKPOINT
from harrow.cluster_model.topology import is_server
from harrow.cluster_model.trace import TraceEvent, decode


@dataclass(slots=True)
class BrokerState:
    """The process of a broker, or of a server of the control plane.

    ``is_registered`` says whether the control plane has a session of the broker. ``stopped_by`` is
    ``process``, ``power_loss`` or ``shutdown`` while the process is down, otherwise empty.
    ``is_stopping`` says whether the broker was asked to stop and still runs.
    ``is_active_controller`` says whether the broker considers itself the controller
    (``KafkaController.isActive``), even if the control plane has another controller.
    """

    broker: int
    is_live: bool = False
    is_paused: bool = False
    is_stopping: bool = False
    is_registered: bool = False
    stopped_by: str = ""
    is_active_controller: bool = False


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterState:
    """A cluster at one moment.

    ``number`` is the line of the last applied event in ``trace.jsonl``, 0 before the first event,
    and ``at_us`` is the time of this event. ``controller`` is the controller according to the
    control plane, `NO_CONTROLLER` if there is none. ``controller_epoch`` is the epoch of the last
    controller.
    """

    __slots__ = (
        "_reelection_forgets_remote",
        "at_us",
        "brokers",
        "controller",
        "controller_epoch",
        "number",
        "partitions",
    )

    def __init__(
        self,
        replicas: Mapping[str, Sequence[int]],
        brokers: Iterable[int] = (),
        *,
        reelection_forgets_remote: bool = False,
    ) -> None:
        """Start before the first event, with the assignments and the processes of the plan.

        *replicas* has the assigned brokers of each partition. For *reelection_forgets_remote* see
        `PartitionState`.
        """
        self.at_us = 0
        self.number = 0
        self.controller = NO_CONTROLLER
        self.controller_epoch = 0
        self._reelection_forgets_remote = reelection_forgets_remote
        self.brokers: dict[int, BrokerState] = {}
        for broker in brokers:
            self.broker(broker)
        self.partitions: dict[str, PartitionState] = {}
        for name, assigned in replicas.items():
            self._new_partition(name, tuple(assigned))

    def advance(self, event: TraceEvent, number: int | None = None) -> None:
        """Apply the next event; *number* is its line, by default the next one."""
        self.number = self.number + 1 if number is None else number
        self.at_us = event[0]
        name = event[1]
        frequent = _FREQUENT.get(name)
        if frequent is not None:
            frequent(self.partition(event[_PARTITION_AT[name]]), self.number, event)
        elif name in _OF_PARTITION or name in _OF_CLUSTER:
            self.take(decode(event))

    def advance_over(self, lines: Iterable[tuple[int, TraceEvent]]) -> None:
        """Apply events, which come as pairs of line number and event."""
        for number, event in lines:
            self.advance(event, number)

    def take(self, event: events.Event) -> None:
        """Apply an event of a kind that is not frequent at the present line."""
        of_partition = _OF_PARTITION.get(event.name)
        if of_partition is not None:
            partition_event: Any = event
            of_partition(self.partition(partition_event.partition), self.number, partition_event)
        else:
            _OF_CLUSTER[event.name](self, event)

    def concerns(self, event: TraceEvent, partition: str) -> bool:
        """Return whether an event can change a partition."""
        name = event[1]
        return name in _OF_CLUSTER or (name in _PARTITION_AT and event[_PARTITION_AT[name]] == partition)

    def partitions_of(self, event: TraceEvent) -> Iterable[str]:
        """Return the partitions that an event can change."""
        if event[1] in _PARTITION_AT:
            return (event[_PARTITION_AT[event[1]]],)
        return tuple(self.partitions) if event[1] in _OF_CLUSTER else ()

    def partition(self, name: str) -> PartitionState:
        return self.partitions.get(name) or self._new_partition(name, ())

    def _new_partition(self, name: str, assigned: tuple[int, ...]) -> PartitionState:
        state = self.partitions[name] = PartitionState(
            name, assigned, reelection_forgets_remote=self._reelection_forgets_remote
        )
        return state

    def broker(self, broker: int) -> BrokerState:
        """Return a broker, or a server of the control plane; an unknown broker is down."""
        state = self.brokers.get(broker)
        if state is None:
            state = self.brokers[broker] = BrokerState(broker, is_live=is_server(broker))
        return state

    # Processes and sessions

    def start(self, event: events.BrokerStarted) -> None:
        state = self.broker(event.broker)
        state.is_live, state.is_paused, state.stopped_by = True, False, ""

    def stop(self, event: events.BrokerStopped) -> None:
        state = self.broker(event.broker)
        state.is_live, state.is_paused, state.stopped_by = False, False, event.cause
        state.is_stopping = False
        state.is_active_controller = False
        for partition in self.partitions.values():
            if event.broker in partition.replicas:
                partition.replicas[event.broker].close()

    def begin_stop(self, event: events.BrokerStopping) -> None:
        self.broker(event.broker).is_stopping = True

    def pause(self, event: events.BrokerPaused) -> None:
        self.broker(event.broker).is_paused = True

    def resume(self, event: events.BrokerResumed) -> None:
        self.broker(event.broker).is_paused = False

    def register(self, event: events.BrokerRegistered) -> None:
        self.broker(event.broker).is_registered = True

    def expire(self, event: events.SessionExpired | events.SessionClosed) -> None:
        """End a broker's registration with its session, even if the broker does not know yet."""
        if events.ends_registration(event.broker, event.ephemerals):
            self.broker(event.broker).is_registered = False

    # Controller

    def change_controller(self, event: events.ControllerChanged) -> None:
        self.controller, self.controller_epoch = event.controller, event.controller_epoch

    def elect_controller(self, event: events.ControllerElected) -> None:
        self.broker(event.broker).is_active_controller = True

    def resign(self, event: events.ControllerResigned) -> None:
        self.broker(event.broker).is_active_controller = False

    # Disks

    def checkpoint(self, event: events.CheckpointWritten | events.CheckpointReverted) -> None:
        if event.kind == REPLICATION_OFFSET_CHECKPOINT:
            number = self.number if isinstance(event, events.CheckpointWritten) else 0
            for partition, offset in event.offsets:
                self.partition(partition).replica(event.broker).checkpoint(offset, number)

    def fail_log_dir(self, event: events.LogDirFailed) -> None:
        for name in event.partitions:
            self.partition(name).replica(event.broker).close()


CLUSTER_HANDLERS: Final[Mapping[type[events.Event], Callable[..., None]]] = {
    events.BrokerStarted: ClusterState.start,
    events.BrokerStopped: ClusterState.stop,
    events.BrokerStopping: ClusterState.begin_stop,
    events.BrokerPaused: ClusterState.pause,
    events.BrokerResumed: ClusterState.resume,
    events.BrokerRegistered: ClusterState.register,
    events.SessionExpired: ClusterState.expire,
    events.SessionClosed: ClusterState.expire,
    events.ControllerChanged: ClusterState.change_controller,
    events.ControllerElected: ClusterState.elect_controller,
    events.ControllerResigned: ClusterState.resign,
    events.CheckpointWritten: ClusterState.checkpoint,
    events.CheckpointReverted: ClusterState.checkpoint,
    events.LogDirFailed: ClusterState.fail_log_dir,
}
"""For each kind of event, the method that applies it, given the event."""

_OF_CLUSTER: Final = {kind.name: handler for kind, handler in CLUSTER_HANDLERS.items()}
_OF_PARTITION: Final = {kind.name: handler for kind, handler in PARTITION_HANDLERS.items()}
_FREQUENT: Final = {kind.name: handler for kind, handler in FREQUENT_HANDLERS.items()}
_PARTITION_AT: Final = {
    name: 2 + [*events.event_fields(name)].index("partition") for name in (*_OF_PARTITION, *_FREQUENT)
}
"""The position of the partition's name in the tuple that the trace stores for an event."""
REPLAYED: Final = (*CLUSTER_HANDLERS, *PARTITION_HANDLERS, *FREQUENT_HANDLERS)
"""The kinds of events that change a `ClusterState`."""
