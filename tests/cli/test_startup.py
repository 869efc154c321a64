"""Commands load few modules and so start fast; times would depend on the machine."""

from importlib.util import find_spec

import pytest

from tests.cli.conftest import Harrow

RUNS = {
    "harrow.campaigns.language.loader",
    "harrow.campaigns.run.runner",
    "harrow.campaigns.language.schema",
    "harrow.cluster_model.cluster",
    "yaml",
}
LIBRARIES = {"hypothesis", "numpy", "pyarrow", "pandas", "pyspark", "duckdb", "pytest"}
PROCESSES = {"multiprocessing", "concurrent.futures", "logging", "harrow.campaigns.run.workers.worker_pool"}
OTHER_COMMANDS = {
    "harrow.cli.requests.real_brokers",
    "harrow.cli.requests.sweep",
    "harrow.cli.requests.results",
    "harrow.cli.page.trace_page",
    "harrow.cli.watch.watch_run",
    "harrow.cli.ci.suite",
    "harrow.cli.ci.run_suites",
    "harrow.campaigns.sweep.sweep",
    "harrow.campaigns.search.shrink",
    "harrow.campaigns.search.strategies.plans",
    "xml.etree.ElementTree",
}
RENDERING = {"rich.console", "rich.table", "xml.etree.ElementTree"}
RARE = {"html.entities", "pkgutil", "socket", "rich.table", "fractions"}
"""Modules that a run as expected does not need."""


@pytest.mark.parametrize(
    ("arguments", "not_loaded"),
    [
        (
            ("--version",),
            RUNS
            | LIBRARIES
            | RENDERING
            | {"pydantic", "typer", "dataclasses", "importlib.resources", "harrow.cli.main"},
        ),
        (
            ("--help",),
            RUNS
            | LIBRARIES
            | RENDERING
            | {"pydantic", "harrow.checks.rules.catalogue", "harrow.faults.catalogue"},
        ),
        (("run", "--help"), RUNS | LIBRARIES | RENDERING),
        # The list includes the reach of each target.
        (("list", "faults"), {"pyspark", "hypothesis", "duckdb", "pydantic"}),
        (("list", "settings"), RUNS | LIBRARIES | {"pydantic"}),
        (("explain", "lost-write"), RUNS | LIBRARIES),
        (("clean",), RUNS | LIBRARIES),
        (("run", "ack-lost"), LIBRARIES | PROCESSES | OTHER_COMMANDS | RARE | {"pydantic"}),
        (("run", "ack-lost", "--seed", "3", "--jobs", "2"), LIBRARIES | {"pydantic"}),
        (("validate", "calm.yaml", "--format", "json"), LIBRARIES | {"xml.etree.ElementTree", "pydantic"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_loads_only_the_modules_that_it_needs(
    harrow: Harrow, arguments: tuple[str, ...], not_loaded: set[str]
) -> None:
    ended = harrow(*arguments, PYTHONPROFILEIMPORTTIME="1")
    assert ended.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "harrow.cli.__main__" in loaded or "typer" in loaded
    assert not loaded & not_loaded


@pytest.mark.parametrize("name", sorted(OTHER_COMMANDS | PROCESSES))
def test_every_module_that_a_run_must_not_load_exists(name: str) -> None:
    """A module that no longer exists would weaken the test above."""
    assert find_spec(name)
