"""Runs a plan on the model of a cluster while real clients use it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from harrow.campaigns.clients.client_promises import producer_promises
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.checks.evidence import Evidence, ProducerSettings
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.history import Operation
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import broker_config, producer_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import INTERNAL_TOPICS
from harrow.live_cluster.serve.answers.plain_login import Users
from harrow.live_cluster.serve.contents.record_identity import Identity
from harrow.live_cluster.serve.history.wire_history import without_partitions
from harrow.live_cluster.serve.recording.recorder import Recorder
from harrow.live_cluster.serve.served_clients import ServedClients
from harrow.live_cluster.serve.served_environment import RunProgram, ServedEnvironment
from harrow.live_cluster.wire.codec import Address


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


class ClientInputs(Protocol):
    """Where the inputs of clients come from: sockets, or a recording."""

    @property
    def addresses(self) -> Mapping[int, Address]:
        """The addresses of all brokers."""

    def attach(self, clients: ServedClients) -> None:
        """Say which clients get the inputs."""

    def begin(self) -> None:
        """Let time pass, and clients connect."""

    def horizon_us(self) -> int:
        """Return until when the model may run before it must take inputs."""

    def is_due(self, at_us: int) -> bool:
        """Return whether inputs take effect at the horizon, and that is *at_us*."""

    def take(self) -> None:
        """Let the inputs that are due happen to the model."""

    def wait(self, until_us: int) -> None:
        """Wait for inputs until *until_us*, which is later than the model's time."""

    def close(self) -> None:
        """End the connections of clients, and refuse new ones."""


class ServedTarget(ModelTarget):
    """The model of a cluster, whose time passes with that of its inputs.

    Until `heal`, *inputs* bring what clients do, and *recorder* gets it with the responses.
    Afterwards no client can connect, and the model runs as fast as it can. Faults of clients strike
    *program*, if harrow has started one. *identity* returns what identifies a record to its
    application.
    """

    def __init__(
        self,
        plan: Plan,
        choices: Choices,
        invariants: Collection[str],
        inputs: ClientInputs,
        *,
        program: RunProgram | None = None,
        identity: Identity | None = None,
        users: Users | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(served_plan(plan), choices, invariants)
        environment = ServedEnvironment(plan, self.cluster, self.clients, self.observer, program)
        self.environment, self.committed_copies = environment, environment.committed_copies
        self.addresses = inputs.addresses
        self.real_clients = ServedClients(
            self.cluster,
            environment,
            inputs.addresses,
            configured_producers=configured_producers(plan),
            identity=identity,
            demanded=plan.demand,
            users=users,
            recorder=recorder,
        )
        inputs.attach(self.real_clients)
        self._inputs: ClientInputs | None = inputs
        self._history = self.real_clients.history
        self.start = self._start
        self.advance = self._advance
        self.step = self._step

    def close(self) -> None:
        """End the connections of clients, and refuse new ones."""
        if self._inputs is not None:
            self._inputs.close()
            self._inputs = None

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
        if self._inputs is not None:
            self._inputs.begin()

    def _advance(self, end_us: int) -> None:
        while self._step(end_us):
            pass
        self.cluster.simulator.run_until(end_us)

    def _step(self, end_us: int) -> bool:
        """Handle an event, or inputs, when they are due. Return False if none were due by *end_us*.

        What the run looks at between two steps must not depend on when the machine took them. So a
        step takes one event or the inputs of one moment, and both in an order that their times in
        the model decide: inputs come after all events of their moment.
        """
        simulator = self.cluster.simulator
        while self._inputs is not None:
            self.real_clients.send_blocked()
            horizon_us = min(self._inputs.horizon_us(), end_us)
            if simulator.step(horizon_us):
                return True
            if self._inputs.is_due(horizon_us):
                simulator.run_until(horizon_us)
                self._inputs.take()
                return True
            if horizon_us == end_us:
                return False
            due_us = simulator.next_us
            self._inputs.wait(end_us if due_us is None else min(end_us, due_us))
        return simulator.step(end_us)
