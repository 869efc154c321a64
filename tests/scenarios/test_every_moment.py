"""Replaying the events of a run gives the state of the model at every moment."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final, cast

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.run_events import events_of_result
from harrow.campaigns.run.injection.fault_injector import FaultInjector
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import Run
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.campaigns.story.faults_in_force import FaultInForce
from harrow.campaigns.story.run_state import RunState, state_at
from harrow.checks.replay.partition_state import (
    ACKED,
    FAILED,
    LEADER,
    NO_ROLE,
    SENDING,
    UNKNOWN,
    LogEntry,
    PartitionState,
    ReplicaState,
)
from harrow.checks.rules.catalogue import watched_in
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.replica import UNKNOWN_OFFSET
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.controller.assignment import partition_assignments
from harrow.cluster_model.events import (
    NO_CONTROLLER,
    BatchAcknowledged,
    BrokerStarted,
    BrokerStopped,
    InvariantBroken,
    IsrReduced,
    PartitionStateWritten,
)
from harrow.cluster_model.history import FAIL, INVOKE, OK
from harrow.cluster_model.kraft.control_plane import QuorumControlPlane
from harrow.cluster_model.log.disk import REPLICATION_OFFSET_CHECKPOINT, Disk
from harrow.cluster_model.log.record_batch import NO_SEQUENCE, RecordBatch
from harrow.cluster_model.protocol import NO_LEADER, LeaderAndIsr
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topology import node_id
from harrow.cluster_model.trace import select
from harrow.cluster_model.zookeeper.control_plane import ZkControlPlane
from harrow.cluster_model.zookeeper.service.protocol import CONTROLLER_EPOCH
from harrow.faults.clients import StepFault
from harrow.faults.fault import process_name
from harrow.faults.link_ends import ZOOKEEPER
from tests.campaigns.run.eventful_plan import eventful_plan
from tests.library_swarm import library_swarm
from tests.scenarios.library_plans import library_plans

LOGS_COMPARED_EVERY: Final = 50
"""Every how many comparisons the records of logs are compared too, not only their ends."""

DOUBLE_RESTART: Final = """
name: double-restart
kafka: "2.4"
cluster: {brokers: 1, topics: [{name: t, replication_factor: 1}]}
workload: {duration: 30s, producers: [{name: producer-0, rate: 1/s}]}
faults:
  - {at: 1s, do: {broker_crash: {broker: 0}}}
  - {at: 2s, do: {broker_restart: {broker: 0}}}
  - {at: 5s, do: {broker_crash: {broker: 0}}}
  - {at: 5500ms, do: {broker_restart: {broker: 0}}}
"""
"""The session of the broker's second incarnation expires last, without any registration."""

TWO_LOSSES: Final = """
name: two-losses
kafka: "2.4"
settings: {acks: all}
cluster: {brokers: 1, topics: [{name: t, replication_factor: 1}]}
workload:
  duration: 20s
  producers: [{name: producer-0, rate: 1/s}]
  consumers: [{name: consumer-0}]
faults:
  - {at: 2s, do: {network_ack_loss: {count: 3, skip: 8}}}
  - {at: 2s, do: {network_ack_loss: {api: Fetch, count: 3}}}
"""
"""Two faults of one kind are active, and the second one ends first."""

STOPS: Final = """
name: stops
kafka: "2.4"
settings: {acks: all, min.insync.replicas: 2, controlled.shutdown.retry.backoff.ms: 1s}
cluster: {brokers: 3, topics: [{name: t, partitions: 2, replication_factor: 3}, {name: u, replication_factor: 1, settings: {min.insync.replicas: 1}}]}
workload:
  duration: 60s
  producers: [{name: producer-0, rate: 2/s}]
  consumers: [{name: consumer-0}]
faults:
  - {at: 3s, do: {broker_stop: {broker: 2, restart_after: 4s}}}
  - {at: 12s, do: {broker_pause: {broker: 1, duration: 3s}}}
  - {at: 13s, do: {broker_stop: {broker: 1}}}
  - {at: 14s, do: {broker_stop: {broker: 0, restart_after: 1s}}}
  - {at: 20s, do: {broker_stop: {broker: 2, restart_after: 10ms}}}
  - {at: 20001ms, do: {broker_crash: {broker: 2, restart_after: 1s}}}
  - {at: 22s, do: {broker_restart: {broker: 1}}}
  - {at: 25s, do: {broker_bounce: {broker: controller}}}
  - {at: 30s, do: {rolling_restart: {order: controller_last, down_for: 1s, pause: 1s}}}
  - {at: 32s, do: {broker_crash: {broker: 2, kind: power_loss, restart_after: 5s}}}
  - {at: 58s, do: {broker_isolation: {broker: 0, from: zookeeper, duration: 10s}}}
  - {at: 59s, do: {broker_stop: {broker: 0}}}
"""
"""Brokers shut down while they are paused or killed, at the same time, and without ZooKeeper."""

