"""The ends of links when a fault strikes.

A campaign may name them by group, or by what brokers are at that moment.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from harrow.cluster_model.fields import LinkEndMarker, all_fields_of, with_fields
from harrow.cluster_model.topology import quorum_counterpart
from harrow.faults.effects import End
from harrow.faults.fault import Fault, Link

F = TypeVar("F", bound=Fault)

BROKERS: Final = "brokers"
CLIENTS: Final = "clients"
OTHERS: Final = "others"
GROUPS: Final = (BROKERS, CLIENTS, OTHERS)
"""Words for several ends: all brokers, all clients, and all not named elsewhere in the fault."""
ZOOKEEPER: Final = "zookeeper"

_SEVERAL: Final = ("random ", "rack ", "leaders of ", "followers of ")


def may_be_several(end: End) -> bool:
    """Return whether a campaign's word may mean several ends, or another end at each look-up."""
    return isinstance(end, str) and (
        end in (*GROUPS, "all", "any") or end.endswith("%") or end.startswith((*_SEVERAL, "follower of "))
    )


def links_between(some: Sequence[End], others: Sequence[End], *, one_way: bool) -> list[Link]:
    """Return the links from one side to the other, and those back, each once."""
    # A process has no link to itself.
    links = [(one, other) for one in some for other in others if one != other]
    return list(dict.fromkeys(links if one_way else links + [(other, one) for one, other in links]))


def no_link_reason(some: Sequence[End], others: Sequence[End]) -> str | None:
    """Return why no link can exist between two sides, None if one can."""
    ends = {*some, *others}
    is_empty = some and others and len(ends) == 1 and not any(map(may_be_several, ends))
    return "there is no link: both sides are the same" if is_empty else None


def with_fewer_ends(fault: F) -> Iterator[F]:
    """Yield the fault with one end fewer, for each field that has several."""
    for item in all_fields_of(type(fault)):
        if item.kind is LinkEndMarker and len(ends := item.value_in(fault)) > 1:
            for place in range(len(ends)):
                yield with_fields(fault, {item.attribute: (*ends[:place], *ends[place + 1 :])})


def with_link_ends(
    fault: F,
    brokers: Sequence[int],
    clients: Sequence[str],
    look_up: Callable[[str], Sequence[int]],
    quorum: Sequence[int] = (),
) -> F:
    """Return the fault with its present ends: distinct ids and names, in the order of its words.

    *look_up* resolves a reference to brokers, that is a word that is neither a group nor an end.
    For a fault that parts the control plane, ``zookeeper`` is each server of its *quorum* if there
    are several, or if brokers are among them.
    """
    everyone = (*brokers, *clients, ZOOKEEPER)
    is_several = len(quorum) > 1 or any(node in brokers for node in quorum)

    def resolve(end: End) -> Sequence[End]:
        if end == ZOOKEEPER and fault.parts_control_plane and is_several:
            return quorum
        if end == BROKERS:
            return brokers
        if end == CLIENTS:
            return clients
        if isinstance(end, int):
            counterpart = quorum_counterpart(end, quorum)
            return (end if counterpart is None else counterpart,)
        return (end,) if end in (*everyone, OTHERS) else look_up(end)

    sides: dict[str, tuple[End, ...]] = {
        item.attribute: tuple(dict.fromkeys(end for word in item.value_in(fault) for end in resolve(word)))
        for item in all_fields_of(type(fault))
        if item.kind is LinkEndMarker
    }
    mentioned = {end for ends in sides.values() for end in ends}
    rest = tuple(end for end in everyone if end not in mentioned)
    return with_fields(
        fault,
        {
            attribute: tuple(end for word in ends for end in (rest if word == OTHERS else (word,)))
            for attribute, ends in sides.items()
        },
    )
