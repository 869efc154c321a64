"""The steps of a script run in order, each when its time has come and its condition holds."""

from typing import Any

from harrow.campaigns.language.plan import Step
from harrow.faults.action import Action
from harrow.faults.actions import ElectPreferredLeaders, Expect, RestartProducer, Send, Wait
from harrow.faults.brokers import BrokerPause, BrokerRestart
from harrow.faults.condition import Condition
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import ReplicaIs
from tests.campaigns.run.cluster_harness import ClusterHarness
from tests.conditions import condition

SECOND = 1_000_000
MS = 1_000


def send(value: str, partition: str | None = "t-0") -> Send:
    return Send(producer="producer-0", value=value, partition=partition)


def event(name: str, **wanted: Any) -> Condition:
    return condition(event=(EventPattern(event=name, fields=tuple(wanted.items())),))


def no_event(name: str, **wanted: Any) -> Condition:
    return condition(no_event=(EventPattern(event=name, fields=tuple(wanted.items())),))


def sends(harness: ClusterHarness) -> list[tuple[int, str]]:
    """Return the values handed to the producer, with their times."""
    operations = harness.cluster.history.operations
    return [(o.time_us, o.value[0][2]) for o in operations if o.type == "invoke"]


def step(*actions: Action, **options: Any) -> Step:
    return Step(actions=actions, **options)


def test_steps_without_a_time_run_at_once_and_in_order() -> None:
    harness = ClusterHarness(step(send("a"), send("b")), step(send("c")))
    harness.script.advance()
    assert sends(harness) == [(0, "a"), (0, "b"), (0, "c")]
    assert harness.script.is_finished()
    assert harness.script.due_us() is None


def test_steps_run_at_their_time_or_after_their_delay() -> None:
    harness = ClusterHarness(
        step(send("a"), at_us=2 * SECOND),
        step(send("b"), after_us=3 * SECOND),
        step(send("c"), at_us=4 * SECOND),  # that time has passed, so the step runs at once
        step(send("d"), at_us=6 * SECOND, after_us=2 * SECOND),  # both the time and the delay have passed
        step(send("e"), at_us=9 * SECOND, after_us=SECOND),
    )
    assert harness.script.due_us() == 2 * SECOND
    harness.run(10 * SECOND)
    assert sends(harness) == [
        (2 * SECOND, "a"),
        (5 * SECOND, "b"),
        (5 * SECOND, "c"),
        (7 * SECOND, "d"),
        (9 * SECOND, "e"),
    ]


def test_a_step_that_waits_for_its_condition_holds_up_later_steps() -> None:
    acked = condition(acked=("a",))
    harness = ClusterHarness(step(send("a")), step(send("b"), when=acked), step(send("c")))
    harness.run(5 * SECOND)
    (_, first), (at_b_us, second), (at_c_us, third) = sends(harness)
    assert (first, second, third) == ("a", "b", "c")
    assert 0 < at_b_us == at_c_us < SECOND
    acks = [
        o.time_us for o in harness.cluster.history.operations if o.type == "ok" and o.value[0][2] == (0, "a")
    ]
    assert acks == [at_b_us]


def test_a_step_waits_for_its_time_and_its_condition() -> None:
    acked = condition(acked=("a",))
    harness = ClusterHarness(step(send("a")), step(send("b"), when=acked, after_us=3 * SECOND))
    harness.run(5 * SECOND)
    assert sends(harness)[1] == (3 * SECOND, "b")


def test_a_step_that_waits_in_vain_reports_what_is_missing() -> None:
    harness = ClusterHarness(
        step(Wait()),
        step(send("b"), when=condition(acked=("never",), controller=(9,)), line=12),
        step(send("c")),
    )
    harness.run(2 * SECOND)
    assert sends(harness) == []
    assert not harness.script.is_finished()
    assert harness.script.due_us() is None
    assert harness.script.unfinished_text() == (
        "step 2 of the script (line 12) waited in vain: controller is 0, expected 9; never is not acked"
    )
    late = ClusterHarness(step(send("a"), at_us=SECOND))
    assert late.script.unfinished_text() == "step 1 of the script waited in vain: its time did not come"


def test_a_step_can_wait_for_a_row_of_the_replica_table() -> None:
    wanted = condition(replicas=(ReplicaIs(partition="t-0", broker=0, leo=1, hw=0),))
    harness = ClusterHarness(step(send("a")), step(send("b"), when=wanted))
    harness.run(2 * SECOND)
    appended = [at_us for at_us, *_ in harness.events_named("append")]
    assert sends(harness)[1][0] == appended[0]


# Events since the previous step


def test_a_step_waits_for_an_event_since_the_previous_step() -> None:
    harness = ClusterHarness(
        step(BrokerPause(broker=1, duration=(SECOND, SECOND))),
        step(send("a"), when=event("broker_resumed", broker=1)),
        step(send("b"), when=event("broker_resumed", broker=1)),  # the same event does not count twice
    )
    harness.run(5 * SECOND)
    assert sends(harness) == [(SECOND, "a")]


