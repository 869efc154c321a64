"""The service levels of runs agree with an independent count from history.jsonl."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.events import BatchReplicated, FetchExpired
from harrow.cluster_model.trace import select
from tests.cli.conftest import ROOT
from tests.cli.docs_pages import read_page
from tests.library_swarm import library_swarm
from tests.scenarios.library_plans import each_plan, library_run

NS_PER_MS = 1_000_000
READERS = ("reader", "core-reader")


def lines_of(folder: Path) -> Iterator[dict[str, Any]]:
    with (folder / "history.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def counts_in(folder: Path) -> dict[str, Any]:
    """Count from the file, operation by operation, without any optimization."""
    names = json.loads((folder / "run.json").read_text(encoding="utf-8"))["processes"]
    sent: dict[tuple[Any, ...], list[int]] = {}
    first_sent: dict[tuple[str, str], int] = {}
    result: dict[str, Any] = {"sent": 0, "ok": 0, "fail": 0, "info": 0, "acks": [], "latency": [], "read": []}
    counted_reads = set()
    for line in (line for line in lines_of(folder) if line["f"] in ("send", "poll", "txn")):
        name = names[str(line["process"])]
        for micro in line["value"]:
            if micro[0] == "send":
                value = micro[2][1] if isinstance(micro[2], list) else micro[2]
                key = (line["process"], micro[1], value)
                if line["type"] == "invoke":
                    result["sent"] += 1
                    sent.setdefault(key, []).append(line["time"])
                    first_sent.setdefault((micro[1], value), line["time"])
                else:
                    result[line["type"]] += 1
                    # Of several pending sends of a value, the last one ends.
                    latency = line["time"] - sent[key].pop()
                    if line["type"] == "ok":
                        result["acks"].append(line["time"])
                        result["latency"].append(latency)
            elif len(micro) > 1 and line["type"] == "ok" and name not in READERS:
                for partition, pairs in micro[1].items():
                    for _, value in pairs:
                        if (name, partition, value) not in counted_reads and (partition, value) in first_sent:
                            counted_reads.add((name, partition, value))
                            result["read"].append(line["time"] - first_sent[partition, value])
    return result


def percentile(numbers: list[int], percent: int) -> float:
    """Return the smallest number, in ms, that at least this percentage does not exceed."""
    ordered = sorted(numbers)
    for number in ordered:
        if sum(other <= number for other in ordered) * 100 >= percent * len(ordered):
            return number / NS_PER_MS
    raise AssertionError


def longest_without_ack(folder: Path, partition: str) -> float:
    """Return the longest time without an ack for a partition, in milliseconds."""
    pending: dict[tuple[Any, ...], int] = {}
    since: int | None = None
    idle_since = longest = 0
    for line in lines_of(folder):
        for micro in line["value"]:
            if micro[0] != "send" or micro[1] != partition:
                continue
            value = micro[2][1] if isinstance(micro[2], list) else micro[2]
            key = (line["process"], value)
            if line["type"] == "invoke":
                if since is not None and not any(pending.values()) and line["time"] - idle_since > 1e9:
                    longest, since = max(longest, idle_since - since), None
                since = line["time"] if since is None else since
                pending[key] = pending.get(key, 0) + 1
                continue
            pending[key] -= 1
            if line["type"] == "ok":
                longest = max(longest, line["time"] - (line["time"] if since is None else since))
                since = line["time"] if any(pending.values()) else None
            else:
                idle_since = line["time"]
    if since is not None:
        longest = max(longest, (line["time"] if any(pending.values()) else idle_since) - since)
    return longest / NS_PER_MS


@each_plan()
def test_service_levels_agree_with_the_history(name: str, tmp_path: Path) -> None:
    check_figures(library_run(name), tmp_path)


@pytest.mark.parametrize("seed", range(1, 30))
def test_service_levels_of_a_swarm_agree_with_the_history(seed: int, tmp_path: Path) -> None:
    check_figures(run_plan(library_swarm(), seed), tmp_path)


def check_figures(result: RunResult, tmp_path: Path) -> None:
    folder = write_run(tmp_path, result, run_as_mapping(result, "harrow run"), "")
    service = json.loads((folder / "run.json").read_text(encoding="utf-8"))["service"]
    counts = counts_in(folder)
    ends = {"sent": "sent", "acked": "ok", "failed": "fail", "unknown": "info"}
    assert {key: service[key] for key in ends} == {key: counts[type_] for key, type_ in ends.items()}
    assert sum(service["acks"]["counts"]) == len(counts["acks"])
    bucket = service["acks"]["bucket_ms"] * NS_PER_MS
    for number, count in enumerate(service["acks"]["counts"]):
        assert count == sum(number == max(0, time) // bucket for time in counts["acks"])
    for key, numbers in (("ack_ms", counts["latency"]), ("end_to_end_ms", counts["read"])):
        if not numbers:
            assert service[key] is None
            continue
        assert service[key]["max"] == max(numbers) / NS_PER_MS
        assert (service[key]["p50"], service[key]["p99"]) == (
            percentile(numbers, 50),
            percentile(numbers, 99),
        )
    for partition, level in service["partitions"].items():
        longest = level["longest_without_ack"]
        assert (longest["length_ms"] if longest else 0) == longest_without_ack(folder, partition), partition
    assert sum(level["sent"] for level in service["producers"].values()) == service["sent"]
    for outage in service["outages"]:
        assert outage["length_ms"] >= 1_000
        assert outage["began"] != "unknown", outage


def test_a_fetch_does_not_wait_if_a_batch_is_available() -> None:
    """A fetch acknowledges the previous batch, so the next batch may be there before it waits."""
    page = read_page(ROOT / "docs" / "how-to" / "service.md", ROOT)
    (plan,) = load_text(page.files["served.yaml"], "served.yaml").plans
    result = run_plan(plan, 0)
    assert result.expected, result.missed
    answered = [
        event for event in select(result.evidence.trace, FetchExpired, BatchReplicated) if event.at_us > 0
    ]
    for expired, next_event in pairwise(answered):
        if isinstance(expired, FetchExpired) and isinstance(next_event, BatchReplicated):
            # An answer takes at most five milliseconds.
            assert next_event.broker != expired.replica or next_event.at_us > expired.at_us + 5_000
