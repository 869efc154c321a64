"""Faults strike on schedule, appear in the trace, and act on processes, sessions and links."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from harrow.campaigns.language.plan import Step
from harrow.cluster_model.fields import Broker, DurationRange, Lasts, described
from harrow.cluster_model.sim.message_rule import DROP, HOLD, MessageRule
from harrow.faults.actions import Send
from harrow.faults.brokers import BrokerBounce, BrokerCrash, BrokerPause, BrokerRestart, BrokerStop
from harrow.faults.condition import Condition
from harrow.faults.control_plane import ControllerFailover
from harrow.faults.effects import (
    Cut,
    DeleteController,
    ExpireSession,
    FaultEffect,
    Kill,
    Pause,
    Restore,
    Resume,
    RuleMessages,
    Start,
    StepClock,
    Undo,
)
from harrow.faults.event_pattern import EventPattern
from harrow.faults.fault import Environment, Fault, GradualFault, LastingFault
from harrow.faults.injection import At, Every, Injection, Rate, Timing, When
from harrow.faults.links import NetworkAckLoss, NetworkPartition
from tests.campaigns.run.cluster_harness import ClusterHarness
from tests.conditions import condition

SECOND = 1_000_000
MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingFault(Fault):
    """A fault that only records when it struck."""

    name: ClassVar[str] = "recording_fault"

    harness: Any = described("The harness of the cluster that it strikes.", key="")
    strikes: Any = described("The time and label of each strike.", key="")
    label: str = ""
    finds_target: bool = True

    def applies(self, environment: Environment) -> bool:
        self.strikes.append((self.harness.now_us, self.label))
        return self.finds_target and bool(environment)

    def effects(self, environment: Environment) -> Iterable[FaultEffect]:
        return ()


def recording_fault(harness: ClusterHarness, **fields: Any) -> RecordingFault:
    return RecordingFault(harness=harness, strikes=fields.pop("strikes", []), **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingLastingFault(LastingFault):
    """A fault that lasts a second by default and records its end."""

    name: ClassVar[str] = "recording_lasting_fault"

    duration: Lasts = (SECOND, SECOND)
    broker: Broker = 0
    ended_durations: Any = described("The duration of each fault that ended.", factory=list, key="")

    def effects(self, environment: Environment) -> Iterable[FaultEffect]:
        return ()

    def end(self, environment: Environment) -> Iterable[FaultEffect]:
        self.ended_durations.append(self.duration)
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingGradualFault(GradualFault):
    """A fault of three steps, a second and two seconds apart."""

    name: ClassVar[str] = "recording_gradual_fault"

    harness: Any = described("The harness of the cluster that it strikes.", key="")
    step_times: Any = described("The times of its steps.", factory=list, key="")

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        for wait_us in (SECOND, 2 * SECOND, 0):
            # The injector runs the steps once in advance, without performing them.
            if environment is self.harness.environment:
                self.step_times.append(self.harness.now_us)
            if wait_us:
                yield wait_us


class UnsupportedEffect(FaultEffect):
    """An effect that the model does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlySupportedFault(GradualFault):
    """A fault whose second step has an effect that the model does not have."""

    name: ClassVar[str] = "partly_supported_fault"

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        yield Kill(0)
        yield SECOND
        yield UnsupportedEffect()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnDelayFault(Fault):
    """A fault whose effect depends on a drawn duration."""

    name: ClassVar[str] = "drawn_delay_fault"

    delay: DurationRange = (SECOND, 3 * SECOND)

    def effects(self, environment: Environment) -> Iterable[FaultEffect]:
        return (StepClock(0, self.delay[0]),)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLengthFault(LastingFault):
    """A fault whose effect depends on how long it lasts."""

    name: ClassVar[str] = "drawn_length_fault"

    duration: Lasts = (SECOND, 3 * SECOND)

    def effects(self, environment: Environment) -> Iterable[FaultEffect]:
        return (StepClock(0, self.duration[0]),)


def strike_times(timing: Timing, *draws: int, end_us: int = 100 * SECOND) -> list[int]:
    harness = ClusterHarness(draws=draws)
    fault = recording_fault(harness)
    harness.injector.schedule(Injection(timing=timing, faults=(fault,)))
    harness.cluster.simulator.run_until(end_us)
    return [at_us for at_us, _ in fault.strikes]