RUNS: Final[Mapping[str, tuple[Plan, int]]] = {
    **{name: (plan, 0) for name, plan in library_plans().items()},
    **{
        text.split()[1]: (load_text(text, "file.yaml").plans[0], 0)
        for text in (DOUBLE_RESTART, TWO_LOSSES, STOPS)
    },
    **{f"eventful, {release}": (eventful_plan(release), 3) for release in ("0.10.2", "2.4")},
}


def node_of(fault: FaultInForce) -> int:
    """Return the node that a fault strikes.

    The fault may name a server of the control plane instead of giving a broker's id.
    """
    target = fault.detail("broker")
    node = node_id(target) if isinstance(target, str) else target
    assert isinstance(node, int)
    return node


class MomentComparison:
    """Compares a cluster with the replayed state after each event."""

    def __init__(self, plan: Plan, cluster: Cluster, injector: FaultInjector) -> None:
        self._cluster = cluster
        self._injector = injector
        self._state = RunState(
            partition_assignments(plan.cluster),
            (broker.id for broker in plan.cluster.brokers),
            reelection_forgets_remote=plan.behaviour_switches().replication.reelected_leader_forgets_positions,
        )
        self._replayed = 0
        self._isr_at_ack: list[tuple[str, tuple[int, ...]]] = []
        cluster.trace.subscribe(BatchAcknowledged, self._acknowledged)
        self._raised: dict[str, dict[int, LeaderAndIsr]] = {name: {} for name in self._state.partitions}
        cluster.trace.subscribe(PartitionStateWritten, self._written)
        self._is_core_healed = False
        self.compared = 0

    def _acknowledged(
        self, broker: int, partition: str, _offset: int, _acks: int, values: tuple[str, ...]
    ) -> None:
        isr = self._cluster.brokers[broker].replicas.partitions[partition].isr
        self._isr_at_ack += [(value, isr) for value in values]

    def _written(
        self, _broker: int, partition: str, before: LeaderAndIsr, state: LeaderAndIsr, *_epochs: int
    ) -> None:
        if state.leader_epoch > before.leader_epoch:
            self._raised.setdefault(partition, {})[state.leader_epoch] = state

    def compare(self) -> None:
        """Replay the new events, and compare the replayed state with the cluster."""
        events = self._cluster.trace.events
        if self._replayed == len(events):
            return
        for event in events[self._replayed :]:
            self._state.advance(event)
            self._is_core_healed = self._is_core_healed or event[1] == "core_healed"
        self._replayed = len(events)
        if self._cluster.simulator.now_us < 0:
            # Before time zero brokers start one after the other.
            return
        self.compared += 1
        self._compare_brokers()
        self._compare_partitions()
        self._compare_faults()

    def _compare_brokers(self) -> None:
        cluster, state = self._cluster, self._state
        where = (self._replayed, cluster.trace.events[-1])
        assert (state.number, state.at_us) == (self._replayed, cluster.trace.events[-1][0]), where
        for broker, process in cluster.processes.items():
            replayed, incarnation = state.brokers[broker], cluster.brokers.get(broker)
            assert (replayed.is_live, replayed.is_paused) == (process.running, process.paused), where
            assert replayed.is_stopping == cluster.is_stopping(broker), where
            assert replayed.stopped_by in stopped_by(process, cluster.disks[broker]), where
            is_active = incarnation is not None and incarnation.is_active_controller
            assert replayed.is_active_controller == is_active, (*where, broker)
            assert replayed.is_registered == cluster.is_registered(broker), (*where, broker)
        controller, plane = cluster.controller(), cluster.control_plane
        assert state.controller == (NO_CONTROLLER if controller is None else controller), where
        if isinstance(plane, QuorumControlPlane):
            epoch: object = plane._changes.controller_epoch
        else:
            epoch = cast("ZkControlPlane", plane)._zookeeper.tree.data(CONTROLLER_EPOCH)
        assert state.controller_epoch == epoch, where

    def _compare_partitions(self) -> None:
        cluster = self._cluster
        for name, partition in self._state.partitions.items():
            znode = cluster.partition_state(name)
            where = (self._replayed, cluster.trace.events[-1], name)
            if znode is not None:
                replayed = (partition.leader, partition.leader_epoch, partition.isr)
                assert replayed == (znode.leader, znode.leader_epoch, znode.isr), where
            for replica in partition.replicas.values():
                self._compare_replica(name, replica, (*where, replica.broker))
            if self.compared % LOGS_COMPARED_EVERY == 0:
                self._compare_copies(partition, where)

    def _compare_replica(self, name: str, replica: ReplicaState, where: tuple[Any, ...]) -> None:
        cluster, broker = self._cluster, replica.broker
        file = cluster.disks[broker].log_file(name)
        assert (replica.leo, replica.flushed) == (file.log_end_offset, file.flushed_offset), where
        checkpointed = cluster.disks[broker].checkpoint(REPLICATION_OFFSET_CHECKPOINT, name)
        assert replica.checkpointed_high_watermark == checkpointed, where
        incarnation = cluster.brokers.get(broker)
        live = None if incarnation is None else incarnation.replicas.partitions.get(name)
        if live is not None and live.is_offline:
            live = None
        assert replica.is_open == (live is not None), where
        if live is not None:
            assert replica.high_watermark == live.log.high_watermark, where
            assert replica.log_start == live.log.log_start_offset, where
            assert (replica.role == LEADER) == live.is_leader(), where
            assert (replica.leader, replica.leader_epoch) == (live.leader, live.leader_epoch), where
            assert replica.isr == live.isr, where
            if live.is_leader():
                self._compare_remote(replica, live, where)
        else:
            assert (replica.role, replica.leader, replica.isr) == (NO_ROLE, NO_LEADER, ()), where
        if self.compared % LOGS_COMPARED_EVERY == 0:
            stored = [record for record in records_in(file.batches) if record[0] >= replica.log_start]
            assert [record_of(entry) for entry in replica.log] == stored, where

    def _compare_remote(self, replica: ReplicaState, live: Partition, where: tuple[Any, ...]) -> None:
        """Compare a leader's view of its followers.

        Up to 2.3 a leader forgets a follower's position after a failed fetch, and no event says so.
        """
        for follower, remote in live.remote_replicas.items():
            if remote.log_end_offset != UNKNOWN_OFFSET:
                assert replica.remote.get(follower) == remote.log_end_offset, (*where, follower)
            elif live.switches.failed_fetch_keeps_follower_state:
                assert follower not in replica.remote, (*where, follower)

    def _compare_copies(self, partition: PartitionState, where: tuple[Any, ...]) -> None:
        """Compare present and removed copies of records with the logs."""
        copies = [entry for copies in partition.by_value.values() for entry in copies]
        for replica in partition.replicas.values():
            copies_on_broker = [entry for entry in copies if entry.broker == replica.broker]
            present = [entry for entry in copies_on_broker if entry.removed is None]
            assert sorted(map(record_of, present)) == [record_of(entry) for entry in replica.log], where
            removed = [entry.removed for entry in copies_on_broker if entry.removed is not None]
            assert sorted(map(id, removed)) == sorted(map(id, replica.removed)), where
            if replica.is_open:
                committed = [entry for entry in replica.log if entry.offset < replica.high_watermark]
                assert all(entry.is_committed for entry in committed), where

    def compare_elections(self) -> None:
        """Compare elections with written states, except raised epochs that only reduce the ISR."""
        for name, partition in self._state.partitions.items():
            raised = dict(self._raised.get(name, {}))
            for _, election in partition.elections:
                state = raised.pop(election.leader_epoch, None)
                if state is not None:  # otherwise the partition was created in this epoch
                    assert (election.leader, election.isr) == (state.leader, state.isr), name
            reduced = {
                e.leader_epoch for e in select(self._cluster.trace.events, IsrReduced) if e.partition == name
            }
            # In KRaft a leader keeps its epoch when its ISR is reduced.
            in_kraft = isinstance(self._cluster.control_plane, QuorumControlPlane)
            assert raised.keys() <= reduced if in_kraft else raised.keys() == reduced, name

    def compare_acks(self) -> None:
        """Compare acks with the ISRs of their leaders at the time."""
        for partition in self._state.partitions.values():
            for value, acks in partition.acks.items():
                isrs = [isr for acked, isr in self._isr_at_ack if acked == value]
                assert [ack.isr for ack in acks] == isrs, value

    def _ended_without_metadata(self) -> set[int]:
        """Return brokers that stopped by themselves instead of truncating committed metadata."""
        lost = False
        ended = set()
        for event in select(self._cluster.trace.events, InvariantBroken, BrokerStopped, BrokerStarted):
            if isinstance(event, InvariantBroken):
                lost = lost or event.invariant == METADATA_KEPT
            elif isinstance(event, BrokerStarted):
                ended.discard(event.broker)
            elif lost:
                ended.add(event.broker)
        return ended

    def _compare_faults(self) -> None:
        """Compare active faults with paused and dead processes, cut links and message rules."""
        cluster, faults = self._cluster, self._state.faults
        where = (self._replayed, cluster.trace.events[-1])
        stopped = {node_of(fault) for fault in faults if fault.fault in STOPPING_FAULTS}
        stopped = {broker for broker in stopped if not cluster.is_stopping(broker)}
        # A broker that joins the cluster later has not started yet, so it is not down.
        down = {
            node for node, process in cluster.nodes.items() if not process.running and process.incarnation
        }
        # A rolling restart has one broker down at a time, without naming it.
        is_rolling = any(fault.fault == "rolling_restart" for fault in faults)
        assert stopped <= down, where
        # A broker whose only log directory fails stops by itself.
        without_disk = {
            fault.detail("broker") for fault in faults if fault.fault in ("log_dir_failure", "disk_full")
        }
        unexplained = down - stopped - without_disk
        # `_ended_without_metadata` comes last, because it reads the whole trace.
        assert len(unexplained) <= is_rolling or unexplained <= self._ended_without_metadata(), where
        paused = sorted(node_of(fault) for fault in faults if fault.fault == "broker_pause")
        assert paused == sorted(node for node, process in cluster.nodes.items() if process.paused), where
        if self._is_core_healed:
            # The remaining faults spare links within the core, and have no planned end.
            return
        self._compare_strikes()
        cuts: Counter[tuple[str, str]] = Counter()
        for fault in faults:
            cuts.update(self._cut_links(fault))
        assert cuts == cluster.network._cuts, where
        rules = {rule.strike for rule in (*cluster.network._rules, *cluster.network._holding_rules)}
        assert {fault.strike for fault in faults if fault.fault in MESSAGE_RULE_FAULTS} == rules, where

    def _cut_links(self, fault: FaultInForce) -> Iterator[tuple[str, str]]:
        """Yield the links that a fault cuts. The control plane may be several processes."""

        def processes_at(end: str) -> tuple[str, ...]:
            return self._cluster.control_plane.process_names if end == ZOOKEEPER else (end,)

        for sender, receiver in links_of(fault, tuple(self._cluster.processes)):
            for one, other in product(processes_at(sender), processes_at(receiver)):
                if one != other:
                    yield one, other

    def _compare_strikes(self) -> None:
        """Compare active faults and their durations with the injected ones."""
        for fault in self._state.faults:
            assert fault.strike is not None
            injected = self._injector.injected[fault.strike - 1]
            assert (injected.at_us, injected.fault, injected.details) == (
                fault.at_us,
                fault.fault,
                fault.details,
            )
            # The duration of a `StepFault` starts when its client reaches the step.
            if isinstance(injected.concrete, StepFault):
                continue
            durations = [getattr(injected.concrete, name, None) for name in ("duration", "restart_after")]
            for low_us, high_us in filter(None, durations):
                assert low_us == high_us
                assert injected.at_us + high_us >= self._cluster.simulator.now_us, fault


