"""`harrow advise` as a process."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harrow.cli.commands.advise import session
from harrow.cli.progress import ProgressLine
from harrow.cli.requests.advise import AdviseRequest
from tests.cli.conftest import Harrow

CLUSTER = """
kafka: "2.4"
settings: {acks: all, min.insync.replicas: 1}
disk: {writeback: never}
brokers: [{id: 0, rack: a}, {id: 1, rack: b}]
topics: [{name: orders, replication_factor: 2}]
"""
POWER = """
title: "power \\e[31mcut"
cluster: shop.yaml
workload: {duration: 4s, producers: [{rate: 40/s}], consumers: [{}]}
faults: [{at: 1s..3s, do: {broker_crash: {broker: all, kind: power_loss, restart_after: 2s}}}]
"""
LONG_DOWN = """
cluster: shop.yaml
workload: {duration: 40s, producers: [{rate: 5/s}]}
faults: [{at: 2s, do: {broker_crash: {broker: follower of orders-0, restart_after: 60s}}}]
"""


def written(folder: Path) -> None:
    (folder / "shop.yaml").write_text(CLUSTER, encoding="utf-8")
    (folder / "power.yaml").write_text(POWER, encoding="utf-8")


def test_advice_is_a_change_to_the_files_of_the_user_and_runs_that_repeat(
    harrow: Harrow, folder: Path
) -> None:
    written(folder)
    shown = harrow(
        "advise", "shop.yaml", "--fault-model", "power.yaml", "--runs", "4", "--allow", "reordered"
    )
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    assert "  server.properties\n    + log.flush.interval.messages=1\n" in shown.stdout
    assert "not refuted in 4 runs: below 52.7% of runs, with 95% confidence" in shown.stdout
    assert "log.flush.interval.messages=never (Kafka's default) does not survive, as above\n" in shown.stdout
    assert "  shrunk to 1 fault and " in shown.stdout
    for command in printed_runs(shown.stdout):
        assert run_of(harrow, command)["rules"]["lost-write"]["status"] == "permitted"


@pytest.mark.parametrize(
    ("options", "shown_as"),
    [
        (("--outage", "< 20s", "--change", "min.insync.replicas"), ("service.outage",)),
        (("--never", "failed", "--change", "min.insync.replicas"), ("service.failed", "service.unknown")),
    ],
    ids=["outage", "failed sends"],
)
def test_the_run_that_refutes_settings_and_the_shrunk_one_miss_the_bound(
    harrow: Harrow, folder: Path, options: Sequence[str], shown_as: tuple[str, ...]
) -> None:
    written(folder)
    cluster = CLUSTER.replace("replicas: 1", "replicas: 2, delivery.timeout.ms: 10s, request.timeout.ms: 5s")
    (folder / "shop.yaml").write_text(cluster, encoding="utf-8")
    (folder / "power.yaml").write_text(LONG_DOWN, encoding="utf-8")
    allowed = ("--allow", "lost", "--allow", "reordered")
    shown = harrow("advise", "shop.yaml", "--fault-model", "power.yaml", "--runs", "2", *allowed, *options)
    assert shown.returncode == 0, shown.stderr
    assert "  shrunk to 1 fault and " in shown.stdout
    for command in printed_runs(shown.stdout)[:2]:
        run = run_of(harrow, command)
        assert run["expected"] is False
        assert any(missed["message"].startswith(shown_as) for missed in run["missed"])


def test_a_folder_that_cannot_be_made_is_reported_before_the_search(harrow: Harrow, folder: Path) -> None:
    written(folder)
    (folder / "file").touch()
    advised = ("advise", "shop.yaml", "--survive", "one broker", "--runs", "1000000")
    ended = harrow(*advised, "--results", "file/results")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == "harrow: cannot write: Not a directory: file/results/advice"


def test_advice_is_printed_even_if_its_shrunk_runs_cannot_be_written(harrow: Harrow, folder: Path) -> None:
    written(folder)
    name = "lost-write-*-seed-0.yaml"
    options = ("--runs", "2", "--change", "log.flush.interval.messages", "--allow", "reordered")
    assert harrow("advise", "shop.yaml", "--fault-model", "power.yaml", *options).returncode == 0
    (shrunk,) = (folder / "results/advice").glob(name)
    shrunk.unlink()
    shrunk.mkdir()
    shown = harrow("advise", "shop.yaml", "--fault-model", "power.yaml", *options)
    assert shown.returncode == 0
    assert f"cannot write: Is a directory: {shrunk.relative_to(folder)}" in shown.stderr
    assert "log.flush.interval.messages=1" in shown.stdout
    assert "shrunk" not in shown.stdout


def printed_runs(text: str) -> list[str]:
    runs = dict.fromkeys(line.strip() for line in text.splitlines() if line.startswith("    harrow run "))
    assert runs
    return list(runs)


def run_of(harrow: Harrow, command: str) -> dict[str, Any]:
    repeated = harrow(*shlex.split(command)[1:], "--format", "json", "--no-results")
    (run,) = json.loads(repeated.stdout)["runs"]
    return dict(run)


def test_json_has_the_options_that_apply_the_advice(harrow: Harrow, folder: Path) -> None:
    written(folder)
    options = ("--runs", "2", "--change", "log.flush.interval.messages", "--allow", "reordered")
    shown = harrow("advise", "shop.yaml", "--fault-model", "power.yaml", *options, "--format", "json")
    advice = json.loads(shown.stdout)
    assert advice["schema"] == "harrow.advice/2"
    assert advice["advised"]["options"] == ["log.flush.interval.messages=1"]
    assert advice["yours"]["refuted_by"]["harm"] == "lost"
    (cheaper,) = advice["cheaper"]
    assert cheaper["refuted_by"]["reproduce"].startswith("harrow run power.yaml --seed ")


LOST_ANSWERS = """
title: lost answers
cluster: bare.yaml
workload: {duration: 4s, producers: [{rate: 40/s}], consumers: [{}]}
faults: [{at: 1s..2s, do: {network_ack_loss: {probability: 0.5, duration: 2s}}}]
"""


def test_advice_on_several_releases_begins_with_what_they_change(harrow: Harrow, folder: Path) -> None:
    """Idempotence is on by default since 3.0 (KIP-679)."""
    bare = "settings: {acks: all}\nbrokers: 3\ntopics: [{name: orders, replication_factor: 3}]\n"
    (folder / "bare.yaml").write_text(bare, encoding="utf-8")
    (folder / "lost-answers.yaml").write_text(LOST_ANSWERS, encoding="utf-8")
    options = ("--runs", "4", "--never", "doubled", "--change", "enable.idempotence", "--shrink-runs", "0")
    advised = ("advise", "bare.yaml", "--fault-model", "lost-answers.yaml", *options)
    shown = harrow(*advised, "--kafka", "2.4,4.3")
    assert shown.returncode == 0, shown.stderr
    rows = [line.split("  ") for line in shown.stdout.split("\n\n", 1)[0].splitlines()]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["what the release changes", "2.4", "4.3"],
        ["your settings", "do not survive", "survive"],
        ["advice", "change", "keep yours"],
    ]
    assert "bare.yaml: Kafka 2.4 with ZooKeeper\n" in shown.stdout
    assert "bare.yaml: Kafka 4.3 with KRaft\n" in shown.stdout
    document = json.loads(harrow(*advised, "--kafka", "4.3,4.4", "--format", "json").stdout)
    assert document["schema"] == "harrow.advice-by-release/1"
    assert [each["kafka"] for each in document["releases"]] == ["4.3", "4.4"]
    assert document["differences"] == []


def test_if_no_value_survives_the_exit_code_is_1_and_a_run_refutes_the_strongest_settings(
    harrow: Harrow, folder: Path
) -> None:
    written(folder)
    options = ("--runs", "2", "--change", "min.insync.replicas", "--allow", "reordered")
    shown = harrow("advise", "shop.yaml", "--fault-model", "power.yaml", *options)
    assert shown.returncode == 1, shown.stderr
    assert "No value of min.insync.replicas survives\n  min.insync.replicas=2\n" in shown.stdout
    assert "--set min.insync.replicas=2" in shown.stdout


def test_mistakes_exit_with_2_and_one_line(harrow: Harrow, folder: Path) -> None:
    written(folder)
    for arguments, message in (
        (("missing.yaml", "--survive", "one broker"), "missing.yaml"),
        (("shop.yaml",), "say what the cluster is to survive"),
        (("shop.yaml", "--survive", "one brokr"), "did you mean `one broker`"),
        (("shop.yaml", "--survive", "rack-powr"), "did you mean `rack-power`"),
        (("shop.yaml", "--survive", "one broker", "--outage", "10s"), "is not a bound"),
        (("shop.yaml", "--survive", "one broker", "--outage", "> 10s"), "bounded with `<`"),
        (("shop.yaml", "--survive", "one broker", "--never", "gone"), "no harm is called"),
        (("shop.yaml", "--survive", "one broker", "--change", "akcs"), "did you mean `acks`"),
        (
            ("shop.yaml", "--survive", "one broker", "--change", "foo"),
            "no setting called `foo` can be changed",
        ),
        (
            ("shop.yaml", "--survive", "one broker", "--change", "delivery.timeout.ms"),
            "no effect on this harm: lost, reordered",
        ),
        (("shop.yaml", "--survive", "one broker", "--kafka", "2.4,2.44"), "release `2.44` is not modelled"),
        (("shop.yaml", "--survive", "one broker", "--change", "placement"), "no other value on this cluster"),
        (
            ("shop.yaml", "--survive", "one broker", "--allow", "duplicated"),
            "`doubled` is allowed unless --never",
        ),
        (
            ("shop.yaml", "--survive", "one broker", "--allow", "lost", "--never", "lost"),
            "forbidden by --never",
        ),
        (("shop.yaml", "--survive", "one broker", "--never", "uncommitted"), "uses transactions"),
        (("shop.yaml", "--survive", "one broker", "--set", "acks=7"), "acks=7"),
    ):
        ended = harrow("advise", *arguments)
        assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
        assert message in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("runs", "settings", "shown"),
    [
        (1, "acks: all, log.flush.interval.messages: 1", "Your settings are not refuted so far"),
        (1, "acks: all", "Your settings do not survive"),
        (
            40,
            "acks: all",
            "Settings that have survived so far\n  server.properties\n    + log.flush.interval.messages=1\n",
        ),
    ],
)
def test_an_interrupt_keeps_what_the_finished_runs_show(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    runs: int,
    settings: str,
    shown: str,
) -> None:
    def interrupt(_: ProgressLine, done: int, _doing: str) -> None:
        if done == runs:
            raise KeyboardInterrupt

    written(folder)
    (folder / "shop.yaml").write_text(CLUSTER.replace("acks: all", settings), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(ProgressLine, "update", interrupt)
    request = AdviseRequest(
        sources=[Path("shop.yaml")],
        fault_models=[Path("power.yaml")],
        allowed=["reordered"],
        runs=1000,
        jobs=1,
    )
    assert session(request) == 130
    output = capsys.readouterr()
    assert shown in output.out
    assert "interrupted: the answer is not complete" in output.err


@pytest.mark.parametrize("others", [(), ("--set", "enable.idempotence=false")])
def test_advice_changes_settings_with_which_a_fault_model_cannot_run(
    harrow: Harrow, folder: Path, others: Sequence[str]
) -> None:
    (folder / "bare.yaml").write_text("brokers: 3\n", encoding="utf-8")
    named = ("advise", "bare.yaml", "--survive", "a dying application", "--survive", "one broker")
    options = ("--runs", "1", "--shrink-runs", "0", "--allow", "lost", "--set", "acks=1", *others)
    changes = ("--change", "acks", "--change", "enable.idempotence")
    shown = harrow(*named, *options, *changes)
    assert shown.returncode == 0, shown.stderr
    assert "✗ A fault model does not run with your settings\n  a dying application: --set " in shown.stdout
    assert "  producer.properties\n    - acks=1\n    + acks=all\n" in shown.stdout
    assert "  measured            advised\n" in shown.stdout
    advice = json.loads(harrow(*named, *options, *changes, "--format", "json").stdout)
    assert "transactional.id needs" in advice["yours"]["unfit"]
    assert advice["yours"]["values"]["acks"] == "1"
    assert advice["advised"]["unfit"] is None
    assert "acks=all" in advice["advised"]["options"]
    # No other setting makes the model fit.
    refused = harrow(*named, *options, "--change", "min.insync.replicas")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "`a dying application` cannot be tried on bare.yaml: --set " in refused.stderr


def test_advice_on_an_imported_cluster_is_headed_by_the_names_of_the_users_files(
    harrow: Harrow, folder: Path
) -> None:
    (folder / "server.properties").write_text("broker.id=0\nlog.retention.hours=2\n", encoding="utf-8")
    shown = harrow(
        "advise", "server.properties", "--survive", "one broker", "--runs", "1", "--shrink-runs", "0"
    )
    assert shown.stdout.startswith("server.properties: Kafka ")
