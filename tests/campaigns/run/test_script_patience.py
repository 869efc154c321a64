"""Scripts on a target that can only be polled."""

from harrow.campaigns.language.plan import Step
from harrow.campaigns.run.run_result import MissedExpectation
from harrow.campaigns.run.targets.target import Patience
from harrow.faults.actions import Expect, Wait
from harrow.faults.brokers import BrokerCrash, BrokerRestart
from harrow.faults.event_pattern import EventPattern
from tests.campaigns.run.cluster_harness import ClusterHarness
from tests.campaigns.run.test_script import MS, SECOND, send, sends, step
from tests.conditions import condition

PATIENCE = Patience(transient_us=2 * SECOND, step_us=5 * SECOND)
NEVER = Expect(condition=condition(controller=(2,)))
ACKED = Expect(condition=condition(acked=("a",)))
MISSED = (MissedExpectation(line=3, message="controller is 0, expected 2"),)


def patient_harness(*steps: Step, patience: Patience | None = PATIENCE) -> ClusterHarness:
    harness = ClusterHarness(*steps)
    harness.target.patience = patience
    return harness


def test_an_expectation_that_does_not_hold_yet_is_polled() -> None:
    harness = patient_harness(step(send("a"), ACKED, send("b"), line=3))
    harness.script.advance()
    # The steps after it run at once.
    assert sends(harness) == [(0, "a"), (0, "b")]
    harness.run(SECOND)
    assert harness.script.is_finished()
    assert (harness.script.missed, harness.script.unseen) == ([], [])
    harness.run(4 * SECOND)
    assert (harness.script.missed, harness.script.unseen) == ([], [])


def test_later_steps_do_not_wait_for_a_transient_expectation() -> None:
    harness = patient_harness(step(NEVER, line=3), step(send("a"), at_us=SECOND), step(send("b")))
    harness.run(SECOND + MS)
    assert sends(harness) == [(SECOND, "a"), (SECOND, "b")]


def test_an_expectation_not_seen_in_time_is_unseen_rather_than_missed() -> None:
    harness = patient_harness(step(NEVER, line=3), step(Wait(), at_us=9 * SECOND))
    harness.run(2 * SECOND - MS)
    assert (harness.script.missed, harness.script.unseen) == ([], [])
    harness.run(9 * SECOND)
    assert (tuple(harness.script.unseen), harness.script.missed) == (MISSED, [])


def test_a_transient_expectation_is_polled_for_as_long_as_the_target_allows() -> None:
    harness = patient_harness(step(NEVER, line=3, at_us=SECOND), step(Wait(), at_us=9 * SECOND))
    harness.run(3 * SECOND - MS)
    assert harness.script.unseen == []
    harness.run(3 * SECOND + MS)
    assert tuple(harness.script.unseen) == MISSED


def test_a_target_that_shows_every_moment_misses_an_expectation_at_once() -> None:
    harness = patient_harness(step(NEVER, line=3), patience=None)
    harness.script.advance()
    assert (tuple(harness.script.missed), harness.script.unseen) == (MISSED, [])


def test_an_expectation_that_holds_is_not_polled_again() -> None:
    harness = patient_harness(
        step(Expect(condition=condition(controller=(0,))), line=3), step(Wait(), at_us=9 * SECOND)
    )
    harness.script.advance()
    harness.cluster.crash_broker(0, power_loss=False)
    harness.run(4 * SECOND)
    assert (harness.script.missed, harness.script.unseen) == ([], [])


def test_a_fault_that_finds_nothing_to_do_is_missed_at_once() -> None:
    harness = patient_harness(step(BrokerRestart(broker=0), line=7))
    harness.script.advance()
    assert [m.message for m in harness.script.missed] == ["broker_restart found nothing to act on"]


def test_an_expectation_still_polled_at_the_end_is_unseen() -> None:
    harness = patient_harness(step(NEVER, ACKED, send("a"), line=3))
    harness.script.advance()
    assert harness.script.is_polling()
    harness.run(SECOND)
    harness.script.stop_polling()
    assert not harness.script.is_polling()
    assert (tuple(harness.script.unseen), harness.script.missed) == (MISSED, [])


NEVER_ACKED = condition(acked=("never",))


def test_a_step_that_waits_too_long_is_overdue() -> None:
    harness = patient_harness(step(Wait(), at_us=SECOND), step(send("b"), when=NEVER_ACKED))
    harness.run(6 * SECOND)
    assert not harness.script.is_overdue()
    harness.run(6 * SECOND + MS)
    assert harness.script.is_overdue()


def test_the_wait_of_a_step_begins_when_it_is_due() -> None:
    harness = patient_harness(step(Wait()), step(send("b"), at_us=3 * SECOND, when=NEVER_ACKED))
    harness.run(8 * SECOND)
    assert not harness.script.is_overdue()
    harness.run(8 * SECOND + MS)
    assert harness.script.is_overdue()


def test_no_step_is_overdue_without_patience_or_after_the_last_step() -> None:
    endless = patient_harness(step(send("b"), when=NEVER_ACKED), patience=None)
    endless.run(20 * SECOND)
    done = patient_harness(step(Wait()))
    done.run(20 * SECOND)
    assert (endless.script.is_overdue(), done.script.is_overdue()) == (False, False)


def test_an_expectation_of_no_event_fails_at_once() -> None:
    quiet = Expect(condition=condition(no_event=(EventPattern(event="broker_stopped"),)))
    harness = patient_harness(step(BrokerCrash(broker=0), quiet, line=3))
    harness.script.advance()
    assert [unseen.line for unseen in harness.script.unseen] == [3]
    assert "broker_stopped" in harness.script.unseen[0].message
