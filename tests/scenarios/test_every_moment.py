"""What is replayed from a run's events is what the model had, at every moment of the run."""

from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any, Final

import pytest

from campaigns.cluster_states import NO_CONTROLLER, ClusterState, FaultInForce
from campaigns.fault_injector import FaultInjector
from campaigns.loader import load_text
from campaigns.plan import Plan
from campaigns.replica_states import LEADER, ReplicaState
from campaigns.runner import Run
from campaigns.swarm import drawn
from cluster_model.assignment import partition_assignments
from cluster_model.choices import Choices
from cluster_model.cluster import Cluster
from cluster_model.simulator import Simulator
from faults.endpoints import process_name
from tests.library_swarm import library_swarm
from tests.scenarios.library_plans import library_plans
from tests.unit.eventful_plan import eventful_plan

LOGS_EVERY: Final = 50
"""After how many comparisons the records themselves are compared, not only how far the logs go."""

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
"""The session of the broker's second life expires last, and holds nothing."""

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
"""Two faults of one kind in force, of which the second is used up first."""

RUNS: Final[Mapping[str, tuple[Plan, int]]] = {
    **{name: (plan, 0) for name, plan in library_plans().items()},
    **{f"swarm, seed {seed}": (library_swarm(), seed) for seed in range(1, 20)},
    **{text.split()[1]: (load_text(text, "file.yaml").plans[0], 0) for text in (DOUBLE_RESTART, TWO_LOSSES)},
    **{f"eventful, {release}": (eventful_plan(release), 3) for release in ("0.10.2", "2.4")},
}


class Moments:
    """Compares a cluster with what is replayed, each time after something has happened."""

    def __init__(self, plan: Plan, cluster: Cluster, injector: FaultInjector) -> None:
        self._cluster = cluster
        self._injector = injector
        self._state = ClusterState(
            partition_assignments(plan.cluster), (broker.id for broker in plan.cluster.brokers)
        )
        self._taken = 0
        self._is_core_healed = False
        self.compared = 0

    def look(self) -> None:
        """Take what has happened since into account, and compare."""
        events = self._cluster.trace.events
        if self._taken == len(events):
            return
        for event in events[self._taken :]:
            self._state.advance(event)
            self._is_core_healed = self._is_core_healed or event[1] == "core_healed"
        self._taken = len(events)
        if self._cluster.simulator.now_us < 0:
            # Before time zero brokers are started, one after the other.
            return
        self.compared += 1
        self._compare_brokers()
        self._compare_partitions()
        self._compare_faults()

    def _compare_brokers(self) -> None:
        cluster, state = self._cluster, self._state
        where = (self._taken, cluster.trace.events[-1])
        for broker, process in cluster.processes.items():
            known, life = state.brokers[broker], cluster.brokers.get(broker)
            assert (known.is_live, known.is_paused) == (process.running, process.paused), where
            is_active = life is not None and life.controller.is_active
            assert known.is_active_controller == is_active, (*where, broker)
            # A broker tells that it is registered, or elected, when it has heard of that itself.
            assert cluster.is_registered(broker) or not known.is_registered, (*where, broker)
            assert state.controller == broker or not is_active or cluster.controller() != broker, where
        assert state.controller in (cluster.controller(), NO_CONTROLLER), where

    def _compare_partitions(self) -> None:
        cluster = self._cluster
        for name, partition in self._state.partitions.items():
            znode = cluster.partition_state(name)
            where = (self._taken, cluster.trace.events[-1], name)
            if znode is not None:
                found = (partition.leader, partition.leader_epoch, partition.isr)
                assert found == (znode.leader, znode.leader_epoch, znode.isr), where
            for replica in partition.replicas.values():
                self._compare_replica(name, replica, (*where, replica.broker))

    def _compare_replica(self, name: str, replica: ReplicaState, where: tuple[Any, ...]) -> None:
        cluster, broker = self._cluster, replica.broker
        file = cluster.disks[broker].log_file(name)
        assert (replica.leo, replica.flushed) == (file.log_end_offset, file.flushed_offset), where
        life = cluster.brokers.get(broker)
        live = None if life is None else life.replicas.partitions.get(name)
        assert replica.is_open == (live is not None), where
        if live is not None:
            assert replica.high_watermark == live.log.high_watermark, where
            assert (replica.role == LEADER) == live.is_leader(), where
        if self.compared % LOGS_EVERY == 0:
            stored = [(batch.leader_epoch, value) for batch in file.batches for value in batch.values]
            assert [(entry.leader_epoch, entry.value) for entry in replica.log] == stored, where

    def _compare_faults(self) -> None:
        """Compare the faults in force with what stands still, is dead, is cut, and with the rules for messages."""
        cluster, faults = self._cluster, self._state.faults
        where = (self._taken, cluster.trace.events[-1])
        down = {fault.detail("broker") for fault in faults if fault.fault in STOPPING}
        assert down == {broker for broker, known in cluster.processes.items() if not known.running}, where
        paused = sorted(fault.detail("broker") for fault in faults if fault.fault == "broker_pause")
        assert paused == sorted(broker for broker, known in cluster.processes.items() if known.paused), where
        if self._is_core_healed:
            # Of what goes on with the others, links within the core are free, and no end is planned.
            return
        self._compare_strikes()
        cuts: Counter[tuple[str, str]] = Counter()
        for fault in faults:
            cuts.update(links_of(fault, tuple(cluster.processes)))
        assert cuts == cluster.network._cuts, where
        rules = {rule.strike for rule in (*cluster.network._rules, *cluster.network._holding)}
        assert {fault.strike for fault in faults if fault.fault in RULES} == rules, where

    def _compare_strikes(self) -> None:
        """Compare which faults are in force with what was injected, and for how long."""
        for fault in self._state.faults:
            assert fault.strike is not None
            struck = self._injector.injected[fault.strike - 1]
            assert (struck.at_us, struck.fault, struck.details) == (fault.at_us, fault.fault, fault.details)
            lasts = [getattr(struck.concrete, name, None) for name in ("duration", "restart_after")]
            for low_us, high_us in filter(None, lasts):
                assert low_us == high_us
                assert struck.at_us + high_us >= self._cluster.simulator.now_us, fault


