"""Keeps what clients commit with an offset and the model's groups lack: a text, a leader epoch."""

from collections.abc import Callable
from typing import Any, Final

from kafka.protocol.consumer import OffsetCommitRequest

from harrow.live_cluster.serve.requests import ClientRequest
from harrow.live_cluster.wire.codec import Naming
from harrow.live_cluster.wire.schemas import TXN_OFFSET_COMMIT

_COMMITS: Final = frozenset((OffsetCommitRequest.API_KEY, TXN_OFFSET_COMMIT.API_KEY))
_KEPT: Final = 16
"""How many offsets of a partition keep it. A fetch asks for the last committed one."""
_NOTHING: Final = ("", -1)


class CommitMetadata:
    """The texts and leader epochs of all groups, by group, topic and partition, then by offset.

    Commits for partitions that do not exist are refused, so nothing of them is kept.
    """

    def __init__(self, naming: Naming, has_partition: Callable[[str], bool]) -> None:
        self._naming = naming
        self._has_partition = has_partition
        self._commits: dict[tuple[str, str, int], dict[int, tuple[str, int]]] = {}

    def note(self, request: ClientRequest) -> None:
        """Note the texts and leader epochs in a request, if it commits offsets."""
        if request.api_key not in _COMMITS:
            return
        for topic in request.body.topics or ():
            for partition in topic.partitions or ():
                name = self._naming.topic_of(topic)
                if not self._has_partition(f"{name}-{partition.partition_index}"):
                    continue
                key = request.body.group_id, name, partition.partition_index
                commits = self._commits.setdefault(key, {})
                commits.pop(partition.committed_offset, None)
                commits[partition.committed_offset] = (
                    partition.committed_metadata or "",
                    partition.committed_leader_epoch,
                )
                if len(commits) > _KEPT:
                    del commits[next(iter(commits))]

    def complete(self, wire: Any, request: ClientRequest, *_: Any) -> None:
        """Complete a response to OffsetFetch: name its groups, and add texts and epochs."""
        for group, requested in zip(wire.groups or (), request.body.groups or (), strict=True):
            group.group_id = requested.group_id
        for group in wire.groups or (wire,):
            for topic in group.topics or ():
                for partition in topic.partitions or ():
                    key = (
                        getattr(group, "group_id", request.body.group_id),
                        self._naming.topic_of(topic),
                        partition.partition_index,
                    )
                    commit = self._commits.get(key, {}).get(partition.committed_offset, _NOTHING)
                    partition.metadata, partition.committed_leader_epoch = commit
