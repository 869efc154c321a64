"""Faults strike on schedule, appear in the trace, and act on processes, sessions and links."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.cluster_model.sim.message_rule import DROP, HOLD, MessageRule
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
    Undo,
)
from harrow.faults.event_pattern import EventPattern
from harrow.faults.fault import Environment, Fault, GradualFault, LastingFault
from harrow.faults.injection import At, Every, Injection, Rate, Timing, When
from harrow.faults.links import NetworkAckLoss, NetworkPartition
from tests.campaigns.run.stage import Stage
from tests.conditions import condition

SECOND = 1_000_000
MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike(Fault):
    """A fault that only records when it struck."""

    name: ClassVar[str] = "strike"

    stage: Any = described("Where it strikes.", key="")
    struck: Any = described("What it notes.", key="")
    label: str = "strike"
    finds_something: bool = True

    def applies(self, environment: Environment) -> bool:
        self.struck.append((self.stage.now_us, self.label))
        return self.finds_something and bool(environment)

    def effects(self, environment: Environment) -> Iterable[FaultEffect]:
        return ()


def strike(stage: Stage, **given: Any) -> Strike:
    return Strike(stage=stage, struck=given.pop("struck", []), **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting(LastingFault):
    """A fault that lasts a second by default and records its end."""

    name: ClassVar[str] = "lasting"

    duration: Lasts = (SECOND, SECOND)
    broker: Broker = 0
    ended: Any = described("What it notes.", factory=list, key="")

    def effects(self, environment: Environment) -> Iterable[FaultEffect]:
        return ()

    def end(self, environment: Environment) -> Iterable[FaultEffect]:
        self.ended.append(self.duration)
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradual(GradualFault):
    """A fault of three steps, a second and two seconds apart."""

    name: ClassVar[str] = "gradual"

    stage: Any = described("Where it strikes.", key="")
    taken: Any = described("What it notes.", factory=list, key="")

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        for wait_us in (SECOND, 2 * SECOND, 0):
            # The injector runs the steps once in advance, without performing them.
            if environment is self.stage.environment:
                self.taken.append(self.stage.now_us)
            if wait_us:
                yield wait_us


class Melt(FaultEffect):
    """An effect that the model does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Melting(GradualFault):
    """A fault whose second step has an effect that the model does not have."""

    name: ClassVar[str] = "melting"

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        yield Kill(0)
        yield SECOND
        yield Melt()


def times_of(timing: Timing, *draws: int, end_us: int = 100 * SECOND) -> list[int]:
    stage = Stage(draws=draws)
    struck = strike(stage)
    stage.injector.schedule(Injection(timing=timing, faults=(struck,)))
    stage.cluster.simulator.run_until(end_us)
    return [at_us for at_us, _ in struck.struck]


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
    assert times_of(timing, *draws) == [at * SECOND for at in times]


def test_random_faults_have_gaps_drawn_around_the_mean() -> None:
    rate = Rate(mean_us=10 * SECOND, start_us=SECOND, stop_us=50 * SECOND)
    draws = [4 * SECOND - 1, 20 * SECOND - 1, 0, 10 * SECOND - 1, 15 * SECOND - 1]
    assert times_of(rate, *draws) == [5 * SECOND, 25 * SECOND, 25 * SECOND + 1, 35 * SECOND + 1]
    # A gap is at most twice the mean.
    assert times_of(rate, 20 * SECOND, end_us=SECOND + 1) == [SECOND + 1]


def test_one_of_several_faults_is_drawn_each_time() -> None:
    stage = Stage(draws=(2, 0, 1))
    struck: list[tuple[int, str]] = []
    faults = tuple(strike(stage, label=label, struck=struck) for label in "abc")
    stage.injector.schedule(
        Injection(timing=Every(period_us=SECOND, start_us=0, stop_us=4 * SECOND), faults=faults)
    )
    stage.cluster.simulator.run_until(5 * SECOND)
    assert [label for _, label in struck] == ["c", "a", "b"]


def broker_state(broker: int, state: str = "paused") -> Condition:
    return condition(brokers=((broker, state),))


