"""The programs of docs/findings/ show the flaws of Kafka that they are about."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harrow.live_cluster.getting.java import find_java
from harrow.live_cluster.getting.kafka_cache import default_cache
from harrow.live_cluster.getting.kafka_release import release_of
from tests.live.conftest import TRIED
from tests.plain_environment import ROOT

FINDINGS = ROOT / "docs" / "findings"
RELEASE = "4.4.0"
PATIENCE_S = 900.0


@pytest.fixture(scope="module")
def jars() -> Path:
    if {"all", RELEASE, f"{RELEASE}-kraft"}.isdisjoint(os.environ.get(TRIED, "").split()):
        pytest.skip(f"`make live RELEASES={RELEASE}` runs it")
    return default_cache().get(release_of(RELEASE))


def test_kafkas_own_class_of_partitions_does_what_the_pages_show(jars: Path) -> None:
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
    script = str(FINDINGS / "reproduce.py")
    ended = subprocess.run(
        [sys.executable, script, flaw, str(jars), str(tmp_path / "cluster")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