def test_a_step_may_match_events_that_the_previous_step_caused() -> None:
    harness = ClusterHarness(
        step(BrokerPause(broker=1)), step(send("a"), when=event("broker_paused", broker=1))
    )
    harness.script.advance()
    assert sends(harness) == [(0, "a")]


def test_a_step_may_match_events_of_the_same_instant_that_follow_the_match_of_the_previous_step() -> None:
    harness = ClusterHarness(
        step(Wait(), at_us=SECOND),
        step(send("a"), when=event("broker_paused", broker=1)),
        step(send("b"), when=event("broker_paused", broker=2)),
        step(send("c"), when=event("broker_paused", broker=1)),
    )

    def pause_both(_: None) -> None:
        harness.cluster.pause_broker(1)
        harness.cluster.pause_broker(2)

    harness.cluster.at(2 * SECOND, pause_both)
    harness.run(5 * SECOND)
    assert sends(harness) == [(2 * SECOND, "a"), (2 * SECOND, "b")]


def test_a_step_ignores_events_before_a_previous_step_without_a_condition() -> None:
    harness = ClusterHarness(step(Wait(), at_us=3 * SECOND), step(send("a"), when=event("broker_paused")))
    harness.cluster.at(SECOND, lambda _: harness.cluster.pause_broker(1))
    harness.run(5 * SECOND)
    assert sends(harness) == []


# Actions


def test_a_script_goes_on_after_a_missed_expectation() -> None:
    harness = ClusterHarness(
        step(Expect(condition=condition(controller=(0,))), line=3),
        step(Expect(condition=condition(controller=(1,), leader=(("t-0", 2),))), send("a"), line=4),
    )
    harness.script.advance()
    assert [(m.line, m.message) for m in harness.script.missed] == [
        (4, "leader of t-0 is 0, expected 2"),
        (4, "controller is 0, expected 1"),
    ]
    assert sends(harness) == [(0, "a")]


def test_an_expectation_may_match_the_event_that_its_step_waited_for() -> None:
    paused = event("broker_paused", broker=1)
    harness = ClusterHarness(
        step(Wait(), at_us=SECOND),
        step(Expect(condition=paused), Expect(condition=no_event("broker_paused", broker=2)), when=paused),
    )
    harness.cluster.at(2 * SECOND, lambda _: harness.cluster.pause_broker(1))
    harness.run(3 * SECOND)
    assert harness.script.is_finished()
    assert harness.script.missed == []


def test_a_scripted_fault_that_finds_nothing_to_do_is_a_missed_expectation() -> None:
    harness = ClusterHarness(step(BrokerRestart(broker=0), line=7), step(BrokerPause(broker=1)))
    harness.script.advance()
    assert [(m.line, m.message) for m in harness.script.missed] == [
        (7, "broker_restart found nothing to act on")
    ]
    assert harness.environment.is_paused(1)


def test_a_producer_can_be_restarted() -> None:
    harness = ClusterHarness(
        step(BrokerPause(broker=0), send("a")), step(RestartProducer(producer="producer-0"), send("b"))
    )
    harness.script.advance()
    assert list(harness.target.clients.producer_settings()) == [0, 1]
    operations = [(o.process, o.type, o.value[0][2], o.error) for o in harness.cluster.history.operations]
    assert operations == [
        (0, "invoke", "a", None),
        (0, "fail", "a", "CRASHED"),  # the record was not even sent
        (1, "invoke", "b", None),
    ]


def test_preferred_leaders_can_be_elected() -> None:
    harness = ClusterHarness(
        step(BrokerPause(broker=0, duration=(15 * SECOND, 15 * SECOND))),
        step(Expect(condition=condition(leader=(("t-0", 1),))), ElectPreferredLeaders(), at_us=60 * SECOND),
    )
    harness.run(65 * SECOND)
    assert harness.script.missed == []
    state = harness.cluster.partition_state("t-0")
    assert state is not None
    assert state.leader == 0


def test_with_a_limit_a_step_runs_without_its_condition_after_waiting() -> None:
    never = condition(replicas=(ReplicaIs(partition="t-0", broker=0, leo=7),))
    harness = ClusterHarness(
        step(send("a"), at_us=SECOND),
        step(send("b"), when=never),
        step(send("c"), after_us=2 * SECOND, when=never),
        step(send("d"), when=condition()),
        step_limit_us=5 * SECOND,
    )
    harness.run(30 * SECOND)
    # The wait begins when the step's time has come.
    assert sends(harness) == [
        (SECOND, "a"),
        (6 * SECOND, "b"),
        (13 * SECOND, "c"),
        (13 * SECOND, "d"),
    ]
    assert [(step.number, step.waited_us) for step in harness.script.timed_out_steps] == [
        (2, 5 * SECOND),
        (3, 5 * SECOND),
    ]
    assert "expected 7" in harness.script.timed_out_steps[0].missing


def test_without_a_limit_a_step_waits_for_its_condition() -> None:
    never = condition(replicas=(ReplicaIs(partition="t-0", broker=0, leo=7),))
    harness = ClusterHarness(step(send("a"), when=never))
    harness.run(300 * SECOND)
    assert not sends(harness)
    assert not harness.script.timed_out_steps
