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
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    DescribeUserScramCredentialsRequest,
    ListConfigResourcesRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.producer import EndTxnRequest

from harrow.cluster_model.release.profiles import Behaviours
from harrow.live_cluster.serve.answers.refused_acls import ACL_REQUESTS
from harrow.live_cluster.wire.client_requests import REQUESTS
from harrow.live_cluster.wire.codec import CLIENT_VERSIONS

Versions = tuple[int, int]
"""The lowest and the highest version of a request."""
_OWN_VERSIONS: Final[Mapping[int, Versions]] = {
    AlterReplicaLogDirsRequest.API_KEY: (1, 2),
    AlterUserScramCredentialsRequest.API_KEY: (0, 0),
    ApiVersionsRequest.API_KEY: (0, 4),
    DescribeClusterRequest.API_KEY: (0, 2),
    DescribeConfigsRequest.API_KEY: (0, 4),
    DescribeLogDirsRequest.API_KEY: (0, 5),
    DescribeTopicPartitionsRequest.API_KEY: (0, 0),
    DescribeQuorumRequest.API_KEY: (0, 2),
    DescribeUserScramCredentialsRequest.API_KEY: (0, 0),
    ListConfigResourcesRequest.API_KEY: (0, 1),
    **{kind.API_KEY: (0, 3) for kind in ACL_REQUESTS},
}
"""The requests that the server answers without a broker of the model."""


_TRANSACTIONS_V2: Final = 5
"""The first version of EndTxn with transactions v2 (KIP-890)."""


@cache
def broker_versions() -> Mapping[str, Mapping[str, Versions]]:
    """Return the versions that real brokers support, by release and by the name of the API."""
    text = (
        resources.files("harrow.live_cluster.serve.answers").joinpath("api_versions.json").read_text("utf-8")
    )
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


def finalized_features(release: str, behaviours: Behaviours) -> dict[str, int]:
    """Return the levels of the features that clients learn from ApiVersions (KIP-584).

    A producer uses transactions v2 if the level of ``transaction.version`` is 2
    (``TransactionManager.maybeUpdateTransactionV2Enabled``).
    """
    features = {}
    _, end_txn = served_versions(release).get(EndTxnRequest.API_KEY, (0, -1))
    if end_txn >= _TRANSACTIONS_V2:
        features["transaction.version"] = 2 if behaviours.transactions.transactions_v2 else 1
    if behaviours.groups.consumer_group_protocol:
        features["group.version"] = 1
    return features


def api_name(key: int) -> str:
    """Return Kafka's name of an API."""
    return str(REQUESTS[key].name).removesuffix("Request")
