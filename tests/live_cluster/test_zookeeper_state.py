"""What two znodes say of the controller, told as terms."""

from typing import Any

import pytest

from harrow.live_cluster.zookeeper_state import ControllerTermsSeen

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