STOPPING: Final = frozenset({"broker_crash", "controller_failover"})
RULES: Final = frozenset({"message", "network_ack_loss", "slow_follower"})


def links_of(fault: FaultInForce, brokers: tuple[int, ...]) -> list[tuple[str, str]]:
    """Return the links that a fault cuts, in both directions."""
    if fault.fault == "partition":
        sides = product(fault.detail("between"), fault.detail("and"))
        pairs = [(one, other) for one, other in sides if one != other]
    elif fault.fault == "broker_isolation":
        broker, who = fault.detail("broker"), fault.detail("from") or "servers"
        others = [other for other in brokers if other != broker] if who != "zookeeper" else []
        pairs = [(broker, other) for other in (*others, *(["zookeeper"] if who != "brokers" else []))]
    else:
        return []
    links = [(process_name(one), process_name(other)) for one, other in pairs]
    return links if fault.detail("one_way") else links + [(other, one) for one, other in links]


@pytest.mark.parametrize("name", RUNS)
def test_what_is_replayed_is_what_there_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, seed = RUNS[name]
    plan = drawn(given, seed).plan
    run = Run(plan, seed, Choices.from_seed(seed))
    moments = Moments(plan, run.cluster, run.injector)
    one_step = Simulator.step

    def step(simulator: Simulator, end_us: int) -> bool:
        handled = one_step(simulator, end_us)
        moments.look()
        return handled

    def run_until(simulator: Simulator, end_us: int) -> None:
        while step(simulator, end_us):
            pass
        simulator.now_us = max(simulator.now_us, end_us)

    monkeypatch.setattr(Simulator, "step", step)
    monkeypatch.setattr(Simulator, "run_until", run_until)
    run.result()
    assert moments.compared >= 10
