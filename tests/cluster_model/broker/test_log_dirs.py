"""Requests of a broker whose log directory fails or fills up."""

from harrow.cluster_model import errors
from harrow.cluster_model.protocol import (
    ControlResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    ProduceRequest,
    StopReplicaRequest,
)
from tests.cluster_model.broker.test_broker_life import BrokerHarness
from tests.cluster_model.fakes import SECOND, batch

P, Q = "t-0", "t-1"


class TwoDisks(BrokerHarness):
    """Broker 1 with two log directories, leader of t-0 on the first one and of t-1 on the other."""

    def __init__(self) -> None:
        super().__init__()
        self.disk.log_dirs = 2
        state = LeaderAndIsrPartitionState(1, LeaderAndIsr(1, 0, (1,), 0), (1, 2, 3))
        self.send(LeaderAndIsrRequest(0, 1, 5, {Q: state}))
        self.host.responses.clear()
        assert [self.disk.dir_of(name) for name in (P, Q)] == [0, 1]

    def stop_replicas(self, *partitions: str) -> ControlResponse:
        self.host.responses.clear()
        self.send(StopReplicaRequest(0, 1, 5, partitions, delete_partitions=True))
        answer = self.host.responses[-1].body
        assert isinstance(answer, ControlResponse)
        return answer

    def append(self, size: int, sequence: int) -> tuple[str, int]:
        """Send a batch of an idempotent producer to t-0; return its error and offset."""
        self.host.responses.clear()
        sent = batch(f"m{sequence}", producer_id=7, sequence=sequence, size=size)
        self.send(ProduceRequest(1, 30 * SECOND, {P: sent}))
        self.host.advance(0)
        outcome: tuple[str, int] = self.host.responses[-1].body.partitions[P]
        return outcome


def test_a_replica_in_an_offline_log_directory_is_not_deleted() -> None:
    harness = TwoDisks()
    harness.disk.limit_room(0, 0)
    harness.host.advance(10 * SECOND)
    assert harness.broker.replicas.logs.is_offline(P)
    assert harness.stop_replicas(P, Q) == ControlResponse("StopReplica", errors.NONE, (P,))
    assert sorted(harness.disk.log_files) == [P]
    assert harness.broker.replicas.partitions[P].is_offline


def test_the_controller_learns_of_every_replica_in_a_failed_log_directory() -> None:
    """A starting broker has opened no log yet when it notices the failed directory."""
    harness = TwoDisks()
    harness.disk.place("t-7")
    harness.disk.place("t-8")
    reports: list[tuple[str, ...]] = []
    harness.broker.replicas.on_log_dir_failure = reports.append
    harness.disk.limit_room(0, 0)
    harness.host.advance(10 * SECOND)
    assert reports == [(P, "t-7")]


def test_a_failed_deletion_takes_the_log_directory_offline() -> None:
    harness = TwoDisks()
    harness.disk.limit_room(0, 0)
    assert harness.stop_replicas(P).offline == (P,)
    harness.host.advance(1)
    assert harness.host.events_named("log_dir_failed") == [(1, 0, (P,))]
    assert sorted(harness.disk.log_files) == [P, Q]


def test_duplicates_and_rejected_batches_take_no_room() -> None:
    harness = TwoDisks()
    harness.disk.limit_room(0, 10)
    assert harness.append(10, 0) == (errors.NONE, 0)
    assert harness.append(10, 0) == (errors.NONE, 0)
    assert harness.append(10, 5)[0] == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert harness.disk.is_writable(P)
    assert harness.append(1, 1)[0] == errors.KAFKA_STORAGE_ERROR
    assert not harness.disk.is_writable(P)
