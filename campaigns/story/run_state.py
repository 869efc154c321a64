"""A run at any moment: the state of its cluster, and the faults in force."""

from collections.abc import Iterable, Mapping, Sequence

from harrow.campaigns.record.run_events import RunEvents
from harrow.campaigns.story.faults_in_force import FaultInForce, FaultsInForce
from harrow.checks.replay.cluster_state import ClusterState
from harrow.checks.replay.coordination_state import CoordinationState
from harrow.cluster_model.topology import KRAFT, is_server
from harrow.cluster_model.trace import TraceEvent


class RunState(ClusterState):
    """The state of a run, updated event by event.

    ``coordination`` is the state of the group and transaction coordinators. ``event_count`` counts
    all events that have been applied, including those of clients.
    """

    __slots__ = ("_faults", "coordination", "event_count")

    def __init__(
        self,
        replicas: Mapping[str, Sequence[int]],
        brokers: Iterable[int] = (),
        *,
        reelection_forgets_remote: bool = False,
    ) -> None:
        """Start before the first event. *replicas* are the brokers of each partition's replicas."""
        super().__init__(replicas, brokers, reelection_forgets_remote=reelection_forgets_remote)
        self._faults = FaultsInForce(self)
        self.coordination = CoordinationState()
        self.event_count = 0

    def broker_ids(self) -> tuple[int, ...]:
        return tuple(node for node in self.brokers if not is_server(node))

    def is_running(self, broker: int) -> bool:
        return self.broker(broker).is_live

    def is_paused(self, broker: int) -> bool:
        return self.broker(broker).is_paused

    def is_stopping(self, broker: int) -> bool:
        """Return whether a broker's process is stopping and still exists."""
        return self.broker(broker).is_stopping

    @property
    def faults(self) -> Sequence[FaultInForce]:
        """The faults in force, in the order in which they struck."""
        return self._faults.faults

    def advance(self, event: TraceEvent, number: int | None = None) -> None:
        """Apply the next event. *number* is its line of the trace, by default the next one."""
        super().advance(event, number)
        self._faults.advance(event, self.number)
        self.coordination.advance(event)
        self.event_count += 1


def initial_state(run: RunEvents) -> RunState:
    """Return the state before the first event, with all brokers and servers of the control plane.

    A ZooKeeper server that has no peers is left out.
    """
    plan, spec = run.plan, run.plan.cluster
    if plan.metadata == KRAFT:
        servers = () if spec.combined else spec.controller_ids()
    else:
        servers = spec.zookeeper_ids() if spec.zookeeper_servers > 1 else ()
    return RunState(
        run.replicas,
        (*(broker.id for broker in spec.brokers), *servers),
        reelection_forgets_remote=plan.behaviour_switches().replication.reelected_leader_forgets_positions,
    )


def state_at(run: RunEvents, *, at_us: int | None = None, number: int | None = None) -> RunState:
    """Return the state after all events up to a time, or up to a line of ``trace.jsonl``.

    By default, return the state at the end. The state at a line includes the client events between
    that line and the next.
    """
    state = initial_state(run)
    for event, its_number in zip(run.events, run.numbers, strict=True):
        if (at_us is not None and event[0] > at_us) or (number is not None and its_number > number):
            break
        state.advance(event, its_number)
    return state
