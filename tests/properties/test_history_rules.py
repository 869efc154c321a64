"""Rules for histories accept correct logs, and find exactly the planted anomaly."""

import json
from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harrow.campaigns.record.history_file import HistoryError, read_history
from harrow.campaigns.record.phrases import because
from harrow.checks.finding import Finding, Verdict
from harrow.checks.history.judge import judge_history
from tests.properties.correct_history import correct_histories, lines, random_history
from tests.properties.correct_log import HUGE_GAP, History, Key, Line
from tests.properties.malformed_operations import MALFORMED
from tests.properties.planted import PLANTS
from tests.properties.planting import PlantedHistory
from tests.properties.recorded_history import Draw, Recording, number, shift_offsets

NAME = "history.jsonl"

# Hypothesis mostly draws short lists if a list may be empty. So some histories have a minimal
# length. The others shrink well.
HISTORIES = correct_histories() | correct_histories(min_steps=8, max_steps=25)


def judge(history: History) -> Verdict:
    return judge_history(read_history(lines(history), NAME))


def findings_of(verdict: Verdict) -> dict[str, tuple[Finding, ...]]:
    return {name: result.findings for name, result in verdict.rules.items() if result.findings}


def drawing(data: st.DataObject) -> Draw:
    return lambda options: data.draw(st.sampled_from(options))


# Correct histories


def check_no_findings(history: History) -> None:
    verdict = judge(history)
    assert not findings_of(verdict)
    shows_records = any(
        micro[0] == "send" or any(micro[1].values())
        for line in history
        if line["type"] == "ok" and line["f"] in ("send", "poll", "txn")
        for micro in line["value"]
    )
    statuses = {result.status for result in verdict.rules.values()}
    assert statuses <= {"held", "skipped"}
    assert ("held" in statuses) == shows_records
    assert verdict.status == ("inconclusive" if verdict.reasons else "held")
    answered = [line for line in history if line["type"] == "ok" and line["f"] in ("send", "txn")]
    assert not (verdict.reasons and any(micro[0] == "send" for line in answered for micro in line["value"]))


@pytest.mark.soak(size=40, rounds_in_test=1, rounds_in_soak=188)
@settings(max_examples=40)
@given(HISTORIES | correct_histories(min_steps=30, max_steps=80))
def test_a_correct_log_has_no_findings(history: History) -> None:
    check_no_findings(history)


@pytest.mark.parametrize("seed", range(60))
def test_a_long_correct_history_has_no_findings(seed: int) -> None:
    check_no_findings(random_history(seed, 300))


@pytest.mark.parametrize("seed", range(2))
def test_a_large_correct_history_has_no_findings(seed: int) -> None:
    check_no_findings(random_history(seed, 8_000))


# Planted anomalies


def check_found(name: str, planted: PlantedHistory) -> None:
    verdict = judge(planted.history)
    assert findings_of(verdict).keys() == {name}
    result = verdict.rules[name]
    for finding in result.findings:
        assert finding.partition in planted.keys
        assert not planted.values or finding.value in planted.values
        assert not planted.offsets or finding.offset in planted.offsets
        assert (finding.permitted_by is not None) == (planted.status == "permitted")
        assert because(finding)
    if planted.each:
        assert {finding.value for finding in result.findings} == planted.values
    # If a key is not read to its end, it is unknown whether an unseen record can be read.
    expected = {planted.status, "inconclusive"} if name == "unseen" else {planted.status}
    assert result.status in expected
    assert verdict.status == result.status


def test_every_anomaly_can_be_planted() -> None:
    assert PLANTS.keys() == judge([]).rules.keys()


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.soak(size=20, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=20)
@given(history=HISTORIES, data=st.data())
def test_a_planted_anomaly_is_the_only_finding(name: str, history: History, data: st.DataObject) -> None:
    check_found(name, PLANTS[name](history, drawing(data)))


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_anomaly_is_the_only_finding_in_a_longer_history(name: str) -> None:
    for seed in range(25):
        random = Random(seed)
        check_found(name, PLANTS[name](random_history(seed, 80), random.choice))


# Irrelevant changes


def other_interleaving(history: History, random: Random) -> History:
    """Shuffle the lines, but keep the order of the lines of each process."""
    remaining: dict[Any, list[Line]] = defaultdict(list)
    for line in history:
        remaining[line["process"]].append(line)
    mixed = []
    while remaining:
        process = random.choice(list(remaining))
        mixed.append(remaining[process].pop(0))
        if not remaining[process]:
            del remaining[process]
    number(mixed)
    return mixed


def other_processes(history: History, random: Random) -> History:
    processes = sorted({line["process"] for line in history if isinstance(line["process"], int)})
    others = dict(zip(processes, random.sample(range(10**6), len(processes)), strict=True))
    return [{**line, "process": others.get(line["process"], "another nemesis")} for line in history]


def other_offsets(history: History, random: Random) -> History:
    recording = Recording(history)
    for key, records in recording.order.items():
        for offset, _ in random.sample(records, min(2, len(records))):
            shift_offsets(recording, key, offset, random.choice([1, HUGE_GAP]))
    return history


def other_spelling_of_keys(history: History, random: Random) -> History:
    """Write a numeric key as a number in one place and as a string in another."""

    def respelled(key: Key) -> Key:
        spellings: list[Key] = [int(key), str(key)] if str(key).isdecimal() else [key]
        return random.choice(spellings)

    for line in history:
        if line["f"] in ("assign", "subscribe") and isinstance(line["value"], list):
            line["value"] = [respelled(key) for key in line["value"]]
        elif line["f"] in ("send", "txn") and isinstance(line["value"], list):
            for micro in line["value"]:
                micro[1:2] = [respelled(micro[1])] if micro[0] == "send" else micro[1:2]
        for event in line.get("rebalance-log", ()):
            event["keys"] = [respelled(key) for key in event["keys"]]
    return history