@pytest.mark.parametrize(
    ("timing", "draws", "times"),
    [
        (At(at_us=(7 * SECOND, 7 * SECOND)), (), [7]),
        (Every(period_us=10 * SECOND, start_us=0, stop_us=40 * SECOND), (), [10, 20, 30]),
        (Every(period_us=10 * SECOND, start_us=5 * SECOND, stop_us=36 * SECOND), (), [15, 25, 35]),
        (Every(period_us=10 * SECOND, start_us=5 * SECOND, stop_us=15 * SECOND), (), []),
    ],
)
def test_a_fault_strikes_at_its_time_or_periodically(
    timing: Timing, draws: tuple[int, ...], times: list[int]
) -> None:
    assert strike_times(timing, *draws) == [second * SECOND for second in times]


def test_random_faults_have_gaps_drawn_around_the_mean() -> None:
    rate = Rate(mean_us=10 * SECOND, start_us=SECOND, stop_us=50 * SECOND)
    draws = [4 * SECOND - 1, 20 * SECOND - 1, 0, 10 * SECOND - 1, 15 * SECOND - 1]
    assert strike_times(rate, *draws) == [5 * SECOND, 25 * SECOND, 25 * SECOND + 1, 35 * SECOND + 1]
    # A gap is at most twice the mean.
    assert strike_times(rate, 20 * SECOND, end_us=SECOND + 1) == [SECOND + 1]


def test_one_of_several_faults_is_drawn_each_time() -> None:
    harness = ClusterHarness(draws=(2, 0, 1))
    strikes: list[tuple[int, str]] = []
    faults = tuple(recording_fault(harness, label=label, strikes=strikes) for label in "abc")
    harness.injector.schedule(
        Injection(timing=Every(period_us=SECOND, start_us=0, stop_us=4 * SECOND), faults=faults)
    )
    harness.cluster.simulator.run_until(5 * SECOND)
    assert [label for _, label in strikes] == ["c", "a", "b"]


def broker_state(broker: int, state: str = "paused") -> Condition:
    return condition(brokers=((broker, state),))


@pytest.mark.parametrize(("times", "expected"), [(1, [2]), (2, [2, 6]), (9, [2, 6, 10])])
def test_a_triggered_fault_strikes_each_time_its_condition_becomes_true(
    times: int, expected: list[int]
) -> None:
    harness = ClusterHarness()
    fault = recording_fault(harness)
    assert not harness.injector.has_triggers()
    harness.injector.schedule(Injection(timing=When(condition=broker_state(1), times=times), faults=(fault,)))
    assert harness.injector.has_triggers()
    for at in (2, 6, 10):
        pause = BrokerPause(broker=1, duration=(SECOND, SECOND))
        harness.injector.schedule(Injection(timing=At(at_us=(at * SECOND, at * SECOND)), faults=(pause,)))
    harness.run(20 * SECOND)
    assert [at_us for at_us, _ in fault.strikes] == [at * SECOND for at in expected]
    assert harness.injector.has_triggers() == (times == 9)
    harness.injector.stop()
    assert not harness.injector.has_triggers()


def test_a_trigger_that_holds_from_the_start_strikes_at_the_first_check() -> None:
    harness = ClusterHarness()
    fault = recording_fault(harness)
    harness.injector.schedule(Injection(timing=When(condition=broker_state(1, "up")), faults=(fault,)))
    harness.injector.check_triggers()
    harness.injector.check_triggers()
    assert len(fault.strikes) == 1


def test_a_fault_can_be_triggered_by_an_event() -> None:
    harness = ClusterHarness()
    fault = recording_fault(harness)
    wanted = condition(event=(EventPattern(event="broker_paused", fields=(("broker", 2),)),))
    harness.injector.schedule(Injection(timing=When(condition=wanted), faults=(fault,)))
    harness.cluster.at(SECOND, lambda _: harness.cluster.pause_broker(1))
    harness.cluster.at(3 * SECOND, lambda _: harness.cluster.pause_broker(2))
    harness.run(5 * SECOND)
    assert [at_us for at_us, _ in fault.strikes] == [3 * SECOND]


def test_healing_cancels_scheduled_faults_and_ends_active_ones() -> None:
    harness = ClusterHarness()
    fault = recording_fault(harness)
    harness.injector.schedule(Injection(timing=At(at_us=(5 * SECOND, 5 * SECOND)), faults=(fault,)))
    harness.injector.inject(BrokerPause(broker=1, duration=(3 * SECOND, 3 * SECOND)))
    harness.environment.perform(RuleMessages(MessageRule(name="hold", action=HOLD, api="Fetch")))
    harness.environment.perform(Cut(0, 2))
    harness.cluster.simulator.run_until(SECOND)
    harness.cluster.heal()
    assert not harness.environment.is_paused(1)
    harness.cluster.pause_broker(1)
    harness.cluster.simulator.run_until(10 * SECOND)
    assert harness.environment.is_paused(1)  # the end of the old pause does not resume it
    assert fault.strikes == []
    assert not harness.environment.message_rules()


