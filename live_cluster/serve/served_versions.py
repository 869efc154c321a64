"""The versions of requests that a served cluster supports: those of its release that harrow has.

``api_versions.json`` has what a real broker of each release answers (``python -m
benchmarks.api_versions``).
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest

from harrow.live_cluster.serve.requests import REQUESTS
from harrow.live_cluster.wire.codec import CLIENT_VERSIONS

Versions = tuple[int, int]
"""The lowest and the highest version of a request."""
_OWN_VERSIONS: Final[Mapping[int, Versions]] = {
    ApiVersionsRequest.API_KEY: (0, 4),
    DescribeClusterRequest.API_KEY: (0, 2),
    DescribeConfigsRequest.API_KEY: (0, 4),
    DescribeTopicPartitionsRequest.API_KEY: (0, 0),
}
"""The requests that the server answers without a broker of the model."""


@cache
def broker_versions() -> Mapping[str, Mapping[str, Versions]]:
    """Return the versions that real brokers support, by release and by the name of the API."""
    text = resources.files("harrow.live_cluster.serve").joinpath("api_versions.json").read_text("utf-8")
    return {
        release: {name: (low, high) for name, (low, high) in versions.items()}
        for release, versions in json.loads(text).items()
    }


def known_versions() -> dict[int, Versions]:
    """Return the versions that harrow can read and answer, by API key."""
    return {**CLIENT_VERSIONS, **_OWN_VERSIONS}


def served_versions(release: str) -> dict[int, Versions]:
    """Return the versions of each request that a served cluster of a release supports.

    A release that supports an API only in versions before those that harrow knows, as 0.10.2 does
    for Produce and Fetch, supports the first version that harrow knows.
    """
    of_brokers = broker_versions()[release]
    served = {}
    for key, (low, high) in sorted(known_versions().items()):
        own = of_brokers.get(api_name(key))
        if own is not None:
            served[key] = max(low, own[0]), max(low, min(high, own[1]))
    return served


def api_name(key: int) -> str:
    """Return Kafka's name of an API."""
    return str(REQUESTS[key].name).removesuffix("Request")
