"""The liveness of a core: a sufficient part of the brokers is healed, and has to serve.

What TigerBeetle's simulator (VOPR) does after its faults: a random core that suffices is healed,
everything outside it stays as the faults left it, for good, and the core has to make progress.
"""

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Final

from harrow.campaigns.clients.client import Reader
from harrow.campaigns.clients.clients import READER_TIMEOUT_US
from harrow.campaigns.language.plan import Core, Plan
from harrow.campaigns.run.targets.target import Target
from harrow.checks import evidence
from harrow.checks.rules.unavailable import demanded_lack, lack_of
from harrow.cluster_model.kraft.protocol import CONTROLLED_SHUTDOWN_MAX_US
from harrow.cluster_model.kraft.raft import SHUTDOWN_MAX_US
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import KRAFT, ClusterSpec
from harrow.faults.observer import ReplicaView

LOOK_US: Final = 250 * US_PER_MS
_ROUND_TRIPS: Final = 200
"""How many messages may follow one another until all is well, at the most: some twenty for each step."""


def sufficient_core(order: Sequence[int], wanted: Sequence[Collection[int]]) -> tuple[int, ...]:
    """Return the brokers of a minimal sufficient core, going by an order.

    Of each of the *wanted* sets of brokers the core has to have one. Brokers are taken until it has;
    then each that it can do without is dropped again, first taken first.
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


def recovery_time_us(spec: ClusterSpec, configs: Sequence[BrokerConfig], registration_us: int) -> int:
    """Return what a healed core may take, in microseconds: the sum of all that can follow one another.

    - ``zookeeper.session.timeout.ms``, to the next tick, twice: for a broker that is gone, or for the
      former session of one that is back, which is started anew until it can register; and for a
      session that a broker finds expired only when it is healed (`ZooKeeperClient`). In KRaft the same of
      ``broker.session.timeout.ms``, and before it the election of a controller.
    - ``controller.socket.timeout.ms``: a LeaderAndIsr, or the answer to it, that a fault has swallowed
      (`ControllerChannelManager`, RequestSendThread).
    - ``request.timeout.ms`` of a broker: a fetch of a follower, likewise (`ReplicaFetcher`).
    - ``replica.lag.time.max.ms`` and a half, twice: until a leader takes a follower out of the ISR, at
      its next look (`ReplicaManager.maybeShrinkIsr`); again where the controller has changed the ISR
      meanwhile, or the follower has come back and fallen behind once more.
    - ``request.timeout.ms`` of the consumer, twice: for metadata, for a fetch.
    - The network's latency, for some hundreds of messages.
    """
    return (
        2 * registration_us
        + max(config.controller_socket_timeout_us for config in configs)
        + max(config.request_timeout_us for config in configs)
        + 3 * max(config.replica_lag_time_max_us for config in configs)
        + 2 * READER_TIMEOUT_US
        + _ROUND_TRIPS * spec.network.latency_max_us
    )


def stopping_time_us(config: BrokerConfig, metadata: str) -> int:
    """Return how long a broker that has been told to stop may take until it is started again.

    With ZooKeeper that is all its attempts, in KRaft five minutes at the most; a controller in its process waits for another one.
    """
    if metadata == KRAFT:
        return CONTROLLED_SHUTDOWN_MAX_US + SHUTDOWN_MAX_US
    attempt_us = config.controller_socket_timeout_us + config.controlled_shutdown_retry_backoff_us
    return config.controlled_shutdown_max_retries * attempt_us + config.zookeeper_session_timeout_us


class CoreRecovery:
    """Heals a core, waits until it serves or its time is over, and tells what was found."""

    def __init__(self, target: Target, plan: Plan, core: Core) -> None:
        spec = plan.cluster
        self._voters = spec.controller_ids() if spec.combined and plan.metadata == KRAFT else ()
        self._metadata = plan.metadata
        self._target = target
        self._observer = target.observer
        self._settings = target.partition_settings()
        brokers = target.environment.broker_ids()
        configs = [target.broker_config(broker) for broker in brokers]
        self._order = (*core.order, *(broker for broker in brokers if broker not in core.order))
        self._within_us = (
            recovery_time_us(spec, configs, target.registration_time_max_us)
            if core.within_us is None
            else core.within_us
        )
        self._is_derived = core.within_us is None
        self._expiry_us = target.registration_time_max_us
        self._patience_us = READER_TIMEOUT_US + _ROUND_TRIPS * spec.network.latency_max_us
        self._impaired: tuple[int, ...] = ()
        self._core: tuple[int, ...] = ()
        self._reader: Reader | None = None
        self._read_from: dict[str, tuple[int, int]] = {}
        self._read_since_us = 0
        # The LEO of each leader when it was first found leading in an epoch.
        self._ends: dict[tuple[str, int, int], int] = {}

    def run(self) -> evidence.HealedCore:
        target = self._target
        healed_us = target.now_us
        impaired = [b for b in target.environment.broker_ids() if self._observer.is_impaired(b)]
        self._core = sufficient_core(self._order, self._wanted(impaired))
        self._impaired = tuple(broker for broker in impaired if broker not in self._core)
        self._within_us += max(map(self._stopping_time_us, self._core), default=0)
        target.heal_core(self._core)
        deadline_us = healed_us + self._within_us
        found = self._look(healed_us)
        while not self._is_over(found) and target.now_us < deadline_us:
            target.advance(min(target.now_us + LOOK_US, deadline_us))
            found = self._look(healed_us)
            self._read_on(found)
        if self._reader is not None:
            self._reader.stop()
        return found

    def _stopping_time_us(self, broker: int) -> int:
        """Return how long a broker of the core may yet take to stop, before it is started again."""
        is_stopping = self._target.environment.is_stopping(broker)
        if not is_stopping or not self._is_derived:
            return 0
        return stopping_time_us(self._target.broker_config(broker), self._metadata)

    def _wanted(self, impaired: Sequence[int]) -> list[Collection[int]]:
        """Return of which brokers a core needs one each: who can lead a partition, who fills a place in vain.

        Where brokers are the quorum of controllers, a majority of them has to be there. A leader or controller that keeps its session is left in its place, though some fault stands against it.
        """
        # Of every so many voters one at least, which makes a majority of them.
        majorities = combinations(self._voters, (len(self._voters) + 1) // 2)
        states = [self._observer.partition_state(partition) for partition in self._settings]
        placed = {self._observer.controller(), *(state[0] for state in states if state is not None)}
        return [
            *(needed for partition in self._settings for needed in self._needed_to_lead(partition)),
            *((broker,) for broker in impaired if broker in placed),
            *(majorities if self._voters else ()),
        ]

    def _needed_to_lead(self, partition: str) -> tuple[tuple[int, ...], ...]:
        """Return of which brokers a partition needs one each to have a leader; with unclean elections any replica leads."""
        settings = self._settings[partition]
        state = self._observer.partition_state(partition)
        if state is None or settings.elects_uncleanly(None):
            return (settings.replicas,)
        return self._observer.recovery_sets(partition)

    # What is there now

    def _look(self, healed_us: int) -> evidence.HealedCore:
        return evidence.HealedCore(
            brokers=self._core,
            healed_us=healed_us,
            within_us=self._within_us,
            looked_us=self._target.now_us,
            impaired=self._impaired,
            controller=self._observer.controller(),
            partitions={partition: self._service(partition) for partition in self._settings},
        )

    def _service(self, partition: str) -> evidence.PartitionService:
        state = self._observer.partition_state(partition)
        if state is None:
            return evidence.PartitionService()
        leader, leader_epoch, isr = state
        replica = self._observer.replica(partition, leader)
        leader_state = self._leader_state(leader, replica, leader_epoch)
        leading = replica if leader_state == evidence.LEADS else None
        return evidence.PartitionService(
            leader=leader,
            leader_epoch=leader_epoch,
            isr=isr,
            recovery_sets=self._observer.recovery_sets(partition),
            leader_state=leader_state,
            high_watermark=0 if replica is None else replica.hw,
            unread=() if leading is None else self._unread(partition, leader, leading),
            isr_end=0 if leading is None else _isr_end(leader, leading),
        )

    def _leader_state(self, leader: int, replica: ReplicaView | None, leader_epoch: int) -> str:
        if leader == evidence.NO_BROKER or self._observer.broker_state(leader) == "down":
            return evidence.DOWN
        if self._observer.broker_state(leader) == "paused":
            return evidence.PAUSED
        if replica is None or replica.role != "leader" or replica.leader_epoch != leader_epoch:
            return evidence.UNAWARE
        return evidence.LEADS

    def _unread(self, partition: str, leader: int, replica: ReplicaView) -> tuple[tuple[int, str], ...]:
        """Return the records that the reader has not got, of those that the leader had when first seen to lead."""
        end = self._ends.setdefault((partition, leader, replica.leader_epoch), replica.leo)
        reader = self._reader
        return tuple(
            (offset, value)
            for offset, value in replica.records
            if offset < end and (reader is None or not reader.has_consumed(value))
        )

    def _is_over(self, found: evidence.HealedCore) -> bool:
        """Return whether all is well, or as well as it will be once the sessions of the dead have ended."""
        if all(lack_of(service) is None for service in found.partitions.values()):
            return True
        return found.looked_us - found.healed_us >= self._expiry_us and all(
            demanded_lack(found, partition, settings) is None
            for partition, settings in self._settings.items()
        )

    # Reading

    def _read_on(self, found: evidence.HealedCore) -> None:
        """Have a consumer read from the beginning; a new one where leaders have changed, or this one takes too long.

        An unclean election may have put other records where the last one has read already. And a consumer
        stays with a former leader outside the core that has not heard of its successor, until its metadata
        is old (``metadata.max.age.ms``).
        """
        leaders = {p: (service.leader, service.leader_epoch) for p, service in found.partitions.items()}
        waited_us = found.looked_us - self._read_since_us
        if self._reader is None or leaders != self._read_from or waited_us >= self._patience_us:
            if self._reader is not None:
                self._reader.stop()
            self._reader = self._target.clients.start_core_reader(self._core)
            self._read_from = leaders
            self._read_since_us = found.looked_us


def _isr_end(leader: int, replica: ReplicaView) -> int:
    """Return the smallest LEO in the ISR, as its leader knows it."""
    known = (replica.remote[broker] for broker in replica.isr if broker != leader)
    return min(known, default=replica.leo)
