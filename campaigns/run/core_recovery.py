"""Checks liveness: heals only some brokers, the core, and waits until they serve all clients.

A core suffices if its brokers can lead every partition without the others. Everything outside the
core stays as the faults left it, and the core has to make progress. TigerBeetle's simulator (VOPR)
does the same after its faults, with a random core.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import combinations
from operator import itemgetter
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

POLL_INTERVAL_US: Final = 250 * US_PER_MS
_ROUND_TRIPS: Final = 200
"""How many messages can follow one another before the core serves: about twenty for each delay that
`recovery_time_us` lists."""


def sufficient_core(order: Sequence[int], required: Sequence[Collection[int]]) -> tuple[int, ...]:
    """Return the brokers of a minimal core that has one broker of each of the *required* sets.

    Brokers are added in the given *order* until the core suffices. Then each broker that the core
    does not need is removed, beginning with the broker that was added first.
    """
    core: list[int] = []
    for broker in order:
        if _suffices(core, required):
            break
        core.append(broker)
    for broker in tuple(core):
        others = [other for other in core if other != broker]
        if _suffices(others, required):
            core = others
    return tuple(core)


def _suffices(core: Sequence[int], required: Sequence[Collection[int]]) -> bool:
    return bool(core) and all(any(broker in core for broker in brokers) for brokers in required)


def recovery_time_us(spec: ClusterSpec, configs: Sequence[BrokerConfig], registration_us: int) -> int:
    """Return the longest time that a healed core may need: the sum of all successive delays.

    - ``zookeeper.session.timeout.ms``, rounded up to a tick, twice. It passes until a dead broker's
      session expires, or until a restarted broker can register because its former session has
      ended. It passes again if a broker learns only after healing that its session expired
      (`ZooKeeperClient`). In KRaft the delay is ``broker.session.timeout.ms``, also twice, after
      the election of a controller.
    - ``controller.socket.timeout.ms``, in case a fault dropped a LeaderAndIsr request or its
      response (RequestSendThread in `ControllerChannelManager`).
    - ``request.timeout.ms`` of a broker, in case a fault dropped a follower's fetch
      (`ReplicaFetcher`).
    - 1.5 times ``replica.lag.time.max.ms``, twice: a leader removes a follower from the ISR at its
      next check (`ReplicaManager.maybeShrinkIsr`). It does so again if the controller changed the
      ISR meanwhile, or the follower caught up and fell behind a second time.
    - ``request.timeout.ms`` of the consumer, twice: for metadata and for a fetch.
    - The latency of the network, `_ROUND_TRIPS` times.
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
    """Return the longest time from now until a broker that is stopping is started again.

    With ZooKeeper this covers all attempts of a controlled shutdown. In KRaft a broker gives up
    after five minutes, and a controller in the same process also waits until another takes over.
    """
    if metadata == KRAFT:
        return CONTROLLED_SHUTDOWN_MAX_US + SHUTDOWN_MAX_US
    attempt_us = config.controller_socket_timeout_us + config.controlled_shutdown_retry_backoff_us
    return config.controlled_shutdown_max_retries * attempt_us + config.zookeeper_session_timeout_us


