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

PATIENCE = Patience(transient_us=2 * SECOND, step_us=5 * SECOND)
NEVER = Expect(condition=condition(controller=(2,)))
ACKED = Expect(condition=condition(acked=("a",)))
MISSED = (MissedExpectation(line=3, message="controller is 0, expected 2"),)


def patient_stage(*steps: Step, patience: Patience | None = PATIENCE) -> Stage:
    stage = Stage(*steps)
    stage.target.patience = patience
    return stage


def test_an_expectation_that_does_not_hold_yet_is_polled() -> None:
    stage = patient_stage(step(send("a"), ACKED, send("b"), line=3))
    stage.script.advance()
    # The steps after it run at once.
    assert sends(stage) == [(0, "a"), (0, "b")]
    stage.run(SECOND)
    assert stage.script.is_finished()
    assert (stage.script.missed, stage.script.unseen) == ([], [])
    stage.run(4 * SECOND)
    assert (stage.script.missed, stage.script.unseen) == ([], [])


def test_later_steps_do_not_wait_for_a_transient_expectation() -> None:
    stage = patient_stage(step(NEVER, line=3), step(send("a"), at_us=SECOND), step(send("b")))
    stage.run(SECOND + MS)
    assert sends(stage) == [(SECOND, "a"), (SECOND, "b")]


def test_an_expectation_not_seen_in_time_is_unseen_rather_than_missed() -> None:
    stage = patient_stage(step(NEVER, line=3), step(Wait(), at_us=9 * SECOND))
    stage.run(2 * SECOND - MS)
    assert (stage.script.missed, stage.script.unseen) == ([], [])
    stage.run(9 * SECOND)
    assert (tuple(stage.script.unseen), stage.script.missed) == (MISSED, [])


def test_a_transient_expectation_is_polled_for_as_long_as_the_target_allows() -> None:
    stage = patient_stage(step(NEVER, line=3, at_us=SECOND), step(Wait(), at_us=9 * SECOND))
    stage.run(3 * SECOND - MS)
    assert stage.script.unseen == []
    stage.run(3 * SECOND + MS)
    assert tuple(stage.script.unseen) == MISSED


def test_a_target_that_shows_every_moment_misses_an_expectation_at_once() -> None:
    stage = patient_stage(step(NEVER, line=3), patience=None)
    stage.script.advance()
    assert (tuple(stage.script.missed), stage.script.unseen) == (MISSED, [])


def test_an_expectation_that_holds_is_not_polled_again() -> None:
    stage = patient_stage(
        step(Expect(condition=condition(controller=(0,))), line=3), step(Wait(), at_us=9 * SECOND)
    )
    stage.script.advance()
    stage.cluster.crash_broker(0, power_loss=False)
    stage.run(4 * SECOND)
    assert (stage.script.missed, stage.script.unseen) == ([], [])


def test_a_fault_without_anything_to_act_on_is_missed_at_once() -> None:
    stage = patient_stage(step(BrokerRestart(broker=0), line=7))
    stage.script.advance()
    assert [m.message for m in stage.script.missed] == ["broker_restart found nothing to act on"]


def test_an_expectation_still_polled_at_the_end_is_unseen() -> None:
    stage = patient_stage(step(NEVER, ACKED, send("a"), line=3))
    stage.script.advance()
    assert stage.script.is_polling()
    stage.run(SECOND)
    stage.script.stop_polling()
    assert not stage.script.is_polling()
    assert (tuple(stage.script.unseen), stage.script.missed) == (MISSED, [])


NEVER_ACKED = condition(acked=("never",))


def test_a_step_that_waits_too_long_is_overdue() -> None:
    stage = patient_stage(step(Wait(), at_us=SECOND), step(send("b"), when=NEVER_ACKED))
    stage.run(6 * SECOND)
    assert not stage.script.is_overdue()
    stage.run(6 * SECOND + MS)
    assert stage.script.is_overdue()


def test_the_wait_of_a_step_begins_when_it_is_due() -> None:
    stage = patient_stage(step(Wait()), step(send("b"), at_us=3 * SECOND, when=NEVER_ACKED))
    stage.run(8 * SECOND)
    assert not stage.script.is_overdue()
    stage.run(8 * SECOND + MS)
    assert stage.script.is_overdue()


def test_no_step_is_overdue_without_patience_or_after_the_last_step() -> None:
    endless = patient_stage(step(send("b"), when=NEVER_ACKED), patience=None)
    endless.run(20 * SECOND)
    done = patient_stage(step(Wait()))
    done.run(20 * SECOND)
    assert (endless.script.is_overdue(), done.script.is_overdue()) == (False, False)


def test_an_expectation_of_no_event_fails_at_once() -> None:
    quiet = Expect(condition=condition(no_event=(EventPattern(event="broker_stopped"),)))
    stage = patient_stage(step(BrokerCrash(broker=0), quiet, line=3))
    stage.script.advance()
    assert [unseen.line for unseen in stage.script.unseen] == [3]
    assert "broker_stopped" in stage.script.unseen[0].message
