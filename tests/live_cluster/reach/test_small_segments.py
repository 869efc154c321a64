"""Some brokers refuse segments smaller than 1 MiB, and harrow avoids them."""

import pytest

from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec
from harrow.live_cluster.reach.small_segments import (
    accepted_broker_settings,
    accepted_topic_settings,
    has_broker_with_small_segments,
    refuses_small_segments,
)

BROKERS = (BrokerSpec(id=0), BrokerSpec(id=1))


@pytest.mark.parametrize(("release", "refuses"), [("3.9", False), ("4.0", True), ("4.3", True)])
def test_brokers_refuse_small_segments_from_4_0_on(release: str, refuses: bool) -> None:
    assert refuses_small_segments(release) == refuses


@pytest.mark.parametrize(
    ("of_brokers", "of_topic", "accepted"),
    [
        ({}, {"segment.bytes": 200, "flush.ms": 1}, {"flush.ms": 1, "internal.segment.bytes": 200}),
        ({"log.segment.bytes": 300}, {}, {"internal.segment.bytes": 300}),
        ({"log.segment.bytes": 300}, {"segment.bytes": 14}, {"internal.segment.bytes": 14}),
        ({"log.segment.bytes": 300}, {"segment.bytes": 1 << 20}, {"segment.bytes": 1 << 20}),
        ({}, {}, {}),
    ],
)
def test_small_segments_are_set_by_an_internal_setting_of_topics(
    of_brokers: dict[str, Value], of_topic: dict[str, Value], accepted: dict[str, Value]
) -> None:
    cluster = ClusterSpec(topics=(), brokers=BROKERS, settings=of_brokers)
    assert accepted_topic_settings(cluster, TopicSpec(name="t", settings=of_topic)) == accepted


def test_small_segments_are_left_out_of_broker_settings() -> None:
    assert accepted_broker_settings({"log.segment.bytes": 300, "num.io.threads": 2}) == {"num.io.threads": 2}
    assert accepted_broker_settings({"log.segment.bytes": 1 << 20}) == {"log.segment.bytes": 1 << 20}


def test_only_all_brokers_together_can_have_small_segments() -> None:
    own = BrokerSpec(id=2, settings={"log.segment.bytes": 300})
    assert has_broker_with_small_segments(ClusterSpec(topics=(), brokers=(*BROKERS, own)))
    assert not has_broker_with_small_segments(
        ClusterSpec(topics=(), brokers=BROKERS, settings={"log.segment.bytes": 300})
    )
