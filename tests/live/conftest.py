"""Tests on real brokers. `make live` runs them on all releases or on those that are named.

They need Java, and Kafka in the cache or Maven to download it. With ``HARROW_REQUIRE_KAFKA=1`` a
test fails where one of these is missing.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.sim.choices import SeededStream
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.observed_requests import ObservedRequests
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.local_cluster import LocalCluster
from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.releases.java import JavaError, find_java
from harrow.live_cluster.releases.kafka_cache import default_cache
from harrow.live_cluster.releases.kafka_release import ZOOKEEPER, pinned_releases, release_of
from harrow.live_cluster.releases.maven import MavenError
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata

TRIED: Final = "HARROW_LIVE"
"""The variable with the releases: ``all``, or names such as ``2.4.1 3.9.2-kraft``."""
REQUIRED: Final = "HARROW_REQUIRE_KAFKA"
KILLS: Final = int(os.environ.get("HARROW_LIVE_KILLS", "4"))
"""How often a process is killed in the middle of a run."""
_WAIT_MAX_S: Final = 300.0
"""After this time a wait fails. On a quiet machine each wait takes seconds."""

_NOT_TRIED: Final = pytest.mark.skip(reason="`make live` runs it")

StartedCluster = Callable[[str, str], LocalCluster]
Wait = Callable[[Callable[[], bool]], None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "release" in metafunc.fixturenames:
        names = [release for release, mode in _tried() if mode == ZOOKEEPER]
        metafunc.parametrize("release", names or [pytest.param("", marks=_NOT_TRIED)])
    if "brokers" in metafunc.fixturenames:
        targets = [f"{release}-{mode}" for release, mode in _tried()]
        metafunc.parametrize(
            "brokers", targets or [pytest.param("", marks=_NOT_TRIED)], indirect=True, scope="module"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that share a cluster into one process of a parallel run."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        if parameters is not None and "clusters" in parameters.params:
            item.add_marker(
                pytest.mark.xdist_group(
                    f"by hand {parameters.params['brokers']} {parameters.params['clusters']}"
                )
            )


def _tried() -> list[tuple[str, str]]:
    """Return the selected releases with all of their modes, or with the named mode."""
    named = os.environ.get(TRIED, "").split()
    return [
        (release.name, mode)
        for release in pinned_releases()
        for mode in release.modes
        if named == ["all"] or not {release.name, f"{release.name}-{mode}"}.isdisjoint(named)
    ]


@pytest.fixture
def wait_until() -> Wait:
    """Return a function that waits until a condition holds."""

    def wait(holds: Callable[[], bool]) -> None:
        until = time.monotonic() + _WAIT_MAX_S
        while not holds():
            assert time.monotonic() < until
            time.sleep(0.05)

    return wait


def kafka_of(release: str) -> tuple[Path, Path]:
    """Return Java and the jars of a release, or skip the test without them."""
    try:
        return find_java(), default_cache().get(release_of(release))
    except (JavaError, MavenError) as error:
        if os.environ.get(REQUIRED) == "1":
            raise
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture(scope="module")
def brokers(request: pytest.FixtureRequest) -> StartedBrokers:
    """Return the installation of a release from which brokers are started."""
    name, _, mode = str(request.param).partition("-")
    java, jars = kafka_of(name)
    return StartedBrokers(release=release_of(name), metadata=mode, java=java, jars=jars)


def newest_tried() -> tuple[str, str] | None:
    """Return the newest selected release and a mode of it; None if none is selected."""
    return max(_tried(), key=lambda each: [*map(int, each[0].split("."))], default=None)


def start_cluster(clusters: ExitStack, folder: Path, release: str, metadata: str, text: str) -> LocalCluster:
    """Start the cluster of a campaign text; *clusters* stops it."""
    java, jars = kafka_of(release)
    (plan,) = load_text(text, "live.yaml").plans
    faults = LinkFaults(SeededStream(0, "network"), lambda *_: None)
    activity = Activity()
    proxies = clusters.enter_context(Proxies(faults, ObservedRequests(lambda *_: None), activity.note))
    activity.begin()
    cluster = LocalCluster(
        plan.cluster,
        release=release_of(release),
        java=java,
        jars=jars,
        folder=folder,
        proxies=proxies,
        observed_metadata=ObservedMetadata(lambda *_: None),
        metadata=metadata,
        activity=activity,
        shared=SharedClasses(jars, java, metadata),
    )
    clusters.enter_context(cluster)
    cluster.start()
    return cluster


@pytest.fixture
def started(tmp_path: Path) -> Iterator[StartedCluster]:
    """Return a function that starts the cluster of a campaign text."""
    with ExitStack() as clusters:
        yield lambda release, text: start_cluster(clusters, tmp_path, release, ZOOKEEPER, text)
