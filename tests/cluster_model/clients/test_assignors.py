"""Assignors divide partitions among the members of a group."""

import pytest

from harrow.cluster_model.clients.assignors import assign, is_cooperative
from harrow.cluster_model.coordinators.protocol import Subscription

FIVE = {"t": tuple(f"t-{number}" for number in range(5))}
TWO_TOPICS = {"t": ("t-0", "t-1", "t-2"), "u": ("u-0", "u-1", "u-2")}


def members(*owners: tuple[str, tuple[str, ...]]) -> list[tuple[str, str, Subscription]]:
    return [(name, "", Subscription(("t", "u"), owned, 1 if owned else -1)) for name, owned in owners]


@pytest.mark.parametrize(
    ("assignor", "first", "second"),
    [
        ("range", ("t-0", "t-1", "u-0", "u-1"), ("t-2", "u-2")),
        ("roundrobin", ("t-0", "t-2", "u-1"), ("t-1", "u-0", "u-2")),
    ],
)
def test_range_assigns_adjacent_partitions_and_roundrobin_assigns_them_in_turn(
    assignor: str, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    assert assign(assignor, members(("b", ()), ("a", ())), TWO_TOPICS) == {"a": first, "b": second}


def test_a_static_member_keeps_its_partitions_with_another_member_id() -> None:
    subscription = Subscription(("t",))
    group = [("z", "one", subscription), ("a", "two", subscription)]
    assert assign("range", group, FIVE)["z"] == ("t-0", "t-1", "t-2")


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_moves_only_as_many_partitions_as_balance_requires(assignor: str) -> None:
    assignment = assign(
        assignor, members(("a", ("t-0", "t-1", "t-4")), ("b", ("t-2", "t-3")), ("c", ())), FIVE
    )
    assert assignment["a"] == ("t-0", "t-1")
    assert assignment["b"] == ("t-2", "t-3")
    # With the cooperative assignor a partition has no reader for one generation.
    assert assignment["c"] == (("t-4",) if assignor == "sticky" else ())


def test_cooperative_sticky_assigns_free_partitions_at_once() -> None:
    assignment = assign("cooperative-sticky", members(("a", ("t-0", "t-1")), ("c", ())), FIVE)
    assert assignment == {"a": ("t-0", "t-1", "t-4"), "c": ("t-2", "t-3")} or assignment["a"][:2] == (
        "t-0",
        "t-1",
    )
    assert sorted(assignment["a"] + assignment["c"]) == list(FIVE["t"])


def test_if_two_members_claim_a_partition_the_later_generation_owns_it() -> None:
    group = [
        ("a", "", Subscription(("t",), ("t-0", "t-1"), 1)),
        ("b", "", Subscription(("t",), ("t-0", "t-1"), 2)),
    ]
    assignment = assign("sticky", group, {"t": ("t-0", "t-1", "t-2", "t-3")})
    assert assignment == {"a": ("t-2", "t-3"), "b": ("t-0", "t-1")}


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_a_member_gets_only_partitions_of_topics_to_which_it_subscribes(assignor: str) -> None:
    group = [("a", "", Subscription(("t",))), ("b", "", Subscription(("t", "u")))]
    assignment = assign(assignor, group, TWO_TOPICS)
    assert not any(name.startswith("u") for name in assignment["a"])
    assert sorted(assignment["a"] + assignment["b"]) == sorted((*TWO_TOPICS["t"], *TWO_TOPICS["u"]))


def test_members_rebalance_cooperatively_if_all_their_assignors_support_it() -> None:
    assert is_cooperative(("cooperative-sticky",))
    assert not is_cooperative(("range", "cooperative-sticky"))
