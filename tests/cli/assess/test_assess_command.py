"""`harrow assess` as a process."""

import json
from pathlib import Path

from tests.cli.conftest import Harrow

CLUSTER = """
kafka: "3.9"
settings: {acks: all, min.insync.replicas: 1}
brokers: 2
topics: [{name: orders, replication_factor: 1}]
"""


def test_show_opens_the_worst_run_and_prints_the_command_that_repeats_it(
    harrow: Harrow, folder: Path
) -> None:
    (folder / "shop.yaml").write_text(CLUSTER, encoding="utf-8")
    shown = harrow("assess", "shop.yaml", "--show", "disk-lost", "--runs", "2", "--expect", "lost=0")
    assert shown.returncode == 1, shown.stderr
    assert shown.stdout.startswith("one disk  ~ permitted\n")
    assert "\nnot as expected: one disk: lost " in shown.stdout
    (command,) = (line.split() for line in shown.stdout.splitlines() if line.startswith("  harrow run "))
    assert command[:3] == ["harrow", "run", "disk-lost"]
    repeated = harrow(*command[1:], "--format", "json", "--no-results")
    (run,) = json.loads(repeated.stdout)["runs"]
    assert run["rules"]["lost-write"]["status"] == "permitted"
    (recorded,) = (folder / "results" / "disk-lost").glob("*/run.json")
    assert json.loads(recorded.read_text(encoding="utf-8"))["trace_digest"] == run["trace_digest"]
    assert harrow("assess", "shop.yaml", "--show", "one disk", "--runs", "1", "-q").returncode == 0


def test_the_time_that_an_assessment_may_take_ends_it_with_as_many_runs_of_each_fault_model(
    harrow: Harrow, folder: Path
) -> None:
    (folder / "shop.yaml").write_text(CLUSTER, encoding="utf-8")
    ended = harrow(
        "assess", "shop.yaml", "--runs", "100000", "--max-time", "3s", "--format", "json", "-j", "1"
    )
    assert ended.returncode in {0, 3}, ended.stderr
    assert "--max-time reached: " in ended.stderr
    document = json.loads(ended.stdout)
    assert document["complete"] is False
    runs = [model["runs"] for model in document["models"] if model["runs"]]
    assert max(runs, default=0) - min(runs, default=0) <= 1


def test_mistakes_exit_with_2_and_one_line(harrow: Harrow, folder: Path) -> None:
    (folder / "shop.yaml").write_text(CLUSTER, encoding="utf-8")
    (folder / "notes.txt").write_text("hello", encoding="utf-8")
    (folder / "wrong.yaml").write_text("brokers: x\nkafka: '3.9'\n", encoding="utf-8")
    for arguments, message in (
        (("missing.yaml",), "missing.yaml"),
        (("notes.txt",), "notes.txt"),
        (("wrong.yaml",), "wrong.yaml:1:10"),
        (("shop.yaml", "--expect", "lots=0"), "did you mean `lost`"),
        (("shop.yaml", "--show", "disk-last"), "did you mean `disk-lost`"),
        (("shop.yaml", "--show", "rack-power"), "no broker has a rack"),
        (("shop.yaml", "--fault-model", "shop.yaml"), "shop.yaml"),
        (("shop.yaml", "--set", "acks=7"), "acks=7"),
    ):
        ended = harrow("assess", *arguments)
        assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
        assert message in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_cluster_file_with_settings_in_block_form_is_assessed_as_it_stands(
    harrow: Harrow, folder: Path
) -> None:
    (folder / "server.properties").write_text(
        "broker.id=1\nzookeeper.connect=z:2181\nmin.insync.replicas=1\n", encoding="utf-8"
    )
    assert harrow("import", "server.properties", "-o", "mine.yaml", "--brokers", "2").returncode == 0
    assert "\n  min.insync.replicas: 1\n" in (folder / "mine.yaml").read_text(encoding="utf-8")
    assessed = harrow("assess", "mine.yaml", "--runs", "1", "--show", "broker-dies")
    assert "imported" not in assessed.stderr
    (folder / "mine.yaml").write_text("brokers: 2\n\tsettings:\n  acks: 1\n", encoding="utf-8")
    ended = harrow("assess", "mine.yaml")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "mine.yaml:2:" in ended.stderr


def test_what_import_reads_is_assessed_as_the_cluster_file_that_import_would_write(
    harrow: Harrow, folder: Path
) -> None:
    (folder / "server.properties").write_text(
        "broker.id=1\nzookeeper.connect=z:2181\nmin.insync.replicas=1\nunclean.leader.election.enable=true\n",
        encoding="utf-8",
    )
    shown = harrow("assess", "server.properties", "--show", "controller-dies", "--runs", "1")
    assert shown.returncode == 0, shown.stderr
    (written,) = (folder / "results" / "clusters").iterdir()
    assert f"imported to {written.relative_to(folder)}" in shown.stderr
    assert f"--cluster {written.relative_to(folder)}" in shown.stdout
    assert "unclean.leader.election.enable: true" in written.read_text(encoding="utf-8")
