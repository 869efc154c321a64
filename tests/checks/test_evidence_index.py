"""The index of evidence matches sends with their completions."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.checks.index import Index
from harrow.checks.trace_index import TraceIndex
from harrow.cluster_model.events import HighWatermarkSet, LogOpened
from harrow.cluster_model.packed_log import PackedLog, PackedRows
from harrow.cluster_model.trace import KIND_AT, TraceEvent, decode
from tests.checks.evidence_builder import RunBuilder


def test_concurrent_sends_are_matched_by_value() -> None:
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
    assert (session.process, session.partition, [*session.sends]) == (producer, "t-0", [first, second])
    assert {name: [*sends] for name, sends in index.acked.items()} == {"t-0": [second]}


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


def test_an_ack_without_a_recorded_invocation_counts() -> None:
    run = RunBuilder()
    run.ok(run.producer(), "m0", 0)
    assert [send.value for send in Index(run.evidence()).acked["t-0"]] == ["m0"]


def test_other_operations_and_failed_polls_are_ignored() -> None:
    run = RunBuilder()
    run.history.add(0, "invoke", "assign", (("t-0",),), 0)
    run.history.add(0, "invoke", "poll", (("poll",),), 0)
    run.history.add(0, "fail", "poll", (("poll", {"t-0": [(0, "m0")]}),), 0, "timeout")
    index = Index(run.evidence())
    assert (index.history.sends_total, [*index.polled]) == (0, [])


def test_sends_and_polls_of_a_transaction_are_indexed() -> None:
    run = RunBuilder()
    run.history.add(0, "invoke", "txn", (("send", "t-0", "m1"), ("poll",)), 0)
    run.history.add(0, "ok", "txn", (("send", "t-0", (1, "m1")), ("poll", {"t-0": [(0, "m0")]})), 0)
    index = Index(run.evidence())
    assert [send.offset for send in index.acked["t-0"]] == [1]
    assert index.polled == {"t-0": {(0, "m0")}}


def test_a_look_up_of_a_time_span_unpacks_only_its_kind_and_its_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[TraceEvent] = [
        (at_us, HighWatermarkSet.name, 0, "t-0", at_us)
        if at_us % 2
        else (at_us, LogOpened.name, 0, "t-0", at_us, at_us)
        for at_us in range(40)
    ]
    packed: PackedLog[TraceEvent] = PackedLog(newest=rows, chunk=4, unpacked_max=0, kind_at=KIND_AT)
    packed.pack()
    index = TraceIndex(packed)
    index.during(0, 0, HighWatermarkSet, "t-0")
    unpacked: list[TraceEvent] = []
    rows_of = PackedRows.rows_of

    def count(block: PackedRows, kind: str) -> list[TraceEvent]:
        unpacked.extend(rows_of(block, kind))
        return rows_of(block, kind)

    monkeypatch.setattr(PackedRows, "rows_of", count)
    assert [event.hw for event in index.during(17, 22, HighWatermarkSet, "t-0")] == [17, 19, 21]
    needed = [row for row in rows[16:24] if row[1] == HighWatermarkSet.name]
    assert unpacked == needed
    index.during(17, 22, HighWatermarkSet, "t-0")
    assert unpacked == needed, "the parts of a look-up stay unpacked for the next one"


class _Watermarks:
    """Reads the high watermarks of a trace."""

    kinds = (HighWatermarkSet.name,)

    def __init__(self) -> None:
        self.rows: list[TraceEvent] = []

    def take(self, rows: Sequence[TraceEvent]) -> None:
        self.rows += [row for row in rows if row[1] in self.kinds]


_TIMES = st.integers(0, 20)


@given(
    st.lists(st.tuples(_TIMES, st.sampled_from(("t-0", "t-1")), st.booleans()), max_size=30),
    _TIMES,
    _TIMES,
    st.integers(1, 5),
)
def test_events_are_looked_up_alike_in_plain_and_packed_traces(
    draws: list[tuple[int, str, bool]], start_us: int, end_us: int, chunk: int
) -> None:
    rows: list[TraceEvent] = [
        (at_us, HighWatermarkSet.name, 0, partition, number)
        if is_watermark
        else (at_us, LogOpened.name, 0, partition, number, number)
        for number, (at_us, partition, is_watermark) in enumerate(sorted(draws))
    ]
    packed: PackedLog[TraceEvent] = PackedLog(newest=rows, chunk=chunk, unpacked_max=0, kind_at=KIND_AT)
    packed.pack()
    run = RunBuilder().evidence()
    watermarks = [(number, event) for number, event in enumerate(rows, 1) if len(event) == 5]
    for trace in (rows, packed):
        index = Index(replace(run, trace=trace))
        lines = TraceIndex(trace)
        assert list(lines.raw_events(HighWatermarkSet)) == watermarks
        assert list(lines.raw_events(HighWatermarkSet, LogOpened)) == list(enumerate(rows, 1))
        reader = _Watermarks()
        TraceIndex(trace, reader)
        assert reader.rows == [row for _, row in watermarks]
        assert index.last_us(LogOpened, HighWatermarkSet) == (rows[-1][0] if rows else None)
        assert index.last_us(HighWatermarkSet) == max((row[0] for _, row in watermarks), default=None)
        assert index.position_at(start_us) == sum(event[0] < start_us for event in rows)
        assert index.during(start_us, end_us, HighWatermarkSet, "t-1") == [
            decode(event) for _, event in watermarks if start_us <= event[0] <= end_us and event[3] == "t-1"
        ]
