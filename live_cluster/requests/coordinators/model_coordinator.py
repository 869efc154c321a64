"""A broker of the model as coordinator, alone with its control plane."""

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
from harrow.live_cluster.requests.answers import Answer, ReceivedAnswers, described, described_batch
from harrow.live_cluster.requests.brokers.broker_driver import BROKER, PARTITIONS, TOPIC, partition_name
from harrow.live_cluster.requests.coordinators.driver import (
    Answers,
    CoordinatorRequest,
    TransactionStates,
)

_SETTLED_US: Final = 100 * US_PER_MS
"""Within it everything is done that comes of a request, markers included: nothing here waits for a timer."""
_LISTENER: Final = "client"
_NOT_COMPARED: Final = -1


class ModelCoordinator:
    """A broker of the model with some behaviours, which coordinates all there is (`CoordinatorDriver`)."""

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
        self.knows_instances = behaviours.groups.static_members_fenced
        """Whether members may be static (KIP-345)."""
        self.knows_stable_offsets = behaviours.groups.stable_offset_fetch
        """Whether who asks for committed offsets may wait for transactions (KIP-447)."""
        self.knows_transactional_members = behaviours.groups.stable_offset_fetch
        """Whether transactions commit offsets as members of a group (KIP-447)."""
        self.knows_next_epoch = behaviours.clients.producer_bumps_epoch
        """Whether producers ask for their next epoch (KIP-360)."""
        self.knows_verification = behaviours.transactions.transaction_verification
        """Whether leaders ask whether a transaction has their partition (KIP-890)."""
        self.knows_consumer_groups = behaviours.groups.consumer_group_protocol
        """Whether coordinators assign (KIP-848)."""
        self._cluster = Cluster(spec, release, behaviours, Choices.from_seed(0), invariants=())
        self._cluster.start()
        self._host = self._cluster.host(Process("driver"))
        self._answers = ReceivedAnswers()

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        """Send a request, over a connection of its own, and let time pass until all has come of it."""
        connection = self._host.connect(f"broker-{BROKER}", _LISTENER, self._answers)
        self._host.send_request(connection, number, request)
        self._cluster.simulator.run_until(self._cluster.simulator.now_us + _SETTLED_US)
        answered = {
            reply.correlation_id: described_to_client(reply.body, request) for reply in self._answers.received
        }
        self._answers.received.clear()
        return answered

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        return self.ask(number, request, None)[number]

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        found: TransactionStates = {}
        for batch in self._log(f"{TRANSACTION_STATE}-0").batches:
            for record in records_of(batch):
                value = record.value
                found[record.key] = (
                    ["Dead"]
                    if value is None
                    else [value["state"], value["producer_id"], value["producer_epoch"]]
                )
        return found

    def log(self, number: int) -> UnifiedLog:
        """Return the broker's log of a partition of the topic."""
        return self._log(partition_name(number))

    def _log(self, partition: str) -> UnifiedLog:
        log = self._cluster.log(BROKER, partition)
        assert log is not None, "the broker has all partitions"
        return log


def described_to_client(answer: Any, request: CoordinatorRequest) -> Answer:
    """Return an answer as plain data: of what is read with transactions, and other answers as `described` has them."""
    if not isinstance(answer, protocol.FetchResponse):
        return described(answer)
    assert isinstance(request, protocol.FetchRequest)
    # Without read_committed a client is told no last stable offset, or one that says nothing to it.
    is_committed = bool(request.isolation_level)
    return {
        "error": answer.error,
        "fetched": {
            name: {
                "error": told.error,
                "hw": told.hw,
                "lso": told.last_stable_offset if is_committed else _NOT_COMPARED,
                "batches": [_described_batch(batch) for batch in told.batches],
                "aborted": [list(each) for each in told.aborted],
            }
            for name, told in sorted(answer.partitions.items())
        },
    }


def _described_batch(batch: RecordBatch) -> list[Any]:
    *producer, values = described_batch(batch)
    return [*producer, batch.is_transactional, batch.control_type, values]
