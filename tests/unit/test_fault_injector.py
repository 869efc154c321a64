"""When faults strike, what they are told, and what they can lay hands on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from cluster_model.message_rule import DROP, HOLD, MessageRule
from faults.broker_crash import BrokerCrash, BrokerRestart
from faults.broker_pause import BrokerPause
from faults.condition import Condition, EventCondition
from faults.fault import Fault, Surroundings
from faults.fields import DurationRange, draw_duration
from faults.injection import At, Every, Injection, Rate, Timing, When
from faults.partition import NetworkPartition
from tests.unit.stage import Stage

SECOND = 1_000_000
MS = 1_000


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A fault that only notes when it struck."""

    name: ClassVar[str] = "strike"

    label: str = "strike"
    finds_something: bool = True
    struck: list[tuple[int, str]] = field(default_factory=list)

    def inject(self, surroundings: Surroundings) -> bool:
        self.struck.append((surroundings.now_us, self.label))
        return self.finds_something


@dataclass(frozen=True, kw_only=True)
class Lasting:
    """A fault that lasts, a second by default."""

    name: ClassVar[str] = "lasting"

    duration: DurationRange = (SECOND, SECOND)

    def inject(self, surroundings: Surroundings) -> bool:
        surroundings.after(draw_duration(surroundings.draw, self.duration), lambda _: None)
        return True


def times_of(timing: Timing, *draws: int, end_us: int = 100 * SECOND) -> list[int]:
    stage = Stage(draws=draws)
    strike = Strike()
    stage.injector.schedule(Injection(timing=timing, faults=(strike,)))
    stage.cluster.simulator.run_until(end_us)
    return [at_us for at_us, _ in strike.struck]


@pytest.mark.parametrize(
    ("timing", "draws", "times"),
    [
        (At(at_us=7 * SECOND), (), [7]),
        (Every(period_us=10 * SECOND, start_us=0, stop_us=40 * SECOND), (), [10, 20, 30]),
        (Every(period_us=10 * SECOND, start_us=5 * SECOND, stop_us=36 * SECOND), (), [15, 25, 35]),
        (Every(period_us=10 * SECOND, start_us=5 * SECOND, stop_us=15 * SECOND), (), []),
    ],
)
def test_timed_faults(timing: Timing, draws: tuple[int, ...], times: list[int]) -> None:
    assert times_of(timing, *draws) == [at * SECOND for at in times]


def test_random_faults_have_gaps_drawn_around_the_mean() -> None:
    rate = Rate(mean_us=10 * SECOND, start_us=SECOND, stop_us=50 * SECOND)
    draws = [4 * SECOND - 1, 20 * SECOND - 1, 0, 10 * SECOND - 1, 15 * SECOND - 1]
    assert times_of(rate, *draws) == [5 * SECOND, 25 * SECOND, 25 * SECOND + 1, 35 * SECOND + 1]
    # No more than twice the mean: what is beyond is not drawn.
    assert times_of(rate, 20 * SECOND, end_us=SECOND + 1) == [SECOND + 1]


def test_one_of_several_faults_is_drawn_each_time() -> None:
    stage = Stage(draws=(2, 0, 1))
    struck: list[tuple[int, str]] = []
    faults = tuple(Strike(label=label, struck=struck) for label in "abc")
    stage.injector.schedule(
        Injection(timing=Every(period_us=SECOND, start_us=0, stop_us=4 * SECOND), faults=faults)
    )
    stage.cluster.simulator.run_until(5 * SECOND)
    assert [label for _, label in struck] == ["c", "a", "b"]


def paused(broker: int, state: str = "paused") -> Condition:
    return Condition(brokers=((broker, state),))


@pytest.mark.parametrize(("times", "expected"), [(1, [2]), (2, [2, 6]), (9, [2, 6, 10])])
def test_a_triggered_fault_strikes_each_time_its_condition_comes_to_hold(
    times: int, expected: list[int]
) -> None:
    stage = Stage()
    strike = Strike()
    assert not stage.injector.has_triggers()
    stage.injector.schedule(Injection(timing=When(condition=paused(1), times=times), faults=(strike,)))
    assert stage.injector.has_triggers()
    for at in (2, 6, 10):
        pause = BrokerPause(broker=1, duration=(SECOND, SECOND))
        stage.injector.schedule(Injection(timing=At(at_us=at * SECOND), faults=(pause,)))
    stage.run(20 * SECOND)
    assert [at_us for at_us, _ in strike.struck] == [at * SECOND for at in expected]
    assert stage.injector.has_triggers() == (times == 9)
    stage.injector.stop()
    assert not stage.injector.has_triggers()