METADATA_KEPT: Final = "committed-metadata-kept"
STOPPING_FAULTS: Final = frozenset(
    {
        *("broker_crash", "broker_stop", "controller_failover"),
        *("disk_loss", "torn_write", "stale_checkpoint"),
    }
)
MESSAGE_RULE_FAULTS: Final = frozenset({"message", "network_ack_loss", "slow_follower"})


def links_of(fault: FaultInForce, brokers: tuple[int, ...]) -> list[tuple[str, str]]:
    """Return the links that a fault cuts, in both directions."""
    if fault.fault == "partition":
        sides = product(fault.detail("between"), fault.detail("and"))
        pairs = [(one, other) for one, other in sides if one != other]
    elif fault.fault == "broker_isolation":
        broker, isolated_from = fault.detail("broker"), fault.detail("from") or "servers"
        others = [other for other in brokers if other != broker] if isolated_from != "zookeeper" else []
        pairs = [
            (broker, other) for other in (*others, *(["zookeeper"] if isolated_from != "brokers" else []))
        ]
    else:
        return []
    links = [(process_name(one), process_name(other)) for one, other in pairs]
    return links if fault.detail("one_way") else links + [(other, one) for one, other in links]


def stopped_by(process: Process, disk: Disk) -> tuple[str, ...]:
    """Return the possible causes of a stop.

    A disk with a clean shutdown file leaves two: the process may be killed at the very end of its
    shutdown.
    """
    if process.running or not process.incarnation:
        return ("",)
    if not process.powered:
        return ("power_loss",)
    return ("process", "shutdown") if disk.clean_shutdown_file else ("process",)