@pytest.mark.parametrize(("times", "expected"), [(1, [2]), (2, [2, 6]), (9, [2, 6, 10])])
def test_a_triggered_fault_strikes_each_time_its_condition_becomes_true(
    times: int, expected: list[int]
) -> None:
    stage = Stage()
    struck = strike(stage)
    assert not stage.injector.has_triggers()
    stage.injector.schedule(Injection(timing=When(condition=broker_state(1), times=times), faults=(struck,)))
    assert stage.injector.has_triggers()
    for at in (2, 6, 10):
        pause = BrokerPause(broker=1, duration=(SECOND, SECOND))
        stage.injector.schedule(Injection(timing=At(at_us=(at * SECOND, at * SECOND)), faults=(pause,)))
    stage.run(20 * SECOND)
    assert [at_us for at_us, _ in struck.struck] == [at * SECOND for at in expected]
    assert stage.injector.has_triggers() == (times == 9)
    stage.injector.stop()
    assert not stage.injector.has_triggers()


def test_a_trigger_that_holds_from_the_start_strikes_at_the_first_check() -> None:
    stage = Stage()
    struck = strike(stage)
    stage.injector.schedule(Injection(timing=When(condition=broker_state(1, "up")), faults=(struck,)))
    stage.injector.check_triggers()
    stage.injector.check_triggers()
    assert len(struck.struck) == 1


def test_a_fault_can_be_triggered_by_an_event() -> None:
    stage = Stage()
    struck = strike(stage)
    wanted = condition(event=(EventPattern(event="broker_paused", fields=(("broker", 2),)),))
    stage.injector.schedule(Injection(timing=When(condition=wanted), faults=(struck,)))
    stage.cluster.at(SECOND, lambda _: stage.cluster.pause_broker(1))
    stage.cluster.at(3 * SECOND, lambda _: stage.cluster.pause_broker(2))
    stage.run(5 * SECOND)
    assert [at_us for at_us, _ in struck.struck] == [3 * SECOND]


def test_healing_ends_scheduled_and_active_faults() -> None:
    stage = Stage()
    struck = strike(stage)
    stage.injector.schedule(Injection(timing=At(at_us=(5 * SECOND, 5 * SECOND)), faults=(struck,)))
    stage.injector.inject(BrokerPause(broker=1, duration=(3 * SECOND, 3 * SECOND)))
    stage.environment.perform(RuleMessages(MessageRule(name="hold", action=HOLD, api="Fetch")))
    stage.environment.perform(Cut(0, 2))
    stage.cluster.simulator.run_until(SECOND)
    stage.cluster.heal()
    assert not stage.environment.is_paused(1)
    stage.cluster.pause_broker(1)
    stage.cluster.simulator.run_until(10 * SECOND)
    assert stage.environment.is_paused(1)  # the end of the old pause does not resume it
    assert struck.struck == []
    assert not stage.environment.has_message_rule("hold")


# The trace and the record of faults


def test_a_fault_precedes_its_effects_in_the_trace() -> None:
    stage = Stage()
    crash = BrokerCrash(broker=2, kind="power_loss", restart_after=(SECOND, 2 * SECOND))
    before = len(stage.cluster.trace.events)
    assert stage.injector.inject(crash)
    names = [event[1] for event in stage.cluster.trace.events[before:]]
    assert names[:2] == ["fault", "broker_stopped"]
    (struck,) = stage.injector.injected
    assert (struck.at_us, struck.fault) == (0, "broker_crash")
    assert dict(struck.details) == {"broker": 2, "kind": "power_loss", "restart_after": "1s"}
    assert stage.events_named("fault") == [(0, "broker_crash", "inject", struck.details, 1)]


def test_a_drawn_value_is_traced_even_if_it_is_the_default() -> None:
    stage = Stage(draws=(500,))
    assert stage.injector.inject(Lasting(duration=(500 * MS, 1_500 * MS)))
    assert dict(stage.injector.injected[0].details) == {"duration": "1s"}


def test_a_fault_without_anything_to_act_on_draws_only_its_brokers() -> None:
    stage = Stage(draws=(1, 500))
    assert stage.injector.inject(BrokerPause(broker=1))
    assert not stage.injector.inject(BrokerPause(broker="any", duration=(500 * MS, 1_500 * MS)))
    assert stage.injector.inject(BrokerPause(broker=2, duration=(500 * MS, 1_500 * MS)))
    assert dict(stage.injector.injected[1].details)["duration"] == "1s"


