"""The terms of controllers follow from two znodes."""

from typing import Any

import pytest

from harrow.live_cluster.local.zookeeper_state import ObservedControllerTerms, assignments_in
from harrow.live_cluster.wire.administration import Assignment

Terms = list[tuple[int | None, int]]


@pytest.fixture
def reported() -> Terms:
    return []


@pytest.fixture
def terms(reported: Terms) -> ObservedControllerTerms:
    def set_controller(*term: Any) -> None:
        reported.append(term)

    return ObservedControllerTerms(set_controller)


def test_a_term_begins_when_the_controller_raises_the_epoch(
    terms: ObservedControllerTerms, reported: Terms
) -> None:
    """Up to 2.1 the controller writes its znode before the epoch."""
    terms.update(2, -1)
    assert reported == []
    terms.update(2, 1)
    terms.update(None, 1)
    terms.update(3, 1)
    assert reported == [(2, 1), (None, 1)]
    terms.update(3, 2)
    assert reported == [(2, 1), (None, 1), (3, 2)]


def test_the_same_broker_may_begin_another_term(terms: ObservedControllerTerms, reported: Terms) -> None:
    for controller, epoch in ((2, 1), (None, 1), (2, 1), (2, 2)):
        terms.update(controller, epoch)
    assert reported == [(2, 1), (None, 1), (2, 2)]


def test_a_successor_is_reported_without_a_gap_between_the_terms(
    terms: ObservedControllerTerms, reported: Terms
) -> None:
    for controller, epoch in ((2, 1), (3, 1), (3, 2)):
        terms.update(controller, epoch)
    assert reported == [(2, 1), (3, 2)]


def test_a_controller_is_reported_if_its_epoch_was_seen_first(
    terms: ObservedControllerTerms, reported: Terms
) -> None:
    """Both znodes were written between the two reads."""
    for controller, epoch in ((None, 0), (None, 1), (0, 1)):
        terms.update(controller, epoch)
    assert reported[-1] == (0, 1)


def test_the_znode_of_a_topic_has_its_replicas_and_since_2_4_its_reassignments() -> None:
    znode: dict[str, Any] = {"version": 1, "partitions": {"10": [1], "2": [0, 1]}}
    assert assignments_in("t", znode) == {"t-2": Assignment((0, 1)), "t-10": Assignment((1,))}
    znode |= {"version": 2, "partitions": {"0": [2, 0]}}
    znode |= {"adding_replicas": {"0": [2]}, "removing_replicas": {"0": [0]}}
    assert assignments_in("t", znode) == {"t-0": Assignment((2, 0), (2,), (0,))}
