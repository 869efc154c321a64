"""A broker of the model as coordinator, with its control plane and nothing else."""

from collections.abc import Collection
from typing import Any, Final

from harrow.cluster_model import protocol
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.coordinators.coordinator_log import records_of
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import Value, broker_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    ZOOKEEPER,
    BrokerSpec,
    ClusterSpec,
    NetworkSpec,
    TopicSpec,
)
from harrow.live_cluster.requests.answers import Answer, ReceivedAnswers, plain_answer, plain_batch
from harrow.live_cluster.requests.brokers.broker_driver import BROKER, PARTITIONS, TOPIC, partition_name
from harrow.live_cluster.requests.coordinators.driver import (
    Answers,
    CoordinatorRequest,
    TransactionStates,
)

_SETTLED_US: Final = 100 * US_PER_MS
"""Longer than all effects of a request, markers included: no effect waits for a timer."""
_LISTENER: Final = "client"
_NOT_COMPARED: Final = -1


class ModelCoordinator:
    """A `CoordinatorDriver` for a broker of the model with the given behaviours."""

    sequence = 0

    def __init__(self, release: str, behaviours: Behaviours, settings: dict[str, Value]) -> None:
        config = broker_config(release, settings)
        spec = ClusterSpec(
            brokers=(BrokerSpec(id=BROKER),),
            topics=(
                TopicSpec(name=TOPIC, assignment=((BROKER,),) * len(PARTITIONS)),
                *(internal_topic(name, config) for name in (CONSUMER_OFFSETS, TRANSACTION_STATE)),
            ),
            network=NetworkSpec(latency_min_us=US_PER_MS, latency_max_us=US_PER_MS),
            metadata=ZOOKEEPER,
            settings=settings,
        )
        self.knows_instances = behaviours.groups.static_membership
        """Whether there are static members (KIP-345)."""
        self.knows_stable_offsets = behaviours.groups.stable_offset_fetch
        """Whether OffsetFetch can wait for transactions, which commit as members (KIP-447)."""
        self.knows_next_epoch = behaviours.clients.producer_bumps_epoch
        """Whether producers ask for their next epoch (KIP-360)."""
        self.knows_verification = behaviours.transactions.transaction_verification
        """Whether leaders verify that a transaction has their partition (KIP-890)."""
        self.uses_transactions_v2 = behaviours.transactions.transactions_v2
        """Whether producers use transactions v2 (KIP-890)."""
        self.has_specific_commit_errors = behaviours.groups.specific_transactional_commit_errors
        """Whether a transactional commit is refused like a plain one (KIP-1319)."""
        self._cluster = Cluster(spec, release, behaviours, Choices.from_seed(0), invariants=())
        self._cluster.start()
        self._host = self._cluster.host(Process("driver"))
        self._answers = ReceivedAnswers()

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        """Send a request over a new connection, and advance the time past all of its effects."""
        connection = self._host.connect(f"broker-{BROKER}", _LISTENER, self._answers)
        self._host.send_request(connection, number, request)
        self._cluster.simulator.run_until(self._cluster.simulator.now_us + _SETTLED_US)
        replies = self._answers.received
        answers = {reply.correlation_id: plain_client_answer(reply.body, request) for reply in replies}
        replies.clear()
        return answers

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        return self.ask(number, request, None)[number]

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        states: TransactionStates = {}
        for batch in self._log(f"{TRANSACTION_STATE}-0").batches:
            for record in records_of(batch):
                value = record.value
                states[record.key] = (
                    ["Dead"]
                    if value is None
                    else [value["state"], value["producer_id"], value["producer_epoch"]]
                )
        return states

    def log(self, number: int) -> UnifiedLog:
        return self._log(partition_name(number))

    def _log(self, partition: str) -> UnifiedLog:
        log = self._cluster.log(BROKER, partition)
        assert log is not None, "the broker has all partitions"
        return log


def plain_client_answer(answer: Any, request: CoordinatorRequest) -> Answer:
    """Return a response to a client as plain data; of a fetch, what matters for transactions."""
    if not isinstance(answer, protocol.FetchResponse):
        return plain_answer(answer)
    assert isinstance(request, protocol.FetchRequest)
    # Without read_committed, the last stable offset is missing or means nothing to the client.
    is_committed = bool(request.isolation_level)
    return {
        "error": answer.error,
        "fetched": {
            name: {
                "error": fetched.error,
                "hw": fetched.hw,
                "lso": fetched.last_stable_offset if is_committed else _NOT_COMPARED,
                "batches": [_plain_batch(batch) for batch in fetched.batches],
                "aborted": list(map(list, fetched.aborted)),
            }
            for name, fetched in sorted(answer.partitions.items())
        },
    }


def _plain_batch(batch: RecordBatch) -> list[Any]:
    *producer, values = plain_batch(batch)
    return [*producer, batch.is_transactional, batch.control_type, values]
