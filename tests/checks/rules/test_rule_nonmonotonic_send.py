"""nonmonotonic-send: the order of a session's records and the settings that promise it."""

from typing import Any

import pytest

from harrow.campaigns.record.phrases import because, preventions
from harrow.checks.index import Index
from tests.checks.evidence_builder import RunBuilder


def run_with_swapped_records(
    *,
    idempotence: bool = False,
    max_in_flight: int = 5,
    retries: int = 3,
    final: tuple[str, ...] = ("m1", "m0"),
) -> RunBuilder:
    """Return a run in which m0 and m1 are in flight and the retry of m0 is appended after m1."""
    run = RunBuilder()
    producer = run.producer(idempotence=idempotence, max_in_flight=max_in_flight, retries=retries)
    run.elect(0, 0, (0,))
    run.send(producer, "m0")
    run.send(producer, "m1")
    run.append(0, *final)
    run.raise_hw(len(final), 0)
    run.ok(producer, "m1", final.index("m1"))
    run.ok(producer, "m0", final.index("m0"))
    run.read_to_end(0)
    run.truncate(1, 0)
    return run


def test_records_in_the_order_of_their_sends_keep_the_promise() -> None:
    result = run_with_swapped_records(final=("m0", "m1")).judge("nonmonotonic-send")
    assert result.status == "held"
    assert result.promise == "nothing (max.in.flight.requests.per.connection=5)"


def test_several_requests_in_flight_permit_reordering() -> None:
    result = run_with_swapped_records(max_in_flight=3).judge("nonmonotonic-send")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert (finding.partition, finding.offset, finding.value) == ("t-0", 0, "m1")
    assert finding.permitted_by == "max.in.flight.requests.per.connection=3"
    assert tuple(preventions(finding)) == (
        "enable.idempotence=true",
        "max.in.flight.requests.per.connection=1",
    )
    assert because(finding) == (
        "0.300s producer-0 sent m0; 0.400s producer-0 sent m1; "
        "0.500s broker 0 appended m0 at offset 1 (epoch 0); 0.500s broker 0 appended m1 at offset 0 (epoch 0); "
        "m1 is at offset 0, before m0 at offset 1, which was sent earlier"
    )


@pytest.mark.parametrize(
    ("settings", "promise"),
    [
        ({"idempotence": True}, "enable.idempotence=true"),
        ({"max_in_flight": 1}, "max.in.flight.requests.per.connection=1"),
    ],
)
def test_reordering_is_a_violation_if_order_was_promised(settings: dict[str, Any], promise: str) -> None:
    result = run_with_swapped_records(**settings).judge("nonmonotonic-send")
    assert (result.status, result.promise) == ("violated", promise)
    assert result.findings[0].permitted_by is None


def test_several_requests_in_flight_permit_reordering_without_retries() -> None:
    result = run_with_swapped_records(retries=0).judge("nonmonotonic-send")
    assert result.status == "permitted"
    assert result.findings[0].permitted_by == "max.in.flight.requests.per.connection=5"


def test_the_first_copy_of_a_duplicate_counts() -> None:
    run = run_with_swapped_records(idempotence=True, final=("m0", "m1", "m0"))
    assert run.judge("nonmonotonic-send").status == "held"


def test_the_first_copy_of_a_duplicate_counts_even_if_compaction_has_removed_it() -> None:
    run = run_with_swapped_records(idempotence=True, final=("m0", "m1", "m0"))
    run.compact(0, 0)
    assert run.judge("nonmonotonic-send").status == "held"


