"""A history that tasks reduce together has the verdict, the findings and the size of the whole."""

import gzip
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harrow.campaigns.large_histories import (
    alternating_files,
    byte_block,
    facts,
    joined_facts,
    range_reduction,
    split_facts,
)
from harrow.campaigns.large_histories.alternating_files import (
    MergedPart,
    alternate,
    merged_parts,
    outline_rows,
    range_edges,
    range_rows,
)
from harrow.campaigns.large_histories.byte_block import Ints
from harrow.campaigns.large_histories.duckdb_tables import DuckDbTables
from harrow.campaigns.large_histories.facts import EVENTS, LOOSE, PLACED, SUMMARY, UNUSUAL, WHOLE, FactRow
from harrow.campaigns.large_histories.joined_facts import (
    Jumps,
    RangeFacts,
    ValueFacts,
    compare_offsets,
    compare_values,
)
from harrow.campaigns.large_histories.operation_order import split_of
from harrow.campaigns.large_histories.range_reduction import reduce_by_ranges
from harrow.campaigns.large_histories.record_slots import TooIrregularError
from harrow.campaigns.large_histories.reduction import Reduction, reduced_history
from harrow.campaigns.large_histories.split_facts import (
    EventQuery,
    FoundEvents,
    SplitSummary,
    events_for_tables,
    found_rows,
    partly_stored,
    read_split,
    stored_events_for_tables,
)
from harrow.campaigns.large_histories.split_reading import kept_lines_of_split
from harrow.campaigns.large_histories.splits import HistoryPart, Split, split_files
from harrow.campaigns.large_histories.tables import KNOWN_SUSPECT, TableEngine
from harrow.campaigns.record.check_report import size_of
from harrow.campaigns.record.history_file import read_history
from harrow.campaigns.storage.location import location
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.judge import judge_history
from tests.campaigns.large_histories.test_reductions import plain_lines
from tests.campaigns.large_histories.unruly_histories import unruly_history
from tests.hostile.large_histories import edn
from tests.properties.correct_history import lines, random_history
from tests.properties.planted import PLANTS

LIMITS = {"line_max": 1 << 20, "unpacked_max": 1 << 26}
TASKS = 3
FILES = 4


def parts_in_order(splits: Sequence[Split]) -> Sequence[HistoryPart] | None:
    """Return the parts of numbered files that tasks read, or None if something is unusual."""
    rows = [row for split in splits for row in outline_rows(split, LIMITS)]
    if any(row.kind == UNUSUAL for row in rows):
        return None
    outlines = [row.load() for row in rows]
    if not alternate(outlines):
        return splits
    edges = range_edges(outlines)
    rows = [row for split in splits for row in range_rows(split, LIMITS, edges)]
    if any(row.kind == UNUSUAL for row in rows):
        return None
    parts = [*merged_parts(sorted(rows, key=attrgetter("range")))]
    return [part for part in parts if isinstance(part, MergedPart)]


