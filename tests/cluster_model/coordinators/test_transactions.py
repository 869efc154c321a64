"""Transactions on brokers: the answers, records and markers of a coordinator, and its failures."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harrow.cluster_model import errors, events
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.coordinators.internal_topics import partition_for
from harrow.cluster_model.coordinators.protocol import (
    NO_OFFSET_COMMITTED,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    OffsetFetchRequest,
    TxnMarker,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from harrow.cluster_model.coordinators.transactions.transaction_metadata import EPOCH_MAX, TransactionMetadata
from harrow.cluster_model.log.record_batch import ABORT, COMMIT, NO_PRODUCER_ID, RecordBatch
from harrow.cluster_model.protocol import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchRequest,
    InitProducerIdRequest,
    PartitionData,
    ProduceRequest,
)
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE
from tests.cluster_model.coordinators.transactions_cluster import TIMEOUT_US, TransactionsCluster
from tests.plain_model import patches_the_model

RELEASES = ["0.11", "2.4", "3.9", "4.3"]
V1 = ["2.4", "3.9"]
COORDINATED = f"{TRANSACTION_STATE}-{partition_for('id', 3)}"


def fences(cluster: TransactionsCluster) -> list[tuple[str, bool]]:
    """Return a list that will get each aborted transactional id, and whether it timed out."""
    aborted: list[tuple[str, bool]] = []

    def fenced(_broker: int, transactional_id: str, is_timed_out: bool) -> None:
        aborted.append((transactional_id, is_timed_out))

    cluster.model.trace.subscribe(events.OpenTransactionFenced, fenced)
    return aborted


def metadata_of(cluster: TransactionsCluster) -> TransactionMetadata:
    """Return the coordinator's state of the transactional id."""
    lookup = cluster.model.brokers[cluster.coordinator()]._transactions._states.find("id")
    assert lookup.metadata is not None
    return lookup.metadata


def open_transaction(cluster: TransactionsCluster, *partitions: str) -> tuple[int, int]:
    """Write a record to each partition in a new transaction; return producer id and epoch."""
    producer = cluster.start_producer()
    if not cluster.uses_v2:
        assert cluster.add(producer, *partitions) == errors.NONE
    for partition in partitions:
        assert cluster.write(producer, partition, f"{partition} one") == errors.NONE
    return producer


def fail_over(cluster: TransactionsCluster) -> int:
    """Let another broker become the coordinator; return the former one."""
    former = cluster.coordinator()
    cluster.model.crash_broker(former, power_loss=False)
    cluster.run(30)
    assert cluster.coordinator() not in (former, -1)
    return former


def hold_markers(cluster: TransactionsCluster, partition: str) -> Callable[..., None]:
    """Let the leader of a partition hold requests to write markers.

    Return a function that lets it handle them, except for the first *lost* ones.
    """
    handlers = cluster.model.brokers[cluster.leader(partition)]._handlers
    requests: list[Any] = []
    handle = handlers[WriteTxnMarkersRequest]
    handlers[WriteTxnMarkersRequest] = requests.append

    def release(lost: int = 0) -> None:
        handlers[WriteTxnMarkersRequest] = handle
        for message in requests[lost:]:
            handle(message)

    return release


# Commit and abort


@pytest.mark.parametrize("release", RELEASES)
def test_a_transaction_is_read_once_it_is_committed_and_never_if_it_is_aborted(release: str) -> None:
    cluster = TransactionsCluster(release)
    producer = open_transaction(cluster, "t-0", "t-1")
    assert cluster.committed("t-0") == []
    assert [batch.values for batch in cluster.read("t-0", READ_UNCOMMITTED).batches] == [("t-0 one",)]
    answer = cluster.end(producer)
    assert answer.error == errors.NONE
    assert (cluster.committed("t-0"), cluster.committed("t-1")) == (["t-0 one"], ["t-1 one"])
    assert cluster.states()[-2:] == ["PrepareCommit", "CompleteCommit"]
    producer = open_transaction(cluster, "t-0")
    assert cluster.end(producer, committed=False).error == errors.NONE
    assert cluster.read("t-0").aborted == ((producer[0], 2),)
    assert cluster.committed("t-0") == ["t-0 one"]
    assert cluster.markers("t-0") == [COMMIT, ABORT]
    assert cluster.states()[-2:] == ["PrepareAbort", "CompleteAbort"]


def test_a_waiting_fetch_returns_when_the_transaction_commits() -> None:
    cluster = TransactionsCluster()
    producer = open_transaction(cluster, "t-0")
    request = FetchRequest(-1, 20 * US_PER_SECOND, 1 << 20, {"t-0": PartitionData(0, -1)}, READ_COMMITTED)
    answers = cluster.send(cluster.leader("t-0"), request)
    cluster.run(2)
    assert not answers
    cluster.end(producer)
    assert [batch.values for batch in answers[0].partitions["t-0"].batches] == [("t-0 one",), ()]


