"""Every kind of link has one complete declaration."""

import pickle
from dataclasses import replace
from typing import Any

import pytest

from harrow.checks.causes import links
from harrow.checks.causes.facts import OUT_OF_SERVICE
from harrow.checks.causes.links import acked, elected
from harrow.checks.link import KINDS, cause_key, link, operand_kinds, strikes, unmet
from harrow.checks.rules.catalogue import RULES
from harrow.checks.rules.unavailable import leader_not_replaced
from harrow.cluster_model.events import EVENTS, HISTORY_EVENTS


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_link_declares_its_operands_and_existing_source_events(name: str) -> None:
    assert RULES
    operand_kinds(name)
    assert set(KINDS[name].stems_from) <= {*EVENTS, *HISTORY_EVENTS}


def test_a_second_kind_of_the_same_name_is_refused() -> None:
    with pytest.raises(ValueError, match="two kinds of link are called acked"):

        @link("acked", needs_nothing_because="it is a test")
        def _again() -> str:
            return ""


@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"is_fault": True, "needs_nothing_because": "an application does it"},
        {"needs": (OUT_OF_SERVICE.of("broker"),), "needs_nothing_because": "an application does it"},
        {"needs": (OUT_OF_SERVICE.of("broker"),), "is_fault": True},
    ],
)
def test_a_kind_declares_exactly_one_reason_for_its_links(declared: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="silent is a fault, or has needs, or says in needs_nothing_because"):

        @link("silent", **declared)
        def _silent() -> str:
            return ""

    assert "silent" not in KINDS


def test_a_boolean_fact_names_its_subject() -> None:
    for kind in KINDS.values():
        for fact, subject, then, _, _ in (*kind.needs, *kind.makes):
            assert subject or not isinstance(then, bool), f"{kind.name}: {fact.name} is of nothing"


def test_operands_with_default_values_are_omitted() -> None:
    assert elected(1, 2, leader_epoch=3, isr=None, has_it=False) == elected(1, 2, leader_epoch=3)
    assert elected(1, 2, leader_epoch=3, has_it=True) != elected(1, 2, leader_epoch=3)


def test_a_link_survives_pickling() -> None:
    link_of_ack = acked(1, 0, value="m1", acks=-1, isr=(0, 1))
    assert pickle.loads(pickle.dumps(link_of_ack)) == link_of_ack


def test_causes_are_compared_by_kind_flags_and_texts() -> None:
    def gone(leader: int, state: str) -> tuple[str | bool, ...]:
        return cause_key(
            leader_not_replaced.conclude(after_us=1, partition="t-0", leader=leader, state=state)
        )

    assert gone(0, "down") == gone(1, "down") == ("leader-not-replaced", "state", "down")
    assert gone(0, "down") != gone(0, "paused")


def test_a_need_that_no_earlier_link_meets_is_a_gap() -> None:
    gone = links.elected(3, 1, leader_epoch=1, former=0)
    (gap,) = unmet([links.appended(1, 0, value="m", offset=0, leader_epoch=0), gone])
    assert (gap.place, gap.need.fact.name, gap.need.subject) == (1, "out of service", (0,))
    crash = links.stopped(2, 0, cause="process")
    assert not list(unmet([crash, gone]))
    assert list(unmet([links.stopped(2, 2, cause="process"), gone])), "another broker's crash is no reason"
    again = links.elected(5, 1, leader_epoch=3, former=0)
    assert list(unmet([crash, gone, links.elected(4, 0, leader_epoch=2), again])), "each election has its own"


def test_a_claim_that_an_earlier_link_contradicts_is_a_gap() -> None:
    cut = links.truncated(2, 2, leo=0, reason="leader epoch", offset=0, value="m")
    acked = links.acked(3, 1, value="m", acks=-1, isr=(1, 2), having=(1, 2))
    assert not list(unmet([links.copied(1, 2, value="m", offset=0), acked]))
    (gap,) = unmet([links.copied(1, 2, value="m", offset=0), cut, acked])
    assert gap.need.subject == ("m", 2)
    assert not list(
        unmet([cut, links.acked(3, 1, value="m", acks=-1, isr=(1, 2), having=(1,), missing=(2,))])
    )
    shrunk = links.isr_shrank(2, 0, before=(0, 1), isr=(0,), left=(1,))
    assert list(unmet([shrunk, links.elected(3, 1, leader_epoch=1, isr=(0, 1))]))
    assert not list(unmet([shrunk, links.elected(3, 1, leader_epoch=1, isr=(0,))]))
    assert list(unmet([shrunk, links.acked(3, 0, value="m", acks=-1, isr=(1, 0))]))


def test_the_strikes_of_a_chain_are_the_numbers_of_its_faults() -> None:
    crash = links.stopped(2, 0, cause="process")
    assert strikes([replace(crash, strike=4), crash, replace(crash, strike=2), replace(crash, strike=4)]) == (
        2,
        4,
    )