def other_times(history: History, random: Random) -> History:
    """Change times, and let indices start at another number than 0."""
    start = random.randrange(1000)
    return [{**line, "index": line["index"] + start, "time": random.randrange(10**15)} for line in history]


def other_fields(history: History, random: Random) -> History:
    """Add unknown fields, faults, and operations without sends and polls."""
    mixed: History = []
    for line in history:
        mixed += random.choice(([], [{"process": "nemesis", "type": "info", "f": "kill", "value": ["n1"]}]))
        mixed.append({**line, "ext": {"partitions": [1, None]}, "node": "n1", "exception": None})
    mixed += [
        {"process": 10**7, "type": type_, "f": f, "value": []}
        for f in ("send", "poll", "txn", "assign")
        for type_ in ("invoke", "ok")
    ]
    number(mixed)
    return mixed


CHANGES = (
    other_interleaving,
    other_processes,
    other_offsets,
    other_spelling_of_keys,
    other_times,
    other_fields,
)

CYCLES = ("G0", "G1c")


def summary(verdict: Verdict) -> dict[str, Any]:
    """Return the findings. Cycles are only counted, because the judge may show any of several."""
    return {
        name: sorted(
            (finding.permitted_by, *(() if name in CYCLES else (finding.partition, finding.value)))
            for finding in findings
        )
        for name, findings in findings_of(verdict).items()
    }


def maybe_with_anomaly(history: History, data: st.DataObject) -> History:
    for name in data.draw(st.lists(st.sampled_from(sorted(PLANTS)), max_size=1)):
        history = PLANTS[name](history, drawing(data)).history
    return history


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.soak(size=20, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=20)
@given(history=HISTORIES, data=st.data(), seed=st.integers(0, 2**32))
def test_an_irrelevant_change_keeps_the_findings(
    change: Callable[[History, Random], History], history: History, data: st.DataObject, seed: int
) -> None:
    history = maybe_with_anomaly(history, data)
    before = summary(judge(history))
    assert summary(judge(change(deepcopy(history), Random(seed)))) == before


@pytest.mark.soak(size=20, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=20)
@given(history=HISTORIES, data=st.data())
def test_the_spelling_of_json_does_not_matter(history: History, data: st.DataObject) -> None:
    history = maybe_with_anomaly(history, data)
    before = summary(judge(history))
    separators = data.draw(st.sampled_from([(",", ":"), (" , ", " : "), ("\t,", ":\t")]))
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n", b"  \n", b"\n \t\n\n"]))
    written = [json.dumps(line, separators=separators, sort_keys=True).encode() + end for line in history]
    # A file is read line by line, and its last line may have no end.
    rewritten = b"".join(written).rstrip().splitlines(keepends=True)
    assert summary(judge_history(read_history(rewritten, NAME))) == before


# Malformed lines


SEEDED_HISTORIES = [random_history(seed, 30) for seed in range(10)]
ONLY_SENDS_AND_POLLS = next(
    history for history in SEEDED_HISTORIES if {line["f"] for line in history} == {"send", "poll"}
)
WITH_TRANSACTIONS = next(
    history for history in SEEDED_HISTORIES if any(line["f"] == "txn" for line in history)
)
GOOD = {"sends and polls": lines(ONLY_SENDS_AND_POLLS), "all kinds": lines(WITH_TRANSACTIONS), "nothing": []}


def problem_lines(written: list[bytes]) -> list[int]:
    try:
        read_history(written, NAME)
    except HistoryError as error:
        for problem in error.problems:
            assert problem.file == NAME
            assert problem.column >= 1
            assert problem.message.isprintable()
            assert len(problem.message) < 200
        return [problem.line for problem in error.problems]
    return []


@pytest.mark.parametrize("good", GOOD)
def test_well_formed_lines_have_no_problems(good: str) -> None:
    assert problem_lines(GOOD[good]) == []


@pytest.mark.parametrize("good", GOOD)
@pytest.mark.parametrize("line", MALFORMED, ids=lambda line: line[:60].decode("latin-1"))
def test_a_malformed_line_is_reported_with_its_number(line: bytes, good: str) -> None:
    written = list(GOOD[good])
    at = Random(line).randrange(len(written) + 1)
    written.insert(at, line + b"\n")
    assert problem_lines(written) == [at + 1]


def test_every_malformed_line_is_reported() -> None:
    random = Random(0)
    written = list(GOOD["all kinds"])
    for line in random.sample(MALFORMED, 8):
        written.insert(random.randrange(len(written) + 1), line + b"\n")
    expected = [at for at, line in enumerate(written, 1) if line.rstrip(b"\n") in MALFORMED]
    assert problem_lines(written) == expected


@pytest.mark.parametrize("good", GOOD)
@pytest.mark.parametrize("empty", [b"\n", b"\r\n", b"   \n", b"\t\n"])
def test_an_empty_line_is_no_problem_but_counts_in_line_numbers(good: str, empty: bytes) -> None:
    written = list(GOOD[good])
    middle = len(written) // 2
    written[middle:middle] = [empty, empty]
    assert problem_lines(written) == []
    written[middle + 2 : middle + 2] = [b"{\n"]
    assert problem_lines(written) == [middle + 3]