class HereStages:
    """Runs all tasks in this process, in an order of its own."""

    def __init__(
        self, splits: Sequence[Split], folder: Path, random: Random, *, numbered: bool = False
    ) -> None:
        self._numbered = numbered
        self._folder = folder
        self._random = random
        self._parts = splits if not numbered else parts_in_order(splits)
        self._rows = [
            row for part in self._parts or () for row in read_split(part, LIMITS, numbered=numbered)
        ]

    def read(self) -> Sequence[SplitSummary] | None:
        if self._parts is None or self._of(UNUSUAL):
            return None
        return [row.load() for row in self._of(SUMMARY)]

    def _of(self, *kinds: int) -> list[FactRow]:
        rows = [row for row in self._rows if row.kind in kinds]
        self._random.shuffle(rows)
        return rows

    def compare(self, jumps: Jumps, whole: Ints, with_sends: Ints) -> Iterable[RangeFacts | ValueFacts]:
        tasks: list[list[FactRow]] = [[] for _ in range(TASKS)]
        for row in self._of(PLACED, LOOSE):
            tasks[(row.partition + row.range) % TASKS].append(row)
        found = [row for task in tasks for row in compare_offsets(task, jumps, whole, TASKS)]
        tasks = [[] for _ in range(TASKS)]
        for row in found:
            tasks[row.range % TASKS].append(row)
        for task in tasks:
            for row in compare_values(task, with_sends):
                if row.kind == UNUSUAL:
                    raise TooIrregularError
                yield row.load()

    @contextmanager
    def tables(self, partitions: Ints, known_suspects: Ints, events: int) -> Iterator[TableEngine]:
        again = partly_stored(self.read() or (), partitions)
        found = [*stored_events_for_tables(self._of(WHOLE), partitions, known_suspects, again)]
        for part in self._parts or ():
            if part.number in again:
                found += events_for_tables(part, LIMITS, partitions, known_suspects, numbered=self._numbered)
        count = 0
        with closing(DuckDbTables(self._folder)) as tables:
            for events_of_part, names in found:
                tables.insert_events(events_of_part, names)
                count += int((events_of_part.kind != KNOWN_SUSPECT).sum())
            assert count == events
            yield tables

    def find(self, query: EventQuery) -> Sequence[FoundEvents]:
        return [row.load() for row in found_rows(self._of(EVENTS), query)]


def kept_history(splits: Sequence[Split], reduction: Reduction, *, numbered: bool) -> HistoryIndex:
    kept = []
    first_number = 0
    for split in splits:
        content = [line for line in split.lines(**LIMITS) if not line.isspace()]
        here = {json.loads(line)["index"] for line in content} if numbered else set()
        places = {
            at: named
            for at, named in reduction.places.items()
            if (at in here if numbered else split_of(at) == split.number)
        }
        (batch,) = kept_lines_of_split(
            split, LIMITS, first_number=first_number, places=places, numbered=numbered
        )
        kept += pickle.loads(batch.column(0)[0].as_py())
        first_number += len(content)
    return reduced_history(reduction, kept)


def reduced(paths: Sequence[Path], split_bytes: int) -> HistoryIndex | None:
    numbered = len(paths) > 1
    splits = split_files([(path.name, location(path)) for path in paths], split_bytes=split_bytes)
    reduction = reduce_by_ranges(HereStages(splits, paths[0].parent, Random(1), numbered=numbered))
    return None if reduction is None else kept_history(splits, reduction, numbered=numbered)


def check_same(
    path: Path, content: Sequence[bytes], split_bytes: int, pack: Callable[[bytes], bytes] = bytes
) -> int | None:
    """Return how many operations remain, or None if the history is not reduced in this way."""
    whole = read_history(content, "whole")
    path.write_bytes(pack(b"".join(content)))
    found = reduced([path], split_bytes)
    if found is None:
        return None
    assert judge_history(found) == judge_history(whole)
    assert size_of(found) == size_of(whole)
    return len(found.processes)


@pytest.fixture(params=[20, 2], ids=["wide ranges", "narrow ranges"])
def range_bits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    bits: int = request.param
    for module in (facts, split_facts):
        monkeypatch.setattr(module, "RANGE_BITS", bits)
    return bits


