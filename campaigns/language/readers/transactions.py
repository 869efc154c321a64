"""Whether transactions fit together: with the cluster that keeps their state, and in the order in which a script makes them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from harrow.campaigns.language.part import Part
from harrow.campaigns.language.plan import Plan, Step
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.spelling import quoted
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

_FACTORS: Final[Mapping[str, Setting]] = {
    TRANSACTION_STATE: SETTINGS[BROKER, "transaction.state.log.replication.factor"],
    CONSUMER_OFFSETS: SETTINGS[BROKER, "offsets.topic.replication.factor"],
}


def check_internal_topics(draft: Draft, plan: Plan) -> None:
    """Report a coordinator's topic that has more replicas than there are brokers: it would never be created."""
    if not draft.body.knows("cluster") or not draft.body.knows("settings"):
        return
    drawn = None if plan.swarm is None else plan.swarm.brokers
    brokers = len(plan.cluster.brokers) if drawn is None else drawn[0]
    topics = {topic.name for topic in plan.cluster.topics}
    for client, part in _coordinated(draft.body / "workload", plan):
        for topic in client.internal_topics():
            setting = _FACTORS[topic]
            factor = plan.cluster.settings.get(setting.name, setting.default(plan.kafka))
            if topic not in topics and int(factor) > brokers:
                draft.problem(
                    part,
                    f"the brokers cannot create {topic} with {factor} replicas, there are {brokers} of them: set "
                    f"{setting.name} to at most {brokers}",
                )
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
    """Report transactions of a producer that has none."""
    if "transaction" in section and not spec.transactional_id and not section.lost:
        message = f"a producer without a {TRANSACTIONAL_ID} has no transactions"
        draft.problem(section / "transaction", message, at_key=True)


class ScriptedTransactions:
    """Follows the transactions of a script, as far as they can be known.

    What a fault does to a producer, or a restart, may come in the middle of one: of that producer nothing is known from then on.
    """

    def __init__(self, draft: Draft, producers: Iterable[ProducerSpec]) -> None:
        self._draft = draft
        self._specs = {producer.name: producer for producer in producers}
        # Of those that are followed: whether a transaction is open.
        self._open = {
            name: False
            for name, spec in self._specs.items()
            if spec.transactional_id and spec.interval_us is None
        }

    def check(self, steps: Iterable[tuple[Step, Part]]) -> None:
        """Check steps in the order in which they run. Each comes with the part of the file that has its action."""
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
            message = (
                f"{action.producer} has a {TRANSACTIONAL_ID} and sends {quoted(action.value)} outside of a transaction, which "
                f"Kafka refuses: {BeginTransaction.name} comes first"
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
            what = "is in a transaction already" if begins else "is in no transaction"
            self._draft.problem(part, f"{action.name}: {action.producer} {what}")
        elif is_open is not None:
            assert isinstance(action, (BeginTransaction, CommitTransaction, AbortTransaction))
            self._open[action.producer] = begins
