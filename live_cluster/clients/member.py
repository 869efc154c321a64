"""A group member in a client's process, and its reports."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from harrow.cluster_model.clients.programs import Records
from harrow.live_cluster.clients.client_library import LibraryMember
from harrow.live_cluster.clients.senders import Report
from harrow.live_cluster.names import Names

_NO_OFFSETS: Final[Mapping[str, int]] = {}


class GroupMembership:
    """Reads and commits for a group; reports contain the campaign's names of partitions.

    ``consumed`` has the positions in the assigned partitions. With *begins_at_zero* the position is
    0 in partitions without a committed offset. *on_assigned* gets new partitions, and returns
    offsets that override the committed ones; *on_revoked* gets partitions that are revoked or lost.
    """

    def __init__(
        self,
        report: Report,
        consumer: LibraryMember,
        names: Names,
        records_max: int,
        *,
        begins_at_zero: bool = False,
        on_assigned: Callable[[list[str]], Mapping[str, int]] = lambda _: _NO_OFFSETS,
        on_revoked: Callable[[list[str]], None] = lambda _: None,
    ) -> None:
        self._report = report
        self._consumer = consumer
        self._names = names
        self._records_max = records_max
        self._begins_at_zero = begins_at_zero
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self.owned: list[str] = []
        self.consumed: dict[str, int] = {}
        self.is_settled = False

    def subscribe(self, topics: list[str]) -> None:
        """Join the group; polls assign and revoke partitions."""
        self._report(subscribed=True)
        self._consumer.subscribe(
            [self._names.cluster_topic(topic) for topic in topics], self._assigned, self._revoked
        )

    def assign(self, partitions: list[str]) -> None:
        """Read partitions without a group membership."""
        own = [self._names.cluster_partition(partition) for partition in partitions]
        self._assigned(own, -1)
        self._consumer.assign(own)

    def poll(self, invoked_ns: int, timeout_s: float) -> Records:
        """Return available records; wait for them for at most this long."""
        records = self._consumer.poll(self._records_max, timeout_s)
        own = {self._names.campaign_partition(name): pairs for name, pairs in records.items()}
        if own:
            ends = {name: pairs[-1][0] + 1 for name, pairs in own.items()}
            self._report(invoked=invoked_ns, records=own, positions=ends, at_end=False)
            self.consumed.update(ends)
        return own

    def commit(self, offsets: Mapping[str, int]) -> str | None:
        """Commit, and return the error, None if it succeeds."""
        committed = dict(offsets)
        self._report(committing=committed)
        error = self._consumer.commit(self.on_cluster(committed))
        self._report(committed=committed, error=error)
        return error

    def set_processed(self, offsets: Mapping[str, int]) -> None:
        """Set the offsets that automatic commits of the library may commit."""
        self._consumer.set_processed(self.on_cluster(offsets))

    def rewind(self) -> None:
        """Go back to the committed offsets in all partitions.

        In the history the partitions are revoked and assigned again, because the next positions are
        unrelated to the last ones.
        """
        partitions = [self._names.cluster_partition(partition) for partition in self.owned]
        self.consumed.clear()
        self._report(rewound=self.owned)
        if partitions:
            self._take_committed(self._consumer.rewind(partitions))

    def group_metadata(self, *, as_member: bool) -> Any:
        """Return the group metadata for a transactional producer, with or without membership."""
        return self._consumer.group_metadata(as_member=as_member)

    def read_end(self) -> dict[str, int]:
        """Return the offsets up to which the assigned partitions have been read, if known."""
        ends = self._consumer.read_end()
        own = {self._names.campaign_partition(name): offset for name, offset in ends.items()}
        return {name: own[name] for name in self.owned if name in own}

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def on_cluster(self, offsets: Mapping[str, int]) -> dict[str, int]:
        """Return offsets with the cluster's names of partitions."""
        return {self._names.cluster_partition(name): offset for name, offset in offsets.items()}

    def _assigned(self, partitions: list[str], generation: int) -> Mapping[str, int]:
        own = [self._names.campaign_partition(partition) for partition in partitions]
        self.owned = sorted({*self.owned, *own})
        self.is_settled = True
        self._report(assigned=sorted(own), generation=generation, owned=self.owned)
        self._take_committed(self._consumer.committed(partitions) if partitions else {})
        start_offsets = self._on_assigned(own)
        self.consumed.update(start_offsets)
        return self.on_cluster(start_offsets)

    def _take_committed(self, committed: Mapping[str, int]) -> None:
        own = {self._names.campaign_partition(name): offset for name, offset in committed.items()}
        self._report(found=own)
        for name, offset in own.items():
            if offset >= 0 or self._begins_at_zero:
                self.consumed[name] = max(offset, 0)

    def _revoked(self, partitions: list[str], is_lost: bool) -> None:
        own = [self._names.campaign_partition(partition) for partition in partitions]
        self.owned = [partition for partition in self.owned if partition not in own]
        self.is_settled = False
        self._on_revoked(own)
        for partition in own:
            self.consumed.pop(partition, None)
        self._report(revoked=sorted(own), lost=is_lost, owned=self.owned)
