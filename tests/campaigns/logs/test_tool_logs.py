"""The output of VerifiableProducer, VerifiableConsumer and kcat is judged for what it shows."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from harrow.campaigns.logs.client_logs import READ, SENT, recognise
from harrow.campaigns.logs.logged_records import history_of
from harrow.campaigns.record.history_file import HistoryError, UnreadableLine, read_history
from harrow.checks.finding import HELD, INCONCLUSIVE, SKIPPED, VIOLATED, Verdict
from harrow.checks.history.judge import judge_history

Log = list[Any]


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"timestamp": 1_700_000_000_000, "name": name, **fields}


STARTED, ENDED = event("startup_complete"), event("shutdown_complete")


def produced(value: int | str, offset: int, partition: int = 0, key: Any = None) -> dict[str, Any]:
    where = {"topic": "t", "partition": partition, "offset": offset}
    return event("producer_send_success", key=key, value=str(value), **where)


def failed(value: int | str) -> dict[str, Any]:
    return event(
        "producer_send_error", key=None, value=str(value), topic="t", exception="class X", message=None
    )


def consumed(*records: tuple[int, int | str], is_verbose: bool = True, partition: int = 0) -> Log:
    """Return the lines of one poll of records, which are pairs of offset and value."""
    where = {"topic": "t", "partition": partition}
    ends = {"minOffset": records[0][0], "maxOffset": records[-1][0]}
    lines = [event("record_data", key=None, value=str(v), **where, offset=offset) for offset, v in records]
    summary = event(
        "records_consumed", count=len(records), partitions=[{**where, "count": len(records), **ends}]
    )
    return [*(lines if is_verbose else []), summary]


def rebalanced(name: str, *partitions: int) -> dict[str, Any]:
    return event(f"partitions_{name}", partitions=[{"topic": "t", "partition": p} for p in partitions])


def kcat(value: int | str, offset: int) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "offset": offset, "key": None, "payload": str(value)}


def encoded(lines: Iterable[Any]) -> list[bytes]:
    return [line if isinstance(line, bytes) else f"{json.dumps(line)}\n".encode() for line in lines]


def verdict(
    producers: Sequence[Log],
    consumers: Sequence[Log],
    *,
    read_to_end: bool = False,
    notes: list[str] | None = None,
) -> Verdict:
    logged = history_of(
        [(f"producer-{n}.log", encoded(log)) for n, log in enumerate(producers)],
        [(f"consumer-{n}.log", encoded(log)) for n, log in enumerate(consumers)],
        (notes if notes is not None else []).append,
        read_to_end=read_to_end,
    )
    return judge_history(read_history(logged.lines, "h"), not_shown=logged.not_shown)


def findings(judged: Verdict) -> dict[str, list[Any]]:
    return {
        rule: [finding.value for finding in result.findings]
        for rule, result in judged.rules.items()
        if result.findings
    }


def statuses(judged: Verdict, status: str) -> set[str]:
    return {rule for rule, result in judged.rules.items() if result.status == status}


PRODUCER = [
    STARTED,
    produced(0, 0),
    produced(1, 1),
    produced(2, 2),
    ENDED,
    event("tool_data", sent=3, acked=3),
]
ASSIGNED = rebalanced("assigned", 0)


def test_the_logs_of_both_tools_show_that_nothing_is_lost() -> None:
    judged = verdict([PRODUCER], [[STARTED, ASSIGNED, *consumed((0, 0), (1, 1)), *consumed((2, 2)), ENDED]])
    assert (judged.status, findings(judged)) == (HELD, {})


def test_a_lost_record_is_found_by_either_consumer() -> None:
    for log in ([ASSIGNED, *consumed((0, 0), (2, 2))], [kcat(0, 0), kcat(2, 2)]):
        judged = verdict([PRODUCER], [log])
        assert judged.status == VIOLATED
        assert findings(judged)["lost-write"] == ["1"]


def test_a_record_that_is_stored_twice_is_found() -> None:
    judged = verdict([PRODUCER], [[ASSIGNED, *consumed((0, 0), (1, 1), (2, 2), (3, 1))]])
    assert findings(judged) == {"duplicate": ["1"]}


def test_what_transactions_and_failed_sends_would_show_is_skipped_and_never_held() -> None:
    judged = verdict([PRODUCER], [[kcat(0, 0), kcat(1, 1), kcat(2, 2)]])
    other_partitions_and_polls = {"misrouted", "poll-skip", "nonmonotonic-poll"}
    hidden = {
        "G1a",
        "torn-transaction",
        "G0",
        "G1c",
        "precommitted-read",
        "int-send-skip",
        "int-nonmonotonic-send",
    }
    assert statuses(judged, SKIPPED) == hidden | other_partitions_and_polls


def test_one_log_alone_decides_nothing() -> None:
    alone = verdict([PRODUCER], [])
    assert alone.status == INCONCLUSIVE
    assert statuses(alone, HELD) == {"inconsistent-offsets", "nonmonotonic-send"}
    for log in ([ASSIGNED, *consumed((0, "x"), (1, "x"))], [kcat("x", 0), kcat("x", 1)]):
        judged = verdict([], [log])
        assert (judged.status, findings(judged)) == (INCONCLUSIVE, {})
        assert statuses(judged, HELD) == {"inconsistent-offsets", "int-poll-skip", "int-nonmonotonic-poll"}


@pytest.mark.parametrize("log", [[], [STARTED], [STARTED, ASSIGNED, ENDED]])
def test_a_log_without_records_decides_nothing(log: Log) -> None:
    assert verdict([[STARTED, ENDED]], [log]).status == INCONCLUSIVE


def test_a_consumer_that_is_not_verbose_shows_nothing() -> None:
    notes: list[str] = []
    judged = verdict([PRODUCER], [[ASSIGNED, *consumed((0, 0), (2, 2), is_verbose=False)]], notes=notes)
    assert judged.status == INCONCLUSIVE
    assert not statuses(judged, HELD) & {"lost-write", "poll-skip", "nonmonotonic-poll"}
    (note,) = notes
    assert note.startswith("consumer-0.log has only the offsets of 2 records")


@pytest.mark.parametrize("consumer", [[ASSIGNED, *consumed((0, 0), (1, 1))], [kcat(0, 0), kcat(1, 1)]])
def test_a_log_does_not_show_that_a_consumer_read_to_the_end(consumer: Log) -> None:
    judged = verdict([PRODUCER], [consumer])
    assert (judged.status, findings(judged)) == (INCONCLUSIVE, {"unseen": ["2"]})


def test_users_may_say_that_kcat_read_to_the_end() -> None:
    judged = verdict([PRODUCER], [[kcat(0, 0), kcat(1, 1)]], read_to_end=True)
    assert (judged.status, findings(judged)) == (VIOLATED, {"unseen": ["2"]})


@pytest.mark.parametrize("was_stored", [True, False])
def test_a_send_error_says_nothing_about_the_record(*, was_stored: bool) -> None:
    log = [ASSIGNED, *consumed((0, 0), *([(1, 1)] if was_stored else []), (2, 2))]
    judged = verdict([[produced(0, 0), failed(1), produced(2, 2)]], [log])
    assert (judged.status, findings(judged)) == (HELD, {})


def test_sends_are_in_the_order_of_their_numbers_and_not_of_their_acks() -> None:
    reads = [[ASSIGNED, *consumed((9, 9), (10, 10))]]
    assert verdict([[produced(10, 10), produced(9, 9)]], reads).status == HELD
    swapped = verdict([[produced(10, 9), produced(9, 10)]], [[ASSIGNED, *consumed((9, 10), (10, 9))]])
    assert "nonmonotonic-send" in findings(swapped)


def test_producers_with_prefixes_are_separate_processes() -> None:
    logs = [[produced("1.0", 1), produced("1.1", 2)], [produced("2.0", 0)]]
    judged = verdict(logs, [[ASSIGNED, *consumed((0, "2.0"), (1, "1.0"), (2, "1.1"))]])
    assert (judged.status, findings(judged)) == (HELD, {})


def test_only_a_revoked_partition_may_be_read_again() -> None:
    again = [*consumed((0, 0), (1, 1), (2, 2)), *consumed((1, 1), (2, 2))]
    assert "nonmonotonic-poll" in findings(verdict([PRODUCER], [[ASSIGNED, *again]]))
    first, second = again[:4], again[4:]
    moved = [ASSIGNED, *first, rebalanced("revoked", 0), rebalanced("assigned", 0), *second]
    assert findings(verdict([PRODUCER], [moved])) == {}
    # A cooperative rebalance takes away only some partitions.
    other = [rebalanced("assigned", 0, 1), *first, rebalanced("revoked", 1), *second]
    assert "nonmonotonic-poll" in findings(verdict([PRODUCER], [other]))


def test_records_printed_before_a_consumer_was_killed_were_polled() -> None:
    judged = verdict([PRODUCER], [[ASSIGNED, *consumed((0, 0), (1, 1), (2, 2))[:-1]]])
    assert judged.status == HELD


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (PRODUCER, SENT),
        ([STARTED, failed(0)], SENT),
        ([STARTED], SENT),
        ([STARTED, ASSIGNED], READ),
        ([b"\n", kcat(0, 0)], READ),
        ([], None),
        ([b"not JSON\n"], None),
        ([b"[1]\n"], None),
        ([{"name": "x", "timestamp": 1}], None),
        ([{"name": [], "timestamp": 1}], None),
        ([{"process": 0, "type": "invoke", "f": "poll", "value": [["poll"]], "time": 1}], None),
    ],
)
def test_logs_are_recognised_by_their_content_and_stay_whole(log: Log, kind: str | None) -> None:
    lines = encoded(log)
    recognised, again = recognise(iter(lines))
    assert (recognised, list(again)) == (kind, lines)


def test_a_line_that_cannot_be_read_is_left_to_the_reader() -> None:
    def broken() -> Iterable[bytes]:
        yield from encoded([STARTED])
        raise UnreadableLine("longer than 1 byte")

    kind, lines = recognise(broken())
    assert kind == SENT
    with pytest.raises(HistoryError) as caught:
        history_of([("p", lines)], [])
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (2, "longer than 1 byte")
    ]


def without(line: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != name}


@pytest.mark.parametrize(
    ("producer", "consumer", "line", "field", "message"),
    [
        ([b'{"timestamp": 1, x\n'], [], 1, "x", "not JSON: key must be a string"),
        ([STARTED, produced("x", 0)], [], 2, "value", 'VerifiableProducer sends numbers, not `"x"`'),
        ([STARTED, event("producer_send_succes")], [], 2, "name", 'unknown event `"producer_send_succes"`; did you mean `producer_send_success`?'),
        ([event(["x"])], [], 1, "name", 'unknown event `["x"]`'),  # type: ignore[arg-type] # the name is wrong
        ([without(produced(0, 0), "offset")], [], 1, "name", "`producer_send_success` has a partition and an offset"),
        ([ASSIGNED], [], 1, "name", "`partitions_assigned` is an event of a log for --read, not --sent"),
        ([], [produced(0, 0)], 1, "name", "`producer_send_success` is an event of a log for --sent, not --read"),
        ([], [ASSIGNED, *consumed((0, 0), (1, 1))[1:]], 3, "count", "2 records consumed, but 1 `record_data` before"),
        ([], [event("partitions_assigned", partitions=[0])], 1, "partitions", "`partitions` is a list of objects, not `[0]`"),
        ([], [{**kcat(0, 0), "offset": "0"}], 1, "offset", '`offset` is a whole number from 0 on, not `"0"`'),
        ([produced(0, 0), produced(0, 1)], [], 2, "", "`0` was sent before (line 1), and nothing distinguishes the two records"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_refused_with_its_line_and_the_column_of_the_field(
    producer: Log, consumer: Log, line: int, field: str, message: str
) -> None:
    with pytest.raises(HistoryError) as caught:
        verdict([producer], [consumer])
    (problem,) = caught.value.problems
    assert problem.message == message
    name, log = ("producer-0.log", producer) if producer else ("consumer-0.log", consumer)
    text = encoded(log)[line - 1].decode()
    column = max(text.find(f'"{field}"'), text.find(f"{field}\n")) + 1 if field else 1
    assert (problem.file, problem.line, problem.column) == (name, line, column)
