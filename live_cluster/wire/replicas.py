"""Reads LEO and high watermark of each replica, leader or follower, from its own broker.

Requests from replica -2 are for debugging: a broker answers them for all of its replicas
(``Request.DebuggingConsumerId``).
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kafka.protocol.consumer import ListOffsetsRequest

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.wire.codec import exchange
from harrow.live_cluster.wire.connection import BrokerConnection

DEBUGGING: Final = -2
_LIST_OFFSETS: Final = 1
"""A version of ListOffsets that every release since 0.10.1 supports."""
_LIST_OFFSETS_WITH_EPOCH: Final = 4
"""Since 2.1 a request may contain a leader epoch, and a broker in another epoch refuses it
(KIP-320)."""
_EPOCH_ERRORS: Final = frozenset({errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH})
_ANSWERED_BY_LEADER: Final = frozenset(
    {errors.NONE, errors.LEADER_NOT_AVAILABLE, errors.OFFSET_NOT_AVAILABLE}
)
"""Errors with which a leader answers a consumer. A leader whose high watermark is below the start
of its epoch does not report an end offset (KIP-207, ``Partition.fetchOffsetForTimestamp``): it
answers LEADER_NOT_AVAILABLE, since version 5 OFFSET_NOT_AVAILABLE. Any other error means that the
broker does not lead."""
_FETCH_VERSIONS: Final = (3, 5, 11)
"""The versions of Fetch to use. Since 2.4 a follower answers only version 11, which has a rack
(KIP-392). Before 2.4 it answers every version. Since version 5, of 0.11, answers contain the log
start offset (KIP-107)."""


@dataclass(frozen=True, slots=True)
class ReplicaOffsets:
    """The LEO and high watermark of a replica, and whether its broker believes that it leads.

    ``leader_epoch`` is the epoch in the request if the broker has the same epoch. It is None if the
    broker has another epoch, or cannot compare epochs (before KIP-320). ``log_start`` is None
    before 0.11.
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
    names: Names = SAME_NAMES,
) -> dict[str, ReplicaOffsets]:
    """Return the offsets of a broker's replicas.

    Leave out partitions that the broker does not have, or does not have yet. *epochs* are leader
    epochs to compare with the broker's. *names* translates from and to the cluster's names.
    """
    epochs_on_cluster = {names.cluster_partition(name): epoch for name, epoch in epochs.items()}
    offsets_on_cluster = _offsets_on_cluster(
        connection, sorted(map(names.cluster_partition, partitions)), epochs_on_cluster
    )
    return {names.campaign_partition(name): offsets for name, offsets in offsets_on_cluster.items()}


def _offsets_on_cluster(
    connection: BrokerConnection, names: Sequence[str], epochs: Mapping[str, int]
) -> dict[str, ReplicaOffsets]:
    if epochs and not connection.speaks(ListOffsetsRequest, _LIST_OFFSETS_WITH_EPOCH):
        epochs = {}
    answers = _list_offsets(connection, names, DEBUGGING, epochs)
    # Ask again about replicas in another epoch; most of the time there are none.
    in_other_epochs = [name for name, (error, _) in answers.items() if error in _EPOCH_ERRORS]
    same_epoch = epochs.keys() - in_other_epochs
    if in_other_epochs:
        answers |= _list_offsets(connection, in_other_epochs, DEBUGGING, {})
    ends = {name: offset for name, (error, offset) in answers.items() if error == errors.NONE}
    if not ends:
        return {}
    as_consumer = _list_offsets(connection, names, protocol.CONSUMER_REPLICA_ID, {})
    positions = {name: protocol.PartitionData(end, protocol.NO_EPOCH) for name, end in ends.items()}
    fetch = protocol.FetchRequest(DEBUGGING, 0, 1, positions, rack="")
    responses = exchange(connection, fetch, versions=_FETCH_VERSIONS).partitions
    return {
        name: ReplicaOffsets(
            ends[name],
            fetched.hw,
            as_consumer[name][0] in _ANSWERED_BY_LEADER,
            epochs[name] if name in same_epoch else None,
            None if fetched.log_start_offset < 0 else fetched.log_start_offset,
        )
        for name, fetched in responses.items()
        if fetched.error == errors.NONE and name in ends
    }


def _list_offsets(
    connection: BrokerConnection, partitions: Iterable[str], replica: int, epochs: Mapping[str, int]
) -> dict[str, tuple[str, int]]:
    """Return the error and the end offset of each partition; *replica* is the one that asks."""
    version = _LIST_OFFSETS_WITH_EPOCH if epochs else _LIST_OFFSETS
    request = protocol.ListOffsetsRequest(
        replica, {name: epochs.get(name, protocol.NO_EPOCH) for name in sorted(partitions)}
    )
    answer: protocol.ListOffsetsResponse = exchange(connection, request, versions=(version,))
    return answer.partitions
