"""`link_slow` and `link_reset`: the affected links, the extra delay and the healing."""

import pytest

from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.faults.effects import ResetLink, SlowLink, Undo
from harrow.faults.fault import Fault
from harrow.faults.links import LinkReset, LinkSlow, NetworkPartition
from tests.faults.test_faults import FakeEnvironment


def test_a_slow_link_slows_one_or_both_directions_until_it_ends() -> None:
    environment = FakeEnvironment()
    fault = LinkSlow(between=(0,), and_=("zookeeper",), latency=5, jitter=6, bandwidth=7)
    quality = LinkQuality(latency_us=5, jitter_us=6, bytes_per_second=7)
    slow = [SlowLink(0, "zookeeper", quality), SlowLink("zookeeper", 0, quality)]
    assert fault.effects(environment) == slow
    assert fault.end(environment) == [Undo(effect) for effect in slow]
    one_way = LinkSlow(between=(0,), and_=(1,), one_way=True, latency=5)
    assert one_way.effects(environment) == [SlowLink(0, 1, LinkQuality(latency_us=5))]


def test_a_reset_breaks_each_connection_once_in_either_direction() -> None:
    resets = list(LinkReset(between=(0, 1), and_=(0, 1, "producer-0")).effects(FakeEnvironment()))
    pairs = {frozenset((reset.sender, reset.receiver)) for reset in resets if isinstance(reset, ResetLink)}
    assert pairs == {frozenset(pair) for pair in ((0, 1), (0, "producer-0"), (1, "producer-0"))}
    assert len(resets) == len(pairs)


@pytest.mark.parametrize(
    "fault",
    [
        LinkSlow(between=(0,), and_=(1,), latency=0),
        LinkSlow(between=(0,), and_=(0,)),
        LinkReset(between=("zookeeper",), and_=("zookeeper",)),
    ],
)
def test_a_fault_without_effect_is_refused(fault: Fault) -> None:
    assert fault.problem() is not None


@pytest.mark.parametrize("kind", [LinkSlow, LinkReset, NetworkPartition])
def test_a_fault_with_fewer_ends_is_simpler(kind: type[LinkSlow | LinkReset | NetworkPartition]) -> None:
    plainer = list(kind(between=(0, "c"), and_=(1,)).simpler())
    assert plainer == [kind(between=("c",), and_=(1,)), kind(between=(0,), and_=(1,))]
