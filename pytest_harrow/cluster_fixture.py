"""The fixture `kafka_cluster`, which serves a cluster to the clients of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from harrow.campaigns.language.spelling import quoted, suggestion
from harrow.live_cluster.serve.kafka_cluster import BrokenPromiseError, KafkaCluster, KafkaClusterError
from harrow.pytest_harrow.options import CLUSTER

_FUNCTION: Final = "function"


@contextmanager
def served_cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """Serve a cluster. If the scope is wider than a function, check the verdict at the end."""
    __tracebackhide__ = True
    marker = request.node.get_closest_marker(CLUSTER)
    arguments: tuple[Any, ...] = () if marker is None else marker.args
    options: dict[str, Any] = {} if marker is None else dict(marker.kwargs)
    campaign, *others = arguments or (options.pop("campaign", None) or request.config.getini(CLUSTER),)
    if not campaign or others:
        _fail(f"name one campaign or cluster file: in the ini option `{CLUSTER}`, or in a marker")
    known = [*signature(KafkaCluster).parameters][1:]
    for name in options:
        if name not in known:
            _fail(f"the marker `{CLUSTER}` has no option {quoted(name)}{suggestion(name, known)}")
    try:
        cluster = KafkaCluster(_place_of(request, campaign), **options)
    except (KafkaClusterError, TypeError) as error:
        _fail(error)
    try:
        yield cluster
        if request.scope != _FUNCTION:
            check(cluster)
    finally:
        cluster.close()


def check(cluster: KafkaCluster) -> None:
    """Fail if the judge finds that the run is not as expected."""
    __tracebackhide__ = True
    try:
        cluster.judge().check()
    except (BrokenPromiseError, KafkaClusterError) as error:
        _fail(error)


def _place_of(request: pytest.FixtureRequest, campaign: Any) -> Path | str:
    """Return a file below the folder of the test or the root directory; else a library's name."""
    here: Path = request.node.path
    for folder in (here if here.is_dir() else here.parent, request.config.rootpath):
        path = folder / str(campaign)
        if path.is_file():
            return path
    return str(campaign)


def _fail(reason: object) -> NoReturn:
    raise pytest.fail.Exception(str(reason), pytrace=False) from None
