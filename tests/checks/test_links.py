"""Kinds of link: declared once, and whole."""

import pickle

import pytest

from harrow.checks.causes.links import acked, elected
from harrow.checks.link import KINDS, cause_key, link, operand_kinds
from harrow.checks.rules.catalogue import RULES
from harrow.checks.rules.unavailable import leader_not_replaced
from harrow.cluster_model.events import EVENTS, HISTORY_EVENTS


@pytest.mark.parametrize("name", KINDS)
def test_every_operand_of_a_link_has_a_kind_and_every_event_it_stems_from_is_known(name: str) -> None:
    assert RULES
    operand_kinds(name)
    assert set(KINDS[name].stems_from) <= {*EVENTS, *HISTORY_EVENTS}


def test_two_kinds_have_two_names() -> None:
    with pytest.raises(ValueError, match="two kinds of link are called acked"):

        @link("acked")
        def _again() -> str:
            return ""


def test_operands_that_are_as_by_default_are_left_out() -> None:
    assert elected(1, 2, leader_epoch=3, isr=None, has_it=False) == elected(1, 2, leader_epoch=3)
    assert elected(1, 2, leader_epoch=3, has_it=True) != elected(1, 2, leader_epoch=3)


def test_a_link_crosses_processes() -> None:
    told = acked(1, 0, value="m1", acks=-1, isr=(0, 1))
    assert pickle.loads(pickle.dumps(told)) == told


def test_a_cause_is_told_by_what_is_no_name() -> None:
    def gone(leader: int, state: str) -> tuple[str | bool, ...]:
        return cause_key(
            leader_not_replaced.conclude(after_us=1, partition="t-0", leader=leader, state=state)
        )

    assert gone(0, "down") == gone(1, "down") == ("leader-not-replaced", "state", "down")
    assert gone(0, "down") != gone(0, "paused")
