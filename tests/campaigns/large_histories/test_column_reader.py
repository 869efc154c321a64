"""Lines that are read together give the same events as lines that are read one by one."""

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from harrow.campaigns.large_histories import byte_block, column_reader
from harrow.campaigns.large_histories.byte_block import ByteBlock, blocks_of
from harrow.campaigns.large_histories.column_reader import ColumnReader, UnusualLinesError
from harrow.campaigns.large_histories.line_template import learn
from harrow.campaigns.record.history_file import HistoryError, read_operations
from tests.hostile.large_histories import edn
from tests.properties.correct_history import random_history
from tests.properties.correct_log import History
from tests.properties.planted import PLANTS

Rows = tuple[list[tuple[Any, ...]], set[int], int, int, bool]


def rows_of(content: bytes) -> Rows | None:
    """Return all that a reader finds, or None if the file must be read as a whole."""
    reader = ColumnReader()
    rows: list[tuple[Any, ...]] = []
    with patch.object(byte_block, "BLOCK_BYTES", 5_000):
        try:
            for block in blocks_of(BytesIO(content), 1 << 20):
                events = reader.read(block)
                columns = [column.tolist() for column in events.columns()]
                rows += zip(*columns, strict=True)
        except (HistoryError, UnusualLinesError):
            return None
    named = [(None if row[0] < 0 else reader.partitions[row[0]], *row[1:]) for row in rows]
    return sorted(named, key=repr), reader.processes, reader.lines, reader.passed_over, reader.sends_nothing


def singly(content: bytes) -> Rows | None:
    with patch.object(column_reader, "learn", return_value=None):
        return rows_of(content)


