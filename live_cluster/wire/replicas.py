"""What each broker says of its own replicas, leader or follower: LEO and high watermark.

A request of the replica -2 is one for debugging: a broker answers it for every replica that it has (``Request.DebuggingConsumerId``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kafka.protocol.consumer import ListOffsetsRequest

from harrow.cluster_model import errors, protocol
from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.wire.codec import asked
from harrow.live_cluster.wire.connection import BrokerConnection

DEBUGGING: Final = -2
_LIST_OFFSETS: Final = 1
"""Every release from 0.10.1 on has it."""
_LIST_OFFSETS_OF_EPOCH: Final = 4
"""From 2.1 on a request may say which leader epoch its sender knows, and is refused where that is not the broker's (KIP-320)."""
_OF_OTHER_EPOCH: Final = frozenset({errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH})
_ANSWERED_BY_LEADER: Final = frozenset(
    {errors.NONE, errors.LEADER_NOT_AVAILABLE, errors.OFFSET_NOT_AVAILABLE}
)
"""What a leader answers a consumer. One whose high watermark is below the start of its epoch tells no end of its log
(KIP-207, ``Partition.fetchOffsetForTimestamp``): LEADER_NOT_AVAILABLE, from version 5 on OFFSET_NOT_AVAILABLE. Others are no leaders.
"""
_FETCH: Final = (3, 5, 11)
"""From 2.4 on a follower answers only what knows of racks (KIP-392), which the last one does; before, any. From 0.11 on
answers say where a log begins (KIP-107), which is version 5.
"""


@dataclass(frozen=True, slots=True)
class ReplicaOffsets:
    """A replica's log end offset and high watermark, as its broker has them, and whether it takes itself for the leader.

    ``leader_epoch`` is the one that was asked about, if it is the broker's; None where it has another, or cannot tell (before KIP-320).
    ``log_start`` is None before brokers tell it (0.11).
    """

    leo: int
    hw: int
    leads: bool
    leader_epoch: int | None = None
    log_start: int | None = None


def replica_offsets(
    connection: BrokerConnection,
    partitions: Iterable[str],
    epochs: Mapping[str, int] = MappingProxyType({}),
    called: Names = SAME,
) -> dict[str, ReplicaOffsets]:
    """Return what a broker has of some partitions; those that it has not, or not yet, are left out.

    *epochs* are leader epochs to compare with the broker's, by partition; *called* is what partitions are called there.

    Raises:
        ConnectionLostError: it does not answer.

    """
    there = {called.partition(name): epoch for name, epoch in epochs.items()}
    found = _offsets_there(connection, sorted(map(called.partition, partitions)), there)
    return {called.own_partition(name): offsets for name, offsets in found.items()}


def _offsets_there(
    connection: BrokerConnection, names: Sequence[str], epochs: Mapping[str, int]
) -> dict[str, ReplicaOffsets]:
    if epochs and not connection.speaks(ListOffsetsRequest, _LIST_OFFSETS_OF_EPOCH):
        epochs = {}
    answers = _list_offsets(connection, names, DEBUGGING, epochs)
    # Replicas in another epoch are asked for again; most of the time there are none.
    others = [name for name, (error, _) in answers.items() if error in _OF_OTHER_EPOCH]
    agreed = epochs.keys() - others
    if others:
        answers |= _list_offsets(connection, others, DEBUGGING, {})
    ends = {name: offset for name, (error, offset) in answers.items() if error == errors.NONE}
    if not ends:
        return {}
    led = _list_offsets(connection, names, protocol.CONSUMER_REPLICA_ID, {})
    places = {name: (end, protocol.NO_EPOCH) for name, end in ends.items()}
    fetch = protocol.FetchRequest(DEBUGGING, 0, 1, places, rack="")
    told = asked(connection, fetch, versions=_FETCH).partitions
    return {
        name: ReplicaOffsets(
            ends[name],
            fetched.hw,
            led[name][0] in _ANSWERED_BY_LEADER,
            epochs[name] if name in agreed else None,
            None if fetched.log_start_offset < 0 else fetched.log_start_offset,
        )
        for name, fetched in told.items()
        if fetched.error == errors.NONE and name in ends
    }


def _list_offsets(
    connection: BrokerConnection, partitions: Iterable[str], replica: int, epochs: Mapping[str, int]
) -> dict[str, tuple[str, int]]:
    """Return what a broker tells a *replica* of the end of each log: an error, and an offset; an error where it has another of the *epochs*."""
    version = _LIST_OFFSETS_OF_EPOCH if epochs else _LIST_OFFSETS
    wanted = {name: epochs.get(name, protocol.NO_EPOCH) for name in sorted(partitions)}
    answer: protocol.ListOffsetsResponse = asked(
        connection, protocol.ListOffsetsRequest(replica, wanted), versions=(version,)
    )
    return answer.partitions
