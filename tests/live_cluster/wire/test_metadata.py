"""Brokers describe partitions, their ISRs and their eligible leaders."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.live_cluster.names import Names
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import broker_metadata, eligible_leaders


class Broker:
    """Answers page by page, or supports only an older protocol."""

    def __init__(self, *pages: Any, is_old: bool = False) -> None:
        self.pages = list(pages)
        self.is_old = is_old
        self.asked: list[tuple[list[str], Any]] = []

    def speaks(self, *_: Any) -> bool:
        return not self.is_old

    def ask(self, request: Any) -> Any:
        cursor = request.cursor and (request.cursor.topic_name, request.cursor.partition_index)
        self.asked.append(([topic.name for topic in request.topics], cursor))
        return self.pages.pop(0)


def page(following: tuple[str, int] | None, **topics: dict[int, list[int] | None]) -> Any:
    return SimpleNamespace(
        topics=[
            SimpleNamespace(
                name=name,
                partitions=[
                    SimpleNamespace(partition_index=number, eligible_leader_replicas=eligible)
                    for number, eligible in partitions.items()
                ],
            )
            for name, partitions in topics.items()
        ],
        next_cursor=following and SimpleNamespace(topic_name=following[0], partition_index=following[1]),
    )


def asked_of(broker: Broker) -> dict[str, tuple[int, ...]]:
    return eligible_leaders(cast("BrokerConnection", broker), ["t", "u"])


def test_eligible_leaders_are_listed_only_for_partitions_that_have_any() -> None:
    broker = Broker(page(None, t={0: [2, 1], 1: []}, u={0: None}))
    assert asked_of(broker) == {"t-0": (2, 1)}
    assert broker.asked == [(["t", "u"], None)]


def test_a_long_description_is_read_page_by_page() -> None:
    broker = Broker(page(("u", 0), t={0: [2]}), page(None, u={0: [1]}))
    assert asked_of(broker) == {"t-0": (2,), "u-0": (1,)}
    assert [cursor for _, cursor in broker.asked] == [None, ("u", 0)]


def test_a_repeated_page_is_an_error() -> None:
    with pytest.raises(ConnectionLostError, match="the same page"):
        asked_of(Broker(*[page(("u", 0), t={0: [2]})] * 3))


def test_requests_use_the_names_on_the_cluster_and_results_those_of_the_campaign() -> None:
    names = Names({0: 7, 1: 5}, {"t": "harrow-x-t"})
    pages: dict[str, dict[int, list[int] | None]] = {"harrow-x-t": {0: [5, 9, 7], 1: [9]}}
    broker = Broker(page(None, **pages))
    leaders = eligible_leaders(cast("BrokerConnection", broker), ["t"], names)
    # Broker 9 of the cluster is not part of the campaign.
    assert leaders == {"t-0": (1, 0)}
    assert broker.asked == [(["harrow-x-t"], None)]


def test_older_brokers_are_not_asked_for_eligible_leaders() -> None:
    broker = Broker(is_old=True)
    assert (asked_of(broker), broker.asked) == ({}, [])


def test_a_partition_is_under_replicated_if_its_isr_lacks_a_replica() -> None:
    def partition(number: int, replicas: list[int], isr: list[int]) -> Any:
        return SimpleNamespace(
            partition_index=number, leader_id=5, leader_epoch=1, isr_nodes=isr, replica_nodes=replicas
        )

    answer = SimpleNamespace(
        brokers=[SimpleNamespace(node_id=5), SimpleNamespace(node_id=7)],
        controller_id=5,
        topics=[
            SimpleNamespace(
                name="harrow-x-t",
                error_code=0,
                topic_id=None,
                partitions=[partition(0, [5, 7], [5]), partition(1, [5, 7], [7, 5])],
            )
        ],
    )
    broker = SimpleNamespace(version_of=lambda *_: 7, ask=lambda _: answer)
    described = broker_metadata(
        cast("BrokerConnection", broker), ["t"], Names({0: 7, 1: 5}, {"t": "harrow-x-t"})
    )
    assert described.partitions == {"t-0": (1, 1, (1,)), "t-1": (1, 1, (0, 1))}
    assert described.under_replicated == {"t-0"}
