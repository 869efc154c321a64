"""What each broker says of its own replicas, leader or follower: LEO and high watermark.

A request of the replica -2 is one for debugging: a broker answers it for every replica that it has (``Request.DebuggingConsumerId``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest

from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.wire.connection import BrokerConnection

_DEBUGGING: Final = -2
_CONSUMER: Final = -1
_LATEST: Final = -1
_LIST_OFFSETS: Final = 1
"""Every release from 0.10.1 on has it."""
_LIST_OFFSETS_OF_EPOCH: Final = 4
"""From 2.1 on a request may say which leader epoch its sender knows, and is refused where that is not the broker's (KIP-320)."""
_NO_EPOCH: Final = -1
_OF_OTHER_EPOCH: Final = frozenset({74, 75})
"""FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
_ANSWERED_BY_LEADER: Final = frozenset({0, 5, 78})
"""What a leader answers a consumer. One whose high watermark is below the start of its epoch tells no end of its log
(KIP-207, ``Partition.fetchOffsetForTimestamp``): LEADER_NOT_AVAILABLE, from version 5 on OFFSET_NOT_AVAILABLE. Others are no leaders.
"""
_FETCH: Final = (3, 5, 11)
"""From 2.4 on a follower answers only what knows of racks (KIP-392), which the last one does; before, any. From 0.11 on
answers say where a log begins (KIP-107), which is version 5.
"""
_WITH_LOG_START: Final = 5


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
    answers = _list_offsets(connection, names, _DEBUGGING, epochs)
    # Replicas in another epoch are asked for again; most of the time there are none.
    others = [name for name, (error, _) in answers.items() if error in _OF_OTHER_EPOCH]
    agreed = epochs.keys() - others
    if others:
        answers |= _list_offsets(connection, others, _DEBUGGING, {})
    ends = {name: offset for name, (error, offset) in answers.items() if error == 0}
    led = _led(connection, names)
    version = connection.version_of(FetchRequest, *_FETCH)
    topic_type = FetchRequest.FetchTopic
    topics = [
        topic_type(
            topic=topic,
            partitions=[
                topic_type.FetchPartition(
                    partition=number, fetch_offset=ends[f"{topic}-{number}"], partition_max_bytes=1
                )
                for number in numbers
            ],
        )
        for topic, numbers in _by_topic(ends)
    ]
    request = FetchRequest[version](
        replica_id=_DEBUGGING, max_wait_ms=0, min_bytes=0, max_bytes=1, isolation_level=0, topics=topics
    )
    found = {}
    for topic in connection.ask(request).responses if topics else ():
        for told in topic.partitions:
            name = f"{topic.topic}-{told.partition_index}"
            if told.error_code == 0 and name in ends:
                found[name] = ReplicaOffsets(
                    ends[name],
                    told.high_watermark,
                    name in led,
                    epochs[name] if name in agreed else None,
                    told.log_start_offset if version >= _WITH_LOG_START else None,
                )
    return found


def _led(connection: BrokerConnection, partitions: Iterable[str]) -> frozenset[str]:
    """Return the partitions that a broker takes itself for the leader of."""
    told = _list_offsets(connection, partitions, _CONSUMER, {})
    return frozenset(name for name, (error, _) in told.items() if error in _ANSWERED_BY_LEADER)


def _list_offsets(
    connection: BrokerConnection, partitions: Iterable[str], replica: int, epochs: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """Return what a broker tells a *replica* of the end of each log: an error, and an offset; an error where it has another of the *epochs*."""
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    version = _LIST_OFFSETS_OF_EPOCH if epochs else _LIST_OFFSETS
    request = ListOffsetsRequest[version](
        replica_id=replica,
        topics=[
            topic_type(
                name=topic,
                partitions=[
                    topic_type.ListOffsetsPartition(
                        partition_index=number,
                        current_leader_epoch=epochs.get(f"{topic}-{number}", _NO_EPOCH),
                        timestamp=_LATEST,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in _by_topic(partitions)
        ],
    )
    return {
        f"{topic.name}-{told.partition_index}": (told.error_code, told.offset)
        for topic in connection.ask(request).topics
        for told in topic.partitions
    }


def _by_topic(partitions: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
    split: list[tuple[str, Any]] = [
        (topic, int(number)) for topic, _, number in (name.rpartition("-") for name in partitions)
    ]
    for topic, group in groupby(sorted(split), key=lambda pair: pair[0]):
        yield topic, [number for _, number in group]