def test_no_duration_is_drawn_for_a_fault_that_does_not_last() -> None:
    stage = Stage(draws=(500,))
    span = (500 * MS, 1_500 * MS)
    assert stage.injector.inject(ControllerFailover(how="session_expiry", restart_after=span))
    assert dict(stage.injector.injected[0].details)["restart_after"] == "500ms..1.5s"
    assert stage.injector.inject(BrokerPause(broker=2, duration=span))
    assert dict(stage.injector.injected[1].details)["duration"] == "1s"


def test_the_end_of_a_fault_names_its_strike() -> None:
    stage = Stage()
    for seconds in (3, 1, 2):
        stage.injector.inject(
            NetworkPartition(between=(0,), and_=(1,), duration=(seconds * SECOND, seconds * SECOND))
        )
    stage.cluster.simulator.run_until(5 * SECOND)
    assert [event[-1] for event in stage.events_named("fault")] == [1, 2, 3]
    assert [event[-1] for event in stage.events_named("fault_ended")] == [2, 3, 1]


def test_a_fault_that_a_crash_or_start_ended_has_no_end_event() -> None:
    stage = Stage()
    stage.injector.inject(BrokerPause(broker=1, duration=(2 * SECOND, 2 * SECOND)))
    stage.cluster.simulator.run_until(SECOND)
    stage.injector.inject(BrokerCrash(broker=1, restart_after=(3 * SECOND, 3 * SECOND)))
    stage.cluster.simulator.run_until(3 * SECOND)
    assert stage.events_named("fault_ended") == []
    stage.injector.inject(BrokerRestart(broker=1))
    stage.cluster.simulator.run_until(10 * SECOND)
    assert stage.events_named("fault_ended") == []


def test_a_fault_without_anything_to_act_on_is_not_traced() -> None:
    stage = Stage()
    assert not stage.injector.inject(strike(stage, finds_something=False))
    assert stage.injector.injected == []
    assert stage.events_named("fault") == []


def test_the_broker_that_a_reference_resolved_to_is_traced() -> None:
    stage = Stage(draws=(1,))
    stage.injector.inject(BrokerPause(broker="any"))
    assert dict(stage.injector.injected[0].details)["broker"] == 1
    assert stage.environment.is_paused(1)


# The environment, and references to it


def test_processes_can_be_crashed_paused_and_started() -> None:
    environment = Stage().environment
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
    stage = Stage()
    stage.environment.perform(ExpireSession(1))
    stage.environment.perform(DeleteController())
    assert stage.cluster.controller() is None
    assert not stage.cluster.is_registered(1)
    stage.cluster.simulator.run_until(10 * SECOND)
    assert stage.cluster.controller() is not None
    assert stage.cluster.is_registered(1)


def fetches(stage: Stage, replica: int, duration_us: int = SECOND) -> int:
    """Return how often a follower reaches broker 0 in a period."""
    before = len(stage.events_named("fetch_waits"))
    stage.cluster.simulator.run_until(stage.now_us + duration_us)
    return [event[2] for event in stage.events_named("fetch_waits")[before:]].count(replica)


def test_links_can_be_cut_and_messages_dropped() -> None:
    stage = Stage(watches_fetches=True)
    stage.cluster.simulator.run_until(SECOND)
    assert fetches(stage, 1) > 0
    stage.environment.perform(Cut(1, 0))
    fetches(stage, 1)
    assert fetches(stage, 1) == 0
    assert fetches(stage, 2) > 0
    stage.environment.perform(Restore(1, 0))
    assert fetches(stage, 1) > 0
    rule = MessageRule(name="drop", action=DROP, api="Fetch", senders=frozenset({"broker-2"}))
    stage.environment.perform(RuleMessages(rule))
    fetches(stage, 2)
    assert fetches(stage, 2) == 0
    stage.environment.perform(Undo(RuleMessages(rule)))
    assert fetches(stage, 2, 40 * SECOND) > 0


