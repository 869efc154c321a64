"""A broker of the model as coordinator, alone with its control plane."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.coordinators.coordinator_log import records_of
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release import Behaviours
from harrow.cluster_model.settings import Value, broker_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.connection import Connection, Message
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
from harrow.live_cluster.requests.answers import Answer
from harrow.live_cluster.requests.broker_driver import BROKER, PARTITIONS, TOPIC, partition_name
from harrow.live_cluster.requests.coordinators.driver import (
    Answers,
    CoordinatorRequest,
    TransactionStates,
)

_SETTLED_US: Final = 100 * US_PER_MS
"""Within it everything is done that comes of a request, markers included: nothing here waits for a timer."""
_LISTENER: Final = "client"
_NOT_COMPARED: Final = -1


@dataclass(slots=True, eq=False)
class _CoordinatorAnswers:
    """The client's end of the connections."""

    received: list[Message] = field(default_factory=list)

    def receive_response(self, message: Message) -> None:
        self.received.append(message)

    def connection_lost(self, connection: Connection) -> None:
        """The broker does not end."""


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
        self.knows_instances = behaviours.static_members_fenced
        """Whether members may be static (KIP-345)."""
        self.knows_stable_offsets = behaviours.stable_offset_fetch
        """Whether who asks for committed offsets may wait for transactions (KIP-447)."""
        self.knows_transactional_members = behaviours.stable_offset_fetch
        """Whether transactions commit offsets as members of a group (KIP-447)."""
        self.knows_next_epoch = behaviours.producer_bumps_epoch
        """Whether producers ask for their next epoch (KIP-360)."""
        self.knows_verification = behaviours.transaction_verification
        """Whether leaders ask whether a transaction has their partition (KIP-890)."""
        self.knows_consumer_groups = behaviours.consumer_group_protocol
        """Whether coordinators assign (KIP-848)."""
        self._cluster = Cluster(spec, release, behaviours, Choices.from_seed(0), invariants=())
        self._cluster.start()
        self._host = self._cluster.host(Process("driver"))
        self._answers = _CoordinatorAnswers()

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        """Send a request, over a connection of its own, and let time pass until all has come of it."""
        connection = self._host.connect(f"broker-{BROKER}", _LISTENER, self._answers)
        self._host.send_request(connection, number, request)
        self._cluster.simulator.run_until(self._cluster.simulator.now_us + _SETTLED_US)
        answered = {number: described(body, request) for _, number, body in self._answers.received}
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


def described(answer: Any, request: CoordinatorRequest) -> Answer:
    """Return what a broker of the model has answered as plain data."""
    if isinstance(answer, messages.JoinGroupResponse):
        return joined(
            answer.error,
            answer.generation,
            answer.protocol,
            answer.leader,
            answer.member,
            [[member, instance, list(told.topics)] for member, instance, told in answer.members],
            skips=answer.skip_assignment,
        )
    if isinstance(answer, messages.ConsumerGroupHeartbeatResponse):
        return heard(
            answer.error, answer.member, answer.epoch, answer.heartbeat_interval_us, answer.assignment
        )
    if isinstance(answer, messages.SyncGroupResponse):
        return {"error": answer.error, "partitions": list(answer.partitions)}
    if isinstance(answer, messages.FindCoordinatorResponse):
        return {"error": answer.error, "node": answer.node}
    if isinstance(answer, (protocol.InitProducerIdResponse, messages.EndTxnResponse)):
        return {
            "error": answer.error,
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }
    if isinstance(answer, messages.OffsetFetchResponse):
        return {
            "error": answer.error,
            "partitions": {name: list(told) for name, told in sorted(answer.partitions.items())},
        }
    if isinstance(answer, protocol.FetchResponse):
        return {
            "error": answer.error,
            "fetched": {
                name: read(
                    told.error,
                    told.hw,
                    told.last_stable_offset if is_committed(request) else _NOT_COMPARED,
                    [described_batch(batch) for batch in told.batches],
                    list(told.aborted),
                )
                for name, told in sorted(answer.partitions.items())
            },
        }
    if hasattr(answer, "partitions"):
        return {
            "partitions": {
                name: list(told) if isinstance(told, tuple) else told
                for name, told in sorted(answer.partitions.items())
            }
        }
    return {"error": answer.error}


def is_committed(request: CoordinatorRequest) -> bool:
    """Return whether a fetch is one with read_committed: others are told no last stable offset, or one that says nothing to them."""
    return isinstance(request, protocol.FetchRequest) and bool(request.isolation_level)


def joined(
    error: str,
    generation: int,
    protocol: str,
    leader: str,
    member: str,
    members: list[list[Any]],
    *,
    skips: bool,
) -> Answer:
    """Return what who joins is told; where it does not join, why, and which id it goes by from now on."""
    if error != errors.NONE:
        return {"error": error, "member": member}
    return {
        "error": error,
        "generation": generation,
        "protocol": protocol,
        "leader": leader,
        "member": member,
        "members": members,
        "skips": skips,
    }


def heard(
    error: str, consumer: str, epoch: int, interval_us: int, assignment: Iterable[str] | None
) -> Answer:
    """Return what a member of a group whose coordinator assigns is told; an assignment of None is the one that it has."""
    if error != errors.NONE:
        return {"error": error}
    return {
        "error": error,
        "consumer": consumer,
        "epoch": epoch,
        "interval_us": interval_us,
        "assignment": None if assignment is None else sorted(assignment),
    }


def read(
    error: str, hw: int, last_stable_offset: int, batches: list[list[Any]], aborted: list[Any]
) -> dict[str, Any]:
    """Return what is read of a partition."""
    return {
        "error": error,
        "hw": hw,
        "lso": last_stable_offset,
        "batches": batches,
        "aborted": [list(each) for each in aborted],
    }


def described_batch(batch: RecordBatch) -> list[Any]:
    """Return what of a stored batch does not depend on who encoded it."""
    return [
        batch.base_offset,
        batch.leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.is_transactional,
        batch.control_type,
        list(batch.values),
    ]
