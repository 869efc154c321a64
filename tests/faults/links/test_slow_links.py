"""`link_slow` and `link_reset`: which links are worse, how much, and how it ends."""

import pytest

from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.faults.fault import Fault
from harrow.faults.links.link_reset import LinkReset
from harrow.faults.links.link_slow import LinkSlow
from harrow.faults.links.partition import NetworkPartition
from tests.faults.test_faults import FakeEnvironment


def test_a_slow_link_is_slow_both_ways_or_one_way_until_it_ends() -> None:
    environment = FakeEnvironment()
    fault = LinkSlow(between=(0,), and_=("zookeeper",), latency=5, jitter=6, bandwidth=7)
    quality = LinkQuality(latency_us=5, jitter_us=6, bytes_per_second=7)
    fault.inject(environment)
    assert environment.did == [("degrade", 0, "zookeeper", quality), ("degrade", "zookeeper", 0, quality)]
    environment.did.clear()
    fault.end(environment)
    assert environment.did == [("recover", 0, "zookeeper", quality), ("recover", "zookeeper", 0, quality)]
    environment.did.clear()
    LinkSlow(between=(0,), and_=(1,), one_way=True, latency=5).inject(environment)
    assert environment.did == [("degrade", 0, 1, LinkQuality(latency_us=5))]


def test_a_reset_breaks_each_connection_once_whoever_has_opened_it() -> None:
    environment = FakeEnvironment()
    LinkReset(between=(0, 1), and_=(0, 1, "producer-0")).inject(environment)
    pairs = {frozenset(did[1:]) for did in environment.did}
    assert pairs == {frozenset(pair) for pair in ((0, 1), (0, "producer-0"), (1, "producer-0"))}
    assert len(environment.did) == len(pairs)


@pytest.mark.parametrize(
    "fault",
    [
        LinkSlow(between=(0,), and_=(1,), latency=0),
        LinkSlow(between=(0,), and_=(0,)),
        LinkReset(between=("zookeeper",), and_=("zookeeper",)),
    ],
)
def test_a_fault_that_would_do_nothing_is_refused(fault: Fault) -> None:
    assert fault.problem() is not None


@pytest.mark.parametrize("kind", [LinkSlow, LinkReset, NetworkPartition])
def test_fewer_ends_are_plainer(kind: type[LinkSlow | LinkReset | NetworkPartition]) -> None:
    plainer = list(kind(between=(0, "c"), and_=(1,)).plainer())
    assert plainer == [kind(between=("c",), and_=(1,)), kind(between=(0,), and_=(1,))]
