"""Small clusters under random faults keep Kafka's promises, and invariants hold after every step.

The configuration is sound: Kafka 2.4 with acks=all, no unclean elections, and disks that keep
written data. So each later leader has all records below the high watermark of any replica.
"""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.injection.fault_injector import FaultInjector
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.release.profiles import REPAIRED_SINCE
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ProducerSpec, TopicSpec
from harrow.faults.brokers import BrokerBounce, BrokerCrash, BrokerPause, BrokerStop, RollingRestart
from harrow.faults.control_plane import ControllerFailover
from harrow.faults.fault import Fault
from harrow.faults.injection import At, Injection
from harrow.faults.links import NetworkAckLoss, NetworkPartition, SlowFollower
from harrow.faults.messages import Message

MS = 1_000
SECOND = 1_000_000
STEPS_CHECKED = 12_000

durations = st.integers(0, 12).map(lambda seconds: (seconds * SECOND, seconds * SECOND))


@st.composite
def faults(draw: st.DrawFn, brokers: int, *, power_loss: bool) -> Fault:
    broker = draw(st.sampled_from(["any", "controller", "leader of t-0", "follower of t-0", *range(brokers)]))
    last = draw(durations)
    ends = ["zookeeper", "producer-0", *range(brokers)]
    kinds: list[st.SearchStrategy[Any]] = [
        st.builds(
            BrokerCrash,
            broker=st.just(broker),
            kind=st.sampled_from(["process", "power_loss"] if power_loss else ["process"]),
            restart_after=st.just(last),
        ),
        st.builds(BrokerPause, broker=st.just(broker), duration=st.just(last)),
        st.builds(BrokerStop, broker=st.just(broker), restart_after=st.just(last)),
        st.builds(BrokerBounce, broker=st.just(broker)),
        st.builds(
            RollingRestart,
            order=st.sampled_from(["id", "controller_last"]),
            pause=st.just(last),
            wait_for_isr=st.booleans(),
        ),
        st.builds(
            ControllerFailover,
            how=st.sampled_from(["crash", "session_expiry", "delete_znode"]),
            restart_after=st.just(last),
        ),
        st.builds(
            NetworkPartition,
            between=st.just((broker if isinstance(broker, int) else 0,)),
            and_=st.sampled_from(ends).map(lambda end: (end,)),
            one_way=st.booleans(),
            duration=st.just(last),
        ).filter(lambda partition: partition.problem() is None),
        st.builds(
            NetworkAckLoss,
            how=st.sampled_from(["reset", "timeout"]),
            count=st.integers(1, 3),
            duration=st.just(last),
        ),
        st.builds(
            SlowFollower,
            broker=st.just(broker),
            mode=st.sampled_from(["stuck", "slow"]),
            duration=st.just(last),
        ),
        st.builds(
            Message,
            action=st.sampled_from(["drop", "delay", "duplicate", "reset"]),
            api=st.sampled_from(
                ["Fetch", "Produce", "LeaderAndIsr", "OffsetsForLeaderEpoch", "ZooKeeper", "UpdateMetadata"]
            ),
            kind=st.sampled_from(["request", "response"]),
            count=st.integers(1, 4),
            skip=st.integers(0, 20),
        ),
    ]
    return draw(st.one_of(kinds))  # type: ignore[no-any-return]  # strategies of several types


@st.composite
def plans(draw: st.DrawFn, *, power_loss: bool = False) -> Plan:
    """Draw a plan of ten seconds: up to four brokers, two partitions and six faults."""
    brokers = draw(st.integers(1, 4))
    factor = draw(st.integers(1, brokers))
    topic = TopicSpec(name="t", partitions=draw(st.integers(1, 2)), replication_factor=factor)
    cluster_settings = {
        "min.insync.replicas": draw(st.integers(1, factor)),
        "replica.lag.time.max.ms": draw(st.sampled_from([1_000, 4_000])),
        "zookeeper.session.timeout.ms": 3_000,
        "replica.fetch.wait.max.ms": draw(st.sampled_from([50, 500])),
        # The smaller value makes a follower need many fetches to catch up.
        "replica.fetch.max.bytes": draw(st.sampled_from([200, 1_048_576])),
    }
    producer = ProducerSpec(
        name="producer-0",
        settings={
            "acks": "all",
            "enable.idempotence": draw(st.booleans()),
            "linger.ms": draw(st.sampled_from([0, 50])),
            "request.timeout.ms": 2_000,
            "delivery.timeout.ms": draw(st.sampled_from([4_000, 120_000])),
            "max.in.flight.requests.per.connection": draw(st.sampled_from([1, 5])),
        },
        interval_us=draw(st.sampled_from([20, 100, 2_000])) * MS,
        stop_us=10 * SECOND,
    )
    injections = draw(
        st.lists(
            st.builds(
                Injection,
                timing=st.integers(0, 100).map(
                    lambda tenths: At(at_us=(tenths * 100 * MS, tenths * 100 * MS))
                ),
                faults=st.tuples(faults(brokers, power_loss=power_loss)),
            ),
            max_size=6,
        )
    )
    return Plan(
        campaign="drawn",
        behaviours=REPAIRED_SINCE,
        cluster=ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(brokers)),
            topics=(topic,),
            settings=cluster_settings,
            zookeeper_tick_us=SECOND,
        ),
        producers=(producer,),
        faults=tuple(injections),
        duration_us=12 * SECOND,
    )