def test_a_log_without_deletions_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers leave offsets without a record, and a replay costs as much as the run."""
    monkeypatch.setattr(Index, "partition", lambda *_: pytest.fail("the log was replayed"))
    run = run_with_swapped_records(final=("m0", "<commit>", "m1"))
    assert run.judge("nonmonotonic-send").status == "held"


def test_only_records_of_one_session_and_partition_are_compared() -> None:
    run = RunBuilder()
    first, second = run.producer(idempotence=True), run.producer(idempotence=True)
    run.send(first, "m0")
    run.write(second, "m1", 0)
    run.send(first, "n0", "t-1")
    run.append(0, "m0")
    run.append(0, "n0", partition="t-1")
    run.ok(first, "n0", 0, "t-1")
    run.ok(first, "m0", 1)
    assert run.judge("nonmonotonic-send").status == "held"


def test_truncated_records_are_not_compared() -> None:
    """m0 was acked at offset 1 and lost, and its offset was assigned to m1."""
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.write(producer, "x", 0)
    run.write(producer, "m0", 0)
    run.truncate(0, 1)
    run.write(producer, "m1", 0)
    assert run.judge("nonmonotonic-send").status == "held"


def test_unacked_records_are_not_compared() -> None:
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.send(producer, "m0")
    run.write(producer, "m1", 0)
    run.append(0, "m0")
    run.unknown(producer, "m0")
    assert run.judge("nonmonotonic-send").status == "held"


def test_a_value_of_an_earlier_session_is_not_compared() -> None:
    """The application sends m0 again after a restart; its first offset is of the old session."""
    run = RunBuilder()
    old, new = run.producer(idempotence=True), run.producer(idempotence=True)
    run.write(old, "m0", 0)
    run.write(new, "m1", 0)
    run.write(new, "m0", 0)
    assert run.judge("nonmonotonic-send").status == "held"


def test_each_step_back_is_one_finding() -> None:
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    for value in ("a", "b", "c", "d"):
        run.send(producer, value)
    run.append(0, "b", "c", "a", "d")
    for offset, value in enumerate(("b", "c", "a", "d")):
        run.ok(producer, value, offset)
    assert [finding.value for finding in run.judge("nonmonotonic-send").findings] == ["b"]


def test_each_session_is_judged_by_its_own_settings() -> None:
    run = RunBuilder()
    plain_producer, idempotent_producer = run.producer("careless"), run.producer("careful", idempotence=True)
    for process, values in ((plain_producer, ("a", "b")), (idempotent_producer, ("c", "d"))):
        for value in values:
            run.send(process, value)
    run.append(0, "b", "a", "d", "c")
    for process, value, offset in (
        (plain_producer, "b", 0),
        (plain_producer, "a", 1),
        (idempotent_producer, "d", 2),
        (idempotent_producer, "c", 3),
    ):
        run.ok(process, value, offset)
    result = run.judge("nonmonotonic-send")
    assert {finding.value: finding.permitted_by for finding in result.findings} == {
        "b": "max.in.flight.requests.per.connection=5",
        "d": None,
    }
    assert result.promise == "nothing (max.in.flight.requests.per.connection=5); enable.idempotence=true"


def test_without_logs_the_order_of_polls_counts() -> None:
    run = run_with_swapped_records(idempotence=True)
    run.logs.clear()
    assert run.judge("nonmonotonic-send").status == "violated"


def test_without_logs_the_first_offset_of_a_duplicate_counts() -> None:
    run = run_with_swapped_records(idempotence=True, final=("m0", "m1", "m0"))
    run.logs.clear()
    assert run.judge("nonmonotonic-send").status == "held"


def test_the_log_of_the_last_leader_counts() -> None:
    """Another rule reports differing logs; this one uses the log that consumers read."""
    run = run_with_swapped_records(idempotence=True, final=("m0", "m1"))
    run.logs["t-0"][1] = [("m1", 0), ("m0", 0), ("x", 0)]
    run.lead(1, 9, (1,), "t-1")
    assert run.judge("nonmonotonic-send").status == "held"
    run.lead(1, 1, (1,))
    assert run.judge("nonmonotonic-send").status == "violated"
    run.lead(0, 0, (0,))
    assert run.judge("nonmonotonic-send").status == "violated"


def test_without_a_known_leader_the_longest_log_counts() -> None:
    run = run_with_swapped_records(idempotence=True, final=("m0", "m1"))
    run.trace.clear()
    run.logs["t-0"][1] = [("m1", 0), ("m0", 0), ("x", 0)]
    assert run.judge("nonmonotonic-send").status == "violated"
