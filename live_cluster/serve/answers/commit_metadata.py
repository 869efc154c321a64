"""Keeps what clients commit with an offset and the model's groups lack: a text, a leader epoch."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from kafka.protocol.consumer import OffsetCommitRequest

from harrow.live_cluster.wire.client_requests import ClientRequest
from harrow.live_cluster.wire.codec import Naming
from harrow.live_cluster.wire.schemas import TXN_OFFSET_COMMIT

_COMMITS: Final = frozenset((OffsetCommitRequest.API_KEY, TXN_OFFSET_COMMIT.API_KEY))
_KEPT: Final = 16
"""How many offsets of a partition keep it. A fetch asks for the last committed one."""
_TEXT_MAX: Final = 4_096
"""The default of ``offset.metadata.max.bytes``, which counts characters of Java."""

_Commit = tuple[str, int]
"""A text and a leader epoch."""
_NOTHING: Final[_Commit] = ("", -1)


class _Commits(NamedTuple):
    """What belongs to an offset: by the last commit that has succeeded, and by one since then.

    The answer to the latter may be lost. Then it may have succeeded, too.
    """

    done: _Commit | None
    latest: _Commit | None


def is_too_large(text: str | None) -> bool:
    """Return whether coordinators refuse a text (``OffsetMetadataManager.isMetadataInvalid``)."""
    return text is not None and len(text.encode("utf-16-le", "surrogatepass")) // 2 > _TEXT_MAX


class CommitMetadata:
    """The texts and leader epochs of all groups, by group, by topic and partition, then by offset.

    Commits that are refused leave nothing.
    """

    def __init__(self, naming: Naming, has_partition: Callable[[str], bool]) -> None:
        self._naming = naming
        self._has_partition = has_partition
        self._groups: dict[str, dict[tuple[str, int], dict[int, _Commits]]] = {}

    def note(self, request: ClientRequest) -> None:
        """Note the texts and leader epochs in a request, if it commits offsets."""
        if request.api_key not in _COMMITS:
            return
        for name, partition in self._partitions(request.body.topics):
            index, offset = partition.partition_index, partition.committed_offset
            if is_too_large(partition.committed_metadata) or not self._has_partition(f"{name}-{index}"):
                continue
            partitions = self._groups.setdefault(request.body.group_id, {})
            commits = partitions.setdefault((name, index), {})
            former = commits.pop(offset, None)
            commits[offset] = _Commits(former and former.done, _commit_of(partition))
            if len(commits) > _KEPT:
                del commits[next(iter(commits))]

    def settle(self, wire: Any, request: ClientRequest) -> None:
        """Keep what a commit brought if it has succeeded, and forget it if not."""
        errors = {
            (name, answer.partition_index): answer.error_code
            for name, answer in self._partitions(wire.topics)
        }
        partitions = self._groups.get(request.body.group_id, {})
        for name, partition in self._partitions(request.body.topics):
            key, offset = (name, partition.partition_index), partition.committed_offset
            commits = partitions.get(key, {})
            known = commits.get(offset)
            if known is None or key not in errors:
                continue
            commit = _commit_of(partition)
            done = known.done if errors[key] else commit
            latest = None if known.latest == commit else known.latest
            if done is None and latest is None:
                del commits[offset]
                self._forget_empty(request.body.group_id, key)
            else:
                commits[offset] = _Commits(done, latest)

    def delete_groups(self, wire: Any, *_: Any) -> None:
        """Forget the groups that were deleted."""
        for result in wire.results:
            if not result.error_code:
                self._groups.pop(result.group_id, None)

    def delete_offsets(self, wire: Any, request: ClientRequest, *_: Any) -> None:
        """Forget the partitions whose offsets were deleted."""
        group = request.body.group_id
        for name, partition in self._partitions(wire.topics):
            key = name, partition.partition_index
            if not wire.error_code and not partition.error_code and key in self._groups.get(group, {}):
                self._groups[group][key].clear()
                self._forget_empty(group, key)

    def _partitions(self, topics: Any) -> Iterator[tuple[str, Any]]:
        """Yield the partitions in a message with the names of their topics."""
        for topic in topics or ():
            name = self._naming.topic_of(topic)
            for partition in topic.partitions or ():
                yield name, partition

    def _forget_empty(self, group: str, key: tuple[str, int]) -> None:
        partitions = self._groups[group]
        if not partitions[key]:
            del partitions[key]
        if not partitions:
            del self._groups[group]

    def complete(self, wire: Any, request: ClientRequest, *_: Any) -> None:
        """Complete a response to OffsetFetch: name its groups, and add texts and epochs."""
        for group, requested in zip(wire.groups or (), request.body.groups or (), strict=True):
            group.group_id = requested.group_id
        for group in wire.groups or (wire,):
            partitions = self._groups.get(getattr(group, "group_id", request.body.group_id), {})
            for name, partition in self._partitions(group.topics):
                commits = partitions.get((name, partition.partition_index), {})
                known = commits.get(partition.committed_offset, _Commits(None, None))
                commit = known.latest or known.done or _NOTHING
                partition.metadata, partition.committed_leader_epoch = commit


def _commit_of(partition: Any) -> _Commit:
    return partition.committed_metadata or "", partition.committed_leader_epoch
