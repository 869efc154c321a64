"""What the brokers of a cluster say of its metadata, asked again and again by a thread of its own."""

from collections.abc import Callable, Iterable, Mapping

from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.metadata_seen import MetadataSeen, SeenPartition
from harrow.live_cluster.watches.repeated_look import RepeatedLook
from harrow.live_cluster.wire.administration import Assignment, reassignments
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import BrokerMetadata, broker_metadata, eligible_leaders

UNKNOWN_EPOCH = -1
"""The controller's: brokers do not tell it."""


class MetadataWatch:
    """Puts what brokers tell of some topics into what was *seen*, from 2.1 on.

    Of what they tell the newest leader epoch counts, and within one what the leader tells, whose ISR it is. While none is there, the log of
    the controller tells. With
    *tells_controller* a broker that takes itself for the controller is it, as in clusters with ZooKeeper.
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
        # As those tell whose state of a partition counts.
        self._replicas: dict[str, tuple[int, ...]] = {}
        self._watch = RepeatedLook("metadata", self._look, activity)

    def start(self, connections: Mapping[int, BrokerConnection], alive: Callable[[int], bool]) -> None:
        """Begin to ask the brokers that are alive, over connections that are closed in the end."""
        self._connections = connections
        self._alive = alive
        self._watch.start()

    def close(self) -> None:
        """Ask no more."""
        self._watch.close(self._connections.values())

    def _look(self) -> None:
        told: dict[int, BrokerMetadata] = {}
        for broker in filter(self._alive, self._connections):
            try:
                told[broker] = broker_metadata(self._connections[broker], self._topics, self._names)
            except ConnectionLostError:
                continue
        if told:
            # Asked after the metadata, which is behind the controller: what is under way there is listed here, or is over.
            moving = self._reassignments(told) if self._seen.assignments.may_move else {}
            self._take(told, self._eligible_leaders(told))
            if moving is not None:
                self._seen.assignments.take_told(self._replicas, moving)
        else:
            self._seen.take_logged()

    def _reassignments(self, told: Iterable[int]) -> Mapping[str, Assignment] | None:
        """Return the reassignments that are under way, None where nobody says."""
        for broker in told:
            try:
                return reassignments(self._connections[broker])
            except ConnectionLostError:
                continue
        return None

    def _eligible_leaders(self, told: Mapping[int, BrokerMetadata]) -> Mapping[str, tuple[int, ...]]:
        """Ask for what Metadata has not: who may lead although it is outside the ISR (KIP-966).

        One that has been asked for only once the ISR is empty may be leader by then.
        """
        for broker, metadata in told.items():
            topics = {partition.rpartition("-")[0] for partition in metadata.under_replicated}
            if topics:
                try:
                    return eligible_leaders(self._connections[broker], sorted(topics), self._names)
                except ConnectionLostError:
                    continue
        return {}

    def _take(self, told: Mapping[int, BrokerMetadata], eligible: Mapping[str, tuple[int, ...]]) -> None:
        claims = [broker for broker, metadata in told.items() if metadata.controller == broker]
        # Of two that take themselves for the controller one has not heard yet that it is none any more.
        if self._tells_controller and len(claims) < 2:
            self._seen.set_controller(claims[0] if claims else None, UNKNOWN_EPOCH)
        if self._tells_controller and len(claims) == 1:
            registered = told[claims[0]].brokers
        else:
            # A broker that has just started, or is cut off, may know of fewer.
            registered = max((metadata.brokers for metadata in told.values()), key=len)
        self._seen.set_registered(registered, {})
        newest: dict[str, tuple[int, bool, SeenPartition]] = {}
        replicas: dict[str, tuple[int, ...]] = {}
        for broker, metadata in told.items():
            for partition, (leader, epoch, isr) in metadata.partitions.items():
                found = (epoch, leader == broker, SeenPartition(leader, epoch, isr))
                if partition not in newest or found[:2] > newest[partition][:2]:
                    newest[partition] = found
                    replicas[partition] = metadata.replicas.get(partition, ())
        for partition, (epoch, is_leaders, state) in newest.items():
            known = self._seen.partition_state(partition)
            if known is None or epoch > known.leader_epoch or (epoch == known.leader_epoch and is_leaders):
                self._seen.set_partition(partition, state, eligible.get(partition, ()))
                if replicas[partition]:
                    self._replicas[partition] = replicas[partition]