def record_of(entry: LogEntry) -> tuple[int, str, int, int, int]:
    return entry.offset, entry.value, entry.leader_epoch, entry.producer_id, entry.sequence


def records_in(batches: Iterable[RecordBatch]) -> Iterator[tuple[int, str, int, int, int]]:
    for batch in batches:
        for offset, value in batch.records():
            place = offset - batch.base_offset
            sequence = NO_SEQUENCE if batch.base_sequence == NO_SEQUENCE else batch.base_sequence + place
            yield offset, value, batch.leader_epoch, batch.producer_id, sequence


def compare_clients(result: RunResult) -> None:
    """Compare the replayed operations of clients with the history."""
    partitions = state_at(events_of_result(result)).partitions.values()
    replayed: Counter[Any] = Counter()
    for partition in partitions:
        for sends in partition.sends.values():
            for s in sends:
                replayed[
                    partition.name, s.client, s.value, s.invoked_us, s.status, s.ended_us, s.offset, s.error
                ] += 1
        for record, by_client in partition.reads.items():
            for client, read in by_client.items():
                replayed[partition.name, client, record] += read.times
    assert replayed == operations_in_history(result)


def operations_in_history(result: RunResult) -> Counter[Any]:
    operations: Counter[Any] = Counter()
    invoked: dict[Any, int] = {}
    for operation in result.evidence.operations:
        client = result.evidence.process_names[operation.process]
        for partition, offset, value in operation.sends():
            at_us = operation.time_us
            if operation.type == INVOKE:
                invoked[partition, client, value] = at_us
            else:
                status = {OK: ACKED, FAIL: FAILED}.get(operation.type, UNKNOWN)
                sent_us = invoked.pop((partition, client, value))
                operations[partition, client, value, sent_us, status, at_us, offset, operation.error] += 1
        for partition, offset, value in operation.polls():
            operations[partition, client, (offset, value)] += 1
    for (partition, client, value), sent_us in invoked.items():
        operations[partition, client, value, sent_us, SENDING, None, None, None] += 1
    return operations