@pytest.fixture(params=[range_reduction.WHOLE_MAX, 0], ids=["few transactions", "tables of transactions"])
def whole_max(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    limit: int = request.param
    monkeypatch.setattr(range_reduction, "WHOLE_MAX", limit)
    return limit


def test_tasks_reduce_each_anomaly_like_a_single_process(
    range_bits: int, whole_max: int, tmp_path: Path
) -> None:
    for name, plant in PLANTS.items():
        for seed in range(10):
            history = plant(random_history(seed, 80), Random(seed).choice).history
            content, path = list(lines(history)), tmp_path / "history.jsonl"
            if check_same(path, content, 1_500) is not None:
                check_same(path, content, 1 << 26)
                break
        else:
            pytest.fail(f"no history with {name} is reduced")


@pytest.mark.parametrize("split_bytes", [1_500, 6_000])
def test_tasks_reduce_unruly_histories_like_a_single_process(
    split_bytes: int, range_bits: int, whole_max: int, tmp_path: Path
) -> None:
    kept = total = 0
    for seed in range(10):
        content = list(lines(unruly_history(seed, 150)))
        remaining = check_same(tmp_path / "history.jsonl", content, split_bytes)
        assert remaining is not None
        kept, total = kept + remaining, total + len(content)
    assert kept < total


def test_little_of_a_plain_history_remains(tmp_path: Path) -> None:
    content = plain_lines(3_000)
    assert len(b"".join(content)) > 4 * 60_000
    remaining = check_same(tmp_path / "history.jsonl", content, 60_000)
    assert remaining is not None
    assert remaining < 60


def as_edn(line: bytes) -> bytes:
    return edn(json.loads(line)).encode() + b"\n"


def without_offset(line: bytes) -> bytes:
    """Return a line in which the ack of a send does not name an offset."""
    operation = json.loads(line)
    if operation["f"] == "send" and operation["type"] == "ok":
        operation["value"] = [
            [send, partition, record[1] if isinstance(record, list) else record]
            for send, partition, record in operation["value"]
        ]
    return json.dumps(operation).encode() + b"\n"


@pytest.mark.parametrize("rewrite", [as_edn, without_offset])
def test_little_of_a_plain_history_remains_in_edn_and_without_offsets_in_acks(
    rewrite: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    content = [rewrite(line) for line in plain_lines(3_000)]
    remaining = check_same(tmp_path / "history", content, 60_000)
    assert remaining is not None
    assert remaining < len(content) // 20


@pytest.mark.parametrize(
    ("rewrite", "pack"),
    [(as_edn, bytes), (bytes, gzip.compress), (as_edn, gzip.compress), (without_offset, bytes)],
    ids=["EDN", "compressed", "compressed EDN", "acks without offsets"],
)
def test_tasks_reduce_histories_of_any_form_like_a_single_process(
    rewrite: Callable[[bytes], bytes], pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    for seed in range(8):
        content = [rewrite(line) for line in lines(unruly_history(seed, 150))]
        assert check_same(tmp_path / "history", content, 3_000, pack) is not None


def numbered_files(folder: Path, content: Sequence[bytes], step: int) -> list[Path]:
    """Write some files that follow each other, in another order than that of their names."""
    paths = []
    for number, begin in enumerate(range(0, len(content), len(content) // 5 + 1)):
        operations = [json.loads(line) for line in content[begin : begin + len(content) // 5 + 1]]
        for at, operation in enumerate(operations, begin):
            operation["index"] = step * at
        paths.append(folder / f"{9 - number}.jsonl")
        paths[-1].write_text("".join(json.dumps(operation) + "\n" for operation in operations))
    return sorted(paths)


@pytest.mark.parametrize("step", [1, 1_000_003])
def test_tasks_reduce_files_that_follow_each_other(step: int, tmp_path: Path) -> None:
    for seed in range(12):
        paths = numbered_files(tmp_path, list(lines(unruly_history(seed, 150))), step)
        whole = read_history(
            (line for path in reversed(paths) for line in path.read_bytes().splitlines(keepends=True)),
            "whole",
        )
        found = reduced(paths, 3_000)
        assert found is not None
        assert judge_history(found) == judge_history(whole)
        assert size_of(found) == size_of(whole)


def in_turn(content: Sequence[bytes], random: Random) -> list[list[bytes]]:
    """Distribute lines over files in turn."""
    del random
    return [[*content[begin::FILES]] for begin in range(FILES)]


def at_random(content: Sequence[bytes], random: Random) -> list[list[bytes]]:
    files: list[list[bytes]] = [[] for _ in range(FILES)]
    for line in content:
        random.choice(files).append(line)
    return files


def in_bursts(content: Sequence[bytes], random: Random) -> list[list[bytes]]:
    """Let each file have several times of which it has everything."""
    files: list[list[bytes]] = [[] for _ in range(FILES)]
    begin = 0
    while begin < len(content):
        end = begin + random.randrange(1, 40)
        random.choice(files).extend(content[begin:end])
        begin = end
    return files


@pytest.mark.parametrize("range_bytes", [2_000, 1 << 26])
@pytest.mark.parametrize("distribute", [in_turn, at_random, in_bursts])
def test_tasks_reduce_files_whose_operations_alternate(
    distribute: Callable[[Sequence[bytes], Random], list[list[bytes]]],
    range_bytes: int,
    whole_max: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alternating_files, "RANGE_BYTES", range_bytes)
    for seed in range(6):
        content = list(lines(unruly_history(seed, 150)))
        paths = [tmp_path / f"{number}.jsonl" for number in range(FILES)]
        for path, part in zip(paths, distribute(content, Random(seed)), strict=True):
            path.write_bytes(b"".join(part))
        found = reduced(paths, 3_000)
        assert found is not None
        whole = read_history(content, "whole")
        assert judge_history(found) == judge_history(whole)
        assert size_of(found) == size_of(whole)


def test_little_of_a_plain_history_in_files_that_alternate_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alternating_files, "RANGE_BYTES", 60_000)
    content = plain_lines(3_000)
    paths = [tmp_path / f"{number}.jsonl" for number in range(FILES)]
    for path, part in zip(paths, in_turn(content, Random(1)), strict=True):
        path.write_bytes(b"".join(part))
    found = reduced(paths, 20_000)
    assert found is not None
    assert len(found.processes) < 60


@pytest.mark.parametrize("distribute", [in_turn, at_random, in_bursts])
def test_ranges_of_files_that_alternate_have_about_the_same_size(
    distribute: Callable[[Sequence[bytes], Random], list[list[bytes]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(byte_block, "BLOCK_BYTES", 5_000)
    monkeypatch.setattr(alternating_files, "RANGE_BYTES", 60_000)
    content = plain_lines(3_000)
    paths = [tmp_path / f"{number}.jsonl" for number in range(FILES)]
    for path, part in zip(paths, distribute(content, Random(1)), strict=True):
        path.write_bytes(b"".join(part))
    splits = split_files([(path.name, location(path)) for path in paths], split_bytes=20_000)
    parts = parts_in_order(splits)
    assert parts is not None
    sizes = [len(part.content) for part in parts if isinstance(part, MergedPart)]
    assert sum(sizes) == len(b"".join(content))
    assert len(sizes) == len(b"".join(content)) // 60_000 + 1
    assert max(sizes) < 60_000 + FILES * 5_000


def test_an_index_that_falls_makes_a_part_unusual(tmp_path: Path) -> None:
    content = plain_lines(50)
    paths = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    paths[0].write_bytes(b"".join([*content[2:100], content[0]]))
    paths[1].write_bytes(b"".join(content[100:]))
    assert reduced(paths, 1 << 20) is None


def alone(index: int, process: int, type_: str, f: str, value: object) -> bytes:
    operation = {"index": index, "time": index, "process": process, "type": type_, "f": f, "value": value}
    return json.dumps(operation).encode() + b"\n"


def send(index: int, process: int, value: str, offset: int | None = None) -> bytes:
    return alone(index, process, "ok", "send", [["send", "t-0", [offset, value]]])


def poll(index: int, process: int, offset: int, value: str) -> bytes:
    return alone(index, process, "ok", "poll", [["poll", {"t-0": [[offset, value]]}]])


@pytest.mark.parametrize("names", [("1", "2"), ("2", "1")], ids=["names rise", "names fall"])
@pytest.mark.parametrize("with_empty", [False, True])
def test_neighbours_in_two_files_are_compared_whatever_the_files_are_called(
    names: tuple[str, str], *, with_empty: bool, tmp_path: Path
) -> None:
    contents = ([send(0, 0, "x", 10)], [send(1, 0, "p"), poll(2, 1, 5, "p")])
    paths = [tmp_path / f"{name}.jsonl" for name in names]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(b"".join(content))
    whole = judge_history(read_history(contents[0] + contents[1], "whole"))
    assert whole.rules["nonmonotonic-send"].findings
    if with_empty:
        paths.append(tmp_path / "0.jsonl")
        paths[-1].write_bytes(b"")
    found = reduced(sorted(paths), 1 << 20)
    assert found is not None
    assert judge_history(found) == whole


def sends_and_polls(offsets: Sequence[int]) -> list[bytes]:
    """Return a history that sends a record to each offset in turn, and polls all in order."""
    at = dict(zip(offsets, range(len(offsets)), strict=True))
    operations: list[tuple[int, str, str, list[Any]]] = [
        (0, type_, "send", ["send", "t-0", written])
        for number, offset in enumerate(offsets)
        for type_, written in (("invoke", f"m{number}"), ("ok", [offset, f"m{number}"]))
    ]
    for offset in sorted(offsets):
        operations.append((1, "invoke", "poll", ["poll"]))
        operations.append((1, "ok", "poll", ["poll", {"t-0": [[offset, f"m{at[offset]}"]]}]))
    return [
        json.dumps(
            {"index": index, "process": process, "type": type_, "f": f, "value": [micro], "time": index}
        ).encode()
        + b"\n"
        for index, (process, type_, f, micro) in enumerate(operations)
    ]


@pytest.mark.parametrize("split_bytes", [3_000, 1 << 26])
def test_tasks_find_each_send_that_overtook_another(split_bytes: int, tmp_path: Path) -> None:
    offsets = list(range(600))
    for at in range(50, 600, 37):
        offsets[at], offsets[at + 1] = offsets[at + 1], offsets[at]
    content = sends_and_polls(offsets)
    found = judge_history(read_history(content, "whole")).rules["nonmonotonic-send"].count
    assert found == len(range(50, 600, 37))
    remaining = check_same(tmp_path / "history.jsonl", content, split_bytes)
    assert remaining is not None


@pytest.mark.parametrize("split_bytes", [3_000, 1 << 26])
def test_tasks_compare_a_send_of_unknown_outcome_with_the_sends_beside_it(
    split_bytes: int, tmp_path: Path
) -> None:
    offsets = [number if number < 50 else number + 1 for number in range(400)]
    offsets[200] = 50
    content = [
        line.replace(b'"ok"', b'"info"').replace(b'[50, "m200"]', b'"m200"')
        if b'"send"' in line and b'[50, "m200"]' in line
        else line
        for line in sends_and_polls(offsets)
    ]
    assert judge_history(read_history(content, "whole")).rules["nonmonotonic-send"].count == 1
    assert check_same(tmp_path / "history.jsonl", content, split_bytes) is not None


def sends_without_offsets(count: int) -> list[bytes]:
    """Return a history that sends all records without learning offsets, and then polls them."""
    sends = [alone(number, 0, "ok", "send", [["send", "t-0", f"m{number}"]]) for number in range(count)]
    return [*sends, *(poll(count + number, 1, number, f"m{number}") for number in range(count))]


def test_tasks_do_not_judge_a_history_with_too_many_suspects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content = tmp_path / "history.jsonl", sends_without_offsets(200)
    assert check_same(path, content, 2_000) is not None
    monkeypatch.setattr(joined_facts, "SUSPECTS_OF_TASK_MAX", 20)
    with pytest.raises(TooIrregularError):
        reduced([path], 2_000)


def test_a_part_with_too_many_events_for_a_row_is_unusual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content = tmp_path / "history.jsonl", sends_without_offsets(200)
    path.write_bytes(b"".join(content))
    monkeypatch.setattr(split_facts, "EVENTS_OF_PART_MAX", len(content) - 1)
    assert reduced([path], 1 << 26) is None
    assert reduced([path], 2_000) is not None
