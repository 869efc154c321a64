"""How sends and completions find each other."""

from harrow.checks.index import Index
from tests.checks.evidence_builder import RunBuilder


def test_sends_that_are_outstanding_together_are_matched_by_value() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.send(producer, "m0")
    run.send(producer, "m1")
    run.ok(producer, "m1", 0)
    run.unknown(producer, "m0")
    index = Index(run.evidence())
    (first,), (second,) = index.sends_of("t-0", "m0"), index.sends_of("t-0", "m1")
    assert (first.outcome, first.offset) == ("info", None)
    assert (second.outcome, second.offset, second.invoked_us, second.completed_us) == (
        "ok",
        0,
        200_000,
        300_000,
    )
    (session,) = index.sessions
    assert (session.process, session.partition, session.sends) == (producer, "t-0", [first, second])
    assert index.acked == {"t-0": [second]}


def test_the_same_value_from_two_processes_is_matched_by_process() -> None:
    run = RunBuilder()
    first, second = run.producer(), run.producer()
    run.send(first, "m0")
    run.send(second, "m0")
    run.ok(second, "m0", 1)
    sends = Index(run.evidence()).sends_of("t-0", "m0")
    assert [(send.process, send.outcome) for send in sends] == [(first, "info"), (second, "ok")]


def test_the_same_value_from_one_process_is_matched_in_order() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.send(producer, "m0")
    run.ok(producer, "m0", 0)
    run.send(producer, "m0")
    run.ok(producer, "m0", 1)
    assert [send.offset for send in Index(run.evidence()).sends_of("t-0", "m0")] == [0, 1]


def test_an_ack_whose_invocation_was_not_recorded_counts() -> None:
    run = RunBuilder()
    run.ok(run.producer(), "m0", 0)
    assert [send.value for send in Index(run.evidence()).acked["t-0"]] == ["m0"]


def test_other_operations_and_failed_polls_are_passed_over() -> None:
    run = RunBuilder()
    run.history.add(0, "invoke", "assign", (("t-0",),), 0)
    run.history.add(0, "invoke", "poll", (("poll",),), 0)
    run.history.add(0, "fail", "poll", (("poll", {"t-0": [(0, "m0")]}),), 0, "timeout")
    index = Index(run.evidence())
    assert (index.history.sends_total, index.polled) == (0, {})


def test_both_kinds_of_a_transaction_are_read() -> None:
    run = RunBuilder()
    run.history.add(0, "invoke", "txn", (("send", "t-0", "m1"), ("poll",)), 0)
    run.history.add(0, "ok", "txn", (("send", "t-0", (1, "m1")), ("poll", {"t-0": [(0, "m0")]})), 0)
    index = Index(run.evidence())
    assert [send.offset for send in index.acked["t-0"]] == [1]
    assert index.polled == {"t-0": {(0, "m0")}}
