"""Faults on links: cuts are counted, rules apply in order, and waiting messages continue."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from harrow.cluster_model.sim.choices import Stream
from harrow.cluster_model.sim.message_rule import DROP, HOLD, REQUEST, RESPONSE, MessageRule
from harrow.live_cluster.links.frame import CLIENTS, REPLICATION
from harrow.live_cluster.links.link_faults import LinkFaults
from tests.patience import PATIENCE_S

LINK = ("p1", "broker-1")
BACK = ("broker-1", "p1")


class Draws(Stream):
    """A stream of scripted numbers."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = list(numbers)

    def below(self, bound: int) -> int:
        assert bound == 1_000_000
        return self._numbers.pop(0)


def ignore(*_: object) -> None:
    pass


@pytest.fixture
def faults() -> LinkFaults:
    return LinkFaults(Draws(), ignore)


def rule_for_produce(faults: LinkFaults) -> MessageRule | None:
    """Return the rule that acts on another Produce of p1 to broker-1."""
    return faults.rule_for("Produce", REQUEST, *LINK, CLIENTS)


def drop(**fields: Any) -> MessageRule:
    return MessageRule(name="r", action=DROP, **fields)


def hold(**fields: Any) -> MessageRule:
    return MessageRule(name="h", action=HOLD, **fields)


def in_loop(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, PATIENCE_S))


async def is_done(task: "asyncio.Task[None]") -> bool:
    """Return whether a task has ended.

    It never waits for time, so a few rounds of the loop suffice.
    """
    for _ in range(10):
        await asyncio.sleep(0)
    return task.done()


def test_cuts_are_counted_and_undone_separately(faults: LinkFaults) -> None:
    faults.cut(*LINK)
    faults.cut(*LINK)
    faults.restore(*LINK)
    assert faults.is_cut(*LINK)
    faults.restore(*LINK)
    assert not faults.is_cut(*LINK)


def test_a_cut_has_one_direction(faults: LinkFaults) -> None:
    faults.cut(*LINK)
    assert not faults.is_cut(*BACK)
    faults.restore(*BACK)
    assert faults.is_cut(*LINK)


def test_an_uncut_link_can_be_restored_and_cut_later(faults: LinkFaults) -> None:
    faults.restore(*LINK)
    faults.cut(*LINK)
    assert faults.is_cut(*LINK)


def test_restoring_all_ends_cuts_and_rules(faults: LinkFaults) -> None:
    faults.cut(*LINK)
    faults.cut(*LINK)
    faults.add(drop())
    faults.add(held := hold(count=1))
    faults.rule_for("Fetch", REQUEST, *LINK, CLIENTS)
    faults.restore_all()
    assert not faults.is_cut(*LINK)
    assert held not in faults.rules()
    assert rule_for_produce(faults) is None


def test_only_the_first_matching_rule_acts_and_counts(faults: LinkFaults) -> None:
    other, first, second = drop(api="Fetch"), drop(api="Produce"), drop()
    for rule in (other, first, second):
        faults.add(rule)
    assert rule_for_produce(faults) is first
    assert [(rule.match_count, rule.applied_count) for rule in (other, first, second)] == [
        (0, 0),
        (1, 1),
        (0, 0),
    ]
    faults.remove(first)
    assert rule_for_produce(faults) is second


@pytest.mark.parametrize(
    "fields",
    [
        {"api": "Fetch"},
        {"kind": RESPONSE},
        {"senders": frozenset({"p2"})},
        {"receivers": frozenset({"broker-2"})},
        {"listener": REPLICATION},
    ],
)
def test_a_rule_ignores_other_messages(faults: LinkFaults, fields: dict[str, Any]) -> None:
    faults.add(rule := drop(**fields))
    assert rule_for_produce(faults) is None
    assert rule.match_count == 0


def test_the_next_rule_acts_on_skipped_messages(faults: LinkFaults) -> None:
    skipping, next_one = drop(skip=2), drop(count=1)
    faults.add(skipping)
    faults.add(next_one)
    assert [rule_for_produce(faults) for _ in range(4)] == [next_one, None, skipping, skipping]
    assert (skipping.match_count, skipping.applied_count) == (4, 2)


def test_a_counted_rule_ends_after_its_count(faults: LinkFaults) -> None:
    faults.add(rule := drop(count=2, skip=1))
    assert [rule_for_produce(faults) for _ in range(4)] == [None, rule, rule, None]
    assert faults.rules() == ()
    assert rule.match_count == 3


def test_probability_draws_from_the_stream(faults: LinkFaults) -> None:
    faults = LinkFaults(Draws(499_999, 500_000, 999_999, 0), ignore)
    faults.add(rule := drop(probability_millionths=500_000, count=2, skip=1))
    assert [rule_for_produce(faults) for _ in range(5)] == [None, rule, None, None, rule]
    assert rule.applied_count == 2


def test_skipped_or_certain_messages_draw_nothing(faults: LinkFaults) -> None:
    faults.add(drop(probability_millionths=500_000, skip=1))
    faults.add(drop(probability_millionths=0))
    faults.add(certain := drop())
    assert rule_for_produce(faults) is certain


def test_each_matched_message_is_reported() -> None:
    reported: list[tuple[object, ...]] = []
    faults = LinkFaults(Draws(), lambda *event: reported.append(event))
    faults.add(rule := drop(skip=1, count=1))
    for _ in range(3):
        rule_for_produce(faults)
    assert reported == [(rule, "Produce", REQUEST, *LINK)]


