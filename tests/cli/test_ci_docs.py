"""The workflow of docs/how-to/ci.md works; test_docs_commands.py runs the commands of the page."""

import re
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from harrow.cli.options import ReportFormat, RunFormat
from tests.cli.conftest import ROOT, Harrow

PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
WORKFLOW = ROOT / "docs" / "how-to" / "ci" / "harrow.yml"


def steps() -> list[dict[str, Any]]:
    # YAML 1.1 reads the key `on` as a boolean, which does not matter for the jobs.
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return list(workflow["jobs"]["campaigns"]["steps"])


COMMANDS = [step["run"] for step in steps() if step.get("run", "").startswith("harrow ")]


@pytest.fixture
def project(folder: Path) -> Path:
    """Return a project with campaigns and a corpus."""
    (folder / "campaigns").mkdir()
    for name in ("calm", "permitted"):
        (folder / f"{name}.yaml").rename(folder / "campaigns" / f"{name}.yaml")
    corpus = folder / "tests" / "regressions"
    corpus.mkdir(parents=True)
    entry = ROOT / "tests" / "regressions" / "dedup.yaml"
    (corpus / entry.name).write_text(entry.read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def test_the_workflow_has_four_commands() -> None:
    assert len(COMMANDS) == 4


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_workflow_runs(harrow: Harrow, project: Path, command: str) -> None:
    shorter = command.replace("0..500", "0..5")
    ended = harrow(*shlex.split(shorter)[1:])
    assert ended.returncode == 0, ended.stderr


def test_the_report_that_the_workflow_posts_exists(harrow: Harrow, project: Path) -> None:
    assert harrow("run", "campaigns/calm.yaml").returncode == 0
    (posted,) = re.findall(r"--body-file (\S+)", PAGE)
    assert (project / posted).read_text(encoding="utf-8").startswith("# calm\n")


def test_the_workflow_continues_after_a_failure() -> None:
    conditions = {step.get("name"): step.get("if", "") for step in steps()}
    assert "!cancelled()" in conditions["Regressions"]
    assert conditions["Keep what failed"] == "failure()"


def test_the_workflow_keeps_nightly_failures(harrow: Harrow, project: Path) -> None:
    (night,) = (command for command in COMMANDS if "--seeds" in command)
    (kept,) = (step["with"]["path"] for step in steps() if step.get("name") == "Keep what failed")
    assert "--no-results" not in night
    (project / "failing.yaml").rename(project / "campaigns" / "failing.yaml")
    ended = harrow(*shlex.split(night.replace("0..500", "0..5"))[1:])
    assert ended.returncode == 1, ended.stderr
    assert list((project / kept).glob("*/failures/*/campaign.yaml"))


def test_harrow_runs_from_a_checkout() -> None:
    names = [step.get("name", step.get("uses")) for step in steps()]
    fetched = next(step["with"]["path"] for step in steps() if "repository" in step.get("with", {}))
    (installed,) = (step["run"] for step in steps() if step.get("name") == "Install harrow")
    assert f"./{fetched}" in installed
    assert names.index("Get harrow") < names.index("Install harrow")


def test_every_format_is_documented() -> None:
    table = PAGE.partition("| format |")[2].partition("\n\n")[0]
    for name in {*get_args(RunFormat), *get_args(ReportFormat)}:
        assert f"`{name}`" in table
