"""Finds the ends of the links that a fault affects when it strikes.

A campaign may name ends by a group, such as ``clients``, or by a broker's role at that moment, such
as ``leader of t-0``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from harrow.cluster_model.fields import LinkEndMarker, fields_of_kind, with_fields
from harrow.cluster_model.topology import quorum_counterpart
from harrow.faults.effects import End
from harrow.faults.fault import Fault, Link

F = TypeVar("F", bound=Fault)

BROKERS: Final = "brokers"
CLIENTS: Final = "clients"
OTHERS: Final = "others"
GROUPS: Final = (BROKERS, CLIENTS, OTHERS)
"""Words for several ends: all brokers, all clients, and all ends that the fault does not name."""
ZOOKEEPER: Final = "zookeeper"

_STARTS_OF_SEVERAL: Final = ("random ", "rack ", "leaders of ", "followers of ")


def may_be_several(end: End) -> bool:
    """Return whether a word may mean several ends, or different ends at different times."""
    return isinstance(end, str) and (
        end in (*GROUPS, "all", "any")
        or end.endswith("%")
        or end.startswith((*_STARTS_OF_SEVERAL, "follower of "))
    )


def links_between(some: Sequence[End], others: Sequence[End], *, one_way: bool) -> list[Link]:
    """Return each link from *some* to *others* once and, unless *one_way*, each link back."""
    # Leave out ends that are on both sides: a process has no link to itself.
    links = [(one, other) for one in some for other in others if one != other]
    return list(dict.fromkeys(links if one_way else links + [(other, one) for one, other in links]))


def no_link_reason(some: Sequence[End], others: Sequence[End]) -> str | None:
    """Return why there can be no link between two sides; None if there can be one."""
    ends = {*some, *others}
    is_empty = some and others and len(ends) == 1 and not any(map(may_be_several, ends))
    return "there is no link: both sides are the same" if is_empty else None


def with_fewer_ends(fault: F) -> Iterator[F]:
    """Yield copies of the fault without one of its ends, for each end of a field with several."""
    for item in fields_of_kind(type(fault), LinkEndMarker):
        if len(ends := item.value_in(fault)) > 1:
            for place in range(len(ends)):
                yield with_fields(fault, {item.attribute: (*ends[:place], *ends[place + 1 :])})


def with_link_ends(
    fault: F,
    brokers: Sequence[int],
    clients: Sequence[str],
    look_up: Callable[[str], Sequence[int]],
    quorum: Sequence[int] = (),
) -> F:
    """Return the fault with its words for ends replaced by the ends that they mean now.

    The ends are distinct ids and names, in the order of the words. *look_up* resolves a reference
    to brokers: a word that is neither a group nor an end. For a fault with ``parts_control_plane``,
    ``zookeeper`` becomes the servers in *quorum* if there are several, or if brokers are among
    them.
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
        for item in fields_of_kind(type(fault), LinkEndMarker)
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
