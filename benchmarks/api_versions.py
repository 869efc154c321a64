"""Asks a real broker of each release which versions of requests it supports.

Run ``python -m benchmarks.api_versions``: it starts a broker of each pinned release, and writes the
versions to live_cluster/serve/answers/api_versions.json. `harrow serve` answers ApiVersions with
them.
"""

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kafka.protocol.metadata import ApiVersionsRequest

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import SeededStream
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.observed_requests import ObservedRequests
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.local_cluster import LocalCluster
from harrow.live_cluster.releases.java import find_java
from harrow.live_cluster.releases.kafka_cache import default_cache
from harrow.live_cluster.releases.kafka_release import KafkaRelease, pinned_releases
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.wire.client_requests import REQUESTS

_FILE: Final = Path(__file__).parents[1] / "live_cluster" / "serve" / "answers" / "api_versions.json"
_CLUSTER: Final = "name: versions\nkafka: '{}'\ncluster: {{brokers: 1, topics: [{{name: t}}]}}\n"


def main() -> None:
    """Write the versions of all releases that the model has."""
    releases = {release.model_release: release for release in pinned_releases()}
    lines = [f'"{name}": {json.dumps(versions_of(releases[name]))}' for name in RELEASES]
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def versions_of(release: KafkaRelease) -> dict[str, tuple[int, int]]:
    """Return the versions of requests that a broker supports, by the API's name.

    Only requests that kafka-python knows are of interest: harrow can read no others.
    """
    (plan,) = load_text(_CLUSTER.format(release.model_release), "versions.yaml").plans
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        faults = LinkFaults(SeededStream(0, "network"), lambda *_: None)
        activity = Activity()
        cluster = LocalCluster(
            plan.cluster,
            release=release,
            java=find_java(),
            jars=default_cache().get(release),
            folder=folder,
            proxies=opened.enter_context(Proxies(faults, ObservedRequests(lambda *_: None), activity.note)),
            observed_metadata=ObservedMetadata(lambda *_: None),
            metadata=release.modes[0],
            activity=activity,
        )
        opened.enter_context(cluster)
        cluster.start()
        with cluster.connect(0) as connection:
            apis = connection.ask(ApiVersionsRequest[0]()).api_keys
    names = {key: kind.name.removesuffix("Request") for key, kind in REQUESTS.items()}
    return {
        names[api.api_key]: (api.min_version, api.max_version)
        for api in sorted(apis, key=lambda api: int(api.api_key))
        if api.api_key in names
    }


if __name__ == "__main__":
    main()
