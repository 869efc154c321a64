"""The examples of docs/how-to/extending*.md work once they are registered as the pages explain."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT
from tests.cli.docs_pages import read_page
from tests.plain_environment import PYTHONPATH, plain_environment

FILES = {
    name: text
    for page in sorted((ROOT / "docs" / "how-to").glob("extending*.md"))
    for name, text in read_page(page, ROOT).files.items()
}

REGISTERED = """
import importlib.util, sys

def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded

from harrow.faults.catalogue import FAULTS
from harrow.checks.rules.catalogue import RULES

fault = module("outage", "faults/outage.py").Outage
FAULTS[fault.name] = fault
rule = module("elected_outside_isr", "checks/elected_outside_isr.py").RULE
RULES[rule.name] = rule

module("seeking_disk", "cluster_model/seeking_disk.py")
module("own_replication", "cluster_model/release/own_replication.py")

from harrow.cli.main import main
main()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the files of the page."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def harrow(project: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-P", "-c", REGISTERED, *arguments],
        cwd=project,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode in {0, 1}, ended.stdout + ended.stderr
    return ended.stdout


def runs(project: Path, *arguments: str) -> list[dict[str, Any]]:
    return list(json.loads(harrow(project, "run", *arguments, "--format", "json"))["runs"])


def test_the_example_fault_strikes(project: Path) -> None:
    base, power_loss = runs(project, "outages.yaml")
    for run in (base, power_loss):
        assert [fault["fault"] for fault in run["faults"]] == ["outage"]
        assert run["expected"]
    assert base["rules"]["lost-write"]["status"] == "held"
    assert power_loss["rules"]["lost-write"]["status"] == "permitted"
    trace = (project / "results" / "latest" / "trace.jsonl").read_text(encoding="utf-8").splitlines()
    stopped = [event for event in map(json.loads, trace) if event["event"] == "broker_stopped"]
    assert [event["broker"] for event in stopped] == [0, 1, 2]


def test_the_example_fault_is_explained(project: Path) -> None:
    assert "How long the brokers stay down." in harrow(project, "explain", "outage")


def test_the_example_key_and_setting_are_accepted(project: Path) -> None:
    options = ("--set", "cluster.disk.seek=2ms", "--set", "compression.level=3")
    assert runs(project, "outages.yaml", *options)[0]["expected"]
    assert "The compression level of a producer." in harrow(project, "explain", "compression.level")
    assert "The seek time of a disk." in harrow(project, "schema")


def test_the_example_rule_is_permitted_if_its_setting_is_enabled(project: Path) -> None:
    base, clean, *_ = runs(project, "unclean-election")
    assert base["rules"]["elected-outside-isr"]["status"] == "permitted"
    assert clean["rules"]["elected-outside-isr"]["status"] == "held"


def test_the_example_rule_is_violated_by_the_mutant(project: Path) -> None:
    setting = "behaviours.unclean_election_only_if_enabled=false"
    options = ("--variant", "clean-election", "--set", setting)
    (run,) = runs(project, "unclean-election", *options)
    assert run["rules"]["elected-outside-isr"]["status"] == "violated"


@pytest.mark.parametrize(
    "tool", [("check", "--ignore", "INP001"), ("format", "--check")], ids=lambda tool: tool[0]
)
def test_the_examples_pass_the_linter_and_the_formatter(project: Path, tool: tuple[str, ...]) -> None:
    names = [name for name in FILES if name.endswith(".py")]
    ended = subprocess.run(
        [sys.executable, "-m", "ruff", *tool, "--no-cache", "--config", str(ROOT / "pyproject.toml"), *names],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
