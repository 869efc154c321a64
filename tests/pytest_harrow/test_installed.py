"""The installed plugin costs little in projects that do not use it."""

from pathlib import Path

import pytest

from tests.plain_environment import PYTHONPATH
from tests.pytest_harrow.conftest import Pytest

pytest_plugins = ["pytester"]

HEAVY = (
    *("harrow.campaigns", "harrow.checks", "harrow.cli", "harrow.cluster_model", "harrow.faults"),
    *("pydantic", "rich", "typer", "yaml"),
)
ENTRY_POINT = "[pytest11]\nharrow = harrow.pytest_harrow.plugin\n"


@pytest.fixture
def installed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, run_pytest: Pytest) -> None:
    """Put a distribution with the entry point first on the path, as an installer would."""
    site = pytester.mkdir("site")
    info = site / "kafka_harrow-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: kafka-harrow\nVersion: 0.1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(ENTRY_POINT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{site}:{PYTHONPATH}")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")


def test_nothing_heavy_is_imported_before_a_campaign_is_collected(run_pytest: Pytest, project: Path) -> None:
    (project / "conftest.py").write_text(
        f"""
import sys

def pytest_unconfigure():
    print("imported:", sorted(set({HEAVY!r}) & set(sys.modules)))
""",
        encoding="utf-8",
    )
    (project / "test_it.py").write_text("def test_it(): pass\n", encoding="utf-8")
    result = run_pytest()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["imported: []*"])
    run_pytest("campaigns/calm.yaml").stdout.fnmatch_lines(["imported: *'yaml'*"])


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("plugin", ["", "harrow.pytest_harrow.plugin"])
def test_the_plugin_can_be_requested_twice(
    run_pytest: Pytest, project: Path, monkeypatch: pytest.MonkeyPatch, plugin: str
) -> None:
    run_pytest("campaigns/calm.yaml", "-n1", plugin=plugin).assert_outcomes(passed=1)
    monkeypatch.setenv("PYTEST_PLUGINS", "harrow.pytest_harrow.plugin")
    run_pytest("campaigns/calm.yaml", plugin=plugin).assert_outcomes(passed=1)


@pytest.mark.usefixtures("installed")
def test_the_plugin_can_be_disabled(run_pytest: Pytest, project: Path) -> None:
    (project / "test_it.py").write_text("def test_it(pytestconfig): pass\n", encoding="utf-8")
    result = run_pytest("-p", "no:harrow", "--fixtures", plugin="")
    result.stdout.no_fnmatch_line("harrow*")