def compact(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode()


def backwards(line: dict[str, Any]) -> bytes:
    return json.dumps(dict(reversed(line.items()))).encode()


def value_last(line: dict[str, Any]) -> bytes:
    return json.dumps(dict(sorted(line.items(), key=lambda item: item[0] == "value"))).encode()


def with_more(line: dict[str, Any]) -> bytes:
    return json.dumps(
        {"node": f"n{line['process']}", **line, "took": 7, "tags": ["a", {"value": 1}]}
    ).encode()


def unnumbered(line: dict[str, Any]) -> bytes:
    return json.dumps({field: line[field] for field in ("f", "value", "process", "type")}).encode()


def with_numbers(line: dict[str, Any]) -> bytes:
    """Return a line in which values are numbers, as in Jepsen's histories."""
    return json.dumps(_numeric(line)).encode()


def _numeric(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numeric(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_numeric(part) for part in value]
    return int(value[1:]) if isinstance(value, str) and value[:1] == "m" and value[1:].isdecimal() else value


def as_edn(line: dict[str, Any]) -> bytes:
    return edn(line).encode()


def as_tagged_edn(line: dict[str, Any]) -> bytes:
    return b"#jepsen.history.Op" + as_edn(line)


LAYOUTS: dict[str, tuple[Callable[[dict[str, Any]], bytes], bytes]] = {
    "as harrow writes it": (lambda line: json.dumps(line).encode(), b"\n"),
    "compact": (compact, b"\n"),
    "backwards": (backwards, b"\r\n"),
    "value last": (value_last, b"\n"),
    "with more fields": (with_more, b"\n\n"),
    "without numbers": (unnumbered, b" \n"),
    "with numbers as values": (with_numbers, b"\n"),
    "EDN": (as_edn, b"\n"),
    "tagged EDN": (as_tagged_edn, b"\r\n\n"),
}


def histories(seed: int) -> Iterator[History]:
    yield random_history(seed, 80)
    for plant in PLANTS.values():
        yield plant(random_history(seed, 60), Random(seed).choice).history


@pytest.mark.parametrize(("write", "end"), LAYOUTS.values(), ids=LAYOUTS)
def test_lines_of_any_layout_are_read_together(write: Callable[[dict[str, Any]], bytes], end: bytes) -> None:
    for history in histories(1):
        for number, line in enumerate(history):
            line["index"] = number
        content = b"".join(write(line) + end for line in history)
        assert rows_of(content) == singly(content)
        assert rows_of(content) is not None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_few_lines_are_read_one_by_one(layout: str) -> None:
    write, end = LAYOUTS[layout]
    lines = [json.loads(plain_line(number)) for number in range(18)] * 9
    with patch.object(column_reader, "read_operations", wraps=read_operations) as read:
        assert rows_of(b"".join(write(line) + end for line in lines)) is not None
    slow = sum(len(call.args[0]) for call in read.call_args_list)
    assert slow <= (len(lines) // 2 if layout == "with numbers as values" else 0)


def plain_line(number: int) -> bytes:
    micro = ["send", f"t-{number % 3}", [number, f"m{number}"]]
    polled = {f"t-{at}": [[number + more, f"m{more}"] for more in range(1 + number % 3)] for at in range(2)}
    return json.dumps(
        {
            "index": number,
            "process": number % 5,
            "type": "ok",
            "f": "send",
            "value": [micro],
            "time": 10**number,
        }
        if number % 2
        else {"process": 1, "type": "ok", "f": "poll", "value": [["poll", polled]], "time": number}
    ).encode()


INSERTED = [*b'"\\,:[]{}0123456789-+.eE \t\r\x00\x7f\xc3\xa9\xff', *b"nutf", 0xE9]


def damaged(line: bytes, random: Random) -> bytes:
    """Return a line with some bytes changed, removed, repeated or inserted."""
    changed = bytearray(line)
    for _ in range(random.randrange(1, 3)):
        at = random.randrange(len(changed))
        match random.randrange(4):
            case 0:
                changed[at] = random.choice(INSERTED)
            case 1:
                del changed[at : at + random.randrange(1, 12)]
            case 2:
                changed.insert(at, random.choice(INSERTED))
            case _:
                length = random.randrange(1, 30)
                changed[at:at] = changed[max(at - length, 0) : at]
    return bytes(changed) if changed else line


@pytest.mark.parametrize(
    "write", [lambda line: line, lambda line: as_edn(json.loads(line))], ids=["JSON", "EDN"]
)
def test_damaged_lines_are_never_read_differently(write: Callable[[bytes], bytes]) -> None:
    random = Random(5)
    kept = refused = 0
    lines = [write(plain_line(number)) for number in range(18)]
    for _ in range(1_500):
        content = [*lines, damaged(random.choice(lines), random), *lines[:2]]
        text = b"\n".join(content)
        found = rows_of(text)
        assert found == singly(text), content[-3]
        kept, refused = kept + (found is not None), refused + (found is None)
    assert kept > 100
    assert refused > 100


def test_numbers_are_read_up_to_18_digits() -> None:
    random = Random(2)
    texts = [str(random.randrange(10 ** random.randrange(19))) for _ in range(2_000)]
    texts += ["0", "9" * 18, "9" * 8, "1" + "0" * 15]
    wrong = ["00", "01", "", "x", "-1", "1" * 19, "012345678", "1" * 40]
    places = np.cumsum([0, *(len(text) + 1 for text in texts + wrong)])[:-1]
    block = ByteBlock("".join(f"{text}{random.choice(', ]}')}" for text in texts + wrong).encode() + b"\n")
    values, digits = block.numbers(places)
    assert values[: len(texts)].tolist() == list(map(int, texts))
    assert digits.tolist() == [*map(len, texts), *(0 for _ in wrong)]


def test_equal_texts_have_equal_hashes() -> None:
    texts = ["", "a", "b", "\0", "\0\0", "12345678", "123456789", "x" * 40, "x" * 41, "y" + "x" * 40] * 2
    ends = np.cumsum([len(text) for text in texts])
    block = ByteBlock("".join(texts).encode() + b"\n")
    hashes = block.hashes(ends - [len(text) for text in texts], ends).tolist()
    assert len(set(hashes)) == len(texts) // 2
    assert hashes[: len(texts) // 2] == hashes[len(texts) // 2 :]
    assert min(hashes) >= 0


@pytest.mark.parametrize(
    "line",
    [
        b'{:process 0, :type :ok, :f :send, :value [[:send "t" [-1 "m"]]]}',
        b"{:process :nemesis, :type :info, :f :kill, :value nil}",
        b'{:process 0, :type "ok", :f :send, :value [[:send "t" [0 "m"]]]}',
        b'{"process":0,"type":"ok","f":"send","value":[["send","t\\u0041",[0,"m"]]]}',
        b'{"process":"nemesis","type":"info","f":"kill","value":null}',
        b'{"process":0,"type":"ok","f":"txn","value":[["send","t",[0,"m"]]]}',
        b'{"process":0,"type":"ok","f":"poll","value":[["poll",{"t":[[0,"m"]]}]],"rebalance-log":[{"keys":["t"]}]}',
        b'{"process":0,"type":"info","f":"poll","value":[["poll",{"t":[[0,"m"]]}]]}',
        b'{"process":0,"type":"ok","f":"send","value":[["send","t",[-1,"m"]]]}',
        b"not JSON",
    ],
)
def test_unusual_lines_have_no_template(line: bytes) -> None:
    assert learn(line) is None


def test_a_file_that_mixes_json_and_edn_is_read_as_a_whole() -> None:
    lines = [plain_line(number) for number in range(18)]
    assert rows_of(b"\n".join([*lines, as_edn(json.loads(lines[0]))])) is None
    assert rows_of(b"\n".join([*(as_edn(json.loads(line)) for line in lines), lines[0]])) is None
