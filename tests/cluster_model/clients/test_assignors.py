"""How partitions are divided among the members of a group."""

import pytest

from harrow.cluster_model.clients.assignors import assign, is_cooperative
from harrow.cluster_model.coordinators.protocol import Subscription

FIVE = {"t": tuple(f"t-{number}" for number in range(5))}
TWO_TOPICS = {"t": ("t-0", "t-1", "t-2"), "u": ("u-0", "u-1", "u-2")}


def members(*told: tuple[str, tuple[str, ...]]) -> list[tuple[str, str, Subscription]]:
    return [(name, "", Subscription(("t", "u"), owned, 1 if owned else -1)) for name, owned in told]


@pytest.mark.parametrize(
    ("assignor", "first", "second"),
    [
        ("range", ("t-0", "t-1", "u-0", "u-1"), ("t-2", "u-2")),
        ("roundrobin", ("t-0", "t-2", "u-1"), ("t-1", "u-0", "u-2")),
    ],
)
def test_range_gives_neighbours_of_each_topic_and_roundrobin_one_after_the_other(
    assignor: str, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    assert assign(assignor, members(("b", ()), ("a", ())), TWO_TOPICS) == {"a": first, "b": second}


def test_a_static_member_keeps_its_place_whatever_its_member_id() -> None:
    told = Subscription(("t",))
    assert assign("range", [("z", "one", told), ("a", "two", told)], FIVE)["z"] == ("t-0", "t-1", "t-2")


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_moves_no_more_than_makes_it_even(assignor: str) -> None:
    found = assign(assignor, members(("a", ("t-0", "t-1", "t-4")), ("b", ("t-2", "t-3")), ("c", ())), FIVE)
    assert found["a"] == ("t-0", "t-1")
    assert found["b"] == ("t-2", "t-3")
    # With the cooperative one a partition is without a reader for a generation.
    assert found["c"] == (("t-4",) if assignor == "sticky" else ())


def test_cooperative_sticky_gives_what_nobody_owns_at_once() -> None:
    found = assign("cooperative-sticky", members(("a", ("t-0", "t-1")), ("c", ())), FIVE)
    assert found == {"a": ("t-0", "t-1", "t-4"), "c": ("t-2", "t-3")} or found["a"][:2] == ("t-0", "t-1")
    assert sorted(found["a"] + found["c"]) == list(FIVE["t"])


def test_of_two_who_say_that_they_own_a_partition_the_later_generation_is_believed() -> None:
    told = [
        ("a", "", Subscription(("t",), ("t-0", "t-1"), 1)),
        ("b", "", Subscription(("t",), ("t-0", "t-1"), 2)),
    ]
    found = assign("sticky", told, {"t": ("t-0", "t-1", "t-2", "t-3")})
    assert found == {"a": ("t-2", "t-3"), "b": ("t-0", "t-1")}


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_a_member_gets_nothing_of_a_topic_to_which_it_does_not_subscribe(assignor: str) -> None:
    told = [("a", "", Subscription(("t",))), ("b", "", Subscription(("t", "u")))]
    found = assign(assignor, told, TWO_TOPICS)
    assert not any(name.startswith("u") for name in found["a"])
    assert sorted(found["a"] + found["b"]) == sorted((*TWO_TOPICS["t"], *TWO_TOPICS["u"]))


def test_members_rebalance_cooperatively_if_all_their_assignors_can() -> None:
    assert is_cooperative(("cooperative-sticky",))
    assert not is_cooperative(("range", "cooperative-sticky"))
