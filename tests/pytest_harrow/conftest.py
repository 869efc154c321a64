"""Runs pytest as a process, in a project with campaigns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CAMPAIGNS
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH

ROOT = Path(__file__).parents[2]
_OUTPUT_VARIABLES = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "FORCE_COLOR", "PY_COLORS", "NO_COLOR", "CI")

Pytest = Callable[..., pytest.RunResult]


@pytest.fixture
def run_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Pytest:
    """Return a function that runs pytest with the plugin, even if its entry point is installed."""
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    monkeypatch.setenv("COLUMNS", "200")
    # Other installed plugins do not matter here and take time to load.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for variable in _OUTPUT_VARIABLES:
        monkeypatch.delenv(variable, raising=False)

    def run(*arguments: str, plugin: str = "harrow.pytest_harrow.plugin") -> pytest.RunResult:
        chosen = ("-p", plugin) if plugin else ()
        return pytester.runpytest_subprocess(*chosen, *arguments, timeout=PATIENCE_S)

    return run


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """Return a project with campaigns and the strictest settings of pytest."""
    folder = pytester.path / "campaigns"
    folder.mkdir()
    for name, text in CAMPAIGNS.items():
        (folder / f"{name}.yaml").write_text(f"name: {name}{text}", encoding="utf-8")
    pytester.makeini(
        "[pytest]\naddopts = --strict-config --strict-markers --import-mode=importlib\nfilterwarnings = error\n"
    )
    return pytester.path


@pytest.fixture
def library() -> Path:
    """Return the folder of the library's campaigns."""
    return ROOT / "campaigns" / "library"
