"""Records that a producer logged are judged against records that kcat read back."""

import json
from typing import Any

import pytest

from harrow.campaigns.logs.logged_records import history_of
from harrow.campaigns.record.history_file import HistoryError, read_history
from harrow.checks.finding import HELD, INCONCLUSIVE, VIOLATED, Verdict
from harrow.checks.history.judge import judge_history
from harrow.checks.stated_settings import StatedSettings


def jsonl(name: str, lines: list[Any]) -> tuple[str, list[bytes]]:
    return name, [line if isinstance(line, bytes) else f"{json.dumps(line)}\n".encode() for line in lines]


def kcat(payload: Any, offset: int, partition: int = 0, topic: str = "t", key: Any = None) -> dict[str, Any]:
    """Return a record as `kcat -J` prints it."""
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "tstype": "create",
        "ts": 1_700_000_000_000,
        "broker": 1,
        "headers": ["a", "b"],
        "key": key,
        "payload": payload,
    }


def sent(value: Any, offset: int | None = None, **fields: Any) -> dict[str, Any]:
    where = {} if offset is None else {"partition": 0, "offset": offset}
    return {"value": value, "acked": True, **where, **fields}


def verdict(
    sends: list[Any], reads: list[Any], *more_reads: list[Any], notes: list[str] | None = None
) -> Verdict:
    files = [jsonl(f"kcat-{n}.jsonl", each) for n, each in enumerate((reads, *more_reads))]
    logged = history_of([jsonl("sent.jsonl", sends)], files, (notes if notes is not None else []).append)
    return judge_history(read_history(logged.lines, "h"), StatedSettings())


def findings(judged: Verdict) -> dict[str, list[tuple[str, Any]]]:
    """Return the broken rules, each with partitions and values."""
    return {
        rule: [(str(finding.partition), finding.value) for finding in result.findings]
        for rule, result in judged.rules.items()
        if result.findings
    }


def test_records_read_as_acked_hold_every_rule() -> None:
    judged = verdict([sent("a", 0), sent("b", 1)], [kcat("a", 0), kcat("b", 1)])
    assert (judged.status, findings(judged)) == (HELD, {})


def test_an_acked_record_that_is_missing_before_a_later_one_is_lost() -> None:
    judged = verdict([sent("a", 0), sent("b", 1), sent("c", 2)], [kcat("a", 0), kcat("c", 2)])
    assert judged.status == VIOLATED
    assert findings(judged)["lost-write"] == [("t-0", "b")]


@pytest.mark.parametrize(
    "fields", [{"partition": 0}, {}, {"partition": -1, "offset": -1}, {"partition": None}]
)
def test_an_acked_record_that_was_never_read_is_unseen_even_if_its_offset_was_not_logged(
    fields: dict[str, Any],
) -> None:
    judged = verdict([sent("a", 0), sent("b", **fields)], [kcat("a", 0)])
    assert judged.status == VIOLATED
    ((_, value),) = findings(judged)["unseen"]
    assert value == "b"


def test_a_record_without_a_logged_partition_belongs_to_the_partition_where_it_was_read() -> None:
    judged = verdict([sent("a"), sent("b")], [kcat("a", 0, partition=3), kcat("b", 7, partition=1)])
    assert (judged.status, findings(judged)) == (HELD, {})


def test_a_record_in_two_partitions_is_misrouted_only_if_its_partition_was_logged() -> None:
    reads = [kcat("c", 0), kcat("a", 1), kcat("b", 0, partition=1), kcat("a", 1, partition=1)]
    sends = [sent("b", 0, partition=1), sent("c", 0)]
    notes: list[str] = []
    judged = verdict([sent("a"), *sends], reads, notes=notes)
    assert (judged.status, findings(judged)) == (HELD, {})
    assert notes == ["1 record was read in several partitions, and the files do not say which one is right"]
    elsewhere = [kcat("c", 0), kcat("a", 1), kcat("b", 0, partition=1), kcat("a", 2, partition=1)]
    for offset in (1, 2):
        judged = verdict([{"value": "a", "offset": offset}, *sends], elsewhere)
        assert (judged.status, findings(judged)) == (HELD, {})
    judged = verdict([sent("a", 1), *sends], reads)
    assert findings(judged)["misrouted"] == [("t-1", "a")]
    # Another record in the same files is still misrouted.
    judged = verdict([sent("a"), *sends], [*reads, kcat("c", 2, partition=1)])
    assert findings(judged)["misrouted"] == [("t-1", "c")]


def test_a_record_at_two_offsets_is_a_duplicate() -> None:
    judged = verdict([sent("a", 0)], [kcat("a", 0), kcat("a", 1)])
    assert findings(judged)["duplicate"] == [("t-0", "a")]


@pytest.mark.parametrize(
    "fields", [{"acked": False}, {"acked": False, "error": "TIMED_OUT"}, {"error": "x", "acked": None}]
)
@pytest.mark.parametrize("was_read", [True, False])
def test_an_unacknowledged_send_may_or_may_not_be_read(fields: dict[str, Any], *, was_read: bool) -> None:
    reads = [kcat("a", 0), *([kcat("b", 1)] if was_read else [])]
    judged = verdict([sent("a", 0), {"value": "b", **fields}], reads)
    assert (judged.status, findings(judged)) == (HELD, {})


