"""What two znodes say of the controller, told as terms."""

from typing import Any

import pytest

from harrow.live_cluster.local.zookeeper_state import ControllerTermsSeen, assignments_in
from harrow.live_cluster.wire.administration import Assignment

Told = list[tuple[int | None, int]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def terms(told: Told) -> ControllerTermsSeen:
    def set_controller(*term: Any) -> None:
        told.append(term)

    return ControllerTermsSeen(set_controller)


def test_a_controller_begins_its_term_once_it_has_raised_the_epoch(
    terms: ControllerTermsSeen, told: Told
) -> None:
    """Up to 2.1 it writes first that it is controller."""
    terms.look(2, -1)
    assert told == []
    terms.look(2, 1)
    terms.look(None, 1)
    terms.look(3, 1)
    assert told == [(2, 1), (None, 1)]
    terms.look(3, 2)
    assert told == [(2, 1), (None, 1), (3, 2)]


def test_the_same_broker_may_begin_another_term(terms: ControllerTermsSeen, told: Told) -> None:
    for controller, epoch in ((2, 1), (None, 1), (2, 1), (2, 2)):
        terms.look(controller, epoch)
    assert told == [(2, 1), (None, 1), (2, 2)]


def test_a_successor_that_is_seen_at_once_is_told(terms: ControllerTermsSeen, told: Told) -> None:
    for controller, epoch in ((2, 1), (3, 1), (3, 2)):
        terms.look(controller, epoch)
    assert told == [(2, 1), (3, 2)]


def test_a_controller_is_told_whose_epoch_was_seen_before_it(terms: ControllerTermsSeen, told: Told) -> None:
    """Both znodes were written between the look at the one and that at the other."""
    for controller, epoch in ((None, 0), (None, 1), (0, 1)):
        terms.look(controller, epoch)
    assert told[-1] == (0, 1)


def test_a_topics_znode_has_its_replicas_and_since_2_4_what_is_reassigned() -> None:
    znode: dict[str, Any] = {"version": 1, "partitions": {"10": [1], "2": [0, 1]}}
    assert assignments_in("t", znode) == {"t-2": Assignment((0, 1)), "t-10": Assignment((1,))}
    znode |= {"version": 2, "partitions": {"0": [2, 0]}}
    znode |= {"adding_replicas": {"0": [2]}, "removing_replicas": {"0": [0]}}
    assert assignments_in("t", znode) == {"t-0": Assignment((2, 0), (2,), (0,))}
