"""`harrow run --target` refuses impossible targets before it starts any process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Harrow
from tests.plain_environment import PYTHONPATH, plain_environment


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nonsense", "'nonsense' is not a target: give model, a release such as kafka:2.4.1"),
        ("", "'' is not a target: give model, a release such as kafka:2.4.1"),
        ("kafka:9", "`9` is not a release of Kafka"),
        ("kafka:2.4", "`2.4` is not a release of Kafka; did you mean `2.4.1`?"),
        ("kafka:2.4.1-kraft", "'kafka:2.4.1-kraft' is not a target: give kafka:2.4.1-zookeeper"),
        ("kafka:4.3.1-zookeeper", "'kafka:4.3.1-zookeeper' is not a target: give kafka:4.3.1-kraft"),
        (
            "kafka:3.9.2-raft",
            "'kafka:3.9.2-raft' is not a target: give kafka:3.9.2-kraft or kafka:3.9.2-zookeeper",
        ),
    ],
)
def test_an_invalid_target_is_a_usage_error(
    harrow: Harrow, tmp_path: Path, target: str, message: str
) -> None:
    ended = harrow("run", "calm.yaml", "--target", target, HARROW_CACHE=str(tmp_path / "cache"))
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("seeds", [(), ("--seeds", "2")])
def test_a_campaign_about_another_release_is_skipped_without_java_or_download(
    harrow: Harrow, tmp_path: Path, seeds: tuple[str, ...]
) -> None:
    words = ("run", "acks-all-degrades", "--target", "kafka:3.9.2", "--variant", "base", *seeds)
    ended = harrow(*words, HARROW_CACHE=str(tmp_path / "cache"), PATH="", JAVA_HOME="")
    assert ended.returncode == 3, ended.stderr
    assert "- skipped" in ended.stdout
    assert "the campaign is for Kafka 2.4: --set kafka=3.9 runs it on 3.9.2" in ended.stdout
    assert "downloading Kafka" not in ended.stderr
    assert not (tmp_path / "cache").exists()


def test_starting_brokers_needs_java(harrow: Harrow, tmp_path: Path) -> None:
    words = ("run", "calm.yaml", "--target", "kafka:2.4.1", "--set", "kafka=2.4")
    ended = harrow(*words, HARROW_CACHE=str(tmp_path / "cache"), PATH="", JAVA_HOME="")
    assert ended.returncode == 2
    assert ended.stderr.startswith("harrow: brokers need Java")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "cache").exists()


def test_the_model_is_a_target(harrow: Harrow) -> None:
    named, left_out = harrow("run", "calm.yaml", "--target", "model"), harrow("run", "calm.yaml")
    assert named.returncode == left_out.returncode == 0


@pytest.mark.parametrize("command", ["run", "conform"])
def test_a_missing_extra_is_named_with_its_install_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "kazoo.py").write_text("raise ModuleNotFoundError('gone', name='kazoo')\n")
    ended = subprocess.run(
        [sys.executable, "-m", "harrow", command, "ack-lost", "--target", "kafka:2.4.1"],
        cwd=tmp_path,
        env={**plain_environment(), "PYTHONPATH": os.pathsep.join((str(tmp_path), PYTHONPATH))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr == "harrow: kazoo is not installed: pip install 'kafka-harrow[live]'\n"


def test_single_requests_go_only_to_brokers_that_harrow_starts(harrow: Harrow, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text('bootstrap: "127.0.0.1:1"\n')
    ended = harrow("conform", "--requests", "9", "--target", str(file))
    assert ended.returncode == 2
    assert "single requests go to a broker that harrow starts: give a release" in ended.stderr
    assert "Traceback" not in ended.stderr