# The trace and the record of faults


def test_a_fault_precedes_its_effects_in_the_trace() -> None:
    harness = ClusterHarness()
    crash = BrokerCrash(broker=2, kind="power_loss", restart_after=(SECOND, 2 * SECOND))
    before = len(harness.cluster.trace.events)
    assert harness.injector.inject(crash)
    names = [event[1] for event in harness.cluster.trace.events[before:]]
    assert names[:2] == ["fault", "broker_stopped"]
    (injected,) = harness.injector.injected
    assert (injected.at_us, injected.fault) == (0, "broker_crash")
    assert dict(injected.details) == {"broker": 2, "kind": "power_loss", "restart_after": "1s"}
    assert harness.events_named("fault") == [(0, "broker_crash", "inject", injected.details, 1)]


def test_a_drawn_value_is_traced_even_if_it_is_the_default() -> None:
    harness = ClusterHarness(draws=(500,))
    assert harness.injector.inject(RecordingLastingFault(duration=(500 * MS, 1_500 * MS)))
    assert dict(harness.injector.injected[0].details) == {"duration": "1s"}


@pytest.mark.parametrize("kind", [DrawnDelayFault, DrawnLengthFault])
def test_a_fault_acts_with_the_duration_that_it_drew(kind: type[Fault]) -> None:
    harness = ClusterHarness(draws=(1_500,))
    assert harness.injector.inject(kind())
    assert harness.cluster.processes[0].skew_us == 2_500 * MS


def test_a_fault_that_finds_nothing_to_do_draws_no_duration() -> None:
    harness = ClusterHarness(draws=(1, 500))
    assert harness.injector.inject(BrokerPause(broker=1))
    assert not harness.injector.inject(BrokerPause(broker="any", duration=(500 * MS, 1_500 * MS)))
    assert harness.injector.inject(BrokerPause(broker=2, duration=(500 * MS, 1_500 * MS)))
    assert dict(harness.injector.injected[1].details)["duration"] == "1s"


def test_no_duration_is_drawn_for_a_fault_that_does_not_last() -> None:
    harness = ClusterHarness(draws=(500,))
    span = (500 * MS, 1_500 * MS)
    assert harness.injector.inject(ControllerFailover(how="session_expiry", restart_after=span))
    assert dict(harness.injector.injected[0].details)["restart_after"] == "500ms..1.5s"
    assert harness.injector.inject(BrokerPause(broker=2, duration=span))
    assert dict(harness.injector.injected[1].details)["duration"] == "1s"


def test_a_fault_ended_event_has_the_number_of_its_fault_event() -> None:
    harness = ClusterHarness()
    for seconds in (3, 1, 2):
        harness.injector.inject(
            NetworkPartition(between=(0,), and_=(1,), duration=(seconds * SECOND, seconds * SECOND))
        )
    harness.cluster.simulator.run_until(5 * SECOND)
    assert [event[-1] for event in harness.events_named("fault")] == [1, 2, 3]
    assert [event[-1] for event in harness.events_named("fault_ended")] == [2, 3, 1]


def test_a_fault_that_a_crash_or_start_ended_has_no_end_event() -> None:
    harness = ClusterHarness()
    harness.injector.inject(BrokerPause(broker=1, duration=(2 * SECOND, 2 * SECOND)))
    harness.cluster.simulator.run_until(SECOND)
    harness.injector.inject(BrokerCrash(broker=1, restart_after=(3 * SECOND, 3 * SECOND)))
    harness.cluster.simulator.run_until(3 * SECOND)
    assert harness.events_named("fault_ended") == []
    harness.injector.inject(BrokerRestart(broker=1))
    harness.cluster.simulator.run_until(10 * SECOND)
    assert harness.events_named("fault_ended") == []


def test_a_fault_that_finds_nothing_to_do_is_not_traced() -> None:
    harness = ClusterHarness()
    assert not harness.injector.inject(recording_fault(harness, finds_target=False))
    assert harness.injector.injected == []
    assert harness.events_named("fault") == []


