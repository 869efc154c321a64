"""Encodes groups as records in ``__consumer_offsets`` (``GroupMetadataManager.scala``).

There are two kinds of records: the state of a group in a generation, and the committed offset of a
partition. The first word of a record's key is its kind. For a group with the protocol of KIP-848,
`consumer_group_records` encodes the state in other records.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from harrow.cluster_model.coordinators.coordinator_log import CoordinatorRecord, records_of
from harrow.cluster_model.coordinators.groups.consumer_group import ConsumerGroup
from harrow.cluster_model.coordinators.groups.consumer_group_records import (
    group_of,
    is_of_consumer_group,
    replay,
)
from harrow.cluster_model.coordinators.groups.group import EMPTY, STABLE, CommittedOffset, Group, Member
from harrow.cluster_model.coordinators.protocol import CONSUMER_TYPE, Subscription
from harrow.cluster_model.log.record_batch import COMMIT, RecordBatch
from harrow.cluster_model.release.groups import GroupSwitches

_GROUP: Final = "group"
_OFFSET: Final = "offset"


def group_record(group: Group, now_us: int) -> CoordinatorRecord:
    """Return the record of a group's generation, members and assignments."""
    members = [
        {
            "id": member.id,
            "instance": member.instance,
            "client": member.client,
            "session_timeout": member.session_timeout_us,
            "rebalance_timeout": member.rebalance_timeout_us,
            "subscription": list(member.subscription(group.protocol)),
            "partitions": list(member.partitions),
        }
        for member in group.members.values()
    ]
    value = {
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "at": now_us,
        "members": members,
    }
    if group.protocol_type != CONSUMER_TYPE:
        value["protocol_type"] = group.protocol_type
    return CoordinatorRecord(f"{_GROUP} {group.id}", value)


def group_tombstone(group: Group) -> CoordinatorRecord:
    return CoordinatorRecord(f"{_GROUP} {group.id}", None)


def offset_record(group: str, partition: str, offset: int, now_us: int) -> CoordinatorRecord:
    return CoordinatorRecord(f"{_OFFSET} {partition} {group}", {"offset": offset, "at": now_us})


def offset_tombstone(group: str, partition: str) -> CoordinatorRecord:
    return CoordinatorRecord(f"{_OFFSET} {partition} {group}", None)


def offsets_in(batch: RecordBatch) -> Iterator[tuple[int, str, str, int]]:
    """Yield the position in the log, group, partition and offset of each commit in a batch."""
    for (position, _), record in zip(batch.records(), records_of(batch), strict=True):
        kind, _, rest = record.key.partition(" ")
        if kind == _OFFSET and record.value is not None:
            partition, _, group = rest.partition(" ")
            yield position, group, partition, record.value["offset"]


def groups_in(
    partition_number: int, batches: Iterable[RecordBatch], switches: GroupSwitches
) -> dict[str, Group]:
    """Return the groups in a partition of ``__consumer_offsets`` (``doLoadGroupsAndOffsets``)."""
    groups: dict[str, Group] = {}

    def group_named(name: str) -> Group:
        if name not in groups:
            groups[name] = Group(name, partition_number)
        return groups[name]

    end = 0
    for batch in batches:
        end = batch.next_offset
        if batch.is_control:
            for group in groups.values():
                group.end_transaction(batch.producer_id, committed=batch.control_type == COMMIT)
            continue
        for (position, _), record in zip(batch.records(), records_of(batch), strict=True):
            kind, _, rest = record.key.partition(" ")
            if kind == _GROUP:
                _load_group(group_named(rest), record.value)
            elif is_of_consumer_group(kind):
                consumers = _consumers_of(group_named(group_of(kind, rest)), switches)
                replay(consumers, kind, rest, record.value)
            else:
                partition, _, name = rest.partition(" ")
                _load_offset(group_named(name), partition, record.value, position, batch)
    for group in groups.values():
        group.next_position = end
        _settle_protocol(group)
    return {
        name: group
        for name, group in groups.items()
        if group.members or group.offsets or group.pending_offsets or group.generation or group.consumers
    }


def _settle_protocol(group: Group) -> None:
    """Give a loaded group the protocol of its last records.

    If a group no longer has the protocol of KIP-848, tombstones have reset its epoch and removed
    its members.
    """
    consumers = group.consumers
    if consumers is not None and (consumers.epoch or consumers.members):
        group.state = consumers.state
    else:
        group.consumers = None


def _consumers_of(group: Group, switches: GroupSwitches) -> ConsumerGroup:
    if group.consumers is None:
        group.consumers = ConsumerGroup(switches.previous_instance_id_released)
    return group.consumers


def _load_group(group: Group, value: Any) -> None:
    group.members, group.static_members = {}, {}
    if value is None:
        group.state, group.generation = EMPTY, 0
        return
    group.generation, group.protocol = value["generation"], value["protocol"]
    group.protocol_type = value.get("protocol_type", CONSUMER_TYPE)
    for member in value["members"]:
        topics, owned, generation, rack = member["subscription"]
        subscription = Subscription(tuple(topics), tuple(owned), generation, rack)
        group.add(
            Member(
                member["id"],
                member["instance"],
                member["client"],
                member["session_timeout"],
                member["rebalance_timeout"],
                ((group.protocol, subscription),),
                tuple(member["partitions"]),
            ),
            group.protocol_type,
        )
    group.leader = value["leader"]
    group.state = STABLE if group.members else EMPTY
    group.empty_since_us = value["at"]


def _load_offset(group: Group, partition: str, value: Any, position: int, batch: RecordBatch) -> None:
    if value is None:
        group.offsets.pop(partition, None)
        return
    committed = CommittedOffset(value["offset"], value["at"], position)
    if batch.is_transactional:
        group.pending_offsets.setdefault(batch.producer_id, {})[partition] = committed
    else:
        group.apply_offset(partition, committed)
