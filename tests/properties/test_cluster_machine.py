"""A cluster keeps its promises under any sequence of actions, drawn by a Hypothesis state machine.

The configuration is sound: acks=all with idempotence, clean elections, disks that keep written
data.
"""

from collections.abc import Mapping
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.run.live_run import LiveRun
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.release.profiles import REPAIRED_SINCE
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ProducerSpec, TopicSpec
from harrow.faults.actions import Send
from harrow.faults.brokers import BrokerCrash, BrokerPause, BrokerRestart, BrokerResume
from harrow.faults.control_plane import ControllerFailover
from harrow.faults.links import NetworkAckLoss, NetworkPartition

BROKERS = (0, 1, 2)
QUICK = settings(
    max_examples=10,
    stateful_step_count=25,
    deadline=None,
    database=None,
    derandomize=True,
    report_multiple_bugs=False,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)

brokers = st.sampled_from(BROKERS)
lengths = st.sampled_from([2_000, 100_000, 1_000_000, 7_000_000])


def safe_plan(behaviours: Mapping[str, Value] = REPAIRED_SINCE) -> Plan:
    return Plan(
        campaign="machine",
        behaviours=behaviours,
        cluster=ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in BROKERS),
            topics=(TopicSpec(name="t", replication_factor=3),),
            settings={"replica.lag.time.max.ms": 2_000},
        ),
        producers=(
            ProducerSpec(
                name="producer-0",
                settings={"acks": "all", "enable.idempotence": True, "request.timeout.ms": 2_000},
            ),
        ),
    )


class ClusterMachine(RuleBasedStateMachine):
    """Three brokers, one partition, one idempotent producer."""

    behaviours: ClassVar[Mapping[str, Value]] = REPAIRED_SINCE

    def __init__(self) -> None:
        super().__init__()
        self.run = LiveRun(safe_plan(self.behaviours))
        self.sent = 0

    @rule(count=st.integers(1, 5))
    def send(self, count: int) -> None:
        for _ in range(count):
            self.run.send(f"m{self.sent}")
            self.sent += 1

    @rule(duration_us=lengths)
    def advance(self, duration_us: int) -> None:
        self.run.advance(duration_us)

    @rule(broker=brokers)
    def crash(self, broker: int) -> None:
        self.run.inject(BrokerCrash(broker=broker))

    @precondition(lambda self: not all(map(self.run.is_running, BROKERS)))
    @rule(broker=brokers)
    def restart(self, broker: int) -> None:
        self.run.inject(BrokerRestart(broker=broker))

    @rule(broker=brokers)
    def pause(self, broker: int) -> None:
        self.run.inject(BrokerPause(broker=broker))

    @precondition(lambda self: any(map(self.run.is_paused, BROKERS)))
    @rule(broker=brokers)
    def resume(self, broker: int) -> None:
        self.run.inject(BrokerResume(broker=broker))

    @rule(how=st.sampled_from(["delete_znode", "session_expiry", "crash"]))
    def fail_over(self, how: str) -> None:
        self.run.inject(ControllerFailover(how=how))  # type: ignore[arg-type]  # a literal

    @rule(one=brokers, other=st.sampled_from([*BROKERS, "zookeeper", "producer-0"]), length_us=lengths)
    def cut(self, one: int, other: int | str, length_us: int) -> None:
        self.run.inject(NetworkPartition(between=(one,), and_=(other,), duration=(length_us, length_us)))

    @rule(broker=brokers, length_us=lengths)
    def isolate(self, broker: int, length_us: int) -> None:
        others = tuple(other for other in BROKERS if other != broker)
        self.run.inject(NetworkPartition(between=(broker,), and_=others, duration=(length_us, length_us)))

    @rule(count=st.integers(1, 3))
    def lose_acks(self, count: int) -> None:
        self.run.inject(NetworkAckLoss(count=count))

    @rule()
    def restart_producer(self) -> None:
        self.run.restart_producer()

    @invariant()
    def no_invariant_is_broken(self) -> None:
        if self.run.broken_invariants():
            raise AssertionError(campaign_text(self.run.plan()))

    def teardown(self) -> None:
        plan, result = self.run.plan(), self.run.end()
        if result.verdict.status == "violated":
            raise AssertionError(campaign_text(plan))


@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=200)
def test_any_sequence_of_actions_keeps_the_promises(numbers: range) -> None:
    @seed(numbers.start)
    class Machine(ClusterMachine):
        pass

    run_state_machine_as_test(Machine, settings=settings(QUICK, max_examples=len(numbers)))


def test_the_machine_finds_a_flaw() -> None:
    class Flawed(ClusterMachine):
        behaviours: ClassVar[Mapping[str, Value]] = {**REPAIRED_SINCE, "hw_waits_for_whole_isr": False}

    with pytest.raises(AssertionError) as caught:
        run_state_machine_as_test(Flawed, settings=settings(QUICK, max_examples=100))
    plan = load_text(str(caught.value), "found.yaml").plans[0]
    faults = [action for step in plan.script for action in step.actions if not isinstance(action, Send)]
    assert len(faults) <= 3


def test_a_sequence_of_actions_is_a_campaign() -> None:
    run = LiveRun(safe_plan({**REPAIRED_SINCE, "ack_waits_for_hw": False}))
    run.inject(NetworkPartition(between=(0,), and_=(1, 2)))
    run.send("m0")
    run.advance(3_000)
    run.inject(BrokerCrash(broker=0))
    run.advance(20_000_000)
    plan, result = run.plan(), run.end()
    again = run_plan(plan, 0)
    assert (again.verdict.status, again.trace_digest) == (result.verdict.status, result.trace_digest)
    assert again.faults == result.faults