def test_a_trigger_that_holds_from_the_start_strikes_at_the_first_look() -> None:
    stage = Stage()
    strike = Strike()
    stage.injector.schedule(Injection(timing=When(condition=paused(1, "up")), faults=(strike,)))
    stage.injector.check_triggers()
    stage.injector.check_triggers()
    assert len(strike.struck) == 1


def test_a_fault_can_be_triggered_by_an_event() -> None:
    stage = Stage()
    strike = Strike()
    condition = Condition(events=(EventCondition(event="broker_paused", fields=(("broker", 2),)),))
    stage.injector.schedule(Injection(timing=When(condition=condition), faults=(strike,)))
    stage.cluster.at(SECOND, lambda _: stage.cluster.pause_broker(1))
    stage.cluster.at(3 * SECOND, lambda _: stage.cluster.pause_broker(2))
    stage.run(5 * SECOND)
    assert [at_us for at_us, _ in strike.struck] == [3 * SECOND]


def test_healing_ends_what_is_scheduled_and_what_is_under_way() -> None:
    stage = Stage()
    strike = Strike()
    stage.injector.schedule(Injection(timing=At(at_us=5 * SECOND), faults=(strike,)))
    stage.injector.inject(BrokerPause(broker=1, duration=(3 * SECOND, 3 * SECOND)))
    stage.injector.add_message_rule(MessageRule(name="hold", action=HOLD, api="Fetch"))
    stage.injector.cut_link(0, 2)
    stage.cluster.simulator.run_until(SECOND)
    stage.cluster.heal()
    assert not stage.injector.is_paused(1)
    stage.cluster.pause_broker(1)
    stage.cluster.simulator.run_until(10 * SECOND)
    assert stage.injector.is_paused(1)  # nobody resumes it for the old pause
    assert strike.struck == []
    assert not stage.injector.release_messages("hold")


# What is noted


def test_a_fault_is_in_the_trace_before_what_it_does() -> None:
    stage = Stage()
    crash = BrokerCrash(broker=2, kind="power_loss", restart_after=(SECOND, 2 * SECOND))
    before = len(stage.cluster.trace.events)
    assert stage.injector.inject(crash)
    names = [event[1] for event in stage.cluster.trace.events[before:]]
    assert names[:2] == ["fault", "broker_stopped"]
    (struck,) = stage.injector.injected
    assert (struck.at_us, struck.fault) == (0, "broker_crash")
    assert dict(struck.details) == {"broker": 2, "kind": "power_loss", "restart_after": "1s"}
    assert stage.named("fault") == [(0, "broker_crash", "inject", struck.details, 1)]


def test_what_was_drawn_is_told_even_if_it_is_the_default() -> None:
    stage = Stage(draws=(500,))
    assert stage.injector.inject(Lasting(duration=(500 * MS, 1_500 * MS)))
    assert dict(stage.injector.injected[0].details) == {"duration": "1s"}


def test_the_end_of_a_fault_names_its_strike() -> None:
    stage = Stage()
    for seconds in (3, 1, 2):
        stage.injector.inject(
            NetworkPartition(between=(0,), and_=(1,), duration=(seconds * SECOND, seconds * SECOND))
        )
    stage.cluster.simulator.run_until(5 * SECOND)
    assert [event[-1] for event in stage.named("fault")] == [1, 2, 3]
    assert [event[-1] for event in stage.named("fault_ended")] == [2, 3, 1]


def test_the_end_of_what_a_crash_or_a_start_has_ended_is_not_told() -> None:
    stage = Stage()
    stage.injector.inject(BrokerPause(broker=1, duration=(2 * SECOND, 2 * SECOND)))
    stage.cluster.simulator.run_until(SECOND)
    stage.injector.inject(BrokerCrash(broker=1, restart_after=(3 * SECOND, 3 * SECOND)))
    stage.cluster.simulator.run_until(3 * SECOND)
    assert stage.named("fault_ended") == []
    stage.injector.inject(BrokerRestart(broker=1))
    stage.cluster.simulator.run_until(10 * SECOND)
    assert stage.named("fault_ended") == []


def test_a_fault_that_found_nothing_is_not_noted() -> None:
    stage = Stage()
    assert not stage.injector.inject(Strike(finds_something=False))
    assert stage.injector.injected == []
    assert stage.named("fault") == []


def test_the_broker_that_was_meant_is_noted() -> None:
    stage = Stage(draws=(1,))
    stage.injector.inject(BrokerPause(broker="any"))
    assert dict(stage.injector.injected[0].details)["broker"] == 1
    assert stage.injector.is_paused(1)


# Surroundings


