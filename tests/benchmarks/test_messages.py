"""How many messages a failover takes with ZooKeeper and KRaft, and an election by watches."""

from collections import Counter

import pytest

from benchmarks.messages import FAILOVER_US, HERD_US, Count, counted, crash, herd, spec_of, table
from harrow.cluster_model.cluster import Cluster
from tests.plain_model import patches_the_model

pytestmark = patches_the_model

PARTITIONS = 7


def failover(release: str) -> Count:
    return counted(spec_of(3, PARTITIONS), release, crash, FAILOVER_US)


def test_a_failover_in_zookeeper_reads_and_writes_a_znode_for_each_partition() -> None:
    counts = failover("2.4")
    assert counts["ZooKeeper SetData"] == PARTITIONS
    assert counts["ZooKeeper GetData"] >= 2 * PARTITIONS
    assert counts["ZooKeeper watch events"] == 1
    # Two brokers learn of the new leaders, and again when the dead broker has left the ISR.
    assert counts["LeaderAndIsr requests"] == 4
    assert counts["partitions in LeaderAndIsr"] == 4 * PARTITIONS


def test_a_failover_in_kraft_needs_the_same_number_of_messages_for_any_number_of_partitions() -> None:
    one, many = (counted(spec_of(3, number), "4.3", crash, FAILOVER_US) for number in (1, PARTITIONS))
    assert one["answers with metadata records"] == many["answers with metadata records"] == 4
    # Two brokers and two standby controllers get a record for the dead broker, and one for each
    # partition.
    assert many["metadata records in them"] == 4 * (1 + PARTITIONS)


@pytest.mark.parametrize("brokers", [3, 6])
def test_an_election_by_watches_wakes_every_replica(brokers: int) -> None:
    counts = herd(brokers, PARTITIONS)
    remaining = brokers - 1
    assert counts["ZooKeeper watch events"] == counts["ZooKeeper Create"] == remaining * PARTITIONS
    # All replicas except the new leader set their watches again.
    assert counts["ZooKeeper GetData"] == (remaining - 1) * PARTITIONS
    assert not counts["LeaderAndIsr requests"]


def delete_controller(cluster: Cluster) -> None:
    cluster.delete_controller_znode()


def expire_broker(cluster: Cluster) -> None:
    cluster.expire_session(0)


@pytest.mark.parametrize("brokers", [3, 6])
def test_all_brokers_watch_the_controller_and_only_the_controller_watches_brokers(brokers: int) -> None:
    of_controller = counted(spec_of(brokers, 1), "2.4", delete_controller, HERD_US)
    # Each broker learns of the deletion, tries to create the znode, and all but one learn of the
    # creation.
    assert of_controller["ZooKeeper Create"] == brokers
    assert of_controller["ZooKeeper watch events"] == 2 * brokers
    assert counted(spec_of(brokers, 1), "2.4", expire_broker, HERD_US)["ZooKeeper watch events"] == 2


def test_a_table_has_a_row_for_each_message_that_was_sent() -> None:
    text = table(["1", "2"], [Counter({"a": 1, "b": 0}), Counter({"a": 2, "c": 3})])
    assert text.splitlines()[2:] == ["| a | 1 | 2 |", "| c | 0 | 3 |"]
