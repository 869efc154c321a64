"""Holds a broker's replicas, and other state that `replica_manager` and `fetching` share."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from harrow.cluster_model import errors, events, protocol
from harrow.cluster_model.broker.delayed_requests import DelayedFetch, DelayedProduce, OperationTimer
from harrow.cluster_model.broker.fetch_session import HostedPartitions
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.connection import Connection, Respond
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.periodic_task import PeriodicTask

_LEADER_CHANGE_ERRORS: Final = (errors.NOT_LEADER_FOR_PARTITION, errors.FENCED_LEADER_EPOCH)


class HostedReplicas:
    """The partitions with a replica on a broker, and the requests that wait for them.

    ``partitions`` has the partitions with a replica. ``hosted`` has these and also the partitions
    that clients have named although the broker has no replica. It also has the requests that wait
    in the purgatory. ``isr_writes`` has the partitions whose ISR is being written.
    """

    __slots__ = (
        *(
            "_isr_shrinking",
            "_timers",
            "behaviours",
            "broker",
            "host",
            "hosted",
            "is_shut_down",
        ),
        *("isr_suspects", "isr_writes", "metadata", "partitions", "respond"),
    )

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        behaviours: Behaviours,
        respond: Respond,
        metadata: MetadataCache,
    ) -> None:
        self.broker = broker
        self.host = host
        self.behaviours = behaviours
        self.respond = respond
        self.metadata = metadata
        self.partitions: dict[str, Partition] = {}
        self.hosted = HostedPartitions()
        self.isr_writes: dict[str, None] = {}
        # The partitions in whose ISR a replica may be behind, so that it may fall out of sync.
        self.isr_suspects: dict[Partition, None] = {}
        checks_twice = not behaviours.replication.isr_lag_counts_messages
        self._isr_shrinking = PeriodicTask(
            host, config.replica_lag_time_max_us // (1 + checks_twice), self._shrink_isrs
        )
        self._timers: dict[int, OperationTimer] = {}
        self.is_shut_down = False

    def start(self) -> None:
        """Start the periodic check for replicas that have fallen out of sync."""
        self._isr_shrinking.start()

    def stop_timers(self) -> None:
        """Cancel the deadlines of all requests that wait in the purgatory."""
        for timer in self._timers.values():
            timer.stop()

    def connection_closed(self, connection: Connection) -> None:
        """Drop the timer of a closed connection."""
        self._timers.pop(connection.id, None)

    def add(self, partition: Partition) -> None:
        """Host a new replica."""
        self.partitions[partition.name] = partition
        self.hosted.hosted_partition(partition.name).partition = partition

    def remove(self, partition: Partition) -> None:
        """Forget a deleted replica."""
        del self.partitions[partition.name]
        self.hosted.hosted_partition(partition.name).partition = None
        self.isr_suspects.pop(partition, None)

    def hold_back(self, names: Mapping[str, object], handle: Callable[..., None], *request: Any) -> bool:
        """Hold a request back if the ISR of one of its partitions, *names*, is being written.

        Return whether the request has to wait. After the write the broker calls *handle* with the
        request again.
        """
        for name in self.isr_writes:
            if name in names:
                self.partitions[name].blocked_requests += (partial(handle, *request),)
                return True
        return False

    def watch_deadline(self, connection: Connection, operation: DelayedFetch | DelayedProduce) -> None:
        """Expire the waiting request of a connection at its deadline."""
        timer = self._timers.get(connection.id)
        if timer is None:
            timer = self._timers[connection.id] = OperationTimer(self.host)
        timer.watch(operation)

    def reject(self, api: str, partition: str, sender: str, error: str) -> None:
        self.host.emit(events.RequestRejected, self.broker, api, partition, sender, error)

    def suspect_isr(self, partition: Partition) -> None:
        """Check periodically whether all members of the partition's ISR are still in sync."""
        self.isr_suspects[partition] = None
        self._isr_shrinking.request()

    def _shrink_isrs(self) -> bool:
        if self.is_shut_down:
            return False
        for partition in tuple(self.isr_suspects):
            if not partition.maybe_shrink_isr():
                del self.isr_suspects[partition]
            if partition.name in self.isr_writes:
                self.hosted.hosted_partition(partition.name).wake_fetches()
        return bool(self.isr_suspects)

    def current_leader(self, name: str, error: str) -> tuple[int, int] | None:
        """Return the leader and epoch to tell a client that gets a leadership error, or None.

        Modelled on ``KafkaApis.getCurrentLeader``.
        """
        if error not in _LEADER_CHANGE_ERRORS or not self.behaviours.clients.current_leader_in_error_response:
            return None
        partition = self.partitions.get(name)
        if partition is not None:
            leader, epoch = partition.leader, partition.leader_epoch
        else:
            leadership = self.metadata.leader_and_epoch(name)
            leader, epoch = (protocol.NO_LEADER, protocol.NO_EPOCH) if leadership is None else leadership
        return None if leader == protocol.NO_LEADER else (leader, epoch)

    def error_without_replica(self, name: str) -> str:
        """Return the error for a partition without a replica here (``getPartitionOrError``).

        If another broker leads the partition, for example after a reassignment, the error makes the
        client look for the leader again.
        """
        exists = self.metadata.leader_and_epoch(name) is not None
        return errors.NOT_LEADER_FOR_PARTITION if exists else errors.UNKNOWN_TOPIC_OR_PARTITION
