"""Checks that the cluster can store transactions, and that scripts use them in the right order."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from harrow.campaigns.language.part import Part
from harrow.campaigns.language.plan import Plan, Step
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.spelling import counted, quoted
from harrow.cluster_model.settings import BROKER, SETTINGS, TRANSACTIONAL_ID, Setting
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE, Coordinated, ProducerSpec
from harrow.faults.action import Action
from harrow.faults.actions import (
    AbortTransaction,
    BeginTransaction,
    CommitTransaction,
    RestartProducer,
    Send,
    TransactionAction,
)
from harrow.faults.clients import ClientCrash, ClientPause, ClientZombie

_REPLICATION_FACTOR_SETTINGS: Final[Mapping[str, Setting]] = {
    TRANSACTION_STATE: SETTINGS[BROKER, "transaction.state.log.replication.factor"],
    CONSUMER_OFFSETS: SETTINGS[BROKER, "offsets.topic.replication.factor"],
}


def check_internal_topics(draft: Draft, plan: Plan) -> None:
    """Report an internal topic that has more replicas than brokers, so it can never be created."""
    if not draft.body.is_sound("cluster") or not draft.body.is_sound("settings"):
        return
    drawn = None if plan.swarm is None else plan.swarm.brokers
    brokers = len(plan.cluster.brokers) if drawn is None else drawn[0]
    topics = {topic.name for topic in plan.cluster.topics}
    for client, part in _coordinated(draft.body / "workload", plan):
        for topic in client.internal_topics():
            setting = _REPLICATION_FACTOR_SETTINGS[topic]
            factor = plan.cluster.settings.get(setting.name, setting.default(plan.kafka))
            if topic not in topics and int(factor) > brokers:
                problem = f"{counted(brokers, 'broker')} cannot create {topic} with {factor} replicas"
                draft.problem(part, f"{problem}: set {setting.name} to at most {brokers}")
                return


def _coordinated(workload: Part, plan: Plan) -> Iterator[tuple[Coordinated, Part]]:
    for key, clients in (("producers", plan.producers), ("consumers", plan.consumers)):
        for index, client in enumerate(clients):
            if isinstance(client, Coordinated):
                yield client, workload.at(key, index)
    for client in plan.applications:
        if isinstance(client, Coordinated):
            yield client, workload


def check_producer(draft: Draft, spec: ProducerSpec, section: Part) -> None:
    """Report the key `transaction` of a producer without transactions."""
    if "transaction" in section and not spec.transactional_id and not section.rejected:
        message = f"a producer without a {TRANSACTIONAL_ID} has no transactions"
        draft.problem(section / "transaction", message, at_key=True)


class ScriptedTransactions:
    """Checks that a script begins and ends transactions in the right order.

    A fault or a restart may hit a producer in the middle of a transaction, so after that the
    producer is no longer checked.
    """

    def __init__(self, draft: Draft, producers: Iterable[ProducerSpec]) -> None:
        self._draft = draft
        self._specs = {producer.name: producer for producer in producers}
        # Whether a transaction is open, for each producer that is checked.
        self._open = {
            name: False
            for name, spec in self._specs.items()
            if spec.transactional_id and spec.interval_us is None
        }

    def check(self, steps: Iterable[tuple[Step, Part]]) -> None:
        """Check steps in the order in which they run, each with its part of the file."""
        for step, part in steps:
            for action in step.actions:
                self._check(action, part)

    def _check(self, action: Action, part: Part) -> None:
        if isinstance(action, (ClientCrash, ClientPause, ClientZombie)):
            self._open.clear()
        elif isinstance(action, RestartProducer):
            self._open.pop(action.producer, None)
        elif isinstance(action, TransactionAction):
            self._check_call(action, part)
        elif isinstance(action, Send) and self._open.get(action.producer) is False:
            send = f"{action.producer} has a {TRANSACTIONAL_ID} and sends {quoted(action.value)}"
            message = (
                f"{send} outside a transaction, which Kafka refuses: {BeginTransaction.name} comes first"
            )
            self._draft.problem(part, message)

    def _check_call(self, action: TransactionAction, part: Part) -> None:
        spec = self._specs.get(action.producer)
        if spec is not None and not spec.transactional_id:
            message = f"{action.producer} has no {TRANSACTIONAL_ID}, and so no transactions"
            self._draft.problem(part, message)
            return
        is_open = self._open.get(action.producer)
        begins = isinstance(action, BeginTransaction)
        if is_open is begins:
            state = "is in a transaction already" if begins else "is not in a transaction"
            self._draft.problem(part, f"{action.name}: {action.producer} {state}")
        elif is_open is not None:
            assert isinstance(action, (BeginTransaction, CommitTransaction, AbortTransaction))
            self._open[action.producer] = begins