def test_a_send_with_an_offset_and_no_error_was_acked() -> None:
    judged = verdict([{"value": "a", "partition": 0, "offset": 0}, sent("b", 1)], [kcat("b", 1)])
    assert findings(judged)["lost-write"] == [("t-0", "a")]


def test_the_order_of_sends_matters_only_for_a_named_producer() -> None:
    reads = [kcat("a", 0), kcat("b", 1)]
    in_vain = verdict([sent("b", 1), sent("a", 0)], reads)
    assert findings(in_vain) == {}
    named = verdict([sent("b", 1, producer="p"), sent("a", 0, producer="p")], reads)
    assert "nonmonotonic-send" in findings(named)
    two = verdict([sent("b", 1, producer="p"), sent("a", 0, producer="q")], reads)
    assert findings(two) == {}


def test_keys_distinguish_records_of_equal_values() -> None:
    sends = [sent("x", 0, key="k1"), sent("x", 1, key="k2"), sent("x", 2, key="k3")]
    judged = verdict(sends, [kcat("x", 0, key="k1"), kcat("x", 2, key="k3")])
    assert findings(judged)["lost-write"] == [("t-0", "k2=x")]


def test_numbers_and_texts_of_the_same_digits_are_the_same_value() -> None:
    judged = verdict([sent(7, 0), sent({"b": 1, "a": 2}, 1)], [kcat("7", 0), kcat({"a": 2, "b": 1}, 1)])
    assert (judged.status, findings(judged)) == (HELD, {})


def test_a_tombstone_is_skipped_and_an_unsent_record_is_counted() -> None:
    notes: list[str] = []
    judged = verdict([sent("a", 0)], [kcat("a", 0), kcat(None, 1), kcat("other", 2)], notes=notes)
    assert (judged.status, findings(judged)) == (HELD, {})
    assert notes == ["1 record was read that no file of sent records has"]


def test_each_file_of_read_records_is_a_separate_consumer() -> None:
    whole = [kcat("a", 0), kcat("b", 1), kcat("c", 2)]
    skips = [kcat("a", 0), kcat("c", 2)]
    judged = verdict([sent("a", 0), sent("b", 1), sent("c", 2)], whole, skips)
    assert set(findings(judged)) == {"int-poll-skip"}


def test_a_topic_without_readers_proves_nothing() -> None:
    sends = [sent("a", 0, topic="t"), sent("b", 0, topic="u")]
    judged = verdict(sends, [kcat("a", 0)])
    assert judged.status == INCONCLUSIVE


def test_many_records_are_polled_in_several_polls() -> None:
    count = 1_600
    sends = [sent(f"v{n}", n) for n in range(count)]
    reads = [kcat(f"v{n}", n) for n in range(count)]
    assert (verdict(sends, reads).status, findings(verdict(sends, reads))) == (HELD, {})
    del reads[700]
    assert findings(verdict(sends, reads))["lost-write"] == [("t-0", "v700")]


@pytest.mark.parametrize(
    ("sends", "reads", "file", "line", "message"),
    [
        ([sent("a", 0), {"acked": True}], [], "sent.jsonl", 2, "`value` is missing: it identifies the record"),
        ([b"{\n"], [], "sent.jsonl", 1, "not JSON: EOF while parsing an object"),
        ([[1]], [], "sent.jsonl", 1, "a record is an object such as {...}"),
        ([sent("a", acked="yes")], [], "sent.jsonl", 1, '`acked` is true or false, not `"yes"`'),
        ([sent("a", partition="p", offset=0)], [], "sent.jsonl", 1, '`partition` is a whole number from 0 on, not `"p"`'),
        ([sent("a", 0), b"\n", sent("a", 1)], [], "sent.jsonl", 3, "`a` was sent before (line 1), and nothing distinguishes the two records"),
        ([], [{"topic": "t", "partition": 0, "offset": 0}], "kcat-0.jsonl", 1, "`payload` is missing: this is not a line of `kcat -J`"),
        ([], [{"topic": "t", "offset": 0, "payload": "x"}], "kcat-0.jsonl", 1, "`partition` is missing"),
        ([], [kcat("x", -1)], "kcat-0.jsonl", 1, "`offset` is a whole number from 0 on, not `-1`"),
        ([], [{**kcat("x", 1), "topic": 5}], "kcat-0.jsonl", 1, "`topic` is text, not `5`"),
        ([sent("a")], [kcat("x", 0), kcat("y", 0, topic="u")], "sent.jsonl", 1, "`topic` is missing, and records of several topics were read"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_a_record_is_refused_with_its_position(
    sends: list[Any], reads: list[Any], file: str, line: int, message: str
) -> None:
    with pytest.raises(HistoryError) as caught:
        verdict(sends, reads)
    assert [(problem.file, problem.line, problem.message) for problem in caught.value.problems] == [
        (file, line, message)
    ]


def test_only_the_first_twenty_wrong_lines_are_listed() -> None:
    with pytest.raises(HistoryError) as caught:
        verdict([{}] * 30, [])
    assert (len(caught.value.problems), caught.value.more) == (20, 10)
