"""`partition` and `network_split`: their cut links and their sides."""

from itertools import combinations

import pytest

from harrow.faults.link_ends import with_link_ends
from harrow.faults.links import NetworkPartition, NetworkSplit
from tests.campaigns.run.cluster_harness import ClusterHarness
from tests.faults.test_faults import FakeEnvironment
from tests.recorded_choices import recorded_choices

BROKERS, CLIENTS = (0, 1, 2), ("producer-0",)
FIVE = (0, 1, 2, 3, 4)


def sides_of(fault: NetworkPartition) -> tuple[tuple[int | str, ...], tuple[int | str, ...]]:
    """Return the sides of a partition with broker 0 as the leader."""
    references = {"leader of t-0": (0,), "followers of t-0": (1, 2)}
    sides = with_link_ends(fault, BROKERS, CLIENTS, references.__getitem__)
    return sides.between, sides.and_


@pytest.mark.parametrize(
    ("fault", "sides"),
    [
        (NetworkPartition(between=("leader of t-0",)), ((0,), (1, 2, "producer-0", "zookeeper"))),
        (NetworkPartition(between=("leader of t-0",), and_=("followers of t-0",)), ((0,), (1, 2))),
        (NetworkPartition(between=("clients",), and_=("brokers",)), (("producer-0",), (0, 1, 2))),
        (NetworkPartition(between=("brokers",), and_=("zookeeper",)), ((0, 1, 2), ("zookeeper",))),
        (NetworkPartition(between=(1, "leader of t-0", 1), and_=(2,)), ((1, 0), (2,))),
        (
            NetworkPartition(between=(1, "clients"), and_=("others",)),
            ((1, "producer-0"), (0, 2, "zookeeper")),
        ),
    ],
)
def test_the_sides_of_a_partition_are_looked_up_when_it_strikes(
    fault: NetworkPartition, sides: tuple[tuple[int | str, ...], ...]
) -> None:
    assert sides_of(fault) == sides


def test_a_partition_between_all_brokers_cuts_each_link_once() -> None:
    links = NetworkPartition(between=BROKERS, and_=BROKERS).links(FakeEnvironment())
    assert sorted(links) == [(one, other) for one in BROKERS for other in BROKERS if one != other]


def test_a_partition_with_an_empty_side_cuts_nothing() -> None:
    assert not NetworkPartition(between=(0,), and_=()).applies(FakeEnvironment())
    assert NetworkPartition(between=("zookeeper",), and_=("zookeeper",)).problem() is not None
    assert NetworkPartition(between=("brokers",), and_=("brokers",)).problem() is None


@pytest.mark.parametrize(
    ("quorum", "nodes"),
    [
        ((), (0, 1, 2, "zookeeper")),
        ((9_000,), (0, 1, 2, "zookeeper")),
        ((3_000, 3_001, 3_002), (0, 1, 2, 3_000, 3_001, 3_002)),
        ((0, 1), (0, 1, 2)),
        ((0,), (0, 1, 2)),
    ],
)
def test_each_server_of_the_control_plane_is_a_node_of_a_split(
    quorum: tuple[int, ...], nodes: tuple[int | str, ...]
) -> None:
    """A single controller has the name of all, and one in a broker's process is that broker."""
    assert with_link_ends(NetworkSplit(), BROKERS, CLIENTS, lambda _: (), quorum).nodes == nodes
    both = NetworkPartition(between=("brokers",), and_=("zookeeper",))
    assert with_link_ends(both, BROKERS, CLIENTS, lambda _: (), quorum).and_ == ("zookeeper",)


def reachable_nodes(split: NetworkSplit, node: int | str) -> set[int | str]:
    """Return the nodes that a node still reaches, including itself."""
    cut = set(split.links(FakeEnvironment()))
    assert {(other, one) for one, other in cut} == cut
    return {other for other in split.nodes if (node, other) not in cut}


def test_no_node_reaches_the_other_half() -> None:
    split = NetworkSplit(nodes=FIVE, order="given")
    assert reachable_nodes(split, 0) == reachable_nodes(split, 1) == {0, 1}
    assert reachable_nodes(split, 2) == {2, 3, 4}


def test_the_bridge_reaches_both_halves_and_they_reach_it() -> None:
    split = NetworkSplit(nodes=FIVE, shape="bridge", order="given")
    assert reachable_nodes(split, 0) == {0, 1, 2}
    assert reachable_nodes(split, 2) == set(FIVE)
    assert reachable_nodes(split, 4) == {2, 3, 4}


@pytest.mark.parametrize("count", range(4, 12))
def test_in_a_majorities_ring_each_node_reaches_a_different_majority(count: int) -> None:
    split = NetworkSplit(nodes=tuple(range(count)), shape="majorities_ring", order="given")
    majorities = [reachable_nodes(split, node) for node in range(count)]
    assert all(count // 2 < len(majority) < count for majority in majorities)
    assert all(one != other for one, other in combinations(majorities, 2))


@pytest.mark.parametrize(("shape", "least"), [("halves", 2), ("bridge", 3), ("majorities_ring", 4)])
def test_a_shape_needs_a_minimum_of_nodes(shape: str, least: int) -> None:
    for count in range(1, 6):
        split = NetworkSplit(shape=shape, nodes=tuple(range(count)), order="given")  # type: ignore[arg-type]  # one of its literals
        assert (split.problem() is None) == split.applies(FakeEnvironment()) == (count >= least)


def test_a_split_draws_its_node_order_when_it_strikes_and_keeps_it() -> None:
    harness = ClusterHarness(draws=(2, 0, 1, 0))
    assert harness.injector.inject(NetworkSplit())
    (injected,) = harness.injector.injected
    assert injected.concrete == NetworkSplit(nodes=(2, 0, "zookeeper", 1), order="given")
    assert harness.cluster.network.is_cut("broker-2", "zookeeper")
    assert not harness.cluster.network.is_cut("broker-2", "broker-0")


def test_an_explicit_order_makes_no_choice() -> None:
    split = NetworkSplit(nodes=(0, 1), order="given")
    assert split.with_choices(recorded_choices({"schedule": ()}).schedule) is split


def test_a_partition_is_simpler_than_a_split_into_halves() -> None:
    split = NetworkSplit(nodes=(2, 0, 1), order="given", shape="bridge")
    assert list(split.simpler()) == [NetworkPartition(between=(2,), and_=(0, 1))]