def test_a_fault_ends_after_its_duration_unless_healing_came_first() -> None:
    stage = Stage()
    stage.cluster.simulator.run_until(SECOND)
    fault = Lasting(duration=(2 * SECOND, 2 * SECOND))
    stage.injector.inject(fault)
    stage.cluster.simulator.run_until(3 * SECOND - 1)
    assert fault.ended == []
    stage.injector.inject(fault)
    stage.cluster.simulator.run_until(3 * SECOND)
    assert [event[-1] for event in stage.events_named("fault_ended")] == [1]
    stage.cluster.heal()
    stage.cluster.simulator.run_until(10 * SECOND)
    assert [event[-1] for event in stage.events_named("fault_ended")] == [1]


def test_the_end_of_a_fault_removes_only_its_own_message_rule() -> None:
    stage = Stage()
    for seconds in (3, 1):
        stage.injector.inject(NetworkAckLoss(duration=(seconds * SECOND, seconds * SECOND)))
    stage.cluster.simulator.run_until(2 * SECOND)
    assert [rule.strike for rule in stage.cluster.network.rules()] == [1]
    stage.cluster.simulator.run_until(4 * SECOND)
    assert stage.cluster.network.rules() == ()


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
def test_an_injected_fault_is_recorded_with_everything_decided(
    fault: Fault, draws: tuple[int, ...], concrete: Fault
) -> None:
    stage = Stage(draws=draws)
    assert stage.injector.inject(fault)
    assert [injected.concrete for injected in stage.injector.injected] == [concrete]


def test_a_gradual_fault_ends_with_its_last_step() -> None:
    stage = Stage()
    fault = Gradual(stage=stage)
    stage.injector.inject(fault)
    stage.run(10 * SECOND)
    assert fault.taken == [0, SECOND, 3 * SECOND]
    assert [(at_us, name) for at_us, name, *_ in stage.events_named("fault_ended")] == [
        (3 * SECOND, "gradual")
    ]


def test_a_gradual_fault_with_an_impossible_step_does_not_strike() -> None:
    stage = Stage()
    fault = Melting()
    injection = Injection(timing=At(at_us=(SECOND, SECOND)), faults=(fault,))
    stage.injector.schedule(injection)
    stage.run(10 * SECOND)
    assert stage.injector.injected == []
    assert stage.environment.is_running(0)
    assert list(stage.injector.misses()) == ["melting did not strike: nothing here performs Melt"]


def test_a_gradual_fault_takes_no_step_once_the_cluster_is_healed() -> None:
    stage = Stage()
    fault = Gradual(stage=stage)
    stage.injector.inject(fault)
    stage.run(2 * SECOND)
    stage.cluster.heal()
    stage.run(10 * SECOND)
    assert fault.taken == [0, SECOND]
    assert stage.events_named("fault_ended") == []


def test_healing_restarts_a_stopping_broker() -> None:
    stage = Stage()
    stage.injector.inject(BrokerStop(broker=1))
    assert not stage.injector.inject(BrokerStop(broker=1))
    assert not stage.injector.inject(BrokerRestart(broker=1))
    stage.cluster.heal()
    stage.run(SECOND)
    assert [cause for _, _, cause in stage.events_named("broker_stopped")] == ["shutdown"]
    assert stage.environment.is_running(1)
    assert not stage.environment.is_stopping(1)


def test_a_stopping_broker_outside_a_healed_core_is_not_restarted() -> None:
    stage = Stage()
    for broker in (1, 2):
        stage.injector.inject(BrokerBounce(broker=broker))
    stage.cluster.heal_core((0, 1))
    stage.run(SECOND)
    assert [stage.environment.is_running(broker) for broker in (0, 1, 2)] == [True, True, False]


def test_a_crash_ends_a_stop_and_cancels_its_restart() -> None:
    stage = Stage()
    stage.injector.inject(BrokerBounce(broker=1))
    stage.injector.inject(BrokerCrash(broker=1))
    stage.run(SECOND)
    assert [cause for _, _, cause in stage.events_named("broker_stopped")] == ["process"]
    assert not stage.environment.is_running(1)
    assert not stage.environment.is_stopping(1)


def test_partitions_are_under_replicated_until_their_isr_is_complete() -> None:
    stage = Stage()
    assert stage.environment.under_replicated_partitions() == ()
    stage.injector.inject(BrokerStop(broker=1, restart_after=(5 * SECOND, 5 * SECOND)))
    stage.run(4 * SECOND)
    assert stage.environment.under_replicated_partitions() == ("t-0",)
    stage.run(10 * SECOND)
    assert stage.environment.under_replicated_partitions() == ()