def test_the_broker_that_a_reference_resolved_to_is_traced() -> None:
    harness = ClusterHarness(draws=(1,))
    harness.injector.inject(BrokerPause(broker="any"))
    assert dict(harness.injector.injected[0].details)["broker"] == 1
    assert harness.environment.is_paused(1)


# The environment


def test_processes_can_be_crashed_paused_and_started() -> None:
    environment = ClusterHarness().environment
    assert environment.broker_ids() == (0, 1, 2)
    assert environment.client_names() == ("producer-0",)
    environment.perform(Pause(1))
    assert (environment.is_running(1), environment.is_paused(1)) == (True, True)
    environment.perform(Kill(1))
    assert (environment.is_running(1), environment.is_paused(1)) == (False, False)
    environment.perform(Start(1))
    environment.perform(Pause(1))
    environment.perform(Resume(1))
    assert (environment.is_running(1), environment.is_paused(1)) == (True, False)


def test_sessions_can_be_ended_and_the_controller_deposed() -> None:
    harness = ClusterHarness()
    harness.environment.perform(ExpireSession(1))
    harness.environment.perform(DeleteController())
    assert harness.cluster.controller() is None
    assert not harness.cluster.is_registered(1)
    harness.cluster.simulator.run_until(10 * SECOND)
    assert harness.cluster.controller() is not None
    assert harness.cluster.is_registered(1)


def count_fetches(harness: ClusterHarness, replica: int, duration_us: int = SECOND) -> int:
    """Return how often a follower reaches broker 0 in a period."""
    before = len(harness.events_named("fetch_waits"))
    harness.cluster.simulator.run_until(harness.now_us + duration_us)
    return [event[2] for event in harness.events_named("fetch_waits")[before:]].count(replica)


def test_links_can_be_cut_and_messages_dropped() -> None:
    harness = ClusterHarness(watches_fetches=True)
    harness.cluster.simulator.run_until(SECOND)
    assert count_fetches(harness, 1) > 0
    harness.environment.perform(Cut(1, 0))
    count_fetches(harness, 1)
    assert count_fetches(harness, 1) == 0
    assert count_fetches(harness, 2) > 0
    harness.environment.perform(Restore(1, 0))
    assert count_fetches(harness, 1) > 0
    rule = MessageRule(name="drop", action=DROP, api="Fetch", senders=frozenset({"broker-2"}))
    harness.environment.perform(RuleMessages(rule))
    count_fetches(harness, 2)
    assert count_fetches(harness, 2) == 0
    harness.environment.perform(Undo(RuleMessages(rule)))
    assert count_fetches(harness, 2, 40 * SECOND) > 0


def test_a_fault_ends_after_its_duration_unless_healing_came_first() -> None:
    harness = ClusterHarness()
    harness.cluster.simulator.run_until(SECOND)
    fault = RecordingLastingFault(duration=(2 * SECOND, 2 * SECOND))
    harness.injector.inject(fault)
    harness.cluster.simulator.run_until(3 * SECOND - 1)
    assert fault.ended_durations == []
    harness.injector.inject(fault)
    harness.cluster.simulator.run_until(3 * SECOND)
    assert [event[-1] for event in harness.events_named("fault_ended")] == [1]
    harness.cluster.heal()
    harness.cluster.simulator.run_until(10 * SECOND)
    assert [event[-1] for event in harness.events_named("fault_ended")] == [1]


def test_the_end_of_a_fault_removes_only_its_own_message_rule() -> None:
    harness = ClusterHarness()
    for seconds in (3, 1):
        harness.injector.inject(NetworkAckLoss(duration=(seconds * SECOND, seconds * SECOND)))
    harness.cluster.simulator.run_until(2 * SECOND)
    assert [rule.strike for rule in harness.cluster.network.rules()] == [1]
    harness.cluster.simulator.run_until(4 * SECOND)
    assert harness.cluster.network.rules() == ()


@pytest.mark.parametrize(
    ("fault", "draws", "concrete"),
    [
        (BrokerCrash(broker="any"), (2,), BrokerCrash(broker=2)),
        (BrokerCrash(broker="leader of t-0"), (), BrokerCrash(broker=0)),
        (
            BrokerPause(broker="any", duration=(SECOND, 2 * SECOND)),
            (1, 500),
            BrokerPause(broker=1, duration=(1_500 * MS, 1_500 * MS)),
        ),
        (
            BrokerCrash(broker=1, kind="power_loss", restart_after=(SECOND, SECOND)),
            (),
            BrokerCrash(broker=1, kind="power_loss", restart_after=(SECOND, SECOND)),
        ),
    ],
)
def test_an_injected_fault_is_recorded_with_its_drawn_values(
    fault: Fault, draws: tuple[int, ...], concrete: Fault
) -> None:
    harness = ClusterHarness(draws=draws)
    assert harness.injector.inject(fault)
    assert [injected.concrete for injected in harness.injector.injected] == [concrete]


