"""Histories are read line by line, within limits of memory."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from harrow.campaigns.record.edn import ElementsOfVector
from harrow.campaigns.record.history_file import HistoryError, UnreadableLine, open_history, read_history
from harrow.campaigns.storage.location import location
from harrow.checks.history.judge import judge_history

LINE = b'{"index":%d,"process":0,"type":"invoke","f":"send","value":[["send","t-0","m%d"]],"time":0}\n'


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_too_long_is_not_read_to_its_end(tmp_path: Path, *, packed: bool) -> None:
    text = LINE % (0, 0) + b" " * 5_000 + LINE % (1, 1) + LINE % (2, 2)
    path = tmp_path / "history.jsonl"
    path.write_bytes(gzip.compress(text) if packed else text)
    with (
        open_history(location(path), io.BytesIO(), line_max=1_000) as lines,
        pytest.raises(HistoryError) as caught,
    ):
        read_history(lines, "history")
    (problem,) = caught.value.problems
    assert (problem.line, problem.message) == (2, "longer than 1000 bytes (--max-line)")


def test_a_compressed_history_is_refused_where_it_unpacks_to_too_much(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(gzip.compress(b"%031d\n" % 0 * 50_000))
    read: list[bytes] = []
    with (
        open_history(location(path), io.BytesIO(), unpacked_max=1 << 20) as lines,
        pytest.raises(UnreadableLine, match="unpacks to more than 1 MiB, and to more than 64 times its size"),
    ):
        read.extend(lines)
    assert len(b"".join(read)) == 1 << 20


def test_a_compressed_history_with_a_usual_ratio_may_have_any_size(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl.gz"
    text = b"".join(LINE % (number, number * 7919 % 10_007) for number in range(2_000))
    path.write_bytes(gzip.compress(text))
    with open_history(location(path), io.BytesIO(), unpacked_max=1) as lines:
        assert len(read_history(lines, "history").processes) == 2_000


def test_reading_stops_after_ten_thousand_malformed_operations() -> None:
    for lines in ([b"{}\n"] * 30_000, [b"[\n", *[b"{:a 1}\n"] * 30_000, b"]\n"]):
        remaining = iter(lines)
        with pytest.raises(HistoryError) as caught:
            read_history(remaining, "history")
        *_, last = caught.value.problems
        assert last.message == "10000 operations before this line are malformed, so the rest is not read"
        assert len(caught.value.problems) + caught.value.more == 10_001
        assert last.line in (10_001, 10_002)


@pytest.mark.parametrize("begin", [[], [LINE % (0, 0)]], ids=["first line", "second line"])
@pytest.mark.parametrize("damaged", [b"\x7fELF\0\n", b'{"process": "\xff"}\n', b"{:process \xff}\n"])
def test_reading_stops_at_a_line_that_is_not_text(begin: list[bytes], damaged: bytes) -> None:
    with pytest.raises(HistoryError) as caught:
        read_history([*begin, *[damaged] * 3], "history")
    (problem,) = caught.value.problems
    assert (problem.line, problem.message) == (
        len(begin) + 1,
        "not text: a history is JSON lines or EDN, in UTF-8",
    )


def test_long_lines_are_not_kept_together_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harrow.campaigns.record.history_file._BYTES_AT_ONCE", 300)
    history = read_history([LINE % (number, number) for number in range(20)], "history")
    assert len(history.processes) == 20


def test_offsets_beyond_the_range_of_kafka_are_judged() -> None:
    far = 2**70
    records = [[0, "m0"], [far, "m1"], [far, "m2"]]
    lines = [
        {"process": 0, "type": "ok", "f": "send", "value": [["send", "t-0", "m0"]]},
        {"process": 0, "type": "ok", "f": "poll", "value": [["poll", {"t-0": records}]]},
    ]
    history = read_history([json.dumps(line).encode() for line in lines], "history")
    (conflict,) = judge_history(history).rules["inconsistent-offsets"].findings
    assert (conflict.offset, dict(conflict.details)["values"]) == (far, ["m1", "m2"])


def test_only_listed_malformed_operations_are_located() -> None:
    lines = [b"[{:process 0, :type :ok}\n", *[" {:process 0, :f \u00e9}\n".encode()] * 199, b"]\n"]
    place = ElementsOfVector.place_of
    with (
        patch.object(ElementsOfVector, "place_of", autospec=True, side_effect=place) as places,
        pytest.raises(HistoryError) as caught,
    ):
        read_history(lines, "history.edn")
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [
        (1, 2),
        *[(line, 2) for line in range(2, 21)],
    ]
    assert caught.value.more == 180
    assert places.call_count == 20


@pytest.mark.parametrize("begin", [[], [b"[\n"]], ids=["lines", "vector"])
def test_a_history_that_takes_too_much_memory_is_refused_at_its_line(begin: list[bytes]) -> None:
    line = b"{:process 0, :type :invoke, :f :send, :value [[:send 5 %d]]}\n"
    with pytest.raises(HistoryError) as caught:
        read_history([*begin, *[line % number for number in range(200_000)]], "h.edn", memory_max=200 << 20)
    (problem,) = caught.value.problems
    assert (
        problem.message == "the operations before this line take more than 200 MiB of memory (--max-memory)"
    )
    assert 50_000 < problem.line < 200_000


@pytest.mark.parametrize("inner", [b"{:a :b}\n", b'"', b"; a comment\n"], ids=["maps", "text", "comments"])
def test_an_operation_in_a_vector_is_refused_if_it_is_too_long(inner: bytes) -> None:
    def lines() -> Iterator[bytes]:
        yield b"[{:process 0}\n {:value [\n"
        yield inner
        for _ in range(10_000):
            yield inner if inner != b'"' else b"text\n"
            taken.append(1)

    taken: list[int] = []
    with pytest.raises(HistoryError) as caught:
        read_history(lines(), "h.edn", line_max=10_000)
    assert (2, 2, "not EDN: an element has more than 10000 characters (--max-line)") in [
        (problem.line, problem.column, problem.message) for problem in caught.value.problems
    ]
    assert len(taken) < 10_000
