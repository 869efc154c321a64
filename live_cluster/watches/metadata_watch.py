"""A thread that observes the metadata of a cluster through its brokers."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.metadata_seen import MetadataSeen, SeenPartition
from harrow.live_cluster.watches.repeated_look import RepeatedLook
from harrow.live_cluster.wire.administration import Assignment, reassignments
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import BrokerMetadata, broker_metadata, eligible_leaders

UNKNOWN_EPOCH = -1
"""Brokers do not report the controller epoch."""


class MetadataWatch:
    """Updates *seen* with the brokers' metadata of some topics, since 2.1.

    For each partition the newest leader epoch counts, and within it the leader's own view, because
    it decides the ISR. While no broker answers, the controller's log counts. With
    *tells_controller*, as with ZooKeeper, a broker that believes itself to be the controller is the
    controller.
    """

    def __init__(
        self,
        seen: MetadataSeen,
        topics: Iterable[str],
        activity: Activity,
        names: Names = SAME,
        *,
        tells_controller: bool = False,
    ) -> None:
        self._seen = seen
        self._topics = tuple(topics)
        self._names = names
        self._tells_controller = tells_controller
        self._connections: Mapping[int, BrokerConnection] = {}
        # The replicas in the views that count.
        self._replicas: dict[str, tuple[int, ...]] = {}
        self._watch = RepeatedLook("metadata", self._look, activity)

    def start(self, connections: Mapping[int, BrokerConnection], alive: Callable[[int], bool]) -> None:
        """Start to ask live brokers; `close` closes the connections."""
        self._connections = connections
        self._alive = alive
        self._watch.start()

    def close(self) -> None:
        self._watch.close(self._connections.values())

    def _look(self) -> None:
        views: dict[int, BrokerMetadata] = {}
        for broker in filter(self._alive, self._connections):
            with suppress(ConnectionLostError):
                views[broker] = broker_metadata(self._connections[broker], self._topics, self._names)
        if not views:
            self._seen.take_logged()
            return
        # Ask for reassignments after the metadata, which lag behind the controller: the answer
        # lists each reassignment in the metadata that is not over.
        moving = self._reassignments(views) if self._seen.assignments.may_move else {}
        self._take(views, self._eligible_leaders(views))
        if moving is not None:
            self._seen.assignments.take_views(self._replicas, moving)

    def _reassignments(self, brokers: Iterable[int]) -> Mapping[str, Assignment] | None:
        """Return the ongoing reassignments, None if no broker answers."""
        for broker in brokers:
            try:
                return reassignments(self._connections[broker])
            except ConnectionLostError:
                continue
        return None

    def _eligible_leaders(self, views: Mapping[int, BrokerMetadata]) -> Mapping[str, tuple[int, ...]]:
        """Return the eligible leader replicas (KIP-966), which Metadata lacks.

        Ask for them before the ISR is empty: later one of them may lead already.
        """
        for broker, metadata in views.items():
            topics = {partition.rpartition("-")[0] for partition in metadata.under_replicated}
            if topics:
                try:
                    return eligible_leaders(self._connections[broker], sorted(topics), self._names)
                except ConnectionLostError:
                    continue
        return {}

    def _take(self, views: Mapping[int, BrokerMetadata], eligible: Mapping[str, tuple[int, ...]]) -> None:
        claims = [broker for broker, metadata in views.items() if metadata.controller == broker]
        # If two brokers claim to be the controller, one of them does not know yet that it is not.
        if self._tells_controller and len(claims) < 2:
            self._seen.set_controller(claims[0] if claims else None, UNKNOWN_EPOCH)
        if self._tells_controller and len(claims) == 1:
            registered = views[claims[0]].brokers
        else:
            # A broker that has just started or is cut off may know fewer.
            registered = max((metadata.brokers for metadata in views.values()), key=len)
        self._seen.set_registered(registered, {})
        newest: dict[str, tuple[int, bool, SeenPartition]] = {}
        replicas: dict[str, tuple[int, ...]] = {}
        for broker, metadata in views.items():
            for partition, (leader, epoch, isr) in metadata.partitions.items():
                view = (epoch, leader == broker, SeenPartition(leader, epoch, isr))
                if partition not in newest or view[:2] > newest[partition][:2]:
                    newest[partition] = view
                    replicas[partition] = metadata.replicas.get(partition, ())
        for partition, (epoch, is_leaders, state) in newest.items():
            before = self._seen.partition_state(partition)
            if before is None or epoch > before.leader_epoch or (epoch == before.leader_epoch and is_leaders):
                self._seen.set_partition(partition, state, eligible.get(partition, ()))
                if replicas[partition]:
                    self._replicas[partition] = replicas[partition]
