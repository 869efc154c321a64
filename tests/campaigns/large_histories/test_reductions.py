"""A reduced history has the verdict, the findings and the size of the whole history."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest

from harrow.campaigns.large_histories import byte_block, suspects, transaction_suspects
from harrow.campaigns.large_histories.duckdb_tables import DuckDbTables
from harrow.campaigns.large_histories.event_columns import EventColumns
from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.reduced_reading import Lines, read_large_file, read_reduced
from harrow.campaigns.large_histories.reduction import ReductionError, TooManySuspectsError, reduce
from harrow.campaigns.large_histories.tables import BUCKET_BITS
from harrow.campaigns.large_histories.transaction_suspects import CELL_BITS
from harrow.campaigns.record.check_report import size_of
from harrow.campaigns.record.history_file import HistoryError, read_history, read_operations
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.judge import judge_history
from tests.campaigns.large_histories.unruly_histories import unruly_history
from tests.properties.correct_history import lines, random_history
from tests.properties.correct_log import History
from tests.properties.planted import PLANTS

MANY = 20


def opened(content: Sequence[bytes]) -> Lines:
    @contextmanager
    def open_lines() -> Iterator[Iterator[bytes]]:
        yield iter(content)

    return open_lines


def numbered(history: History) -> list[bytes]:
    for number, line in enumerate(history):
        line["index"] = number
    return list(lines(history))


def scattered(content: Sequence[bytes], random: Random) -> list[tuple[str, Lines]]:
    """Distribute lines over many files at random."""
    files: list[list[bytes]] = [[] for _ in range(MANY)]
    for line in content:
        random.choice(files).append(line)
    return [(f"part-{number}", opened(file)) for number, file in enumerate(files)]


def in_lines(path: Path, content: Sequence[bytes]) -> HistoryIndex:
    """Read a file by its columns, or as a whole."""
    path.write_bytes(b"".join(content))
    reduced = read_large_file(path, "one")
    return read_history(content, "one") if reduced is None else reduced


def check_same(whole: HistoryIndex, reduced: HistoryIndex) -> None:
    assert judge_history(reduced) == judge_history(whole)
    assert size_of(reduced) == size_of(whole)


def histories(seed: int) -> Iterator[History]:
    yield random_history(seed, 80)
    for plant in PLANTS.values():
        yield plant(random_history(seed, 80), Random(seed).choice).history


@pytest.mark.parametrize("seed", range(2))
def test_a_reduced_history_is_judged_like_the_whole(seed: int, tmp_path: Path) -> None:
    for history in histories(seed):
        content = numbered(history)
        path = tmp_path / "history.jsonl"
        whole = read_history(content, "whole")
        check_same(whole, read_reduced([("one", opened(content))]))
        check_same(whole, in_lines(path, content))
        check_same(whole, read_reduced(scattered(content, Random(seed))))


def test_windows_over_small_buckets_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, bits in (
        (suspects, "_STEPS", BUCKET_BITS),
        (transaction_suspects, "_STEPS", BUCKET_BITS),
        *((transaction_suspects, name, CELL_BITS) for name in ("_CELLS", "_BACKWARD", "_GRAPHS")),
    ):
        small = getattr(module, name).replace(f">> {bits}", ">> 2")
        assert small != getattr(module, name)
        monkeypatch.setattr(module, name, small)
    for history in histories(7):
        content = numbered(history)
        check_same(read_history(content, "whole"), read_reduced([("one", opened(content))]))


@pytest.mark.parametrize("block_bytes", [3_000, byte_block.BLOCK_BYTES])
def test_what_remains_of_an_unruly_history_is_judged_like_the_whole(block_bytes: int, tmp_path: Path) -> None:
    kept = total = 0
    for seed in range(60):
        content = list(lines(unruly_history(seed, 150)))
        path = tmp_path / "history.jsonl"
        path.write_bytes(b"".join(content))
        whole = read_history(content, "whole")
        with patch.object(byte_block, "BLOCK_BYTES", block_bytes):
            reduced = read_large_file(path, "one")
        assert reduced is not None
        check_same(whole, reduced)
        kept, total = kept + len(reduced.processes), total + len(content)
    assert kept < total * 2 // 3


def plain_lines(count: int) -> list[bytes]:
    """Return a history in which every record is sent, acknowledged and polled once."""
    operations = []
    for number in range(count):
        for process, f, begun, ended in (
            (0, "send", ["send", "t-0", f"m{number}"], ["send", "t-0", [number, f"m{number}"]]),
            (1, "poll", ["poll"], ["poll", {"t-0": [[number, f"m{number}"]]}]),
        ):
            for type_, micro in (("invoke", begun), ("ok", ended)):
                operations.append({"process": process, "type": type_, "f": f, "value": [micro], "time": 0})
    return [json.dumps({"index": at, **each}).encode() + b"\n" for at, each in enumerate(operations)]


def test_what_remains_of_a_plain_history_does_not_grow_with_it(tmp_path: Path) -> None:
    sizes = []
    for count in (100, 3_000):
        reduced = in_lines(tmp_path / "history.jsonl", plain_lines(count))
        assert judge_history(reduced).status == "held"
        sizes.append(len(reduced.processes))
    assert sizes[0] == sizes[1] < 20


def transaction_lines(count: int) -> list[bytes]:
    """Return a history of transactions, each with another one between its begin and end."""
    history: History = []
    for number in range(count):
        names = {process: f"m{number}-{process}" for process in (0, 1)}
        for process, type_ in ((0, "invoke"), (1, "invoke"), (1, "ok"), (0, "ok")):
            value = [
                ["send", place, [3 * number + process, names[process]] if type_ == "ok" else names[process]]
                for place in ("t", "u")
            ]
            history.append({"process": process, "type": type_, "f": "txn", "value": value, "time": 0})
        polled = {place: [[3 * number + at, names[at]] for at in names] for place in ("t", "u")}
        for type_, micro in (("invoke", ["poll"]), ("ok", ["poll", polled])):
            history.append({"process": 2, "type": type_, "f": "poll", "value": [micro], "time": 0})
    return numbered(history)


def test_what_remains_of_correct_transactions_does_not_grow_with_them() -> None:
    sizes = []
    for count in (100, 1_000):
        content = transaction_lines(count)
        reduced = read_reduced([("one", opened(content))])
        check_same(read_history(content, "whole"), reduced)
        sizes.append(len(reduced.processes))
    assert sizes[0] == sizes[1] < 20


@pytest.mark.parametrize("crossed", range(3))
def test_a_cycle_is_found_among_many_correct_transactions(crossed: int) -> None:
    content = transaction_lines(300)
    at = 6 * (100 + crossed)
    for line, place in ((at + 2, b'"u"'), (at + 3, b'"u"'), (at + 5, b'"u"')):
        # The second transaction is before the first one in one of the partitions.
        operation = json.loads(content[line])
        low = 3 * (100 + crossed)
        text = json.dumps(operation["value"])
        before, begin, after = text.partition(place.decode())
        after = (
            after.replace(f"[{low},", "[-,")
            .replace(f"[{low + 1},", f"[{low},")
            .replace("[-,", f"[{low + 1},")
        )
        if operation["f"] == "poll":
            pairs = json.loads(before + begin + after)
            pairs[0][1]["u"].sort()
            operation["value"] = pairs
        else:
            operation["value"] = json.loads(before + begin + after)
        content[line] = json.dumps(operation).encode() + b"\n"
    whole = read_history(content, "whole")
    assert judge_history(whole).rules["G0"].count == 1
    reduced = read_reduced([("one", opened(content))])
    check_same(whole, reduced)
    assert len(reduced.processes) < 20


def test_values_that_are_written_with_escapes_are_the_same_values(tmp_path: Path) -> None:
    content = [
        line.replace(b'"m5"', b'"\\u006d5"') if number % 2 else line
        for number, line in enumerate(plain_lines(9))
    ]
    assert content != plain_lines(9)
    reduced = in_lines(tmp_path / "history.jsonl", content)
    assert reduced.removed is not None
    assert judge_history(reduced).status == "held"


def test_an_offset_that_an_unknown_outcome_names_is_known_once_the_operation_was_read() -> None:
    for read in ("a", "b"):
        content = numbered(
            [
                {
                    "process": 0,
                    "type": "info",
                    "f": "send",
                    "value": [["send", "t", [1, "x"]], ["send", "u", [0, "a"]]],
                },
                {"process": 1, "type": "ok", "f": "poll", "value": [["poll", {"u": [[0, read]]}]]},
                {"process": 1, "type": "ok", "f": "poll", "value": [["poll", {"t": [[0, "w"], [2, "y"]]}]]},
            ]
        )
        whole = read_history(content, "whole")
        assert bool(judge_history(whole).rules["int-poll-skip"].findings) == (read == "a")
        reduced = read_reduced([("one", opened(content))])
        assert judge_history(reduced) == judge_history(whole)


MALFORMED = {
    "a number in place of a list": b'"value": 5',
    "an offset that is not a number": b'"value": [["send", "t-0", ["x", "m0"]]]',
    "a fraction as offset": b'"value": [["send", "t-0", [1.5, "m0"]]]',
    "a value that is true": b'"value": [["send", "t-0", [0, true]]]',
    "a value that is a fraction": b'"value": [["send", "t-0", [0, 1.0]]]',
    "a send of two parts": b'"value": [["send", "t-0"]]',
    "a record of three parts": b'"value": [["send", "t-0", [0, "m0", 1]]]',
    "an unknown kind": b'"value": [["sent", "t-0", [0, "m0"]]]',
    "a partition that is null": b'"value": [["send", null, [0, "m0"]]]',
    "a poll of nothing": b'"value": [["poll", null]]',
    "a poll whose records are null": b'"value": [["poll", {"t-0": null}]]',
    "a poll whose records are no list": b'"value": [["poll", {"t-0": {}}]]',
    "an assignment of a fraction": b'"value": [1.5]',
}
FUNCTION_OF = {b'["poll"': b'"poll"', b"[1.5]": b'"assign"'}


@pytest.mark.parametrize("mistake", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_line_is_reported_with_its_file_and_line(mistake: bytes, tmp_path: Path) -> None:
    content = plain_lines(3)
    content[1] = content[1].replace(b'"value": [["send", "t-0", [0, "m0"]]]', mistake)
    assert content[1] != plain_lines(3)[1]
    for begin, function in FUNCTION_OF.items():
        if begin in mistake:
            content[1] = content[1].replace(b'"send", "value"', function + b', "value"')
    path = tmp_path / "history.jsonl"
    with pytest.raises(HistoryError) as caught:
        in_lines(path, content)
    assert [(problem.file, problem.line) for problem in caught.value.problems] == [("one", 2)]


def test_numbers_must_rise_within_each_of_several_files() -> None:
    first, second, *others = plain_lines(2)
    with pytest.raises(HistoryError, match="`index` rises within a file, but 0 follows 1"):
        read_reduced([("one", opened([second, first])), ("two", opened(others))])


def test_operations_of_several_files_must_be_numbered() -> None:
    content = [line.replace(b'"index": 1, ', b"") for line in plain_lines(2)]
    with pytest.raises(HistoryError, match="an operation needs a field `index`"):
        read_reduced([("one", opened(content)), ("two", opened([]))])


def test_operations_of_different_processes_cannot_have_one_number() -> None:
    send, poll = plain_lines(1)[:2], plain_lines(1)[2:]
    again = [
        line.replace(b'"index": 2', b'"index": 0').replace(b'"index": 3', b'"index": 1') for line in poll
    ]
    with pytest.raises(ReductionError, match="operations of several processes have the index 0"):
        read_reduced([("one", opened(send)), ("two", opened(again))])


def test_one_file_given_twice_is_refused() -> None:
    content = plain_lines(2)
    with pytest.raises(ReductionError, match="two operations have the index 0"):
        read_reduced([("one", opened(content)), ("two", opened(content))])


def test_a_file_that_changes_while_it_is_read_is_refused() -> None:
    content = plain_lines(2)
    readings = iter([content, content[:2]])

    @contextmanager
    def changing() -> Iterator[Iterator[bytes]]:
        yield iter(next(readings))

    with pytest.raises(ReductionError, match="changed while it was read"):
        read_reduced([("one", changing)])


def test_a_name_with_wildcards_names_one_file(tmp_path: Path) -> None:
    content = plain_lines(2)
    (tmp_path / "run1.jsonl").write_bytes(b"".join(content[:2]))
    reduced = in_lines(tmp_path / "run[1].jsonl", content)
    assert size_of(reduced) == size_of(read_history(content, "whole"))


def test_a_number_and_an_equal_text_are_different_values(tmp_path: Path) -> None:
    content = numbered(
        [
            {"process": 0, "type": "ok", "f": "send", "value": [["send", "t", [0, 1]]]},
            {"process": 0, "type": "ok", "f": "send", "value": [["send", "u", [0, "1"]]]},
            {"process": 0, "type": "ok", "f": "send", "value": [["send", "t", [1, 2]]]},
            {"process": 0, "type": "ok", "f": "send", "value": [["send", "u", [1, 2]]]},
            {
                "process": 1,
                "type": "ok",
                "f": "poll",
                "value": [["poll", {"t": [[0, 1], [1, 2]], "u": [[0, "1"], [2, 1]]}]],
            },
        ]
    )
    whole = read_history(content, "whole")
    check_same(whole, read_reduced([("one", opened(content))]))
    check_same(whole, in_lines(tmp_path / "history.jsonl", content))


def test_a_send_of_nothing_shows_how_transactions_are_named(tmp_path: Path) -> None:
    content = numbered(
        [
            {"process": 0, "type": "ok", "f": "send", "value": []},
            {"process": 0, "type": "fail", "f": "send", "value": [["send", "t", "b"]]},
            {
                "process": 1,
                "type": "ok",
                "f": "poll",
                "value": [["poll", {"t": [[0, "a"], [1, "b"], [2, "c"]]}]],
            },
            {"process": 2, "type": "ok", "f": "poll", "value": [["poll", {"t": [[0, "a"], [2, "c"]]}]]},
        ]
    )
    whole = read_history(content, "whole")
    assert not judge_history(whole).rules["int-poll-skip"].findings
    check_same(whole, read_reduced([("one", opened(content))]))
    check_same(whole, in_lines(tmp_path / "history.jsonl", content))


def test_a_history_with_too_many_suspects_is_refused(tmp_path: Path) -> None:
    tables = DuckDbTables(tmp_path)
    content = numbered(PLANTS["duplicate"](random_history(1, 80), Random(1).choice).history)
    read_operations(content, "whole", EventColumns(tables.insert, OperationOrder()))
    with pytest.raises(TooManySuspectsError, match="at most 1 can be judged together"):
        reduce(tables, events_max=1)
    tables.close()
