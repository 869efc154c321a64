"""Histories are read line by line, and no line takes all memory."""

import gzip
import io
import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from harrow.campaigns.record import history_file
from harrow.campaigns.record.history_file import HistoryError, open_history, read_history
from harrow.checks.history.judge import judge_history

LINE = b'{"index":%d,"process":0,"type":"invoke","f":"send","value":[["send","t-0","m%d"]],"time":0}\n'


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_too_long_is_refused_before_all_of_it_is_read(tmp_path: Path, *, packed: bool) -> None:
    text = LINE % (0, 0) + b" " * 5_000 + LINE % (1, 1) + LINE % (2, 2)
    path = tmp_path / "history.jsonl"
    path.write_bytes(gzip.compress(text) if packed else text)
    with open_history(path, io.BytesIO(), line_max=1_000) as lines:
        assert [len(line) for line in lines][1] == 1_001
    with (
        open_history(path, io.BytesIO(), line_max=1_000) as lines,
        pytest.raises(HistoryError) as caught,
    ):
        read_history(lines, "history", line_max=1_000)
    (problem,) = caught.value.problems
    assert (problem.line, problem.message) == (2, "longer than 1000 bytes")


def test_long_lines_are_not_kept_together_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harrow.campaigns.record.history_file._BYTES_AT_ONCE", 300)
    history = read_history([LINE % (number, number) for number in range(20)], "history")
    assert len(history.processes) == 20


def test_offsets_that_no_kafka_has_are_judged_all_the_same() -> None:
    far = 2**70
    records = [[0, "m0"], [far, "m1"], [far, "m2"]]
    lines = [
        {"process": 0, "type": "ok", "f": "send", "value": [["send", "t-0", "m0"]]},
        {"process": 0, "type": "ok", "f": "poll", "value": [["poll", {"t-0": records}]]},
    ]
    history = read_history([json.dumps(line).encode() for line in lines], "history")
    (conflict,) = judge_history(history).rules["inconsistent-offsets"].findings
    assert (conflict.offset, dict(conflict.details)["values"]) == (far, ["m1", "m2"])


def test_the_place_of_a_malformed_operation_is_looked_for_only_if_it_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places, starts = Mock(wraps=history_file._place), Mock(wraps=history_file._line_starts)
    monkeypatch.setattr(history_file, "_place", places)
    monkeypatch.setattr(history_file, "_line_starts", starts)
    lines = [b"[{:process 0, :type :ok}\n", *[" {:process 0, :f \u00e9}\n".encode()] * 199, b"]\n"]
    with pytest.raises(HistoryError) as caught:
        read_history(lines, "history.edn")
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [
        (1, 2),
        *[(line, 2) for line in range(2, 21)],
    ]
    assert caught.value.more == 180
    assert (places.call_count, starts.call_count) == (20, 1)
