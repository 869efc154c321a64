"""Runs a plan on the model of a cluster while real clients use it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from harrow.campaigns.clients.client_promises import producer_promises
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.checks.evidence import Evidence, ProducerSettings
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.history import Operation
from harrow.cluster_model.settings import broker_config, producer_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import INTERNAL_TOPICS
from harrow.live_cluster.serve.plain_login import Users
from harrow.live_cluster.serve.record_identity import Identity
from harrow.live_cluster.serve.served_brokers import CONNECTIONS_MAX, ServedBrokers
from harrow.live_cluster.serve.served_environment import ServedEnvironment, StruckProgram
from harrow.live_cluster.serve.wire_history import without_partitions

_LONGEST_WAIT_US: Final = US_PER_SECOND // 10
"""How long the target waits for clients before it lets the run check whether it should end."""


def served_plan(plan: Plan) -> Plan:
    """Return the plan without its own clients, and with the internal topics that real ones need.

    A cluster with few brokers has fewer copies of internal topics, as such clusters are configured:
    brokers with the defaults would create none.
    """
    cluster = plan.cluster
    defined = {topic.name for topic in cluster.topics}
    config = broker_config(plan.kafka, cluster.settings)
    brokers = sum(broker.joins_us == 0 for broker in cluster.brokers)
    config = replace(
        config,
        offsets_topic_replication_factor=min(config.offsets_topic_replication_factor, brokers),
        transaction_topic_replication_factor=min(config.transaction_topic_replication_factor, brokers),
        transaction_topic_min_isr=min(config.transaction_topic_min_isr, brokers),
    )
    created = (internal_topic(name, config) for name in INTERNAL_TOPICS if name not in defined)
    cluster = replace(cluster, topics=(*cluster.topics, *created))
    return replace(
        plan,
        cluster=cluster,
        producers=(),
        consumers=(),
        applications=(),
    )


def configured_producers(plan: Plan) -> dict[str, ProducerSettings]:
    """Return the settings that a plan states for producers, by the names of the clients."""
    return {
        spec.name: producer_promises(spec.name, producer_config(plan.kafka, spec.settings))
        for spec in plan.producers
    }


class ServedTarget(ModelTarget):
    """The model of a cluster, whose time passes with the clock of this machine.

    *time_scale* says how many seconds pass in the model while one passes here. Until `heal`, the
    brokers listen on *host*, each on one of the *ports*. Afterwards no client can connect, and the
    model runs as fast as it can. Faults of clients strike *program*, if harrow has started one.
    *identity* returns what identifies a record to its application.
    """

    def __init__(
        self,
        plan: Plan,
        choices: Choices,
        invariants: Collection[str],
        *,
        program: StruckProgram | None = None,
        host: str,
        ports: Iterable[int],
        time_scale: float = 1.0,
        identity: Identity | None = None,
        connections_max: int = CONNECTIONS_MAX,
        users: Users | None = None,
    ) -> None:
        super().__init__(served_plan(plan), choices, invariants)
        environment = ServedEnvironment(plan, self.cluster, self.clients, self.observer, program)
        self.environment, self.committed_copies = environment, environment.committed_copies
        self._brokers: ServedBrokers | None = ServedBrokers(
            *(self.cluster, environment, host, ports, time_scale, configured_producers(plan), identity),
            connections_max=connections_max,
            users=users,
        )
        self.addresses = self._brokers.addresses
        self.selector = self._brokers.selector
        self.connected_clients = self._brokers.client_names
        self._history = self._brokers.history
        self.start = self._start
        self.advance = self._advance
        self.step = self._step

    def close(self) -> None:
        """End the connections of clients, and refuse new ones."""
        if self._brokers is not None:
            self._brokers.close()
            self._brokers = None

    def heal(self) -> None:
        self.close()
        self.clients.real_transactions_us = self._history.transactions_us
        super().heal()

    def evidence(self) -> Evidence:
        evidence = super().evidence()
        return replace(
            evidence,
            operations=self._judged(evidence.operations),
            producers={**evidence.producers, **self._history.producers},
            consumers={**evidence.consumers, **self._history.consumers()},
        )

    def _judged(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """Return the operations on partitions that still exist."""
        if not self.cluster.has_deleted:
            return operations
        return tuple(without_partitions(operations, self.cluster.is_deleted))

    def _start(self) -> None:
        self.cluster.start()
        if self._brokers is not None:
            self._brokers.begin()

    def _advance(self, end_us: int) -> None:
        while self._step(end_us):
            pass
        self.cluster.simulator.run_until(end_us)

    def _step(self, end_us: int) -> bool:
        """Handle one event when it is due. Return False if none was due by *end_us*."""
        simulator = self.cluster.simulator
        while self._brokers is not None:
            now_us = min(self._brokers.wall_us, end_us)
            if simulator.step(now_us):
                return True
            if now_us == end_us:
                return False
            self._serve(end_us)
        return simulator.step(end_us)

    def _serve(self, end_us: int) -> None:
        """Serve clients until the next event of the model is due, or *end_us*."""
        assert self._brokers is not None
        due_us = self.cluster.simulator.next_us
        wait_us = self._brokers.wall_us + _LONGEST_WAIT_US
        self._brokers.serve(min(end_us, wait_us, end_us if due_us is None else due_us))
