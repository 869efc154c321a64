"""A packed log behaves like a list of its rows, however many of them are packed."""

import gc
import pickle
from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.cluster_model.history import OK, SEND, History, Operation, columns_of
from harrow.cluster_model.packed_log import PackedLog, PackedRows, block_of, blocks_of, digest
from harrow.cluster_model.row_groups import Row

_FIELDS = st.one_of(
    st.integers(),
    st.text(max_size=5),
    st.booleans(),
    st.none(),
    st.tuples(st.integers(), st.text(max_size=3)),
    st.dictionaries(st.text(max_size=3), st.lists(st.tuples(st.integers(), st.text(max_size=3)), max_size=2)),
)
_PLACES = st.integers(-40, 40)
_SLICES = st.slices(40) | st.builds(slice, _PLACES, _PLACES, st.sampled_from((None, -3, -1, 1, 2)))


@pytest.fixture(autouse=True, params=(0, PackedLog.UNCOMPRESSED_MAX), ids=("compressed", "uncompressed"))
def _compression(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedLog, "UNCOMPRESSED_MAX", request.param)


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Row], PackedLog[Row]]:
    """Return rows as a list, and as a log that packed some of them as it grew."""
    rows = draw(st.lists(st.tuples(st.integers(0, 50), st.sampled_from("ab"), _FIELDS), max_size=30))
    log: PackedLog[Row] = PackedLog(
        chunk=draw(st.integers(1, 8)),
        unpacked_max=draw(st.integers(0, 12)),
        kind_at=draw(st.sampled_from((None, 1))),
    )
    newest = log.newest
    for row in rows:
        newest.append(row)
        if draw(st.booleans()):
            log.pack()
    assert log.newest is newest
    return rows, log


@given(logs(), _PLACES, st.lists(_SLICES, max_size=4))
def test_a_packed_log_equals_the_list_of_its_rows(
    list_and_log: tuple[list[Row], PackedLog[Row]], place: int, slices: list[slice]
) -> None:
    rows, log = list_and_log
    assert (len(log), list(log), list(reversed(log)), bool(log)) == (
        len(rows),
        rows,
        rows[::-1],
        bool(rows),
    )
    assert log == rows
    assert rows == log
    assert log != [*rows, (0, "a", None)]
    assert [log[each] for each in slices] == [rows[each] for each in slices]
    if -len(rows) <= place < len(rows):
        assert log[place] == rows[place]
        assert (log.index(rows[place]), rows[place] in log) == (rows.index(rows[place]), True)
    else:
        with pytest.raises(IndexError):
            log[place]


@given(logs())
def test_a_packed_log_has_the_digest_of_its_list(list_and_log: tuple[list[Row], PackedLog[Row]]) -> None:
    rows, log = list_and_log
    assert log.digest() == digest(rows)


@given(logs())
def test_the_block_of_a_row_has_the_row_at_its_place(list_and_log: tuple[list[Row], PackedLog[Row]]) -> None:
    rows, log = list_and_log
    for sequence in (rows, log):
        for position, row in enumerate(rows):
            begin, block = block_of(sequence, position)
            assert block[position - begin] == row


@given(logs())
def test_blocks_contain_all_rows_and_none_is_empty(list_and_log: tuple[list[Row], PackedLog[Row]]) -> None:
    rows, log = list_and_log
    for sequence in (rows, log):
        blocks = [block.rows() if isinstance(block, PackedRows) else block for block in blocks_of(sequence)]
        assert all(blocks)
        assert [row for block in blocks for row in block] == rows


@given(logs())
def test_packed_rows_of_a_kind_are_those_of_the_list(list_and_log: tuple[list[Row], PackedLog[Row]]) -> None:
    _, log = list_and_log
    for block in log.packed_blocks():
        rows = block.rows()
        assert (block.size, block.first) == (len(rows), rows[0])
        for kind, positions in block.positions.items():
            assert [*zip(positions, block.rows_of(kind), strict=True)] == [
                (position, row) for position, row in enumerate(rows) if kind in (None, row[1])
            ]


@given(logs(), st.integers(-1, 51))
def test_a_packed_log_supports_bisection(list_and_log: tuple[list[Row], PackedLog[Row]], at_us: int) -> None:
    rows, log = list_and_log
    by_time = sorted(rows, key=itemgetter(0))
    unpickled: PackedLog[Row] = PackedLog(newest=by_time, chunk=3, unpacked_max=0)
    unpickled.pack()
    assert bisect_left(unpickled, at_us, key=itemgetter(0)) == bisect_left(by_time, at_us, key=itemgetter(0))
    assert len(log) == len(unpickled)


@given(logs())
def test_an_unpickled_log_is_equal_and_can_grow(list_and_log: tuple[list[Row], PackedLog[Row]]) -> None:
    rows, log = list_and_log
    unpickled = pickle.loads(pickle.dumps(log))
    unpickled.newest.append((1, "a", None))
    unpickled.pack()
    assert (list(log), list(unpickled)) == (rows, [*rows, (1, "a", None)])


def test_a_pickled_log_has_no_unpacked_copies() -> None:
    log: PackedLog[Row] = PackedLog(newest=[(n, "a" * 50) for n in range(100)], chunk=50, unpacked_max=0)
    log.pack()
    before = pickle.dumps(log)
    assert log[3] == (3, "a" * 50)
    assert pickle.dumps(log) == before


def test_packed_rows_are_no_longer_objects_in_memory() -> None:
    log: PackedLog[Row] = PackedLog(chunk=10, unpacked_max=20)
    for number in range(1_000):
        log.newest.append((number, [number]))
        log.pack()
    assert len(log.newest) <= 20
    list(log)
    for place in range(0, 1_000, 7):
        assert log[place] == (place, [place])
    references: Sequence[Any] = gc.get_referents(log)
    kept = [rows for referent in references if isinstance(referent, dict) for rows in referent.values()]
    assert sum(map(len, kept)) <= 20


def test_a_log_that_was_packed_once_keeps_fewer_rows_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedLog, "UNPACKED_LATER_MAX", 10)
    log: PackedLog[Row] = PackedLog(chunk=5, unpacked_max=20)
    unpacked = []
    for number in range(40):
        log.newest.append((number,))
        log.pack()
        unpacked.append(len(log.newest))
    assert unpacked[:20] == [*range(1, 21)]
    assert max(unpacked[20:]) == 10


def test_operations_are_built_from_their_rows() -> None:
    history = History()
    history.record_send(3, "t-0", "x", 5)
    history.record_ack(3, "t-0", 7, "x", 9)
    expected = Operation(1, 3, OK, SEND, (("send", "t-0", (7, "x")),), 9)
    assert (history.operations[1], history.operations[-1:], list(history.operations)[1]) == (
        expected,
        [expected],
        expected,
    )


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 5), st.integers(0, 9))
def test_operations_have_the_same_columns_as_rows_and_as_objects(
    processes: list[int], chunk: int, unpacked_max: int
) -> None:
    rows = [(index, process, OK, SEND, (), 0, None) for index, process in enumerate(processes)]
    log = PackedLog(Operation, newest=rows, chunk=chunk, unpacked_max=unpacked_max)
    log.pack()
    of_rows = [row for columns in columns_of(log) for row in zip(*columns, strict=True)]
    of_objects = [row for columns in columns_of(list(log)) for row in zip(*columns, strict=True)]
    assert of_rows == of_objects == rows