@pytest.mark.parametrize(
    ("reference", "drawn", "broker"),
    [
        (2, 0, 2),
        ("any", 0, 0),
        ("any", 2, 2),
        ("controller", 0, 0),
        ("leader of t-0", 0, 0),
        ("follower of t-0", 0, 1),
        ("follower of t-0", 1, 2),
        ("leader of no-such-0", 0, None),
    ],
)
def test_what_a_reference_means(reference: int | str, drawn: int, broker: int | None) -> None:
    assert Stage(draws=(drawn,)).injector.resolve_broker(reference) == broker


def test_references_follow_the_cluster() -> None:
    stage = Stage(brokers=2, replication_factor=1, controller=1)
    assert stage.injector.resolve_broker("follower of t-0") is None  # it has no followers
    stage.injector.crash_broker(0, power_loss=False)
    stage.cluster.simulator.run_until(30 * SECOND)
    assert stage.injector.resolve_broker("leader of t-0") is None
    assert stage.injector.resolve_broker("controller") == 1


def test_processes_can_be_crashed_paused_and_started() -> None:
    injector = Stage().injector
    assert injector.broker_ids() == (0, 1, 2)
    assert injector.client_names() == ("producer-0",)
    injector.pause_broker(1)
    assert (injector.is_running(1), injector.is_paused(1)) == (True, True)
    injector.crash_broker(1, power_loss=False)
    assert (injector.is_running(1), injector.is_paused(1)) == (False, False)
    injector.start_broker(1)
    injector.pause_broker(1)
    injector.resume_broker(1)
    assert (injector.is_running(1), injector.is_paused(1)) == (True, False)


def test_sessions_can_be_ended_and_the_controller_deposed() -> None:
    stage = Stage()
    stage.injector.expire_session(1)
    stage.injector.delete_controller_znode()
    assert stage.cluster.controller() is None
    assert not stage.cluster.is_registered(1)
    stage.cluster.simulator.run_until(10 * SECOND)
    assert stage.cluster.controller() is not None
    assert stage.cluster.is_registered(1)


def fetches(stage: Stage, replica: int, duration_us: int = SECOND) -> int:
    """Return how often broker 0 hears of a follower in a time."""
    before = len(stage.named("fetch"))
    stage.cluster.simulator.run_until(stage.now_us + duration_us)
    return [event[3] for event in stage.named("fetch")[before:]].count(replica)


def test_links_can_be_cut_and_messages_dropped() -> None:
    stage = Stage()
    stage.cluster.simulator.run_until(SECOND)
    assert fetches(stage, 1) > 0
    stage.injector.cut_link(1, 0)
    fetches(stage, 1)
    assert fetches(stage, 1) == 0
    assert fetches(stage, 2) > 0
    stage.injector.restore_link(1, 0)
    assert fetches(stage, 1) > 0
    rule = MessageRule(name="drop", action=DROP, api="Fetch", senders=frozenset({"broker-2"}))
    stage.injector.add_message_rule(rule)
    fetches(stage, 2)
    assert fetches(stage, 2) == 0
    stage.injector.remove_message_rule(rule)
    assert fetches(stage, 2, 40 * SECOND) > 0


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A fault that does something when it is over, as often as it is told to."""

    name: ClassVar[str] = "ending"

    then: Callable[[Surroundings], None]
    ends: int = 1

    def inject(self, surroundings: Surroundings) -> bool:
        for _ in range(self.ends):
            surroundings.after(2 * SECOND, self.then, surroundings)
        return True


def test_what_is_to_be_done_later_is_done_then() -> None:
    stage = Stage()
    done: list[int] = []
    stage.cluster.simulator.run_until(SECOND)
    stage.injector.inject(Ending(then=lambda surroundings: done.append(surroundings.now_us)))
    stage.cluster.simulator.run_until(3 * SECOND - 1)
    assert done == []
    stage.cluster.simulator.run_until(3 * SECOND)
    assert done == [3 * SECOND]


def test_a_fault_has_one_end() -> None:
    stage = Stage()
    with pytest.raises(RuntimeError, match="one end"):
        stage.injector.inject(Ending(then=print, ends=2))
    stage.injector.inject(Ending(then=lambda surroundings: surroundings.after(SECOND, print)))
    with pytest.raises(RuntimeError, match="one end"):
        stage.cluster.simulator.run_until(3 * SECOND)


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
def test_what_struck_is_noted_with_nothing_left_to_draw(
    fault: Fault, draws: tuple[int, ...], concrete: Fault
) -> None:
    stage = Stage(draws=draws)
    assert stage.injector.inject(fault)
    assert [injected.concrete for injected in stage.injector.injected] == [concrete]