def test_a_log_reports_the_begin_and_the_end_of_a_transaction() -> None:
    cluster = TransactionsCluster()
    producer = open_transaction(cluster, "t-0")
    cluster.write(producer, "t-0", "second", 1)
    cluster.end(producer, committed=False)
    transaction_begun = cluster.events_of(events.TransactionBegun)
    ended = cluster.events_of(events.TransactionMarkerWritten)
    assert (
        sorted(event.broker for event in transaction_begun)
        == sorted(event.broker for event in ended)
        == [0, 1, 2]
    )
    assert {(event.partition, event.producer_id, event.first_offset) for event in transaction_begun} == {
        ("t-0", producer[0], 0)
    }
    assert {(event.first_offset, event.offset, event.committed) for event in ended} == {(0, 2, False)}


@pytest.mark.parametrize("committed", [True, False])
def test_offsets_of_a_group_take_effect_with_the_transaction(committed: bool) -> None:
    cluster = TransactionsCluster()
    producer = cluster.start_producer()
    assert cluster.add_offsets(producer) == errors.NONE
    offsets = f"{CONSUMER_OFFSETS}-{partition_for('g', 3)}"
    assert list(metadata_of(cluster).partitions) == [offsets]
    answer = cluster.ask(cluster.leader(offsets), TxnOffsetCommitRequest("id", "g", *producer, {"t-0": 7}))
    assert answer.partitions == {"t-0": errors.NONE}
    fetch = OffsetFetchRequest("g", ("t-0",), require_stable=True)
    assert cluster.ask(cluster.leader(offsets), fetch).partitions["t-0"][0] == errors.UNSTABLE_OFFSET_COMMIT
    cluster.end(producer, committed=committed)
    assert cluster.markers(offsets) == [COMMIT if committed else ABORT]
    result = cluster.ask(cluster.leader(offsets), fetch).partitions["t-0"]
    assert result == (errors.NONE, 7 if committed else NO_OFFSET_COMMITTED)


# Fencing


@pytest.mark.parametrize(
    ("release", "error"),
    [
        ("2.4", errors.INVALID_PRODUCER_EPOCH),
        ("3.9", errors.PRODUCER_FENCED),
        ("4.3", errors.PRODUCER_FENCED),
    ],
)
def test_a_new_producer_fences_its_predecessor_and_aborts_its_open_transaction(
    release: str, error: str
) -> None:
    cluster = TransactionsCluster(release)
    fenced = fences(cluster)
    zombie = open_transaction(cluster, "t-0")
    assert cluster.init().error == errors.CONCURRENT_TRANSACTIONS
    successor = cluster.start_producer()
    assert successor[0] == zombie[0]
    assert successor[1] > zombie[1] + 1
    assert cluster.markers("t-0") == [ABORT]
    assert cluster.add(zombie, "t-0") == error
    assert cluster.add_offsets(zombie) == error
    assert cluster.end(zombie).error == error
    assert cluster.write(zombie, "t-0", "late", 1) == errors.INVALID_PRODUCER_EPOCH
    assert cluster.committed("t-0") == []
    assert fenced == [("id", False)]


def test_mutant_coordinators_and_leaders_accept_writes_of_a_zombie() -> None:
    cluster = TransactionsCluster("2.4", transactional_producer_epoch_checked=False)
    zombie = open_transaction(cluster, "t-0")
    cluster.init()
    successor = cluster.start_producer()
    assert cluster.add(successor, "t-0") == errors.NONE
    assert cluster.add(zombie, "t-0") == errors.NONE
    assert cluster.write(successor, "t-0", "new") == errors.NONE
    assert cluster.write(zombie, "t-0", "late") == errors.NONE
    cluster.end(successor)
    assert cluster.committed("t-0") == ["new", "late"]