class Watcher:
    """Checks the changed replicas of a cluster after each step."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._leader_hw: dict[tuple[int, int, str, int], int] = {}
        self._checked: dict[tuple[int, int, str], tuple[int, int, int]] = {}
        self._committed: dict[str, list[tuple[int, str]]] = {}
        self.hw_max = 0

    def check(self) -> None:
        for broker_id, broker in self._cluster.brokers.items():
            incarnation = self._cluster.processes[broker_id].incarnation
            for name, partition in broker.replicas.partitions.items():
                log = partition.log
                key = (broker_id, incarnation, name)
                state = (log.log_end_offset, log.high_watermark, partition.leader_epoch)
                if self._checked.get(key) != state:
                    self._checked[key] = state
                    self._check_replica(broker_id, incarnation, partition)
                if partition.is_leader():
                    self._check_isr(broker_id, partition)

    def _check_replica(self, broker: int, incarnation: int, partition: Partition) -> None:
        log = partition.log
        where = f"{partition.name} on broker {broker} at {self._cluster.simulator.now_us} us"
        assert 0 <= log.high_watermark <= log.log_end_offset, f"HW above LEO: {where}"
        assert log.flushed_offset <= log.log_end_offset, f"flushed above LEO: {where}"
        entries = log.epochs.entries
        for (epoch, start), (next_epoch, next_start) in pairwise(entries):
            assert epoch < next_epoch, f"epochs {entries}: {where}"
            assert start < next_start, f"epochs {entries}: {where}"
        if partition.is_leader():
            term = (broker, incarnation, partition.name, partition.leader_epoch)
            assert log.high_watermark >= self._leader_hw.get(term, 0), f"the leader's HW fell: {where}"
            self._leader_hw[term] = log.high_watermark
        self.hw_max = max(self.hw_max, log.high_watermark)
        self._compare_with_committed(partition, where)

    def _compare_with_committed(self, partition: Partition, where: str) -> None:
        """Check that a log agrees with all committed records below its high watermark."""
        committed = self._committed.setdefault(partition.name, [])
        own = [(batch.leader_epoch, value) for batch in partition.log.batches for value in batch.values]
        own = own[: partition.log.high_watermark]
        common = min(len(own), len(committed))
        assert own[:common] == committed[:common], f"logs differ below the HW: {where}"
        committed += own[common:]

    def _check_isr(self, broker: int, leader: Partition) -> None:
        """Check that each ISR member has all records below the leader's HW.

        A broker whose leadership ZooKeeper no longer confirms is not checked.
        """
        state = self._cluster.partition_state(leader.name)
        if state is None or (state.leader, state.leader_epoch) != (broker, leader.leader_epoch):
            return
        hw = leader.log.high_watermark
        assert broker in leader.isr
        for member in leader.isr:
            leo = self._cluster.disks[member].log_file(leader.name).log_end_offset
            assert leo >= hw, f"broker {member} is in the ISR of {leader.name} with LEO {leo}, HW {hw}"


class SteppedPlan:
    """Starts the cluster, clients and faults of a plan, for a test that runs them step by step."""

    def __init__(self, plan: Plan, seed: int) -> None:
        choices = Choices.from_seed(seed)
        target = ModelTarget(plan, choices, tuple(INVARIANTS))
        self.cluster = target.cluster
        target.start()
        target.clients.start()
        injector = FaultInjector(target, plan.cluster, choices.schedule)
        for injection in plan.faults:
            injector.schedule(injection)


seeds = st.integers(0, 2**16)


@pytest.mark.soak(size=25, rounds_in_test=1, rounds_in_soak=200)
@settings(max_examples=25)
@given(plan=plans(), seed=seeds)
def test_invariants_hold_after_every_step(plan: Plan, seed: int) -> None:
    cluster = SteppedPlan(plan, seed).cluster
    watcher = Watcher(cluster)
    simulator = cluster.simulator
    steps = 0
    while steps < STEPS_CHECKED and simulator.step(plan.duration_us):
        watcher.check()
        steps += 1
    # Continue to the end with fewer checks, then heal the cluster and let it settle.
    while simulator.now_us < plan.duration_us:
        simulator.run_until(simulator.now_us + 100 * MS)
        watcher.check()
    cluster.heal()
    for _ in range(60):
        simulator.run_until(simulator.now_us + 500 * MS)
        watcher.check()
    event("records were committed" if watcher.hw_max else "no record was committed")


@pytest.mark.soak(size=25, rounds_in_test=1, rounds_in_soak=200)
@settings(max_examples=25)
@given(plan=plans(power_loss=True), seed=seeds)
def test_random_faults_break_no_promise(plan: Plan, seed: int) -> None:
    verdict = run_plan(plan, seed).verdict
    event(f"verdict: {verdict.status}")
    assert verdict.status != "violated", [
        finding for rule in verdict.rules.values() for finding in rule.findings
    ]
