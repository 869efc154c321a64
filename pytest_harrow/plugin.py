"""The hooks that pytest calls.

pytest loads this module in every project where harrow is installed. It imports only this package,
and no library, until a campaign is collected, the fixture is used or an option is set.
"""

import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from harrow.pytest_harrow.campaign_file import CampaignFile, is_campaign_file
from harrow.pytest_harrow.options import (
    CLUSTER_MARKER,
    CLUSTER_SCOPE,
    MARKER,
    SCOPES,
    Options,
    OptionsError,
    add_options,
)

if TYPE_CHECKING:
    from harrow.live_cluster.serve.kafka_cluster import KafkaCluster
    from harrow.pytest_harrow.fixture import Harrow

_NAMES: Final = ("harrow", __name__)
"""The names of this module: as an entry point, and for ``-p`` and ``pytest_plugins``."""

_IN_USE: Final = pytest.StashKey["Harrow"]()
_CLUSTER: Final = pytest.StashKey["KafkaCluster"]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options. Block a second registration of the plugin, which pytest would reject."""
    ours = pluginmanager.get_name(sys.modules[__name__])
    for name in _NAMES:
        if name != ours:
            pluginmanager.set_blocked(name)
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and report invalid options at once."""
    for marker in (MARKER, CLUSTER_MARKER):
        config.addinivalue_line("markers", marker)
    try:
        Options.of(config)
    except OptionsError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect files that the project or the command line selects as campaigns."""
    if not is_campaign_file(file_path, parent):
        return None
    collected: pytest.Collector = CampaignFile.from_parent(parent, path=file_path)
    return collected


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use the fixture, so that ``-m harrow`` selects them too."""
    if "harrow" in getattr(item, "fixturenames", ()) and item.get_closest_marker("harrow") is None:
        item.add_marker("harrow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judge the cluster of a test that has passed, so that the test itself fails."""
    __tracebackhide__ = True
    result = yield
    cluster = item.stash.get(_CLUSTER, None)
    if cluster is not None:
        from harrow.pytest_harrow.cluster_fixture import check

        check(cluster)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Add the results of the last runs to the report of a failed test."""
    runs = item.stash.get(_IN_USE, None)
    if runs is not None and call.when == "call" and call.excinfo is not None:
        story = runs.unreported_stories()
        if story and not call.excinfo.errisinstance(pytest.skip.Exception):
            item.add_report_section("call", "harrow", story)


@pytest.fixture
def harrow(request: pytest.FixtureRequest) -> "Generator[Harrow]":
    """Run campaigns in a test: harrow.run(campaign), harrow.expect(...), harrow.load(...)."""
    from harrow.pytest_harrow.fixture import Harrow

    runs = request.node.stash[_IN_USE] = Harrow(request)
    yield runs
    del request.node.stash[_IN_USE]


def _cluster_scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001 - pytest names it
    return config.getini(CLUSTER_SCOPE) or SCOPES[0]


@pytest.fixture(scope=_cluster_scope)
def kafka_cluster(request: pytest.FixtureRequest) -> "Generator[KafkaCluster]":
    """Serve a cluster that fails on demand, and judge its clients (ini option `kafka_cluster`)."""
    from harrow.pytest_harrow.cluster_fixture import served_cluster

    with served_cluster(request) as cluster:
        if request.scope == "function":
            request.node.stash[_CLUSTER] = cluster
        yield cluster
