"""Scripts on a target that can only be polled."""

from harrow.campaigns.language.plan import Step
from harrow.campaigns.run.run_result import MissedExpectation
from harrow.campaigns.run.targets.target import Patience
from harrow.faults.actions import Expect, Wait
from harrow.faults.brokers import BrokerCrash, BrokerRestart
from harrow.faults.event_pattern import EventPattern
from tests.campaigns.run.stage import Stage
from tests.campaigns.run.test_script import MS, SECOND, send, sends, step
from tests.conditions import condition

PATIENCE = Patience(passing_us=2 * SECOND, step_us=5 * SECOND)
NEVER = Expect(condition=condition(controller=(2,)))
ACKED = Expect(condition=condition(acked=("a",)))
LEFT = (MissedExpectation(line=3, message="controller is 0, expected 2"),)


def stage(*steps: Step, patience: Patience | None = PATIENCE) -> Stage:
    made = Stage(*steps)
    made.target.patience = patience
    return made


def test_an_expectation_that_does_not_hold_yet_is_polled() -> None:
    made = stage(step(send("a"), ACKED, send("b"), line=3))
    made.script.advance()
    # The steps after it run at once.
    assert sends(made) == [(0, "a"), (0, "b")]
    made.run(SECOND)
    assert made.script.is_finished()
    assert (made.script.missed, made.script.unseen) == ([], [])
    made.run(4 * SECOND)
    assert (made.script.missed, made.script.unseen) == ([], [])


def test_later_steps_do_not_wait_for_a_passing_expectation() -> None:
    made = stage(step(NEVER, line=3), step(send("a"), at_us=SECOND), step(send("b")))
    made.run(SECOND + MS)
    assert sends(made) == [(SECOND, "a"), (SECOND, "b")]


def test_an_expectation_not_seen_in_time_is_unseen_rather_than_missed() -> None:
    made = stage(step(NEVER, line=3), step(Wait(), at_us=9 * SECOND))
    made.run(2 * SECOND - MS)
    assert (made.script.missed, made.script.unseen) == ([], [])
    made.run(9 * SECOND)
    assert (tuple(made.script.unseen), made.script.missed) == (LEFT, [])


def test_a_passing_expectation_is_polled_for_as_long_as_the_target_allows() -> None:
    made = stage(step(NEVER, line=3, at_us=SECOND), step(Wait(), at_us=9 * SECOND))
    made.run(3 * SECOND - MS)
    assert made.script.unseen == []
    made.run(3 * SECOND + MS)
    assert tuple(made.script.unseen) == LEFT


def test_a_target_that_shows_every_moment_misses_an_expectation_at_once() -> None:
    made = stage(step(NEVER, line=3), patience=None)
    made.script.advance()
    assert (tuple(made.script.missed), made.script.unseen) == (LEFT, [])


def test_an_expectation_that_holds_is_not_polled_again() -> None:
    made = stage(step(Expect(condition=condition(controller=(0,))), line=3), step(Wait(), at_us=9 * SECOND))
    made.script.advance()
    made.cluster.crash_broker(0, power_loss=False)
    made.run(4 * SECOND)
    assert (made.script.missed, made.script.unseen) == ([], [])


def test_a_fault_without_anything_to_act_on_is_missed_at_once() -> None:
    made = stage(step(BrokerRestart(broker=0), line=7))
    made.script.advance()
    assert [m.message for m in made.script.missed] == ["broker_restart found nothing to act on"]


def test_an_expectation_still_polled_at_the_end_is_unseen() -> None:
    made = stage(step(NEVER, ACKED, send("a"), line=3))
    made.script.advance()
    assert made.script.is_looking()
    made.run(SECOND)
    made.script.look_no_more()
    assert not made.script.is_looking()
    assert (tuple(made.script.unseen), made.script.missed) == (LEFT, [])


IN_VAIN = condition(acked=("never",))


def test_a_step_that_waits_too_long_is_overdue() -> None:
    made = stage(step(Wait(), at_us=SECOND), step(send("b"), when=IN_VAIN))
    made.run(6 * SECOND)
    assert not made.script.is_overdue()
    made.run(6 * SECOND + MS)
    assert made.script.is_overdue()


def test_the_wait_of_a_step_begins_when_it_is_due() -> None:
    made = stage(step(Wait()), step(send("b"), at_us=3 * SECOND, when=IN_VAIN))
    made.run(8 * SECOND)
    assert not made.script.is_overdue()
    made.run(8 * SECOND + MS)
    assert made.script.is_overdue()


def test_no_step_is_overdue_without_patience_or_after_the_last_step() -> None:
    endless = stage(step(send("b"), when=IN_VAIN), patience=None)
    endless.run(20 * SECOND)
    done = stage(step(Wait()))
    done.run(20 * SECOND)
    assert (endless.script.is_overdue(), done.script.is_overdue()) == (False, False)


def test_an_event_that_should_not_have_happened_is_unseen_at_once() -> None:
    quiet = Expect(condition=condition(no_event=(EventPattern(event="broker_stopped"),)))
    made = stage(step(BrokerCrash(broker=0), quiet, line=3))
    made.script.advance()
    assert [unseen.line for unseen in made.script.unseen] == [3]
    assert "broker_stopped" in made.script.unseen[0].message
