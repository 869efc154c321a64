"""A cluster with transactions, and a client that sends single requests to it."""

from typing import Any, TypeVar

from harrow.cluster_model import errors, events
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.coordinators.internal_topics import internal_topic, partition_for
from harrow.cluster_model.coordinators.protocol import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    EndTxnResponse,
)
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    READ_COMMITTED,
    FetchedPartition,
    FetchRequest,
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionData,
    ProduceRequest,
)
from harrow.cluster_model.release.profiles import behaviours_in
from harrow.cluster_model.settings import Value, broker_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    BrokerSpec,
    ClusterSpec,
    TopicSpec,
)
from harrow.cluster_model.trace import select

SETTINGS: dict[str, Value] = {
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "auto.leader.rebalance.enable": False,
}
TIMEOUT_US = 60 * US_PER_SECOND

E = TypeVar("E", bound=events.Event)


class TransactionsCluster:
    """Three brokers, each of which leads one partition of every topic, and one client."""

    def __init__(
        self, release: str = "3.9", settings: dict[str, Value] | None = None, **switches: Any
    ) -> None:
        settings = {**SETTINGS, **(settings or {})}
        config = broker_config(release, settings)
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(
                TopicSpec(name="t", partitions=3, replication_factor=3),
                internal_topic(TRANSACTION_STATE, config),
                internal_topic(CONSUMER_OFFSETS, config),
            ),
            settings=settings,
        )
        behaviours = behaviours_in(release).with_switches(**switches)
        self.uses_v2 = behaviours.transactions.transactions_v2
        """Whether the producers use transactions v2, as new clients do on a cluster that has it."""
        self.model = Cluster(spec, release, behaviours, Choices.from_seed(0))
        self.model.start()
        self._host = self.model.host(Process("client"))
        self._clients: dict[int, NetworkClient] = {}

    def run(self, seconds: float = 1) -> None:
        simulator = self.model.simulator
        simulator.run_until(simulator.now_us + int(seconds * US_PER_SECOND))

    def leader(self, partition: str) -> int:
        state = self.model.partition_state(partition)
        assert state is not None
        return state.leader

    def coordinator(self, transactional_id: str = "id") -> int:
        return self.leader(f"{TRANSACTION_STATE}-{partition_for(transactional_id, 3)}")

    def send(self, broker: int, request: Any) -> list[Any]:
        """Send a request, and return a list that will get its answer."""
        answers: list[Any] = []
        client = self._clients.get(broker)
        if client is None:
            client = self._clients[broker] = NetworkClient(
                self._host, f"broker-{broker}", "client", 30 * US_PER_SECOND
            )
        client.send(request, lambda answer, _: answers.append(answer))
        return answers

    def ask(self, broker: int, request: Any, seconds: float = 1) -> Any:
        answers = self.send(broker, request)
        self.run(seconds)
        assert answers, f"no answer to {request}"
        return answers[0]

    # A transactional producer

    def init(
        self, transactional_id: str = "id", producer_id: int = NO_PRODUCER_ID, epoch: int = NO_EPOCH
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(transactional_id, TIMEOUT_US, producer_id, epoch)
        answer = self.ask(self.coordinator(transactional_id), request)
        assert isinstance(answer, InitProducerIdResponse)
        return answer

    def start_producer(self, transactional_id: str = "id") -> tuple[int, int]:
        """Return id and epoch of a producer, once its predecessor's transaction is aborted."""
        for _ in range(5):
            answer = self.init(transactional_id)
            if answer.error != errors.CONCURRENT_TRANSACTIONS:
                break
        assert answer.error == errors.NONE
        return answer.producer_id, answer.producer_epoch

    def add(self, producer: tuple[int, int], *partitions: str, transactional_id: str = "id") -> str:
        request = AddPartitionsToTxnRequest(transactional_id, *producer, partitions)
        outcomes: dict[str, str] = self.ask(self.coordinator(transactional_id), request).partitions
        (error,) = set(outcomes.values())
        return error

    def add_offsets(self, producer: tuple[int, int], group: str = "g") -> str:
        answer = self.ask(self.coordinator(), AddOffsetsToTxnRequest("id", *producer, group))
        return str(answer.error)

    def produce(
        self,
        producer: tuple[int, int],
        partition: str,
        value: str,
        sequence: int = 0,
        transactional_id: str = "id",
    ) -> ProduceRequest:
        batch = RecordBatch((value,), *producer, sequence, is_transactional=True, size_bytes=80)
        return ProduceRequest(-1, 30 * US_PER_SECOND, {partition: batch}, transactional_id, self.uses_v2)

    def write(
        self,
        producer: tuple[int, int],
        partition: str,
        value: str,
        sequence: int = 0,
        transactional_id: str = "id",
    ) -> str:
        request = self.produce(producer, partition, value, sequence, transactional_id)
        error, _ = self.ask(self.leader(partition), request).partitions[partition]
        return str(error)

    def end(self, producer: tuple[int, int], *, committed: bool = True, seconds: float = 1) -> EndTxnResponse:
        request = EndTxnRequest("id", *producer, committed, self.uses_v2)
        answer = self.ask(self.coordinator(), request, seconds)
        assert isinstance(answer, EndTxnResponse)
        return answer

    # Results

    def read(self, partition: str, isolation: int = READ_COMMITTED) -> FetchedPartition:
        request = FetchRequest(-1, 0, 1 << 20, {partition: PartitionData(0, -1)}, isolation)
        fetched = self.ask(self.leader(partition), request).partitions[partition]
        assert isinstance(fetched, FetchedPartition)
        return fetched

    def committed(self, partition: str) -> list[str]:
        """Return the values that a consumer with read_committed gets."""
        fetched = self.read(partition)
        values: list[str] = []
        aborted: set[int] = set()
        waiting = sorted(fetched.aborted, key=lambda transaction: transaction[1])
        for batch in fetched.batches:
            while waiting and waiting[0][1] <= batch.base_offset:
                aborted.add(waiting.pop(0)[0])
            if batch.is_control:
                aborted.discard(batch.producer_id)
            elif batch.producer_id not in aborted:
                values += batch.values
        return values

    def markers(self, partition: str) -> list[str | None]:
        """Return the types of the markers in the leader's log of a partition."""
        log = self.model.brokers[self.leader(partition)].replicas.partitions[partition].log
        return [batch.control_type for batch in log.batches if batch.is_control]

    def states(self, transactional_id: str = "id") -> list[str]:
        """Return the successive states of a transactional id."""
        return [
            event.state
            for event in self.events_of(events.TransactionStateChanged)
            if event.transactional_id == transactional_id
        ]

    def events_of(self, kind: type[E]) -> list[E]:
        return list(select(self.model.trace.events, kind))
