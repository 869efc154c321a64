"""Observes the metadata of a cluster through its brokers, in its own thread."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata, ObservedPartition
from harrow.live_cluster.watches.polling_thread import PollingThread
from harrow.live_cluster.wire.administration import Assignment, reassignments
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import BrokerMetadata, broker_metadata, eligible_leaders

UNKNOWN_EPOCH = -1
"""Brokers do not report the controller epoch."""


class MetadataWatch:
    """Updates *observed_metadata* with the brokers' metadata of some topics, since 2.1.

    For each partition, the view with the newest leader epoch counts. If several brokers have that
    epoch, the leader's view counts, because the leader decides the ISR. While no broker answers,
    the controller's log counts. With *finds_controller* (ZooKeeper), the broker that believes that
    it is the controller counts as the controller.
    """

    def __init__(
        self,
        observed_metadata: ObservedMetadata,
        topics: Iterable[str],
        activity: Activity,
        names: Names = SAME_NAMES,
        *,
        finds_controller: bool = False,
    ) -> None:
        self._observed_metadata = observed_metadata
        self._topics = tuple(topics)
        self._names = names
        self._finds_controller = finds_controller
        self._connections: Mapping[int, BrokerConnection] = {}
        # The replicas of each partition, from the view that counts.
        self._replicas: dict[str, tuple[int, ...]] = {}
        self._watch = PollingThread("metadata", self._poll, activity)

    def start(self, connections: Mapping[int, BrokerConnection], alive: Callable[[int], bool]) -> None:
        """Start to ask live brokers; `close` closes the connections."""
        self._connections = connections
        self._alive = alive
        self._watch.start()

    def close(self) -> None:
        self._watch.close(self._connections.values())

    def _poll(self) -> None:
        views: dict[int, BrokerMetadata] = {}
        for broker in filter(self._alive, self._connections):
            with suppress(ConnectionLostError):
                views[broker] = broker_metadata(self._connections[broker], self._topics, self._names)
        if not views:
            self._observed_metadata.update_from_log()
            return
        # Ask for reassignments after the metadata, which lag behind the controller: the answer
        # lists each reassignment in the metadata that is not over.
        moving = self._reassignments(views) if self._observed_metadata.assignments.may_move else {}
        self._update(views, self._eligible_leaders(views))
        if moving is not None:
            self._observed_metadata.assignments.update_from_broker(self._replicas, moving)

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

        Ask for them before the ISR is empty: afterwards one of them may already lead.
        """
        for broker, metadata in views.items():
            topics = {partition.rpartition("-")[0] for partition in metadata.under_replicated}
            if topics:
                try:
                    return eligible_leaders(self._connections[broker], sorted(topics), self._names)
                except ConnectionLostError:
                    continue
        return {}

    def _update(self, views: Mapping[int, BrokerMetadata], eligible: Mapping[str, tuple[int, ...]]) -> None:
        claims = [broker for broker, metadata in views.items() if metadata.controller == broker]
        # If two brokers claim to be the controller, one of them does not know yet that it is not.
        if self._finds_controller and len(claims) < 2:
            self._observed_metadata.set_controller(claims[0] if claims else None, UNKNOWN_EPOCH)
        if self._finds_controller and len(claims) == 1:
            registered = views[claims[0]].brokers
        else:
            # A broker that has just started or is cut off may know fewer brokers.
            registered = max((metadata.brokers for metadata in views.values()), key=len)
        self._observed_metadata.set_registered(registered, {})
        newest: dict[str, tuple[int, bool, ObservedPartition]] = {}
        replicas: dict[str, tuple[int, ...]] = {}
        for broker, metadata in views.items():
            for partition, (leader, epoch, isr) in metadata.partitions.items():
                view = (epoch, leader == broker, ObservedPartition(leader, epoch, isr))
                if partition not in newest or view[:2] > newest[partition][:2]:
                    newest[partition] = view
                    replicas[partition] = metadata.replicas.get(partition, ())
        for partition, (epoch, is_leaders, state) in newest.items():
            before = self._observed_metadata.partition_state(partition)
            if before is None or epoch > before.leader_epoch or (epoch == before.leader_epoch and is_leaders):
                self._observed_metadata.set_partition(partition, state, eligible.get(partition, ()))
                if replicas[partition]:
                    self._replicas[partition] = replicas[partition]
