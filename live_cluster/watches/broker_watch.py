"""Observes the replicas of one broker, in its own thread: a silent broker delays no other watch."""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Self

from harrow.cluster_model.events import BecameFollower, BecameLeader, HighWatermarkSet
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.watches.polling_thread import PollingThread
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.replicas import ReplicaOffsets, replica_offsets


class BrokerWatch:
    """The last observed offsets and roles of a broker's replicas; a dead broker has none.

    *partitions* returns the current partitions of the broker. The watch closes its connection at
    the end.
    """

    def __init__(
        self,
        broker: NodeProcess,
        connection: BrokerConnection,
        partitions: Callable[[], Iterable[str]],
        metadata: ObservedMetadata,
        report: Report,
        activity: Activity,
        names: Names = SAME_NAMES,
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
        self._incarnation = 0
        self._lock = threading.Lock()
        self._watch = PollingThread(f"watch broker {broker.id}", self._poll, activity)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close([self._connection])

    def offsets(self) -> Mapping[str, ReplicaOffsets]:
        return self._offsets

    def log_starts(self) -> dict[str, int]:
        """Return the known log start offsets."""
        return {
            partition: offsets.log_start
            for partition, offsets in self._offsets.items()
            if offsets.log_start is not None
        }

    def leader_epoch(self, partition: str) -> int:
        """Return the last leader epoch on which broker and control plane agreed, -1 for none."""
        return self._epochs.get(partition, -1)

    def forget(self) -> None:
        """Forget the observations of a dead process."""
        with self._lock:
            self._incarnation += 1
            self._offsets = {}
            self._epochs.clear()

    def _poll(self) -> None:
        incarnation = self._incarnation
        if not self._broker.is_running or self._broker.is_paused:
            return
        offsets: dict[str, ReplicaOffsets] = {}
        with suppress(ConnectionLostError):
            offsets = replica_offsets(
                self._connection, self._partitions(), self._current_epochs(), self._names
            )
        # If the broker was paused meanwhile, its last state still counts.
        if offsets or not self._broker.is_paused:
            with self._lock:
                if self._incarnation == incarnation and self._broker.is_running:
                    self._update(offsets)

    def _current_epochs(self) -> dict[str, int]:
        states = ((partition, self._metadata.partition_state(partition)) for partition in self._partitions())
        return {partition: state.leader_epoch for partition, state in states if state is not None}

    def _update(self, replicas: Mapping[str, ReplicaOffsets]) -> None:
        previous, self._offsets = self._offsets, replicas
        for partition, offsets in replicas.items():
            before = previous.get(partition)
            if offsets.leader_epoch is not None:
                self._epochs[partition] = offsets.leader_epoch
            self._report_role(partition, offsets)
            if before is None or before.hw != offsets.hw:
                self._report(HighWatermarkSet, self._broker.id, partition, offsets.hw)

    def _report_role(self, partition: str, offsets: ReplicaOffsets) -> None:
        """Report a role when broker and control plane agree.

        Only the control plane knows the leader epoch of the role.
        """
        state, broker = self._metadata.partition_state(partition), self._broker.id
        if state is None or (state.leader == broker) != offsets.leads:
            return
        role = (self._incarnation, state.leader, state.leader_epoch)
        if self._roles.get(partition) == role:
            return
        self._roles[partition] = role
        if offsets.leads:
            self._report(BecameLeader, broker, partition, state.leader_epoch, offsets.leo, state.isr)
        else:
            self._report(BecameFollower, broker, partition, state.leader_epoch, state.leader)
