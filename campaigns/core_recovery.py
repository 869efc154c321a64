"""The liveness of a core: a sufficient part of the brokers is healed, and has to serve.

What TigerBeetle's simulator (VOPR) does after its faults: a random core that suffices is healed,
everything outside it stays as the faults left it, for good, and the core has to make progress.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from campaigns.clients import READER_TIMEOUT_US, Clients, ConsumerClient
from campaigns.plan import Core
from checks.evidence import (
    DOWN,
    LEADS,
    NOBODY,
    PAUSED,
    UNAWARE,
    HealedCore,
    PartitionService,
    PartitionSettings,
)
from checks.unavailable import demanded_lack, lack_of
from cluster_model.broker import REGISTRATION_RETRY_US
from cluster_model.cluster import Cluster
from cluster_model.partition import Partition
from cluster_model.virtual_time import US_PER_MS

LOOK_US: Final = 250 * US_PER_MS
_ROUND_TRIPS: Final = 200
"""How many messages may follow one another until all is well, at the most: some twenty for each step."""


def sufficient_core(order: Sequence[int], wanted: Sequence[Collection[int]]) -> tuple[int, ...]:
    """Return the brokers of a minimal sufficient core, going by an order.

    Of each of the *wanted* sets of brokers the core has to have one. Brokers are taken until it has;
    then those are dropped again, first taken first, without whom it has too.
    """
    core: list[int] = []
    for broker in order:
        if _suffices(core, wanted):
            break
        core.append(broker)
    for broker in tuple(core):
        rest = [other for other in core if other != broker]
        if _suffices(rest, wanted):
            core = rest
    return tuple(core)


def _suffices(core: Sequence[int], wanted: Sequence[Collection[int]]) -> bool:
    return bool(core) and all(any(broker in core for broker in brokers) for brokers in wanted)


def _expiry_us(cluster: Cluster) -> int:
    """Return how long it takes at the most until a session has ended and the broker is registered anew."""
    session_us = max(cluster.broker_config(b).zookeeper_session_timeout_us for b in cluster.processes)
    return session_us + 2 * cluster.spec.zookeeper_tick_us + REGISTRATION_RETRY_US


def recovery_time_us(cluster: Cluster) -> int:
    """Return what a healed core may take, in microseconds: the sum of all that can follow one another.

    - ``zookeeper.session.timeout.ms``, to the next tick, twice: for a broker that is gone, or for the
      former session of one that is back, which is started anew until it can register; and for a
      session that a broker finds expired only when it is healed (`ZooKeeperClient`).
    - ``controller.socket.timeout.ms``: a LeaderAndIsr, or the answer to it, that a fault has swallowed
      (`ControllerChannelManager`, RequestSendThread).
    - ``replica.socket.timeout.ms``: a fetch of a follower, likewise (`ReplicaFetcherBlockingSend`).
    - ``replica.lag.time.max.ms`` and a half, twice: until a leader takes a follower out of the ISR, at
      its next look (`ReplicaManager.maybeShrinkIsr`); again where the controller has changed the ISR
      meanwhile, or the follower has come back and fallen behind once more.
    - ``request.timeout.ms`` of the consumer, twice: for metadata, for a fetch.
    - The network's latency, for some hundreds of messages.
    """
    configs = [cluster.broker_config(broker) for broker in cluster.processes]
    return (
        2 * _expiry_us(cluster)
        + max(config.controller_socket_timeout_us for config in configs)
        + max(config.replica_socket_timeout_us for config in configs)
        + 3 * max(config.replica_lag_time_max_us for config in configs)
        + 2 * READER_TIMEOUT_US
        + _ROUND_TRIPS * cluster.spec.network.latency_max_us
    )


class CoreRecovery:
    """Heals a core, waits until it serves or its time is over, and tells what was found."""

    def __init__(
        self, cluster: Cluster, clients: Clients, settings: Mapping[str, PartitionSettings], core: Core
    ) -> None:
        self._cluster = cluster
        self._clients = clients
        self._settings = settings
        self._order = (*core.order, *(b for b in cluster.processes if b not in core.order))
        self._within_us = recovery_time_us(cluster) if core.within_us is None else core.within_us
        self._patience_us = READER_TIMEOUT_US + _ROUND_TRIPS * cluster.spec.network.latency_max_us
        self._impaired: tuple[int, ...] = ()
        self._core: tuple[int, ...] = ()
        self._reader: ConsumerClient | None = None
        self._read_from: dict[str, tuple[int, int]] = {}
        self._read_since_us = 0
        # The LEO of each leader when it was first found leading in an epoch.
        self._ends: dict[tuple[str, int, int], int] = {}

    def run(self) -> HealedCore:
        """Go through the phase."""
        simulator = self._cluster.simulator
        healed_us = simulator.now_us
        impaired = [broker for broker in self._cluster.processes if self._is_impaired(broker)]
        self._core = sufficient_core(self._order, self._wanted(impaired))
        self._impaired = tuple(broker for broker in impaired if broker not in self._core)
        self._cluster.heal_core(self._core)
        deadline_us = healed_us + self._within_us
        found = self._look(healed_us)
        while not self._is_over(found) and simulator.now_us < deadline_us:
            simulator.run_until(min(simulator.now_us + LOOK_US, deadline_us))
            found = self._look(healed_us)
            self._read_on(found)
        if self._reader is not None:
            self._reader.stop()
        return found

    def _wanted(self, impaired: Sequence[int]) -> list[Collection[int]]:
        """Return of which brokers a core needs one each: who can lead a partition, who fills a place in vain.

        A leader or controller that keeps its session is left in its place, though some fault stands against it.
        """
        states = [self._cluster.partition_state(partition) for partition in self._settings]
        placed = {self._cluster.controller(), *(state.leader for state in states if state is not None)}
        return [
            *(self._able_to_lead(partition) for partition in self._settings),
            *((broker,) for broker in impaired if broker in placed),
        ]

    def _able_to_lead(self, partition: str) -> Collection[int]:
        """Return who can lead a partition: the ISR as ZooKeeper has it, or with unclean elections any replica."""
        settings = self._settings[partition]
        state = self._cluster.partition_state(partition)
        return settings.replicas if state is None or settings.unclean_leader_election else state.isr

    def _is_impaired(self, broker: int) -> bool:
        process, network = self._cluster.processes[broker], self._cluster.network
        return (
            process.running
            and not process.paused
            and network.disturbs(process.name)
            and not network.is_cut(process.name, "zookeeper")
        )

    # What is there now

    def _look(self, healed_us: int) -> HealedCore:
        return HealedCore(
            brokers=self._core,
            healed_us=healed_us,
            within_us=self._within_us,
            looked_us=self._cluster.simulator.now_us,
            impaired=self._impaired,
            controller=self._cluster.controller(),
            partitions={partition: self._service(partition) for partition in self._settings},
        )

    def _service(self, partition: str) -> PartitionService:
        state = self._cluster.partition_state(partition)
        if state is None:
            return PartitionService()
        replica = self._replica(partition, state.leader)
        leader_state = self._leader_state(state.leader, replica, state.leader_epoch)
        leads = replica is not None and leader_state == LEADS
        return PartitionService(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            leader_state=leader_state,
            high_watermark=replica.log.high_watermark if replica is not None else 0,
            unread=self._unread(partition, replica) if replica is not None and leads else (),
            isr_end=0 if replica is None else _isr_end(replica),
        )

    def _replica(self, partition: str, broker: int) -> Partition | None:
        life = self._cluster.brokers.get(broker)
        return None if life is None else life.replicas.partitions.get(partition)

    def _leader_state(self, leader: int, replica: Partition | None, leader_epoch: int) -> str:
        process = self._cluster.processes.get(leader)
        if leader == NOBODY or process is None or not process.running:
            return DOWN
        if process.paused:
            return PAUSED
        if replica is None or not replica.is_leader() or replica.leader_epoch != leader_epoch:
            return UNAWARE
        return LEADS

    def _unread(self, partition: str, leader: Partition) -> tuple[tuple[int, str], ...]:
        """Return the records that the reader has not got, of those that the leader had when first seen to lead."""
        log = leader.log
        end = self._ends.setdefault((partition, leader.broker, leader.leader_epoch), log.log_end_offset)
        consumer = None if self._reader is None else self._reader.consumer
        read = {} if consumer is None else consumer.consumed
        return tuple(
            (offset, value)
            for batch in log.batches
            for offset, value in enumerate(batch.values, batch.base_offset)
            if offset < end and value not in read
        )

    def _is_over(self, found: HealedCore) -> bool:
        """Return whether all is well, or as well as it will be once the sessions of the dead have ended."""
        if all(lack_of(service) is None for service in found.partitions.values()):
            return True
        return found.looked_us - found.healed_us >= _expiry_us(self._cluster) and all(
            demanded_lack(found, partition, settings) is None
            for partition, settings in self._settings.items()
        )

    # Reading

    def _read_on(self, found: HealedCore) -> None:
        """Have a consumer read from the beginning; a new one where leaders have changed, or this one takes too long.

        An unclean election may have put other records where the one before has read already. And one
        that was told of a former leader stays with it, if that is outside the core and was not told of its
        successor, until its metadata is old (``metadata.max.age.ms``).
        """
        leaders = {p: (service.leader, service.leader_epoch) for p, service in found.partitions.items()}
        waited_us = found.looked_us - self._read_since_us
        if self._reader is None or leaders != self._read_from or waited_us >= self._patience_us:
            if self._reader is not None:
                self._reader.stop()
            self._reader = self._clients.start_core_reader(self._core)
            self._read_from = leaders
            self._read_since_us = found.looked_us


def _isr_end(leader: Partition) -> int:
    """Return the smallest LEO in the ISR, as its leader knows it."""
    known = (leader.remote_replicas[b].log_end_offset for b in leader.isr if b != leader.broker)
    return min(known, default=leader.log.log_end_offset)
