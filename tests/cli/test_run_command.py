"""`harrow run` as a process follows the interface for users and CI jobs."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from harrow.campaigns.version import version
from tests.cli.conftest import ROOT, Harrow
from tests.conftest import kill_after_test
from tests.patience import PATIENCE_S

RUN_KEYS = {
    *("campaign", "plan_digest", "seed", "verdict", "variant", "expected", "trace_digest", "events"),
    *("simulated_ms", "wall_ms", "rules", "faults", "probes", "replicas", "reproduce"),
}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("calm.yaml",), 0),
        (("permitted.yaml",), 0),
        (("failing.yaml",), 1),
        (("undecided.yaml",), 3),
        (("unreached.yaml",), 3),
        (("unreached.yaml", "--seeds", "0..2"), 3),
        (("unreached.yaml", "--seeds", "0..3", "--format", "ndjson"), 3),
        (("unreached.yaml", "--variant", "reached", "--seeds", "0..2"), 0),
        (("unreached.yaml", "--variant", "reached"), 0),
        (("unreached.yaml", "failing.yaml", "--seeds", "0..2"), 1),
        (("calm.yaml", "undecided.yaml"), 3),
        (("calm.yaml", "undecided.yaml", "failing.yaml"), 1),
        (("wrong.yaml",), 2),
        (("calm.yaml", "wrong.yaml"), 2),
        (("missing.yaml",), 2),
        (("no-such-campaign",), 2),
        ((), 2),
        (("calm.yaml", "--seed", "1", "--seeds", "0..2"), 2),
        (("calm.yaml", "--seeds", "5..5"), 2),
        (("calm.yaml", "--seeds", "five"), 2),
        (("calm.yaml", "--seed", "-1"), 2),
        (("calm.yaml", "--variant", "nope"), 2),
        (("calm.yaml", "--set", "nonsense"), 2),
        (("calm.yaml", "--set", "no.such.setting=1"), 2),
        (("calm.yaml", "--format", "xml"), 2),
        (("calm.yaml", "--max-time", "soon"), 2),
        (("calm.yaml", "--max-failures", "0"), 2),
        (("calm.yaml", "--output", "no/such/folder/file"), 2),
        (("calm.yaml", "--max-time", "0s"), 3),
    ],
)
def test_the_exit_code_follows_the_outcome(harrow: Harrow, arguments: tuple[str, ...], code: int) -> None:
    ended = harrow("run", *arguments)
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    if code == 2:
        assert ended.stdout == ""
        assert ended.stderr


def test_json_has_the_keys_of_the_interface(harrow: Harrow) -> None:
    ended = harrow("run", "permitted.yaml", "--format", "json")
    document = json.loads(ended.stdout)
    assert ended.stderr == ""
    assert (document["schema"], document["version"]) == ("harrow.run/1", version())
    assert document["verdict"] == "permitted"
    base, variant = document["runs"]
    assert base.keys() >= RUN_KEYS
    assert (base["campaign"], base["variant"], base["verdict"], base["expected"]) == (
        "permitted",
        None,
        "permitted",
        True,
    )
    assert (variant["variant"], variant["verdict"]) == ("acks-all", "held")
    lost = base["rules"]["lost-write"]
    assert (lost["status"], lost["count"]) == ("permitted", 1)
    assert lost["findings"][0]["value"] == "m0"
    assert lost["findings"][0]["permitted_by"].startswith("acks=0")
    assert base["rules"]["duplicate"]["status"] == "held"
    assert [fault["fault"] for fault in base["faults"]] == ["partition", "broker_crash"]
    assert base["faults"][1]["broker"] == 0
    assert set(base["replicas"]["t-0"]) == {"0", "1"}
    assert {"leo", "hw", "epochs"} <= base["replicas"]["t-0"]["0"].keys()
    assert base["reproduce"] == "harrow run permitted.yaml --seed 0"
    assert variant["reproduce"] == "harrow run permitted.yaml --seed 0 --variant acks-all"


def test_a_run_that_misses_a_required_probe_is_inconclusive(harrow: Harrow) -> None:
    document = json.loads(harrow("run", "unreached.yaml", "--variant", "base", "--format", "json").stdout)
    (run,) = document["runs"]
    assert (document["verdict"], run["verdict"], document["reasons"]) == ("inconclusive", "inconclusive", [])
    assert run["reasons"] == ["never reached: unclean-election"]
    assert run["probes_missed"] == ["unclean-election"]


def test_runs_that_together_miss_a_required_probe_are_inconclusive(harrow: Harrow) -> None:
    ended = harrow("run", "unreached.yaml", "--seeds", "0..2", "--format", "json")
    document = json.loads(ended.stdout)
    assert document["verdict"] == "inconclusive"
    assert document["reasons"] == ["unreached: never reached: unclean-election (in 2 runs)"]
    assert {run["verdict"] for run in document["runs"]} == {"held"}
    assert "unclean-election" in document["probes_never_reached"]
    assert "fetch-waited-in-purgatory" not in document["probes_never_reached"]
    for format_, stream in (("table", "stdout"), ("ndjson", "stderr")):
        ended = harrow("run", "unreached.yaml", "--seeds", "0..2", "--format", format_, "--quiet")
        assert "unreached: never reached: unclean-election (in 2 runs)" in getattr(ended, stream)


def test_unreached_probes_are_listed_for_several_seeds(harrow: Harrow) -> None:
    output = "rare states never reached: controller-changed"
    assert output in harrow("run", "calm.yaml", "--seeds", "0..2").stdout
    assert output in harrow("run", "calm.yaml", "--verbose").stdout
    assert output not in harrow("run", "calm.yaml").stdout


def test_ndjson_has_one_line_for_each_run(harrow: Harrow) -> None:
    ended = harrow("run", "permitted.yaml", "calm.yaml", "--format", "ndjson", "--seeds", "3..5")
    runs = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(run["campaign"], run["variant"], run["seed"]) for run in runs] == [
        ("permitted", None, 3),
        ("permitted", None, 4),
        ("permitted", "acks-all", 3),
        ("permitted", "acks-all", 4),
        ("calm", None, 3),
        ("calm", None, 4),
    ]
    assert all(run.keys() >= RUN_KEYS for run in runs)


def test_a_named_variant_runs_alone(harrow: Harrow) -> None:
    names = {}
    for name in ("base", "acks-all"):
        ended = harrow("run", "permitted.yaml", "--variant", name, "--format", "ndjson")
        names[name] = [json.loads(line)["variant"] for line in ended.stdout.splitlines()]
    assert names == {"base": [None], "acks-all": ["acks-all"]}


def test_the_command_of_a_failure_reproduces_it(harrow: Harrow) -> None:
    (first,) = json.loads(
        harrow("run", "failing.yaml", "--seed", "7", "--set", "acks=all", "--format", "json").stdout
    )["runs"]
    command = shlex.split(first["reproduce"])
    assert command[:2] == ["harrow", "run"]
    (again,) = json.loads(harrow(*command[1:], "--format", "json").stdout)["runs"]
    assert {**first, "wall_ms": 0} == {**again, "wall_ms": 0}


def test_a_run_does_not_depend_on_the_hash_seed(harrow: Harrow) -> None:
    digests = {
        json.loads(harrow("run", "permitted.yaml", "--format", "json", PYTHONHASHSEED=seed).stdout)["runs"][
            0
        ]["trace_digest"]
        for seed in ("0", "1", "2")
    }
    assert len(digests) == 1


def test_a_failure_is_printed_with_its_reasons_and_its_command(harrow: Harrow) -> None:
    ended = harrow("run", "failing.yaml")
    assert "UNEXPECTED" in ended.stdout
    assert "missed failing.yaml:6: t-0 on broker 0: LEO is 1, expected 2" in ended.stdout
    assert "missed failing.yaml:8: the verdict is held, expected permitted" in ended.stdout
    assert "harrow run failing.yaml --seed 0" in ended.stdout
    assert "exit 1" in ended.stdout


def test_an_expected_loss_is_no_failure(harrow: Harrow) -> None:
    ended = harrow("run", "permitted.yaml")
    assert "as expected" in ended.stdout
    assert "UNEXPECTED" not in ended.stdout
    assert "lost m0, permitted by acks=0" in ended.stdout


def test_an_inconclusive_run_prints_its_reason(harrow: Harrow) -> None:
    ended = harrow("run", "undecided.yaml")
    assert "inconclusive" in ended.stdout
    assert "m1 is not acked" in ended.stdout


def test_several_seeds_are_summarised(harrow: Harrow) -> None:
    ended = harrow("run", "permitted.yaml", "--seeds", "0..20")
    assert "20 seeds: 0..20" in ended.stdout
    assert len(ended.stdout.splitlines()) < 10


def test_quiet_prints_only_failures(harrow: Harrow) -> None:
    assert harrow("run", "calm.yaml", "permitted.yaml", "--quiet").stdout == ""
    output = harrow("run", "calm.yaml", "failing.yaml", "--quiet").stdout
    assert "failing" in output
    assert "calm" not in output


def test_verbose_prints_rules_faults_and_replicas(harrow: Harrow) -> None:
    output = harrow("run", "permitted.yaml", "--verbose").stdout
    assert re.search(r"(?m)^at most [0-9]+ MiB of memory$", output)
    for phrase in (
        "With acks=0 no client waits",
        "lost-write",
        "held",
        "broker_crash",
        "epoch@start",
        "trace",
    ):
        assert phrase in output


def test_max_failures_stops_further_runs(harrow: Harrow) -> None:
    ended = harrow(
        "run", "failing.yaml", "calm.yaml", "--seeds", "0..9", "--max-failures", "2", "--format", "ndjson"
    )
    assert ended.returncode == 1
    assert len(ended.stdout.splitlines()) == 2
    assert "2 of 18 runs finished" in ended.stderr


def test_output_goes_to_a_file(harrow: Harrow, folder: Path) -> None:
    ended = harrow("run", "calm.yaml", "--format", "json", "--output", "out.json")
    assert ended.stdout == ""
    assert "out.json" in ended.stderr
    assert json.loads((folder / "out.json").read_text(encoding="utf-8"))["verdict"] == "held"
    assert not list(folder.glob(".out.json*"))


def test_an_option_applies_to_every_run(harrow: Harrow) -> None:
    ended = harrow("run", "permitted.yaml", "--variant", "base", "--set", "kafka=0.11", "--format", "ndjson")
    assert json.loads(ended.stdout)["kafka"] == "0.11"


def test_a_folder_runs_all_its_campaigns(harrow: Harrow, folder: Path) -> None:
    some = folder / "some"
    some.mkdir()
    for name in ("calm", "permitted"):
        (folder / f"{name}.yaml").rename(some / f"{name}.yaml")
    ended = harrow("run", "some", "--format", "ndjson")
    runs = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [run["campaign"] for run in runs] == ["calm", "permitted", "permitted"]
    assert runs[0]["reproduce"] == f"harrow run {Path('some') / 'calm.yaml'} --seed 0"


def test_a_campaign_named_twice_runs_once(harrow: Harrow, folder: Path) -> None:
    ended = harrow("run", "calm.yaml", str(folder / "calm.yaml"), "--format", "ndjson")
    assert len(ended.stdout.splitlines()) == 1


def started(
    processes: ExitStack, folder: Path, environment: dict[str, str], *words: str
) -> subprocess.Popen[str]:
    """Start harrow until the end of the test."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harrow", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return kill_after_test(processes, process)


@pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")
def test_an_interrupt_keeps_finished_runs(
    processes: ExitStack, folder: Path, environment: dict[str, str]
) -> None:
    process = started(
        processes, folder, environment, "run", "endless.yaml", "--seeds", "0..1000000", "--format", "json"
    )
    latest = folder / "results" / "latest"
    while not latest.exists() and process.poll() is None:
        pass
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    runs = json.loads(stdout)["runs"]
    assert runs
    for run in runs:
        written = folder / "results" / "endless" / run["run_id"] / "run.json"
        assert json.loads(written.read_text(encoding="utf-8")) == run
    assert not list((folder / "results" / "endless").glob(".*"))


@pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")
def test_a_closed_pipe_ends_a_command_silently(
    processes: ExitStack, folder: Path, environment: dict[str, str]
) -> None:
    process = started(
        processes,
        folder,
        environment,
        "run",
        "calm.yaml",
        "--seeds",
        "0..100000",
        "--format",
        "ndjson",
        "--no-results",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=PATIENCE_S) == 141


def test_an_internal_error_is_one_clear_message(folder: Path, environment: dict[str, str]) -> None:
    script = (
        "import harrow.campaigns.run.runner, os\n"
        "def broken(plan, seed, **_): raise ZeroDivisionError(f'on purpose: {os.environ[\"KAFKA_PASSWORD\"]}')\n"
        "harrow.campaigns.run.runner.run_plan = broken\n"
        "from harrow.cli.main import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, "run", "calm.yaml"]
    variables = {**environment, "TMPDIR": str(folder), "KAFKA_PASSWORD": "hunter2-of-1957"}
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 4
    assert "Traceback" not in ended.stdout + ended.stderr
    assert "internal error: ZeroDivisionError: on purpose" in ended.stderr
    assert "harrow run calm.yaml --seed 0" in ended.stderr
    assert "report" in ended.stderr
    (details,) = folder.glob("harrow-*.txt")
    assert str(details) in ended.stderr
    assert "Traceback" in details.read_text(encoding="utf-8")
    assert "hunter2" not in ended.stderr + details.read_text(encoding="utf-8")
    variables["HARROW_DEBUG"] = "1"
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 4
    assert "Traceback" in ended.stderr


def test_an_expected_inconclusive_run_prints_its_reason(harrow: Harrow) -> None:
    ended = harrow("run", "epoch-without-records", "--no-results")
    assert "? inconclusive  as expected  base   the ISR of t-0 was [2, 0] at the end" in ended.stdout


def test_a_run_that_held_reports_its_longest_outage(harrow: Harrow) -> None:
    command = ("run", "rolling-restart", "--variant", "too-fast", "--no-results")
    assert re.search(r"held +as expected +too-fast +longest outage \d[\d.]* s\n", harrow(*command).stdout)
    for output_format in ("json", "junit"):
        assert "longest outage " in harrow(*command, "--format", output_format).stdout, output_format


def test_an_expectation_for_another_release_is_shown_but_fails_nothing(harrow: Harrow) -> None:
    ended = harrow("run", "delayed-end-txn", "--variant", "base", "--set", "kafka=4.0", "--no-results")
    assert ended.returncode == 0
    assert re.search(r"held +otherwise +base", ended.stdout)
    assert "written for Kafka 3.9, run as of Kafka 4.0" in ended.stdout
    output = " ".join(ended.stdout.split())
    assert "KIP-890, since 4.0 (tried: with behaviours.transactions_v2=false it is as in 3.9)" in output
    assert "1 with another outcome than written for another release" in ended.stdout


def test_a_promise_broken_as_of_another_release_is_a_failure(harrow: Harrow, folder: Path) -> None:
    text = (ROOT / "campaigns/library/loss-by-hw-truncation.yaml").read_text(encoding="utf-8")
    script = text.split("\nexpect:")[0].replace('kafka: "0.10.2"', 'kafka: "2.4"')
    rest = 'expect: {verdict: held}\nvariants: {"0.11": {kafka: "0.11"}}\n'
    (folder / "moved.yaml").write_text(f"{script}\n{rest}", encoding="utf-8")
    ended = harrow("run", "moved.yaml", "--set", "kafka=0.10.2", "--no-results")
    assert ended.returncode == 1
    assert "UNEXPECTED" in ended.stdout


def test_a_campaign_that_does_not_suit_the_release_is_left_out_unless_it_is_alone(
    harrow: Harrow,
) -> None:
    unsuited = "isr-change-notification.yaml:36:41: left out: message rule `notified` never matches"
    both = harrow("run", "isr-change-notification", "ack-lost", "--set", "kafka=4.0", "--no-results")
    assert both.returncode == 0
    assert unsuited in both.stderr
    assert "isr-change-notification" not in both.stdout
    alone = harrow("run", "isr-change-notification", "--set", "kafka=4.0", "--no-results")
    assert alone.returncode == 2
    assert unsuited.replace("left out: ", "") in alone.stderr


def test_variants_that_name_a_release_are_left_out_of_another_one(harrow: Harrow) -> None:
    ended = harrow("run", "unclean-election", "--set", "kafka=4.0", "--no-results")
    assert ended.returncode == 0
    assert "kraft, kraft-3.6, eligible-leaders name releases of their own and are left out" in ended.stderr
    assert "kraft-3.6" not in ended.stdout