def test_an_exhausted_hold_keeps_its_messages(faults: LinkFaults) -> None:
    faults.add(rule := hold(count=1))
    assert [rule_for_produce(faults), rule_for_produce(faults)] == [rule, None]
    assert faults.rules() == (rule,)
    faults.remove(rule)
    assert faults.rules() == ()


def test_an_inactive_rule_can_be_removed(faults: LinkFaults) -> None:
    faults.add(rule := drop())
    faults.remove(drop())
    assert faults.rules() == (rule,)


def test_a_cut_disturbs_both_ends(faults: LinkFaults) -> None:
    faults.cut(*LINK)
    assert [faults.disturbs(name) for name in ("p1", "broker-1", "broker-2")] == [True, True, False]
    faults.restore(*LINK)
    assert not faults.disturbs("p1")


@pytest.mark.parametrize(
    ("fields", "disturbed"),
    [
        ({"senders": frozenset({"p1"})}, ["p1"]),
        ({"receivers": frozenset({"p2"})}, ["p2"]),
        ({"senders": frozenset({"p1"}), "receivers": frozenset({"p2"})}, ["p1", "p2"]),
        ({"api": "Produce"}, ["p1", "p2", "p3"]),
    ],
)
def test_a_rule_disturbs_its_named_processes_or_all(
    faults: LinkFaults, fields: dict[str, Any], disturbed: list[str]
) -> None:
    faults.add(rule := drop(**fields))
    assert [name for name in ("p1", "p2", "p3") if faults.disturbs(name)] == disturbed
    faults.remove(rule)
    assert not faults.disturbs("p1")


def test_held_messages_disturb_until_released(faults: LinkFaults) -> None:
    faults.add(drop(api="Produce", count=1))
    faults.add(held := hold(count=1))
    rule_for_produce(faults)
    rule_for_produce(faults)
    assert faults.rules() == (held,)
    assert faults.disturbs("p1")
    faults.remove(held)
    assert not faults.disturbs("p1")


def test_waits_for_cut_links_end_when_no_link_is_cut(faults: LinkFaults) -> None:
    async def test() -> None:
        faults.cut(*LINK)
        faults.cut(*LINK)
        faults.cut(*BACK)
        waiting = [asyncio.create_task(faults.while_cut(LINK, BACK)) for _ in range(2)]
        for link in (LINK, BACK):
            faults.restore(*link)
            assert not await is_done(waiting[0])
        faults.restore(*LINK)
        await asyncio.gather(*waiting)

    in_loop(test())


def test_an_uncut_link_passes_messages_at_once(faults: LinkFaults) -> None:
    faults.cut(*BACK)
    in_loop(faults.while_cut(LINK))


@pytest.mark.parametrize("count", [1, None])
def test_held_messages_pass_when_the_rule_is_removed(faults: LinkFaults, count: int | None) -> None:
    async def test() -> None:
        faults.add(rule := hold(count=count))
        faults.add(other := hold(api="Fetch"))
        assert rule_for_produce(faults) is rule
        waiting = [asyncio.create_task(faults.while_held(rule, *LINK)) for _ in range(2)]
        assert not await is_done(waiting[0])
        faults.remove(other)
        assert not await is_done(waiting[0])
        faults.remove(rule)
        await asyncio.gather(*waiting)

    in_loop(test())


def test_restoring_all_releases_every_message(faults: LinkFaults) -> None:
    async def test() -> None:
        faults.cut(*LINK)
        faults.add(rule := hold(count=1))
        rule_for_produce(faults)
        waiting = [
            asyncio.create_task(faults.while_cut(LINK)),
            asyncio.create_task(faults.while_held(rule, *LINK)),
        ]
        assert [await is_done(task) for task in waiting] == [False, False]
        faults.restore_all()
        await asyncio.gather(*waiting)

    in_loop(test())


def test_healing_a_core_ends_only_faults_among_its_members() -> None:
    faults = LinkFaults(Draws(), ignore)
    within, outside = ("p1", "broker-1"), ("broker-2", "broker-1")

    async def test() -> None:
        for link in (within, outside):
            faults.cut(*link)
        faults.add(rule := hold(api="Produce"))
        faults.add(drop(api="Fetch", receivers=frozenset({"broker-1"})))
        assert rule_for_produce(faults) is rule
        held = asyncio.create_task(faults.while_held(rule, *within))
        still_held = asyncio.create_task(faults.while_held(rule, *outside))
        assert not await is_done(held)
        faults.restore_all_but(frozenset({"broker-2"}))
        await held
        assert not await is_done(still_held)
        assert (faults.is_cut(*within), faults.is_cut(*outside)) == (False, True)
        # A rule without named processes still acts outside the core; a rule within the core has
        # ended.
        assert rule_for_produce(faults) is None
        assert faults.rule_for("Produce", REQUEST, *outside, CLIENTS) is rule
        assert faults.rule_for("Fetch", REQUEST, *outside, REPLICATION) is None
        faults.restore_all()
        await still_held
        assert not faults.is_cut(*outside)

    in_loop(test())


def test_faults_added_after_a_heal_are_in_force(faults: LinkFaults) -> None:
    faults.restore_all_but(frozenset({"broker-2"}))
    faults.restore_all()
    faults.add(rule := hold(api="Produce"))
    assert rule_for_produce(faults) is rule
