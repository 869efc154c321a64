"""Advice on the placement of replicas orders no needless moves."""

from collections import Counter

import pytest

from harrow.campaigns.advise.axes import AXES, PLACEMENT, RACK_AWARE, REPLICATION_FACTOR
from harrow.campaigns.advise.placement import reassigned
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan

RACKS = "brokers: [{id: 1, rack: a}, {id: 2, rack: a}, {id: 3, rack: b}, {id: 4, rack: b}]"


def plan_of(*assignments: str, brokers: str = RACKS) -> Plan:
    topics = ", ".join(f"{{name: t{n}, assignment: {text}}}" for n, text in enumerate(assignments))
    return load_text(f"cluster:\n  {brokers}\n  topics: [{topics}]\n", "any.yaml").plans[0]


def test_only_topics_that_could_be_in_more_racks_move() -> None:
    plan = plan_of("[[1, 2], [2, 1]]", "[[3, 4, 1]]", "[[1, 3]]")
    assert list(reassigned(plan, across_racks=True)) == [0]
    lines = AXES[PLACEMENT].lines(plan, {PLACEMENT: RACK_AWARE})
    assert [line.place for line in lines] == ["topic t0"]


def test_replicas_that_move_keep_their_leaders_and_spread_over_the_brokers() -> None:
    before = ((1, 2), (3, 4), (2, 1), (4, 3))
    plan = plan_of(*(f"[[{first}, {second}]]" for first, second in before))
    after = [replicas for (replicas,) in reassigned(plan, across_racks=True).values()]
    assert [leader for leader, _ in after] == [leader for leader, _ in before]
    assert all((leader > 2) != (follower > 2) for leader, follower in after)
    assert set(Counter(broker for replicas in after for broker in replicas).values()) == {2}


def test_only_the_replica_that_shares_a_rack_moves() -> None:
    brokers = RACKS.replace("]", ", {id: 5, rack: c}]")
    assert reassigned(plan_of("[[1, 2, 3]]", brokers=brokers), across_racks=True) == {0: ((1, 5, 3),)}


def test_added_replicas_go_to_new_racks_and_none_is_taken_away() -> None:
    plan = plan_of("[[1]]", "[[2, 4]]", "[[3, 1, 2]]")
    assert reassigned(plan, factor=2) == {0: ((1, 3),)}
    options = AXES[REPLICATION_FACTOR].options(plan, {REPLICATION_FACTOR: 2})
    assert options == ["cluster.topics.0.assignment=[[1, 3]]"]


@pytest.mark.parametrize(
    ("assignment", "brokers"),
    [("[[1, 3], [4, 2]]", RACKS), ("[[1, 2]]", RACKS.replace("{id: 4, rack: b}", "{id: 4}"))],
    ids=["across racks already", "a broker without a rack"],
)
def test_a_placement_that_cannot_be_better_is_not_searched(assignment: str, brokers: str) -> None:
    assert len(AXES[PLACEMENT].levels([plan_of(assignment, brokers=brokers)])) < 2