def test_only_the_coordinator_serves_a_transactional_id_and_only_its_current_producer() -> None:
    cluster = TransactionsCluster()
    other = (cluster.coordinator() + 1) % 3
    request: Any = InitProducerIdRequest("id", TIMEOUT_US)
    assert cluster.ask(other, request).error == errors.NOT_COORDINATOR
    assert cluster.add((7, 0), "t-0") == errors.INVALID_PRODUCER_ID_MAPPING
    producer_id, epoch = cluster.start_producer()
    assert cluster.add((producer_id + 1, epoch), "t-0") == errors.INVALID_PRODUCER_ID_MAPPING
    assert cluster.end((producer_id + 1, epoch)).error == errors.INVALID_PRODUCER_ID_MAPPING
    assert cluster.add((producer_id, epoch + 1), "t-0") == errors.PRODUCER_FENCED
    request = AddPartitionsToTxnRequest("id", producer_id, epoch, ("t-0", "t-9"))
    assert cluster.ask(cluster.coordinator(), request).partitions == {
        "t-0": errors.OPERATION_NOT_ATTEMPTED,
        "t-9": errors.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("timeout_us", [0, 900 * US_PER_SECOND + 1])
def test_a_transaction_timeout_of_zero_or_above_the_brokers_maximum_is_refused(timeout_us: int) -> None:
    cluster = TransactionsCluster()
    answer = cluster.ask(cluster.coordinator(), InitProducerIdRequest("id", timeout_us))
    assert answer.error == errors.INVALID_TRANSACTION_TIMEOUT


def test_a_producer_that_continues_after_an_error_gets_one_new_epoch_even_if_it_repeats_the_request() -> None:
    """KIP-360."""
    cluster = TransactionsCluster()
    producer_id, epoch = cluster.start_producer()
    for _ in range(2):
        answer = cluster.init(producer_id=producer_id, epoch=epoch)
        assert (answer.error, answer.producer_id, answer.producer_epoch) == (
            errors.NONE,
            producer_id,
            epoch + 1,
        )
    successor = cluster.start_producer()
    assert successor == (producer_id, epoch + 2)
    assert cluster.init(producer_id=producer_id, epoch=epoch + 1).error == errors.PRODUCER_FENCED
    assert cluster.init(producer_id=producer_id + 5, epoch=epoch + 2).error == errors.PRODUCER_FENCED


def test_a_producer_with_exhausted_epochs_gets_another_id() -> None:
    cluster = TransactionsCluster()
    producer_id, _ = cluster.start_producer()
    metadata = metadata_of(cluster)
    metadata.current = replace(metadata.current, producer_epoch=EPOCH_MAX - 1)
    rotated = cluster.start_producer()
    assert rotated[0] != producer_id
    assert rotated[1] == 0
    answer = cluster.init(producer_id=producer_id, epoch=EPOCH_MAX - 1)
    assert (answer.error, answer.producer_id, answer.producer_epoch) == (errors.PRODUCER_FENCED, -1, -1)


@pytest.mark.parametrize("release", V1)
def test_a_repeated_end_of_a_transaction_succeeds_and_the_opposite_end_fails(release: str) -> None:
    cluster = TransactionsCluster(release)
    assert cluster.end(cluster.start_producer()).error == errors.INVALID_TXN_STATE
    producer = open_transaction(cluster, "t-0")
    assert cluster.end(producer).error == errors.NONE
    assert cluster.end(producer).error == errors.NONE
    assert cluster.end(producer, committed=False).error == errors.INVALID_TXN_STATE
    assert cluster.markers("t-0") == [COMMIT]


def test_a_transaction_that_is_ending_refuses_other_requests() -> None:
    cluster = TransactionsCluster()
    coordinator = cluster.coordinator()
    partition = next(name for name in ("t-0", "t-1", "t-2") if cluster.leader(name) != coordinator)
    producer = open_transaction(cluster, partition)
    release = hold_markers(cluster, partition)
    assert cluster.end(producer).error == errors.NONE
    assert cluster.states()[-1] == "PrepareCommit"
    assert cluster.add(producer, partition) == errors.CONCURRENT_TRANSACTIONS
    assert cluster.end(producer).error == errors.CONCURRENT_TRANSACTIONS
    assert cluster.end(producer, committed=False).error == errors.CONCURRENT_TRANSACTIONS
    assert cluster.init().error == errors.CONCURRENT_TRANSACTIONS
    release()
    cluster.run(1)
    assert cluster.states()[-1] == "CompleteCommit"
    assert cluster.committed(partition) == [f"{partition} one"]


# Time


@pytest.mark.parametrize(("release", "aborted_by_s"), [("2.4", 121), ("3.9", 71)])
def test_a_transaction_open_for_too_long_is_aborted(release: str, aborted_by_s: int) -> None:
    cluster = TransactionsCluster(release)
    fenced = fences(cluster)
    producer = open_transaction(cluster, "t-0")
    cluster.run(50)
    assert cluster.markers("t-0") == []
    cluster.run(aborted_by_s - 50)
    assert fenced == [("id", True)]
    assert cluster.markers("t-0") == [ABORT]
    assert cluster.states()[-1] == "CompleteAbort"
    assert cluster.end(producer).error != errors.NONE
    assert cluster.write(producer, "t-0", "late", 1) == errors.INVALID_PRODUCER_EPOCH
    metadata = metadata_of(cluster)
    assert not metadata.has_failed_epoch_fence
    assert metadata.producer_epoch == producer[1] + 1


def test_a_timeout_is_reported_only_once_the_abort_is_in_the_log() -> None:
    """Earlier attempts, every ten seconds, fail because too few replicas are in sync."""
    cluster = TransactionsCluster(settings={"transaction.state.log.min.isr": 2})
    fenced = fences(cluster)
    open_transaction(cluster, "t-0")
    coordinator = cluster.coordinator()
    others = [broker for broker in range(3) if broker != coordinator]
    for broker in others:
        cluster.model.crash_broker(broker, power_loss=False)
    cluster.run(110)
    assert fenced == []
    for broker in others:
        cluster.model.start_broker(broker)
    cluster.run(60)
    assert cluster.states()[-1] == "CompleteAbort"
    assert fenced == [("id", True)]


def test_an_unused_transactional_id_expires() -> None:
    cluster = TransactionsCluster(
        settings={
            "transactional.id.expiration.ms": 20_000,
            "transaction.remove.expired.transaction.cleanup.interval.ms": 10_000,
        }
    )
    producer = cluster.start_producer()
    cluster.run(40)
    assert cluster.states() == ["Empty", "Dead"]
    assert cluster.add(producer, "t-0") == errors.INVALID_PRODUCER_ID_MAPPING
    fail_over(cluster)
    assert cluster.add(producer, "t-0") == errors.INVALID_PRODUCER_ID_MAPPING


# Failures


@pytest.mark.parametrize("release", RELEASES)
def test_a_new_coordinator_knows_open_transactions(release: str) -> None:
    cluster = TransactionsCluster(release)
    producer = open_transaction(cluster, "t-0", "t-1")
    fail_over(cluster)
    assert cluster.end(producer).error == errors.NONE
    cluster.run(2)
    assert (cluster.committed("t-0"), cluster.committed("t-1")) == (["t-0 one"], ["t-1 one"])


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("committed", [True, False])
def test_a_new_coordinator_completes_transactions_that_its_predecessor_has_prepared(
    release: str, committed: bool
) -> None:
    """When the coordinator crashes, only one of two partitions has its marker."""
    cluster = TransactionsCluster(release)
    coordinator = cluster.coordinator()
    lost, completed = (name for name in ("t-0", "t-1", "t-2") if cluster.leader(name) != coordinator)
    producer = open_transaction(cluster, lost, completed)
    release_markers = hold_markers(cluster, lost)
    assert cluster.end(producer, committed=committed).error == errors.NONE
    kind = COMMIT if committed else ABORT
    assert (cluster.markers(lost), cluster.markers(completed)) == ([], [kind])
    cluster.model.crash_broker(coordinator, power_loss=False)
    cluster.run(30)
    release_markers()
    cluster.run(2)
    assert set(cluster.markers(lost)) == set(cluster.markers(completed)) == {kind}
    assert len(cluster.markers(completed)) > 1
    assert cluster.committed(lost) == ([f"{lost} one"] if committed else [])
    assert cluster.states()[-1] == ("CompleteCommit" if committed else "CompleteAbort")


def test_the_mutant_coordinator_aborts_a_prepared_commit_after_a_failover() -> None:
    cluster = TransactionsCluster(new_coordinator_completes_commit=False)
    coordinator = cluster.coordinator()
    lost, completed = (name for name in ("t-0", "t-1", "t-2") if cluster.leader(name) != coordinator)
    producer = open_transaction(cluster, lost, completed)
    release = hold_markers(cluster, lost)
    assert cluster.end(producer).error == errors.NONE
    cluster.model.crash_broker(coordinator, power_loss=False)
    cluster.run(30)
    release(lost=1)
    cluster.run(2)
    assert cluster.markers(lost) == [ABORT]
    assert (cluster.committed(lost), cluster.committed(completed)) == ([], [f"{completed} one"])


def elected_alone(cluster: TransactionsCluster) -> tuple[tuple[int, int], str]:
    """Return a producer, and a partition that the coordinator added without any follower.

    The coordinator has since been deposed and elected again, alone in the ISR. With ELR nothing is
    committed until a second replica is in the ISR.
    """
    coordinator = cluster.coordinator()
    led, other = (
        next(name for name in ("t-0", "t-1", "t-2") if (cluster.leader(name) == coordinator) is is_led)
        for is_led in (True, False)
    )
    producer = open_transaction(cluster, other)
    for broker in {0, 1, 2} - {coordinator}:
        cluster.model.pause_broker(broker)
    cluster.send(coordinator, AddPartitionsToTxnRequest("id", *producer, (led,)))
    cluster.run(20)
    assert led not in metadata_of(cluster).current.partitions
    cluster.model.pause_broker(coordinator)
    cluster.run(20)
    assert cluster.coordinator() == -1
    cluster.model.resume_broker(coordinator)
    cluster.run(5)
    assert cluster.coordinator() == cluster.leader(led) == coordinator
    return producer, led


def test_a_new_coordinator_relies_on_uncommitted_records() -> None:
    cluster = TransactionsCluster("4.3")
    producer, partition = elected_alone(cluster)
    log = cluster.model.brokers[cluster.coordinator()].replicas.partitions[COORDINATED].log
    assert log.high_watermark < log.log_end_offset
    assert cluster.write(producer, partition, "one") == errors.NONE


def test_a_repaired_coordinator_loads_only_once_its_log_is_committed() -> None:
    cluster = TransactionsCluster("4.3", coordinator_load_waits_for_commit=True)
    producer, partition = elected_alone(cluster)
    assert cluster.write(producer, partition, "one") == errors.NOT_ENOUGH_REPLICAS
    # After 30 s it waits again for its log to be committed.
    cluster.run(40)
    assert cluster.ask(cluster.coordinator(), EndTxnRequest("id", *producer, True)).error == (
        errors.COORDINATOR_LOAD_IN_PROGRESS
    )
    for broker in {0, 1, 2} - {cluster.coordinator()}:
        cluster.model.resume_broker(broker)
    cluster.run(20)
    log = cluster.model.brokers[cluster.coordinator()].replicas.partitions[COORDINATED].log
    assert log.high_watermark == log.log_end_offset
    assert cluster.end(producer).error != errors.COORDINATOR_LOAD_IN_PROGRESS


def test_a_marker_waits_for_a_leader_of_its_partition() -> None:
    cluster = TransactionsCluster()
    coordinator = cluster.coordinator()
    partition = next(name for name in ("t-0", "t-1", "t-2") if cluster.leader(name) != coordinator)
    producer = open_transaction(cluster, partition)
    hold_markers(cluster, partition)
    assert cluster.end(producer).error == errors.NONE
    assert cluster.states()[-1] == "PrepareCommit"
    cluster.model.crash_broker(cluster.leader(partition), power_loss=False)
    cluster.run(40)
    assert cluster.committed(partition) == [f"{partition} one"]
    assert cluster.states()[-1] == "CompleteCommit"


def test_a_former_coordinator_cannot_end_transactions() -> None:
    cluster = TransactionsCluster()
    producer = open_transaction(cluster, "t-0")
    leader = cluster.leader("t-0")

    def end(coordinator_epoch: int) -> Any:
        marker = TxnMarker(*producer, coordinator_epoch, True, ("t-0", "t-9"))
        return cluster.ask(leader, WriteTxnMarkersRequest((marker,))).markers

    unknown = {"t-9": errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert end(5) == {producer[0]: {"t-0": errors.NONE, **unknown}}
    assert end(4) == {producer[0]: {"t-0": errors.TRANSACTION_COORDINATOR_FENCED, **unknown}}
    other = (leader + 1) % 3
    marker = TxnMarker(*producer, 5, True, ("t-0",))
    answer = cluster.ask(other, WriteTxnMarkersRequest((marker,)))
    assert answer.markers == {producer[0]: {"t-0": errors.NOT_LEADER_FOR_PARTITION}}


def test_a_loading_coordinator_refuses_requests_and_a_deposed_one_has_no_state() -> None:
    cluster = TransactionsCluster()
    cluster.start_producer()
    fail_over(cluster)
    broker = cluster.model.brokers[cluster.coordinator()]
    number = partition_for("id", 3)
    broker._transactions.on_election(number, 99)
    request = InitProducerIdRequest("id", TIMEOUT_US)
    assert cluster.ask(broker.id, request, 0.005).error == errors.COORDINATOR_LOAD_IN_PROGRESS
    cluster.run(1)
    assert cluster.ask(broker.id, request).error == errors.NONE
    broker._transactions.on_resignation(number)
    assert cluster.ask(broker.id, request).error == errors.NOT_COORDINATOR


def test_a_transition_that_cannot_be_written_does_not_take_effect() -> None:
    cluster = TransactionsCluster(settings={"transaction.state.log.min.isr": 3})
    producer = cluster.start_producer()
    cluster.model.crash_broker((cluster.coordinator() + 1) % 3, power_loss=False)
    cluster.run(60)
    assert cluster.add(producer, "t-0") == errors.COORDINATOR_NOT_AVAILABLE
    metadata = metadata_of(cluster)
    assert (metadata.state, metadata.pending_state) == ("Empty", None)


def test_the_mutant_coordinator_ends_a_transaction_in_only_one_partition() -> None:
    cluster = TransactionsCluster(markers_written_to_all_partitions=False)
    cluster.end(open_transaction(cluster, "t-0", "t-1"))
    assert (cluster.committed("t-0"), cluster.committed("t-1")) == (["t-0 one"], [])


def test_mutant_leaders_serve_open_transactions_to_read_committed() -> None:
    cluster = TransactionsCluster(lso_below_open_transactions=False)
    open_transaction(cluster, "t-0")
    assert cluster.committed("t-0") == ["t-0 one"]


# Verification by leaders


@pytest.mark.parametrize(
    ("release", "error"),
    [
        ("2.4", errors.NONE),
        ("3.6", errors.INVALID_TXN_STATE),
        ("3.9", errors.TRANSACTION_ABORTABLE),
        ("4.3", errors.NONE),
    ],
)
def test_a_leader_adds_or_verifies_its_partition_on_the_first_batch_of_a_transaction(
    release: str, error: str
) -> None:
    cluster = TransactionsCluster(release)
    producer = cluster.start_producer()
    assert cluster.write(producer, "t-0", "a") == error
    assert ("t-0" in metadata_of(cluster).partitions) == (release == "4.3")


@pytest.mark.parametrize(("release", "hangs"), [("2.4", True), ("3.9", False), ("4.3", False)])
def test_a_batch_after_the_marker_leaves_no_hanging_transaction_since_kip_890(
    release: str, hangs: bool
) -> None:
    cluster = TransactionsCluster(release)
    producer = open_transaction(cluster, "t-0")
    cluster.end(producer, committed=False)
    assert (cluster.write(producer, "t-0", "late", 1) == errors.NONE) == hangs
    log = cluster.model.brokers[cluster.leader("t-0")].replicas.partitions["t-0"].log
    assert (log.last_stable_offset < log.high_watermark) == hangs


def test_a_leader_that_cannot_verify_a_transaction_returns_a_retriable_error() -> None:
    cluster = TransactionsCluster()
    producer = cluster.start_producer()
    cluster.add(producer, "t-0")
    coordinator = cluster.coordinator()
    leader = next(broker for broker in range(3) if broker != coordinator)
    partition = next(name for name in ("t-0", "t-1", "t-2") if cluster.leader(name) == leader)
    cluster.add(producer, partition)
    cluster.model.crash_broker(coordinator, power_loss=False)
    assert cluster.write(producer, partition, "a") == errors.NOT_ENOUGH_REPLICAS
    cluster.run(30)
    assert cluster.write(producer, partition, "a") == errors.NONE


@pytest.mark.parametrize(("release_s", "error"), [(0.05, errors.NONE), (0.5, errors.CONCURRENT_TRANSACTIONS)])
def test_a_leader_waits_briefly_for_the_previous_transaction_to_complete(
    release_s: float, error: str
) -> None:
    cluster = TransactionsCluster("4.3")
    held, other = (name for name in ("t-0", "t-1", "t-2") if cluster.leader(name) != cluster.coordinator())
    producer = open_transaction(cluster, held)
    release = hold_markers(cluster, held)
    ended = cluster.end(producer)
    following = (ended.producer_id, ended.producer_epoch)
    answers = cluster.send(cluster.leader(other), cluster.produce(following, other, "next"))
    cluster.run(release_s)
    release()
    cluster.run(1)
    assert answers[0].partitions[other][0] == error


def test_without_transactions_v2_a_leader_does_not_wait_for_the_previous_transaction() -> None:
    cluster = TransactionsCluster("3.9")
    held, other = (name for name in ("t-0", "t-1", "t-2") if cluster.leader(name) != cluster.coordinator())
    producer = open_transaction(cluster, held)
    cluster.add(producer, other)
    hold_markers(cluster, held)
    cluster.end(producer)
    answers = cluster.send(cluster.leader(other), cluster.produce(producer, other, "late"))
    cluster.run(0.01)
    assert answers[0].partitions[other][0] == errors.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_a_leader_verifies_a_transaction_while_its_disk_is_slow(release: str) -> None:
    cluster = TransactionsCluster(release)
    leader = cluster.leader("t-0")
    cluster.model.slow_disk(leader, 50_000)
    producer = open_transaction(cluster, "t-0")
    assert cluster.write(producer, "t-0", "more", 1) == errors.NONE
    cluster.end(producer)
    assert cluster.committed("t-0") == ["t-0 one", "more"]
    following = cluster.start_producer()
    assert (cluster.write(following, "t-0", "other") == errors.NONE) == (release == "4.3")


@pytest.mark.parametrize(
    ("release", "error"),
    [
        ("3.9", errors.INVALID_PRODUCER_ID_MAPPING),
        ("4.0", errors.INVALID_PRODUCER_ID_MAPPING),
        ("4.3", errors.INVALID_PRODUCER_EPOCH),
    ],
)
def test_since_4_1_a_batch_of_a_former_epoch_is_refused_without_verification(
    release: str, error: str
) -> None:
    """The coordinator does not know the id, but the leader knows the producer (KAFKA-18042)."""
    cluster = TransactionsCluster(release)
    leader = cluster.leader("t-0")
    later = RecordBatch(("a",), 10**9, 1, 0, size_bytes=80)
    cluster.ask(leader, ProduceRequest(-1, US_PER_SECOND, {"t-0": later}, ""))
    assert cluster.write((10**9, 0), "t-0", "b", transactional_id="unknown") == error
    assert cluster.write((10**9, 2), "t-0", "c", transactional_id="unknown") == (
        errors.INVALID_PRODUCER_ID_MAPPING
    )
    log = cluster.model.brokers[leader].replicas.partitions["t-0"].log
    assert [batch.values for batch in log.batches] == [("a",)]


@pytest.mark.parametrize(
    ("release", "error"),
    [("3.9", errors.INVALID_PRODUCER_ID_MAPPING), ("4.3", errors.INVALID_PRODUCER_EPOCH)],
)
def test_since_4_1_offsets_of_a_former_epoch_are_refused_without_verification(
    release: str, error: str
) -> None:
    cluster = TransactionsCluster(release)
    former = cluster.start_producer()
    producer = cluster.start_producer()
    coordinator = cluster.leader(f"{CONSUMER_OFFSETS}-{partition_for('g', 3)}")

    def committed(transactional_id: str, epoch_of: tuple[int, int]) -> str:
        request = TxnOffsetCommitRequest(transactional_id, "g", *epoch_of, {"t-0": 1})
        return str(cluster.ask(coordinator, request).partitions["t-0"])

    cluster.add_offsets(producer)
    assert committed("id", producer) == errors.NONE
    cluster.end(producer)
    assert committed("unknown", former) == error


@patches_the_model
@pytest.mark.parametrize(
    ("release", "raised", "error"),
    [
        ("3.6", 0, errors.INVALID_TXN_STATE),
        ("3.6", 1, errors.INVALID_TXN_STATE),
        ("3.9", 0, errors.INVALID_TXN_STATE),
        ("3.9", 1, errors.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_leader_appends_nothing_if_the_transaction_has_ended_during_verification(
    release: str, raised: int, error: str
) -> None:
    """The answer that the transaction is open arrives after its abort.

    If it was aborted in a later epoch, the producer is fenced and gets that error (KAFKA-19690).
    """
    cluster = TransactionsCluster(release)
    producer = cluster.start_producer()
    cluster.add(producer, "t-0", "t-1")
    leader = cluster.leader("t-0")
    log = cluster.model.brokers[leader].replicas.partitions["t-0"].log
    callbacks: list[Any] = []
    verification = cluster.model.brokers[leader].replicas._verification
    verification.verify = lambda *fields, adds: callbacks.append(fields[-1])  # type: ignore[method-assign]
    batch = RecordBatch(("a",), *producer, 0, is_transactional=True)
    answers = cluster.send(leader, ProduceRequest(-1, US_PER_SECOND, {"t-0": batch}, "id"))
    cluster.run(1)
    assert (len(callbacks), answers) == (1, [])
    marker = TxnMarker(producer[0], producer[1] + raised, 5, False, ("t-0",))
    other = cluster.model.host(Process("other"))
    NetworkClient(other, f"broker-{leader}", "client", US_PER_SECOND).send(
        WriteTxnMarkersRequest((marker,)), lambda *_: None
    )
    cluster.run(1)
    callbacks[0]({"t-0": errors.NONE})
    cluster.run(1)
    assert answers[0].partitions["t-0"] == (error, -1)
    assert [stored.control_type for stored in log.batches] == [ABORT]


def test_a_batch_waits_for_the_verification_of_an_earlier_batch() -> None:
    """Otherwise a retry of the first batch would be out of order forever (KAFKA-14920)."""
    cluster = TransactionsCluster("3.9")
    producer = cluster.start_producer()
    assert cluster.write(producer, "t-0", "first", 0) == errors.TRANSACTION_ABORTABLE
    assert cluster.add(producer, "t-0") == errors.NONE
    assert cluster.write(producer, "t-0", "second", 1) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert cluster.write(producer, "t-0", "first", 0) == errors.NONE
    assert cluster.write(producer, "t-0", "second", 1) == errors.NONE
    cluster.end(producer)
    assert cluster.committed("t-0") == ["first", "second"]


# Transactions v2


@pytest.mark.parametrize(
    ("is_v2", "error", "committed"), [(False, errors.NONE, ["not yet"]), (True, errors.PRODUCER_FENCED, [])]
)
def test_a_late_end_cannot_end_the_next_transaction_since_transactions_v2(
    is_v2: bool,
    error: str,
    committed: list[str],
) -> None:
    cluster = TransactionsCluster("4.3", transactions_v2=is_v2)
    producer = open_transaction(cluster, "t-0")
    answer = cluster.end(producer, committed=False)
    following = (answer.producer_id, answer.producer_epoch) if is_v2 else producer
    if not is_v2:
        assert cluster.add(following, "t-0") == errors.NONE
    assert cluster.write(following, "t-0", "not yet", 0 if is_v2 else 1) == errors.NONE
    assert cluster.end(producer, committed=True).error == error
    assert cluster.committed("t-0") == committed


@pytest.mark.parametrize("committed", [True, False])
def test_an_older_producer_keeps_its_epoch_on_a_cluster_with_transactions_v2(committed: bool) -> None:
    cluster = TransactionsCluster("4.3")
    cluster.uses_v2 = False
    producer = open_transaction(cluster, "t-0")
    answer = cluster.end(producer, committed=committed)
    assert (answer.error, answer.producer_id, answer.producer_epoch) == (errors.NONE, NO_PRODUCER_ID, -1)
    assert (metadata_of(cluster).producer_id, metadata_of(cluster).producer_epoch) == producer
    assert cluster.end(producer, committed=committed).error == errors.NONE
    assert cluster.end(producer, committed=not committed).error == errors.INVALID_TXN_STATE
    assert cluster.add(producer, "t-1") == errors.NONE
    assert cluster.write(producer, "t-1", "next") == errors.NONE
    assert cluster.end(producer).error == errors.NONE
    assert cluster.committed("t-1") == ["next"]


def test_a_leader_adds_its_partition_only_for_a_producer_that_uses_transactions_v2() -> None:
    cluster = TransactionsCluster("4.3")
    cluster.uses_v2 = False
    producer = cluster.start_producer()
    assert cluster.write(producer, "t-0", "old") == errors.TRANSACTION_ABORTABLE
    cluster.uses_v2 = True
    assert cluster.write(producer, "t-0", "new") == errors.NONE
    assert list(metadata_of(cluster).partitions) == ["t-0"]


def test_a_group_joins_a_transaction_only_for_a_producer_that_uses_transactions_v2() -> None:
    cluster = TransactionsCluster("4.3")
    producer = cluster.start_producer()
    coordinator = cluster.leader(f"{CONSUMER_OFFSETS}-{partition_for('g', 3)}")
    for adds, error in ((False, errors.TRANSACTION_ABORTABLE), (True, errors.NONE)):
        request = TxnOffsetCommitRequest("id", "g", *producer, {"t-0": 1}, adds_partitions=adds)
        assert cluster.ask(coordinator, request).partitions == {"t-0": error}


def test_a_cluster_with_transactions_v2_raises_the_epoch_of_an_older_producer_that_it_fences() -> None:
    """The abort of a fenced producer goes by the cluster's ``transaction.version``."""
    cluster = TransactionsCluster("4.3")
    cluster.uses_v2 = False
    producer_id, epoch = open_transaction(cluster, "t-0")
    assert cluster.init().error == errors.CONCURRENT_TRANSACTIONS
    assert (metadata_of(cluster).producer_id, metadata_of(cluster).producer_epoch) == (producer_id, epoch + 1)
    assert cluster.end((producer_id, epoch)).error == errors.PRODUCER_FENCED


@pytest.mark.parametrize(("is_verified", "committed"), [(False, ["t-0 one", "next"]), (True, ["t-0 one"])])
def test_a_batch_sent_before_the_previous_marker_does_not_join_the_previous_transaction(
    is_verified: bool, committed: list[str]
) -> None:
    cluster = TransactionsCluster("4.3", ongoing_transaction_checks_epoch=is_verified)
    producer = open_transaction(cluster, "t-0")
    release = hold_markers(cluster, "t-0")
    answer = cluster.end(producer)
    following = answer.producer_id, answer.producer_epoch
    assert (cluster.write(following, "t-0", "next") == errors.NONE) != is_verified
    release()
    cluster.run(1)
    cluster.end(following, committed=False)
    assert cluster.committed("t-0") == committed


def test_with_v2_a_repeated_end_gets_the_same_answer() -> None:
    cluster = TransactionsCluster("4.3")
    producer = open_transaction(cluster, "t-0")
    first = cluster.end(producer)
    assert (first.error, first.producer_epoch) == (errors.NONE, producer[1] + 1)
    assert cluster.end(producer) == first
    assert cluster.end(producer, committed=False).error == errors.INVALID_TXN_STATE
    assert cluster.markers("t-0") == [COMMIT]


def test_with_v2_an_empty_transaction_can_be_aborted_but_not_committed() -> None:
    cluster = TransactionsCluster("4.3")
    producer = cluster.start_producer()
    assert cluster.end(producer).error == errors.INVALID_TXN_STATE
    answer = cluster.end(producer, committed=False)
    assert (answer.error, answer.producer_epoch) == (errors.NONE, producer[1] + 1)
    assert cluster.states() == ["Empty", "PrepareAbort", "CompleteAbort"]


def test_with_v2_an_abort_right_after_a_commit_waits_for_the_commit_and_fences_nobody() -> None:
    """See KAFKA-18464: a producer that writes nothing may abort before the markers are written."""
    cluster = TransactionsCluster("4.3")
    coordinator = cluster.coordinator()
    partition = next(name for name in ("t-0", "t-1", "t-2") if cluster.leader(name) != coordinator)
    producer = open_transaction(cluster, partition)
    release = hold_markers(cluster, partition)
    committed = cluster.end(producer)
    following = committed.producer_id, committed.producer_epoch
    assert cluster.end(following, committed=False).error == errors.CONCURRENT_TRANSACTIONS
    release()
    cluster.run(1)
    assert cluster.end(following, committed=False).error == errors.NONE
    assert cluster.committed(partition) == [f"{partition} one"]


def test_with_v2_a_producer_with_exhausted_epochs_continues_with_another_id() -> None:
    cluster = TransactionsCluster("4.3")
    producer_id, _ = open_transaction(cluster, "t-0")
    metadata = metadata_of(cluster)
    metadata.current = replace(metadata.current, producer_epoch=EPOCH_MAX - 1)
    producer = producer_id, EPOCH_MAX - 1
    answer = cluster.end(producer)
    assert answer.error == errors.NONE
    assert answer.producer_id != producer_id
    assert answer.producer_epoch == 0
    assert cluster.end(producer) == answer
    assert cluster.committed("t-0") == ["t-0 one"]


def test_two_producers_on_one_broker_have_separate_transactions() -> None:
    cluster = TransactionsCluster()
    one, other = cluster.start_producer("id"), cluster.start_producer("other")
    assert one[0] != other[0]
    for producer, name in ((one, "id"), (other, "other")):
        cluster.add(producer, "t-0", transactional_id=name)
        assert cluster.write(producer, "t-0", name, transactional_id=name) == errors.NONE
    request = EndTxnRequest("other", *other, committed=True)
    assert cluster.ask(cluster.coordinator("other"), request).error == errors.NONE
    assert cluster.committed("t-0") == []
    cluster.end(one, committed=False)
    assert cluster.committed("t-0") == ["other"]


def test_runs_with_transactions_are_deterministic() -> None:
    def run() -> list[Any]:
        cluster = TransactionsCluster("4.3")
        cluster.end(open_transaction(cluster, "t-0", "t-1", "t-2"))
        fail_over(cluster)
        return list(cluster.model.trace.events)

    assert run() == run()
