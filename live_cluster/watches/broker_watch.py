"""What a broker says of its replicas, asked again and again by a thread of its own: one that does not answer delays no other."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Self

from harrow.cluster_model.events import BecameFollower, BecameLeader, HighWatermarkSet
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.metadata_seen import MetadataSeen
from harrow.live_cluster.watches.repeated_look import RepeatedLook
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.replicas import ReplicaOffsets, replica_offsets


class BrokerWatch:
    """The newest that a broker has said. One that is paused has said what it said before; one that is down says nothing.

    *partitions* returns those that it is asked about: topics may get more, and replicas may move. The connection is the watch's own, and
    ends with it.
    """

    def __init__(
        self,
        broker: NodeProcess,
        connection: BrokerConnection,
        partitions: Callable[[], Iterable[str]],
        metadata: MetadataSeen,
        report: Report,
        activity: Activity,
        names: Names = SAME,
    ) -> None:
        self._names = names
        self._broker = broker
        self._connection = connection
        self._partitions = partitions
        self._metadata = metadata
        self._report = report
        self._offsets: Mapping[str, ReplicaOffsets] = {}
        self._roles: dict[str, tuple[int, int, int]] = {}
        self._epochs: dict[str, int] = {}
        self._life = 0
        self._lock = threading.Lock()
        self._watch = RepeatedLook(f"watch broker {broker.id}", self._look, activity)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close([self._connection])

    def offsets(self) -> Mapping[str, ReplicaOffsets]:
        """Return what it said last, by partition."""
        return self._offsets

    def log_starts(self) -> dict[str, int]:
        """Return where logs begin, of those of which it said so."""
        return {
            partition: offsets.log_start
            for partition, offsets in self._offsets.items()
            if offsets.log_start is not None
        }

    def leader_epoch(self, partition: str) -> int:
        """Return the newest leader epoch that broker and control plane were seen to agree on; -1 for none in its present life."""
        return self._epochs.get(partition, -1)

    def forget(self) -> None:
        """Take note that the process is gone: what it has said is of another life."""
        with self._lock:
            self._life += 1
            self._offsets = {}
            self._epochs.clear()

    def _look(self) -> None:
        life = self._life
        if not self._broker.is_running or self._broker.is_paused:
            return
        try:
            told = self._ask()
        except ConnectionLostError:
            told = {}
        # One that stands still by now has not changed its mind.
        if told or not self._broker.is_paused:
            with self._lock:
                if self._life == life and self._broker.is_running:
                    self._take(told)

    def _ask(self) -> dict[str, ReplicaOffsets]:
        return replica_offsets(self._connection, self._partitions(), self._present_epochs(), self._names)

    def _present_epochs(self) -> dict[str, int]:
        states = ((partition, self._metadata.partition_state(partition)) for partition in self._partitions())
        return {partition: state.leader_epoch for partition, state in states if state is not None}

    def _take(self, told: Mapping[str, ReplicaOffsets]) -> None:
        before, self._offsets = self._offsets, told
        for partition, offsets in told.items():
            known = before.get(partition)
            if offsets.leader_epoch is not None:
                self._epochs[partition] = offsets.leader_epoch
            self._take_role(partition, offsets)
            if known is None or known.hw != offsets.hw:
                self._report(HighWatermarkSet, self._broker.id, partition, offsets.hw)

    def _take_role(self, partition: str, offsets: ReplicaOffsets) -> None:
        """Report a role when broker and control plane agree on it: only the latter tells of which leader epoch it is."""
        state, broker = self._metadata.partition_state(partition), self._broker.id
        if state is None or (state.leader == broker) != offsets.leads:
            return
        role = (self._life, state.leader, state.leader_epoch)
        if self._roles.get(partition) == role:
            return
        self._roles[partition] = role
        if offsets.leads:
            self._report(BecameLeader, broker, partition, state.leader_epoch, offsets.leo, state.isr)
        else:
            self._report(BecameFollower, broker, partition, state.leader_epoch, state.leader)
