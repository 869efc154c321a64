"""Keeps the text that clients commit with an offset, which the model's groups do not have."""

from typing import Any, Final

from kafka.protocol.consumer import OffsetCommitRequest

from harrow.live_cluster.serve.requests import ClientRequest
from harrow.live_cluster.wire.schemas import TXN_OFFSET_COMMIT

_COMMITS: Final = frozenset((OffsetCommitRequest.API_KEY, TXN_OFFSET_COMMIT.API_KEY))
_KEPT: Final = 16
"""How many offsets of a partition keep their texts. A fetch asks for the last committed one."""


class CommitMetadata:
    """The texts of all groups, by group, topic and partition, and then by offset."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str, int], dict[int, str]] = {}

    def note(self, request: ClientRequest) -> None:
        """Note the texts in a request, if it commits offsets."""
        if request.api_key not in _COMMITS:
            return
        for topic in request.body.topics or ():
            for partition in topic.partitions or ():
                key = request.body.group_id, topic.name, partition.partition_index
                texts = self._texts.setdefault(key, {})
                texts.pop(partition.committed_offset, None)
                texts[partition.committed_offset] = partition.committed_metadata or ""
                if len(texts) > _KEPT:
                    del texts[next(iter(texts))]

    def complete(self, wire: Any, request: ClientRequest, *_: Any) -> None:
        """Complete a response to OffsetFetch: name its groups, and add the texts."""
        for group, asked in zip(wire.groups or (), request.body.groups or (), strict=True):
            group.group_id = asked.group_id
        for group in wire.groups or (wire,):
            for topic in group.topics or ():
                for partition in topic.partitions or ():
                    key = (
                        getattr(group, "group_id", request.body.group_id),
                        topic.name,
                        partition.partition_index,
                    )
                    partition.metadata = self._texts.get(key, {}).get(partition.committed_offset, "")
