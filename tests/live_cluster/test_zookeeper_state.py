"""What two znodes say of the controller, told as terms."""

from typing import Any

import pytest

from harrow.live_cluster.zookeeper_state import ControllerTermsSeen, term_read

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


def test_an_election_between_two_reads_hides_no_controller(terms: ControllerTermsSeen, told: Told) -> None:
    """One transaction writes both znodes since 2.2: whichever was read before it, both are told again."""
    znodes: dict[str, Any] = {"/controller": None, "/controller_epoch": 0}

    def read(path: str) -> Any:
        found = znodes[path]
        znodes.update({"/controller": {"brokerid": 3}, "/controller_epoch": 1})
        return found

    for _ in range(2):
        terms.look(*term_read(read))
    assert told[-1] == (3, 1)
