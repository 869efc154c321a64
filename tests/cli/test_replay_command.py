"""`harrow replay` repeats a run or reports where it diverges from the record."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Harrow


@pytest.fixture
def run(harrow: Harrow, folder: Path) -> Path:
    """Return the folder of a recorded run."""
    harrow("run", "calm.yaml", "--seed", "3")
    return (folder / "results" / "latest").resolve()


def changed_trace(run: Path, line: int, old: str, new: str) -> None:
    """Change a line of the trace and its digest, as if another model had recorded it."""
    from harrow.campaigns.record.recorded_run import _read_trace
    from harrow.cluster_model.packed_log import digest

    path = run / "trace.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    path.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    run_json = json.loads((run / "run.json").read_text(encoding="utf-8"))
    run_json["trace_digest"] = digest(_read_trace(path)[2])
    (run / "run.json").write_text(json.dumps(run_json), encoding="utf-8")


def test_an_equal_replay_prints_one_line(harrow: Harrow, run: Path) -> None:
    for name in ("results/latest", str(run), run.name, f"calm/{run.name}", f"{run}/run.json"):
        ended = harrow("replay", name)
        assert (ended.returncode, ended.stderr) == (0, ""), name
        assert re.fullmatch(r"calm, seed 3: the same \d+ events as recorded \([0-9a-f]{16}\)\n", ended.stdout)
    assert harrow("replay", run.name, "--quiet").stdout == ""
    document = json.loads(harrow("replay", run.name, "--format", "json").stdout)
    assert (document["schema"], document["same"], document["first_difference"]) == (
        "harrow.replay/1",
        True,
        None,
    )


def test_results_may_be_in_another_folder(harrow: Harrow, run: Path, folder: Path) -> None:
    (folder / "results").rename(folder / "moved")
    (folder / "calm.yaml").unlink()
    assert harrow("replay", run.name).returncode == 2
    assert harrow("replay", run.name, "--results", "moved").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("permitted.yaml", "--variant", "acks-all", "--set", "retries=7", "--set", "cluster.brokers=4"),
        ("permitted.yaml", "--variant", "base", "--set", "kafka=0.11"),
        ("swarm", "--seed", "17"),
        ("swarm", "--seed", "18", "--set", "swarm.brokers=4..5", "--set", "name=wider"),
        ("standard", "--seed", "5", "--set", "workload.duration=5s"),
    ],
)
def test_every_run_can_be_replayed(harrow: Harrow, folder: Path, arguments: tuple[str, ...]) -> None:
    """The folder of a run has its variant, its options and the drawn values."""
    harrow("run", *arguments)
    for file in folder.glob("*.yaml"):
        file.write_text("name: something else by now\n", encoding="utf-8")
    ended = harrow("replay", "results/latest")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "was" not in ended.stdout, "the plan and the verdict are the same"


def test_a_replay_shows_both_events_at_the_first_difference(harrow: Harrow, run: Path) -> None:
    lines = (run / "trace.jsonl").read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if '"append"' in text)
    changed_trace(run, line, '"broker":0', '"broker":7')
    ended = harrow("replay", run.name)
    assert ended.returncode == 1
    assert "calm, seed 3: DIFFERENT from the recorded run" in ended.stdout
    assert "the model and the plan digest are the same" in ended.stdout
    assert f"they differ from line {line} of trace.jsonl:" in ended.stdout
    assert re.search(r"recorded +\d+\.\d{6}s append broker=7", ended.stdout)
    assert re.search(r"now +\d+\.\d{6}s append broker=0", ended.stdout)
    assert "different: broker\n" in ended.stdout
    document = json.loads(harrow("replay", run.name, "--format", "json").stdout)
    part = document["first_difference"]
    assert (part["line"], part["fields"]) == (line, ["broker"])
    assert (part["recorded"]["broker"], part["replayed"]["broker"]) == (7, 0)
    assert len(part["before"]) == 5


def test_a_replay_of_another_plan_or_harrow_names_it(harrow: Harrow, run: Path) -> None:
    run_json = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps({**run_json, "version": "0.2.99", "model": "0123456789abcdef"}))
    campaign = run / "campaign.yaml"
    campaign.write_text(
        campaign.read_text(encoding="utf-8").replace("brokers: 1", "brokers: 2"), encoding="utf-8"
    )
    ended = harrow("replay", str(run))
    assert ended.returncode == 1
    assert "recorded by another harrow (0.2.99, model 01234567; this is " in ended.stdout
    assert "the model" not in ended.stdout.replace("model may", "")
    assert "plan digest: recorded" in ended.stdout


def test_an_equal_replay_of_another_harrow_names_it(harrow: Harrow, run: Path) -> None:
    run_json = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps({**run_json, "version": "0.2.99", "model": "0" * 16}))
    ended = harrow("replay", str(run))
    assert ended.returncode == 0
    assert "events as recorded; recorded by another harrow (0.2.99, model 00000000; this is " in ended.stdout
    (run / "run.json").write_text(json.dumps({**run_json, "version": "0.2.99"}))
    assert "another harrow" not in harrow("replay", str(run)).stdout, "its model is the same"


def test_the_beginning_of_an_id_names_a_run(harrow: Harrow, run: Path) -> None:
    beginning = "-".join(run.name.split("-")[:2])
    assert harrow("replay", beginning).stdout == harrow("replay", run.name).stdout
    assert "no run in" in harrow("replay", beginning[:-1]).stderr
    others = [run.with_name(f"{beginning}-0.2.99-{model}") for model in ("00000000", "11111111")]
    for other in others:
        other.mkdir()
    assert harrow("replay", beginning).returncode == 0, "this harrow's run comes first"
    assert harrow("replay", f"{run.parent.name}/{beginning}").returncode == 0
    run.rename(run.parents[2] / "elsewhere")
    assert "several runs have this id" in harrow("replay", beginning).stderr


@pytest.mark.parametrize(
    ("command", "version"), [("replay", "0.1.0"), ("diff", "0.1.0"), ("trace", "0.1.0"), ("replay", "99.0.0")]
)
def test_a_record_of_another_version_is_refused_in_one_line(
    harrow: Harrow, run: Path, command: str, version: str
) -> None:
    run_json = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps({**run_json, "version": version}), encoding="utf-8")
    ended = harrow(command, run.name)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert f"run.json: recorded by harrow {version}, whose runs" in line
    assert "run its campaign.yaml again" in line


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("run.json", None, "run.json: is missing"),
        ("trace.jsonl", None, "trace.jsonl: is missing"),
        ("campaign.yaml", None, "campaign.yaml: is missing"),
        ("run.json", lambda text: text[:40], "run.json:1:"),
        ("run.json", lambda text: "[]\n", "run.json:1:1: expected the mapping of a run"),
        ("run.json", lambda text: text.replace('"seed"', '"sead"'), "run.json:1:1: `seed` is missing"),
        (
            "run.json",
            lambda text: text.replace('"seed":3', '"seed":"3"'),
            "run.json:1:1: seed: expected a whole number",
        ),
        ("run.json", lambda text: text.replace('"seed":3', '"seed":-3'), "seed is a whole number from 0"),
        (
            "run.json",
            lambda text: text.replace('"variant":null', '"variant":[1]'),
            "run.json:1:1: variant: expected text or null, not `[1]`",
        ),
        ("trace.jsonl", lambda text: text[:-1], "the line is cut off"),
        ("trace.jsonl", lambda text: text.replace("{", "", 1), "trace.jsonl:1:"),
        (
            "trace.jsonl",
            lambda text: text.replace("0", "1", 1),
            "trace.jsonl:1:1: this line has been changed",
        ),
        (
            "trace.jsonl",
            lambda text: text[: text[:-1].rindex("\n") + 1],
            "the events after this line are missing",
        ),
        ("trace.jsonl", lambda text: "", "trace.jsonl:1:1: all events are missing"),
        ("campaign.yaml", lambda text: text.replace("brokers", "brokkers"), "campaign.yaml:5:"),
    ],
)
def test_damage_is_reported_with_file_and_line(
    harrow: Harrow, run: Path, file: str, damage: object, message: str
) -> None:
    path = run / file
    if callable(damage):
        path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        path.unlink()
    ended = harrow("replay", run.name)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_missing_events_are_reported_after_the_last_line(harrow: Harrow, run: Path) -> None:
    trace = run / "trace.jsonl"
    lines = trace.read_text(encoding="utf-8").splitlines(keepends=True)
    trace.write_text("".join(lines[:7]), encoding="utf-8")
    assert "trace.jsonl:7:1: the events after this line are missing" in harrow("replay", run.name).stderr


def test_damage_in_a_trace_with_a_new_digest_is_reported_without_a_line(harrow: Harrow, run: Path) -> None:
    """The wrong line cannot be identified any more."""
    for file, old, new in (("trace.jsonl", "0", "1"), ("campaign.yaml", "brokers: 1", "brokers: 2")):
        text = (run / file).read_text(encoding="utf-8")
        assert old in text
        (run / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    ended = harrow("replay", run.name)
    assert ended.returncode == 2
    assert "trace.jsonl: its events do not have the digest in run.json" in ended.stderr


def test_any_file_of_a_run_names_the_run(harrow: Harrow, run: Path) -> None:
    for file in run.iterdir():
        assert harrow("replay", str(file)).returncode == 0, file


def test_a_folder_of_runs_is_not_a_run(harrow: Harrow, run: Path) -> None:
    ended = harrow("replay", "results")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "results: not the folder of a run: it has no run.json" in ended.stderr


@pytest.mark.parametrize("output_format", ["table", "json"])
def test_the_report_goes_to_a_file(harrow: Harrow, run: Path, folder: Path, output_format: str) -> None:
    shown = harrow("replay", run.name, "--format", output_format).stdout
    ended = harrow("replay", run.name, "--format", output_format, "--output", "out")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "harrow: wrote out\n")
    assert (folder / "out").read_text(encoding="utf-8") == shown
    ended = harrow("replay", run.name, "--output", "nowhere/out")
    assert ended.returncode == 2
    assert "cannot go on: No such file or directory: nowhere/out" in ended.stderr


def test_a_run_of_a_mutated_model_is_replayed_with_its_flaw(harrow: Harrow) -> None:
    """The campaign copy includes the flaw, so the replay breaks the same promise."""
    flawed = ("--set", "behaviours.follower_truncation=high_watermark")
    harrow("run", "loss-by-hw-truncation", "--variant", "0.11", *flawed)
    document = json.loads(harrow("replay", "results/latest", "--format", "json").stdout)
    assert document["same"]
    assert document["verdict"] == {"recorded": "violated", "replayed": "violated"}


def test_an_unknown_run_is_reported(harrow: Harrow, folder: Path) -> None:
    for name in ("nothing", "", "calm.yaml", "."):
        ended = harrow("replay", name)
        assert ended.returncode == 2, name
        assert "Traceback" not in ended.stderr


def test_a_run_on_another_cluster_than_the_model_is_not_repeated(harrow: Harrow, run: Path) -> None:
    file = run / "run.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    document["target"] = {"kind": "kafka", "release": "4.4.0", "metadata": "kraft", "began": "today"}
    file.write_text(json.dumps(document), encoding="utf-8")
    ended = harrow("replay", str(run))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "harrow: nothing was run: kafka is not the model, so this run cannot be repeated\n"
