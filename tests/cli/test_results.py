"""The files that `harrow run` writes into results/."""

import json
from pathlib import Path

from harrow.campaigns.version import short_model_digest, version
from tests.cli.conftest import Harrow

FILES = {"run.json", "history.jsonl", "trace.jsonl", "campaign.yaml", "report.md"}


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_run_has_a_folder_with_all_files(harrow: Harrow, folder: Path) -> None:
    runs = json.loads(harrow("run", "permitted.yaml", "--format", "json").stdout)["runs"]
    for run in runs:
        place = (
            folder
            / "results"
            / "permitted"
            / f"{run['plan_digest'][:8]}-0-{version()}-{short_model_digest()}"
        )
        assert {file.name for file in place.iterdir()} == FILES
        assert lines(place / "run.json") == [run]
        assert [line["index"] for line in lines(place / "history.jsonl")] == list(
            range(len(lines(place / "history.jsonl")))
        )
        assert {"at_us", "event"} <= lines(place / "trace.jsonl")[0].keys()
        assert run["reproduce"] in (place / "report.md").read_text(encoding="utf-8")
    latest = folder / "results" / "latest"
    assert lines(latest / "run.json") == [runs[-1]]


def test_the_history_follows_the_interface(harrow: Harrow, folder: Path) -> None:
    harrow("run", "calm.yaml")
    invoked, acked = lines(folder / "results/latest/history.jsonl")[:2]
    assert {key: invoked[key] for key in ("index", "process", "type", "f", "value")} == {
        "index": 0,
        "process": 0,
        "type": "invoke",
        "f": "send",
        "value": [["send", "t-0", "m0"]],
    }
    assert (acked["type"], acked["value"]) == ("ok", [["send", "t-0", [0, "m0"]]])
    assert isinstance(acked["time"], int)
    assert acked["time"] % 1_000 == 0


def test_a_repeated_run_replaces_its_folder(harrow: Harrow, folder: Path) -> None:
    for _ in range(2):
        harrow("run", "calm.yaml")
    assert len(list((folder / "results" / "calm").iterdir())) == 1
    assert not [path for path in folder.rglob(".*") if path.name != "."]


def test_the_copied_campaign_repeats_the_run(harrow: Harrow, folder: Path) -> None:
    """The copy has the variant and the options merged in."""
    cases: tuple[tuple[str, ...], ...] = (
        ("calm.yaml",),
        ("permitted.yaml", "--variant", "base"),
        ("permitted.yaml", "--variant", "acks-all"),
        ("permitted.yaml", "--variant", "acks-all", "--set", "retries=7", "--set", "cluster.brokers=4"),
    )
    for arguments in cases:
        (first,) = json.loads(harrow("run", *arguments, "--seed", "3", "--format", "json").stdout)["runs"]
        copy = folder / "results" / "latest" / "campaign.yaml"
        again = json.loads(
            harrow("run", str(copy), "--seed", "3", "--format", "json", "--no-results").stdout
        )["runs"]
        assert again[0]["trace_digest"] == first["trace_digest"]
        assert again[0]["verdict"] == first["verdict"]
        assert again[0]["campaign"] == first["campaign"]
        if "acks-all" not in arguments:
            assert again[0]["plan_digest"] == first["plan_digest"]


def test_results_can_be_redirected_or_omitted(harrow: Harrow, folder: Path) -> None:
    assert harrow("run", "calm.yaml", "--no-results").returncode == 0
    assert not (folder / "results").exists()
    assert harrow("run", "calm.yaml", "--results", "deep/down").returncode == 0
    assert (folder / "deep" / "down" / "latest" / "run.json").exists()


def test_unwritable_results_are_a_usage_error(harrow: Harrow, folder: Path) -> None:
    (folder / "results").write_text("in the way", encoding="utf-8")
    ended = harrow("run", "calm.yaml")
    assert ended.returncode == 2
    assert "results" in ended.stderr
    assert "Traceback" not in ended.stderr