def compare_every_moment(campaign: Plan, seed: int) -> None:
    plan = draw_for_seed(campaign, seed).plan
    choices = Choices.from_seed(seed)
    target = ModelTarget(plan, choices, watched_in(plan.invariants, plan.kafka, plan.demand))
    run = Run(plan, seed, choices, target)
    moments = MomentComparison(plan, target.cluster, run.injector)
    original_step, original_advance = target.step, target.advance

    def step(end_us: int) -> bool:
        handled = original_step(end_us)
        moments.compare()
        return handled

    def advance(end_us: int) -> None:
        while step(end_us):
            pass
        original_advance(end_us)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "step", step)
        patch.setattr(target, "advance", advance)
        result = run.result()
    assert moments.compared >= 5
    moments.compare_elections()
    moments.compare_acks()
    compare_clients(result)


@pytest.mark.parametrize("name", RUNS)
def test_replay_gives_the_state_of_the_model_at_every_moment(name: str) -> None:
    compare_every_moment(*RUNS[name])


@pytest.mark.soak(size=25, rounds_in_test=2, rounds_in_soak=800)
def test_replay_gives_the_state_of_the_model_at_every_moment_of_a_swarm_run(numbers: range) -> None:
    for seed in numbers:
        compare_every_moment(library_swarm(), seed)
