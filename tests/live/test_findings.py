"""The programs of docs/evidence/findings/ show their flaws of Kafka."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harrow.live_cluster.releases.java import find_java
from harrow.live_cluster.releases.kafka_cache import default_cache
from harrow.live_cluster.releases.kafka_release import KRAFT, ZOOKEEPER, release_of
from tests.live.conftest import TRIED
from tests.plain_environment import ROOT

FINDINGS = ROOT / "docs" / "evidence" / "findings"
RELEASE = "4.4.0"
WITH_ZOOKEEPER = "3.9.2"
PATIENCE_S = 900.0


def jars_of(release: str, mode: str) -> Path:
    if {"all", release, f"{release}-{mode}"}.isdisjoint(os.environ.get(TRIED, "").split()):
        pytest.skip(f"`make live RELEASES={release}` runs it")
    return default_cache().get(release_of(release))


@pytest.fixture(scope="module")
def jars() -> Path:
    return jars_of(RELEASE, KRAFT)


def test_kafkas_partition_class_shows_the_documented_flaws(jars: Path) -> None:
    printed = subprocess.run(
        [str(find_java()), "-cp", f"{jars}/*", str(FINDINGS / "PartitionFlaws.java")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    ).stdout
    for flaw in ("re-elected-leader", "forgotten-isr-change"):
        page = (FINDINGS / f"{flaw}.md").read_text(encoding="utf-8")
        begins = page.index(f"\n{flaw}: ") + 1
        assert page[begins : page.index("```", begins)].removesuffix("...\n") in printed


@pytest.mark.parametrize("flaw", ["re-elected-leader", "reverted-log-start"])
def test_brokers_lose_an_acknowledged_record(flaw: str, jars: Path, tmp_path: Path) -> None:
    check_reproduction("reproduce.py", flaw, str(jars), str(tmp_path / "cluster"))


def test_an_isr_change_in_zookeeper_stays_stuck(tmp_path: Path) -> None:
    check_reproduction("stuck_isr.py", str(jars_of(WITH_ZOOKEEPER, ZOOKEEPER)), str(tmp_path / "cluster"))


def check_reproduction(script: str, *arguments: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(FINDINGS / script), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
