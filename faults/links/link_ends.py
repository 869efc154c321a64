"""Who stands at the ends of links when a fault strikes: a campaign may say so in groups and by what brokers are."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from harrow.cluster_model.fields import LinkEndMarker, all_fields_of, with_fields
from harrow.cluster_model.topology import quorum_counterpart
from harrow.faults.fault import Fault, Link

F = TypeVar("F", bound=Fault)
End = int | str

BROKERS: Final = "brokers"
CLIENTS: Final = "clients"
OTHERS: Final = "others"
GROUPS: Final = (BROKERS, CLIENTS, OTHERS)
"""Words for several ends: all brokers, all clients, and all that the fault does not name elsewhere."""
ZOOKEEPER: Final = "zookeeper"

_SEVERAL: Final = ("random ", "rack ", "leaders of ", "followers of ")


def may_be_several(end: End) -> bool:
    """Return whether what a campaign says may be more ends than one, or another one each time that it is looked up."""
    return isinstance(end, str) and (
        end in (*GROUPS, "all", "any") or end.endswith("%") or end.startswith((*_SEVERAL, "follower of "))
    )


def links_between(some: Sequence[End], others: Sequence[End], *, one_way: bool) -> list[Link]:
    """Return the links from one side to the other, and those back, each once."""
    # A process has no link to itself.
    links = [(one, other) for one in some for other in others if one != other]
    return list(dict.fromkeys(links if one_way else links + [(other, one) for one, other in links]))


def vain_sides(some: Sequence[End], others: Sequence[End]) -> str | None:
    """Return why there cannot be a link between two sides, None if there can."""
    ends = {*some, *others}
    is_vain = some and others and len(ends) == 1 and not any(map(may_be_several, ends))
    return "there is no link: the same stands on both sides" if is_vain else None


def with_fewer_ends(fault: F) -> Iterator[F]:
    """Yield the fault with one end fewer, where it has several of a kind."""
    for item in all_fields_of(type(fault)):
        if item.kind is LinkEndMarker and len(ends := item.of(fault)) > 1:
            for place in range(len(ends)):
                yield with_fields(fault, {item.attribute: (*ends[:place], *ends[place + 1 :])})


def with_link_ends(
    fault: F,
    brokers: Sequence[int],
    clients: Sequence[str],
    meant: Callable[[str], Sequence[int]],
    quorum: Sequence[int] = (),
) -> F:
    """Return the fault with the ends that it means now: ids and names, each once, in the order of what it says.

    *meant* looks up what is neither a group nor an end itself, which is a reference to brokers. For a fault that parts the control plane,
    ``zookeeper`` is each server of its *quorum*, where there are several, or brokers among them.
    """
    everyone = (*brokers, *clients, ZOOKEEPER)
    is_several = len(quorum) > 1 or any(node in brokers for node in quorum)

    def ends(end: End) -> Sequence[End]:
        if end == ZOOKEEPER and fault.parts_control_plane and is_several:
            return quorum
        if end == BROKERS:
            return brokers
        if end == CLIENTS:
            return clients
        if isinstance(end, int):
            counterpart = quorum_counterpart(end, quorum)
            return (end if counterpart is None else counterpart,)
        return (end,) if end in (*everyone, OTHERS) else meant(end)

    found: dict[str, tuple[End, ...]] = {}
    for item in all_fields_of(type(fault)):
        if item.kind is LinkEndMarker:
            said = item.of(fault)
            found[item.attribute] = tuple(dict.fromkeys(each for end in said for each in ends(end)))
    named = {end for ends in found.values() for end in ends}
    rest = tuple(end for end in everyone if end not in named)
    decided = {
        attribute: tuple(each for end in ends for each in (rest if end == OTHERS else (end,)))
        for attribute, ends in found.items()
    }
    return with_fields(fault, decided)