def test_a_gradual_fault_ends_with_its_last_step() -> None:
    harness = ClusterHarness()
    fault = RecordingGradualFault(harness=harness)
    harness.injector.inject(fault)
    harness.run(10 * SECOND)
    assert fault.step_times == [0, SECOND, 3 * SECOND]
    assert [(at_us, name) for at_us, name, *_ in harness.events_named("fault_ended")] == [
        (3 * SECOND, "recording_gradual_fault")
    ]


def test_a_gradual_fault_with_an_impossible_step_does_not_strike() -> None:
    harness = ClusterHarness()
    fault = PartlySupportedFault()
    injection = Injection(timing=At(at_us=(SECOND, SECOND)), faults=(fault,))
    harness.injector.schedule(injection)
    harness.run(10 * SECOND)
    assert harness.injector.injected == []
    assert harness.environment.is_running(0)
    assert list(harness.injector.reasons_not_struck()) == [
        "partly_supported_fault did not strike: nothing here performs UnsupportedEffect"
    ]


@pytest.mark.parametrize("sends", [True, False])
def test_a_rule_for_messages_strikes_only_if_it_acts_on_one(*, sends: bool) -> None:
    send = Step(at_us=2 * SECOND, actions=(Send(producer="producer-0", value="m0", partition="t-0"),))
    harness = ClusterHarness(*([send] if sends else []))
    loss = NetworkAckLoss(client="producer-0", count=1)
    harness.injector.schedule(Injection(timing=At(at_us=(SECOND, SECOND)), faults=(loss,)))
    harness.run(10 * SECOND)
    reasons = harness.injector.reasons_not_struck()
    assert len(harness.injector.injected) == 1
    assert [reason.partition(" did not strike: ")[2] for reason in reasons] == (
        [] if sends else ["it acted on no message"]
    )


def test_a_gradual_fault_takes_no_step_after_the_cluster_is_healed() -> None:
    harness = ClusterHarness()
    fault = RecordingGradualFault(harness=harness)
    harness.injector.inject(fault)
    harness.run(2 * SECOND)
    harness.cluster.heal()
    harness.run(10 * SECOND)
    assert fault.step_times == [0, SECOND]
    assert harness.events_named("fault_ended") == []


def test_healing_restarts_a_stopping_broker() -> None:
    harness = ClusterHarness()
    harness.injector.inject(BrokerStop(broker=1))
    assert not harness.injector.inject(BrokerStop(broker=1))
    assert not harness.injector.inject(BrokerRestart(broker=1))
    harness.cluster.heal()
    harness.run(SECOND)
    assert [cause for _, _, cause in harness.events_named("broker_stopped")] == ["shutdown"]
    assert harness.environment.is_running(1)
    assert not harness.environment.is_stopping(1)


def test_a_stopping_broker_outside_a_healed_core_is_not_restarted() -> None:
    harness = ClusterHarness()
    for broker in (1, 2):
        harness.injector.inject(BrokerBounce(broker=broker))
    harness.cluster.heal_core((0, 1))
    harness.run(SECOND)
    assert [harness.environment.is_running(broker) for broker in (0, 1, 2)] == [True, True, False]


def test_a_crash_ends_a_stop_and_cancels_its_restart() -> None:
    harness = ClusterHarness()
    harness.injector.inject(BrokerBounce(broker=1))
    harness.injector.inject(BrokerCrash(broker=1))
    harness.run(SECOND)
    assert [cause for _, _, cause in harness.events_named("broker_stopped")] == ["process"]
    assert not harness.environment.is_running(1)
    assert not harness.environment.is_stopping(1)


def test_partitions_are_under_replicated_until_their_isr_is_complete() -> None:
    harness = ClusterHarness()
    assert harness.environment.under_replicated_partitions() == ()
    harness.injector.inject(BrokerStop(broker=1, restart_after=(5 * SECOND, 5 * SECOND)))
    harness.run(4 * SECOND)
    assert harness.environment.under_replicated_partitions() == ("t-0",)
    harness.run(10 * SECOND)
    assert harness.environment.under_replicated_partitions() == ()
