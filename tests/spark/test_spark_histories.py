"""Spark judges a history of many files like a single process: same verdict, same findings."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.large_histories import (
    alternating_files,
    range_reduction,
    spark_stages,
    spark_tables,
)
from harrow.campaigns.large_histories.spark_tables import read_on_spark
from harrow.campaigns.large_histories.splits import split_files
from harrow.campaigns.record.check_report import size_of
from harrow.campaigns.record.history_file import HistoryError, read_history
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.storage.location import location
from harrow.campaigns.sweep.spark_session import SparkAddress, start_session, stop_session
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.judge import judge_history
from tests.campaigns.large_histories.unruly_histories import unruly_history
from tests.properties.correct_history import lines, random_history
from tests.properties.correct_log import History, Line
from tests.properties.planted import PLANTS

LIMITS = {"line_max": 1 << 20, "unpacked_max": 1 << 26}
SPLIT_BYTES = 40_000
FILES = 20
RUNS = 20


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    spark = start_session(SparkAddress("local[2]"), for_sql=True)
    yield spark
    stop_session(spark)


def renamed(value: Any, number: int) -> Any:
    """Return a part of history *number*, with partitions, values and processes of its own."""
    if isinstance(value, dict):
        return {
            key: part + 1_000 * number
            if key == "process" and isinstance(part, int)
            else renamed(part, number)
            for key, part in ((renamed_key(key, number), part) for key, part in value.items())
        }
    if isinstance(value, list):
        return [renamed(part, number) for part in value]
    return (
        f"{value}/{number}"
        if isinstance(value, str) and value[:1] in "tm" and value[1:2] in "-0123456789"
        else value
    )


def renamed_key(key: str, number: int) -> str:
    return f"{key}/{number}" if key.startswith("t-") else key


def all_anomalies(seed: int) -> History:
    """Return a correct history, and one with each kind of anomaly, as one history."""
    history: History = []
    first = seed * (len(PLANTS) + 1)
    correct = random_history(first, 40)
    planted = (
        plant(random_history(number, 40), Random(number).choice).history
        for number, plant in enumerate(PLANTS.values(), first + 1)
    )
    for number, part in enumerate((correct, *planted)):
        history += [renamed(line, number) for line in part]
    for index, line in enumerate(history):
        line["index"] = index
        line["time"] = index * 1_000
    return history


def on_spark(session: SparkSession, folder: Path, files: list[bytes]) -> HistoryIndex:
    for number, content in enumerate(files):
        (folder / f"{number:02}.jsonl").write_bytes(content)
    places = [(path.name, location(path)) for path in sorted(folder.iterdir())]
    splits = split_files(places, split_bytes=SPLIT_BYTES)
    return read_on_spark(session, splits, numbered=len(files) > 1, **LIMITS)


def check_same(session: SparkSession, folder: Path, seed: int) -> None:
    content = list(lines(all_anomalies(seed)))
    whole = read_history(content, "whole")
    random = Random(seed)
    files: list[list[bytes]] = [[] for _ in range(FILES)]
    for line in content:
        random.choice(files).append(line)
    reduced = on_spark(session, folder, [b"".join(file) for file in files])
    verdict = judge_history(whole)
    found = {name for name, result in verdict.rules.items() if result.findings}
    assert len(found) > len(PLANTS) // 2
    assert judge_history(reduced) == verdict
    assert size_of(reduced) == size_of(whole)


@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=12)
def test_spark_agrees_with_a_single_process_to_the_letter(
    session: SparkSession, tmp_path: Path, numbers: range
) -> None:
    for seed in numbers:
        check_same(session, tmp_path, seed)


def runs_with_findings(seed: int) -> Iterator[list[Line]]:
    """Yield the histories of runs of the library in which rules find something."""
    random = Random(seed)
    names = library_names()
    while True:
        plan = random.choice(load_campaign(resolve(random.choice(names))[0]).plans)
        operations = run_plan(plan, random.randrange(1_000)).evidence.operations
        content: list[Line] = [json.loads(json.dumps(operation.as_mapping())) for operation in operations]
        if any(
            result.findings for result in judge_history(read_history(lines(content), "run")).rules.values()
        ):
            yield content


def apart(line: Line, number: int) -> Line:
    """Return a line of run *number*, with processes, partitions and values of its own."""
    line = {**line, "process": line["process"] + 1_000 * number}
    if line["f"] in ("send", "poll", "txn"):
        line["value"] = [micro_apart(micro, number) for micro in line["value"]]
    elif line["f"] in ("assign", "subscribe"):
        line["value"] = [f"{name}/{number}" for name in line["value"]]
    return line


def micro_apart(micro: list[Any], number: int) -> list[Any]:
    match micro:
        case ["send", name, [offset, value]]:
            return ["send", f"{name}/{number}", [offset, f"{value}/{number}"]]
        case ["send", name, value]:
            return ["send", f"{name}/{number}", f"{value}/{number}"]
        case ["poll", polled]:
            return [
                "poll",
                {
                    f"{name}/{number}": [[offset, f"{value}/{number}"] for offset, value in pairs]
                    for name, pairs in polled.items()
                },
            ]
    return micro


@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=10)
def test_spark_agrees_with_a_single_process_about_recorded_runs(
    session: SparkSession, tmp_path: Path, numbers: range
) -> None:
    for seed in numbers:
        content: list[Line] = []
        for number, run in enumerate(islice(runs_with_findings(seed), RUNS)):
            content += [apart(line, number) for line in run]
        for index, line in enumerate(content):
            line["index"] = index
            line["time"] = index * 1_000
        verdict = judge_history(read_history(lines(content), "whole"))
        reduced = on_spark(session, tmp_path, [b"".join(lines(content))])
        assert judge_history(reduced) == verdict
        assert size_of(reduced) == size_of(read_history(lines(content), "whole"))


@pytest.mark.parametrize(
    ("whole_max", "files", "in_turn"),
    [
        (range_reduction.WHOLE_MAX, 1, False),
        (0, 3, False),
        (range_reduction.WHOLE_MAX, FILES, True),
        (0, FILES, True),
    ],
    ids=["one file", "three files, in tables", "files in turn", "files in turn, in tables"],
)
def test_executors_reduce_a_history_by_its_columns(
    session: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whole_max: int,
    files: int,
    *,
    in_turn: bool,
) -> None:
    monkeypatch.setattr(spark_tables, "SparkTables", None)
    monkeypatch.setattr(alternating_files, "RANGE_BYTES", SPLIT_BYTES)
    monkeypatch.setattr(range_reduction, "WHOLE_MAX", whole_max)
    history = unruly_history(1, 400)
    for index, line in enumerate(history):
        line["index"] = 1_000_003 * index
    content = list(lines(history))
    assert len(b"".join(content)) > SPLIT_BYTES
    size = len(content) // files + 1
    parts = [b"".join(content[begin : begin + size]) for begin in range(0, len(content), size)]
    if in_turn:
        parts = [b"".join(content[begin::files]) for begin in range(files)]
    whole = read_history(content, "whole")
    reduced = on_spark(session, tmp_path, parts)
    assert judge_history(reduced) == judge_history(whole)
    assert size_of(reduced) == size_of(whole)


def test_tables_judge_a_history_if_tasks_return_too_much_and_executors_release_its_facts(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_stages, "_COLLECTED_BYTES_MAX", 0)
    content = list(lines(unruly_history(1, 400)))
    reduced = on_spark(session, tmp_path, [b"".join(content)])
    assert judge_history(reduced) == judge_history(read_history(content, "whole"))
    assert not stored(session)


def stored(session: SparkSession) -> set[int]:
    """Return the RDDs that executors store, also the local checkpoints of tables."""
    return set(session.sparkContext._jsc.getPersistentRDDs())


def test_spark_reports_the_line_of_a_mistake_in_a_later_part_of_a_file(
    session: SparkSession, tmp_path: Path
) -> None:
    content = [*lines(random_history(1, 400))]
    content[-2] = content[-2].replace(b'"process"', b'"proces"')
    assert len(b"".join(content)) > 2 * SPLIT_BYTES
    with pytest.raises(HistoryError) as caught:
        on_spark(session, tmp_path, [b"".join(content)])
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == ("00.jsonl", len(content) - 1)