class CoreRecovery:
    """Heals a core, waits until it serves or its time is over, and reports its last state."""

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
        # The LEO of each leader when it was first observed to lead in an epoch.
        self._first_leo: dict[tuple[str, int, int], int] = {}

    def run(self) -> evidence.HealedCore:
        target = self._target
        healed_us = target.now_us
        impaired = [b for b in target.environment.broker_ids() if self._observer.is_impaired(b)]
        self._core = sufficient_core(self._order, self._required_sets(impaired))
        self._impaired = tuple(broker for broker in impaired if broker not in self._core)
        self._within_us += max(map(self._stopping_time_us, self._core), default=0)
        target.heal_core(self._core)
        deadline_us = healed_us + self._within_us
        state = self._observe(healed_us)
        while not self._is_over(state) and target.now_us < deadline_us:
            target.advance(min(target.now_us + POLL_INTERVAL_US, deadline_us))
            state = self._observe(healed_us)
            self._ensure_reader(state)
        if self._reader is not None:
            self._reader.stop()
        return state

    def _stopping_time_us(self, broker: int) -> int:
        """Return how much longer a broker of the core may take to stop and start again."""
        is_stopping = self._target.environment.is_stopping(broker)
        if not is_stopping or not self._is_derived:
            return 0
        return stopping_time_us(self._target.broker_config(broker), self._metadata)

    def _required_sets(self, impaired: Sequence[int]) -> list[Collection[int]]:
        """Return sets of brokers; a core needs one broker of each set.

        For each partition there are the sets without which it gets no leader. Each impaired broker
        that is still leader or controller is a set of its own: it keeps its session, so no other
        broker takes over. In combined mode there are sets that ensure a majority of the quorum.
        """
        # A core has a majority of the voters if it has one voter of each of these combinations.
        majorities = combinations(self._voters, (len(self._voters) + 1) // 2)
        states = [self._observer.partition_state(partition) for partition in self._settings]
        in_office = {self._observer.controller(), *(state[0] for state in states if state is not None)}
        return [
            *(needed for partition in self._settings for needed in self._needed_to_lead(partition)),
            *((broker,) for broker in impaired if broker in in_office),
            *(majorities if self._voters else ()),
        ]

    def _needed_to_lead(self, partition: str) -> tuple[tuple[int, ...], ...]:
        """Return sets of brokers; with one broker of each set, a core can lead the partition.

        If unclean elections are allowed, any replica can lead it.
        """
        settings = self._settings[partition]
        state = self._observer.partition_state(partition)
        if state is None or settings.allows_unclean_election(None):
            return (settings.replicas,)
        return self._observer.recovery_sets(partition)

    # The state of the core

    def _observe(self, healed_us: int) -> evidence.HealedCore:
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
        """Return the unread records, up to the LEO of the leader when it was first observed."""
        end = self._first_leo.setdefault((partition, leader, replica.leader_epoch), replica.leo)
        consumed = () if self._reader is None else self._reader.consumed()
        records = [*replica.records]
        del records[bisect_left(records, end, key=itemgetter(0)) :]
        # Not to filter while nothing is consumed saves a hundredth of a run of `swarm`.
        return tuple([record for record in records if record[1] not in consumed] if consumed else records)

    def _is_over(self, state: evidence.HealedCore) -> bool:
        """Return whether every partition is served, or as well as the rules demand.

        What the rules demand is enough only after the sessions of dead brokers could expire.
        """
        if all(lack_of(service) is None for service in state.partitions.values()):
            return True
        return state.looked_us - state.healed_us >= self._expiry_us and all(
            demanded_lack(state, partition, settings) is None
            for partition, settings in self._settings.items()
        )

    # Reading

    def _ensure_reader(self, state: evidence.HealedCore) -> None:
        """Let a consumer read from the beginning; replace it when leaders change or it is slow.

        After an unclean election, other records may be at offsets that the consumer has already
        read. Also, a former leader outside the core may not know that it has a successor. Then a
        consumer reads from it until the consumer's metadata expires (``metadata.max.age.ms``).
        """
        leaders = {p: (service.leader, service.leader_epoch) for p, service in state.partitions.items()}
        waited_us = state.looked_us - self._read_since_us
        if self._reader is None or leaders != self._read_from or waited_us >= self._patience_us:
            if self._reader is not None:
                self._reader.stop()
            self._reader = self._target.clients.start_core_reader(self._core)
            self._read_from = leaders
            self._read_since_us = state.looked_us


def _isr_end(leader: int, replica: ReplicaView) -> int:
    """Return the smallest log end offset (LEO) in the ISR, as far as the leader knows."""
    log_ends = (replica.remote[broker] for broker in replica.isr if broker != leader)
    return min(log_ends, default=replica.leo)
