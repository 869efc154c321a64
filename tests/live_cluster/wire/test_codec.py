"""Messages of the model survive encoding and decoding in every version of the protocol."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, Final, get_args
from uuid import UUID

import pytest

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.kraft import protocol as kraft
from harrow.cluster_model.log.record_batch import ABORT, COMMIT, ControlBatch, RecordBatch
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE
from harrow.live_cluster.names import Names
from harrow.live_cluster.requests.brokers.broker_driver import SingleRequest
from harrow.live_cluster.requests.controllers.driver import RequestToController
from harrow.live_cluster.requests.coordinators.driver import CoordinatorRequest
from harrow.live_cluster.wire.codec import (
    Naming,
    Sent,
    answer_to_wire,
    request_from_wire,
    to_wire,
)
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.decoding import decoded
from harrow.live_cluster.wire.errors import error_code, error_name
from harrow.live_cluster.wire.stored_batches import as_batches, encoded, whole_batches

BATCH: Final = RecordBatch(("a", "b"), 7, 1, 3, 0, max_timestamp_us=1_000, is_transactional=True)
STORED: Final = RecordBatch(("a", "b"), 7, 1, 3, 40, 2, max_timestamp_us=1_000)
MARKER: Final = ControlBatch(
    (),
    7,
    1,
    -1,
    42,
    2,
    max_timestamp_us=1_000,
    is_transactional=True,
    control_type=ABORT,
    coordinator_epoch=5,
)
SUBSCRIPTION: Final = messages.Subscription(("t", "u"))
ON_CLUSTER: Final = Naming(
    Names({0: 0, 1: 41, 2: 42}, {"t": "t7", "u": "u7"}), "7", {"t7": UUID(int=107), "u7": UUID(int=108)}, "c"
)
"""A cluster where every name differs from the campaign's."""
VERSIONS: Final = range(13)

REQUESTS: Final[tuple[Any, ...]] = (
    protocol.ProduceRequest(-1, 30_000, {"t-0": BATCH}),
    protocol.ProduceRequest(-1, 30_000, {"t-0": BATCH}, "x"),
    protocol.ProduceRequest(-1, 30_000, {"t-0": BATCH}, "x", adds_partitions=True),
    protocol.FetchRequest(
        *(1, 20_000, 900, {"t-0": protocol.PartitionData(5, 2), "t-1": protocol.PartitionData(6, 2)}),
        session_id=3,
        session_epoch=4,
        forgotten=("t-2",),
    ),
    protocol.FetchRequest(1, 0, 900, {"t-0": protocol.PartitionData(5, -1, log_start=3)}),
    protocol.FetchRequest(
        -1, 0, 900, {"t-0": protocol.PartitionData(5, -1)}, protocol.READ_COMMITTED, rack=""
    ),
    protocol.ListOffsetsRequest(
        -1, {"t-0": -1, "u-1": -1}, protocol.READ_COMMITTED, protocol.EARLIEST_TIMESTAMP
    ),
    protocol.OffsetsForLeaderEpochRequest(-2, {"t-0": (-1, 2)}),
    protocol.InitProducerIdRequest("x", 60_000_000, 7, 2),
    protocol.MetadataRequest(("t", "u"), allow_auto_topic_creation=False),
    messages.FindCoordinatorRequest(CONSUMER_OFFSETS, "g"),
    messages.FindCoordinatorRequest(TRANSACTION_STATE, "x"),
    messages.AddPartitionsToTxnRequest("x", 7, 2, ("t-0", "t-1")),
    messages.AddPartitionsToTxnRequest("x", 7, 2, ("t-0",), verify_only=True, is_v2=True),
    messages.AddPartitionsToTxnRequest("x", 7, 2, ("t-0",), is_v2=True),
    messages.AddOffsetsToTxnRequest("x", 7, 2, "g"),
    messages.TxnOffsetCommitRequest("x", "g", 7, 2, {"t-0": 5}, 3, "m", "i"),
    messages.TxnOffsetCommitRequest(
        "x", "g", 7, 2, {"t-0": 5}, 3, "m", "i", adds_partitions=True, knows_group_errors=True
    ),
    messages.EndTxnRequest("x", 7, 2, committed=True),
    messages.EndTxnRequest("x", 7, 2, committed=True, is_v2=True),
    messages.JoinGroupRequest("g", 9_000, 8_000, "m", "i", (("range", SUBSCRIPTION),)),
    messages.SyncGroupRequest("g", 3, "m", "i", {"m": ("t-0", "t-1"), "n": ()}),
    messages.HeartbeatRequest("g", 3, "m", ""),
    messages.LeaveGroupRequest("g", "m", "i"),
    messages.OffsetCommitRequest("g", 3, "m", "", {"t-0": 5, "t-1": 6}),
    messages.OffsetFetchRequest("g", ("t-0", "t-1"), require_stable=True),
    messages.OffsetFetchRequest("g", ("t-0",), member="m", epoch=3),
    messages.ConsumerGroupHeartbeatRequest("g", "m", 0, "i", 9_000, ("t",), "range", ("t-0",)),
    messages.ConsumerGroupHeartbeatRequest("g", "m", -1),
    kraft.BrokerRegistrationRequest(1, 3, -1),
    kraft.BrokerHeartbeatRequest(1, 9, 70, want_fence=True, want_shut_down=False),
    protocol.AlterPartitionRequest(1, 9, {"t-0": protocol.AlterPartition(2, 3, ((1, 9), (2, -1)))}),
)
FETCHED: Final = protocol.FetchedPartition(
    *(errors.NONE, 43, (STORED, MARKER)),
    log_start_offset=1,
    preferred_read_replica=2,
    aborted=((7, 40),),
    last_stable_offset=40,
)
ANSWERS: Final[dict[type, tuple[Any, ...]]] = {
    protocol.ProduceRequest: (
        protocol.ProduceResponse({"t-0": (errors.NOT_ENOUGH_REPLICAS, -1)}, throttle_us=1_000),
    ),
    protocol.FetchRequest: (protocol.FetchResponse({"t-0": FETCHED}, session_id=3),),
    protocol.ListOffsetsRequest: (protocol.ListOffsetsResponse({"t-0": (errors.NONE, 4)}),),
    protocol.OffsetsForLeaderEpochRequest: (
        protocol.OffsetsForLeaderEpochResponse({"t-0": (errors.NONE, 2, 9)}),
    ),
    protocol.InitProducerIdRequest: (protocol.InitProducerIdResponse(errors.NONE, 7, 2),),
    protocol.MetadataRequest: (protocol.MetadataResponse((0, 1), {"t-0": (1, 3), "u-0": (-1, 4)}, {1: "r"}),),
    messages.FindCoordinatorRequest: (messages.FindCoordinatorResponse(errors.NONE, 1),),
    messages.AddPartitionsToTxnRequest: (
        messages.AddPartitionsToTxnResponse({"t-0": errors.CONCURRENT_TRANSACTIONS}),
    ),
    messages.AddOffsetsToTxnRequest: (messages.AddOffsetsToTxnResponse(errors.PRODUCER_FENCED),),
    messages.TxnOffsetCommitRequest: (messages.TxnOffsetCommitResponse({"t-0": errors.ILLEGAL_GENERATION}),),
    messages.EndTxnRequest: (messages.EndTxnResponse(errors.NONE, 7, 3),),
    messages.JoinGroupRequest: (
        messages.JoinGroupResponse(
            errors.NONE,
            3,
            "range",
            "m",
            "m",
            (("m", "i", SUBSCRIPTION), ("n", "", SUBSCRIPTION)),
            skip_assignment=True,
        ),
        messages.JoinGroupResponse(errors.MEMBER_ID_REQUIRED, member="m"),
    ),
    messages.SyncGroupRequest: (messages.SyncGroupResponse(errors.NONE, ("t-0", "t-1")),),
    messages.HeartbeatRequest: (messages.HeartbeatResponse(errors.REBALANCE_IN_PROGRESS),),
    messages.LeaveGroupRequest: (messages.LeaveGroupResponse(errors.UNKNOWN_MEMBER_ID),),
    messages.OffsetCommitRequest: (
        messages.OffsetCommitResponse({"t-0": errors.NONE, "t-1": errors.ILLEGAL_GENERATION}),
    ),
    messages.OffsetFetchRequest: (
        messages.OffsetFetchResponse({"t-0": (errors.NONE, 5), "t-1": (errors.NONE, -1)}),
    ),
    messages.ConsumerGroupHeartbeatRequest: (
        messages.ConsumerGroupHeartbeatResponse(errors.NONE, "m", 3, 5_000, ("t-0", "u-1")),
        messages.ConsumerGroupHeartbeatResponse(errors.NONE, "m", 3, 5_000),
    ),
    kraft.BrokerRegistrationRequest: (kraft.BrokerRegistrationResponse(errors.NONE, 9),),
    kraft.BrokerHeartbeatRequest: (
        kraft.BrokerHeartbeatResponse(errors.NONE, is_caught_up=True, is_fenced=False, should_shut_down=True),
    ),
    protocol.AlterPartitionRequest: (
        protocol.AlterPartitionResponse(errors.NONE, {"t-0": (errors.NONE, 4)}),
    ),
}


class OneVersion(BrokerConnection):
    """Supports one version of every request, or also those down to *lowest*."""

    def __init__(self, version: int, lowest: int | None = None) -> None:
        super().__init__(("broker", 1))
        self._version = version
        self._lowest = version if lowest is None else lowest

    def _supported(self, request: Any) -> tuple[int, int]:
        return self._lowest, self._version


def sent_in_each_version(request: Any) -> Iterator[Sent]:
    """Yield a request in each version that supports it, encoded and decoded."""
    for version in VERSIONS:
        try:
            sent = to_wire(request, OneVersion(version), ON_CLUSTER)
        except ConnectionLostError:
            continue
        sent.wire.with_header(1, "harrow")
        frame = bytes(sent.wire.encode(header=True))
        yield replace(sent, wire=type(sent.wire)[version].decode(frame, header=True))


def round_trip(sent: Sent, answer: Any) -> Any:
    """Return an answer after a server encoded and a client decoded it."""
    wire = answer_to_wire(sent.wire, answer, ON_CLUSTER)
    wire.with_header(correlation_id=1)
    kind = sent.wire.header.get_response_class()
    return sent.answer(decoded(kind, bytes(wire.encode(header=True))))


def plain(message: Any) -> Any:
    """Return a message as dictionaries, without the fields of batches that exist only in a log."""
    return without(asdict(message), {"size_bytes", "max_timestamp_us"})


def without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: without(each, names) for name, each in value.items() if name not in names}
    return [without(each, names) for each in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("message", REQUESTS, ids=lambda each: type(each).__name__)
def test_a_server_decodes_the_request_that_a_client_encoded(message: Any) -> None:
    *older, newest = [request_from_wire(sent.wire, ON_CLUSTER) for sent in sent_in_each_version(message)]
    assert plain(newest) == plain(message)
    assert {type(read) for read in older} <= {type(message)}


@pytest.mark.parametrize("message", REQUESTS, ids=lambda each: type(each).__name__)
def test_a_client_decodes_the_answer_that_a_server_encoded(message: Any) -> None:
    for answer in ANSWERS[type(message)]:
        *older, newest = [round_trip(sent, answer) for sent in sent_in_each_version(message)]
        # A consumer that sends no rack gets no preferred read replica.
        knows_replicas = getattr(message, "rack", "") is not None
        lacking = set() if knows_replicas else {"preferred_read_replica"}
        # Before transactions v2 a producer gets no new epoch.
        if isinstance(message, messages.EndTxnRequest) and not message.is_v2:
            lacking = {"producer_id", "producer_epoch"}
        assert without(plain(newest), lacking) == without(plain(answer), lacking)
        assert {type(read) for read in older} <= {type(answer)}


def test_every_compared_request_has_an_example_here() -> None:
    kinds = {*get_args(SingleRequest), *get_args(RequestToController), *get_args(CoordinatorRequest)}
    assert kinds == {type(each) for each in REQUESTS} == set(ANSWERS)


def test_an_error_has_one_name_and_one_number() -> None:
    for name in vars(errors).values():
        if isinstance(name, str) and name.isupper():
            assert error_name(error_code(name)) == name


@pytest.mark.parametrize("kind", [COMMIT, ABORT])
def test_a_marker_is_stored_as_kafka_does(kind: str) -> None:
    marker = replace(MARKER, control_type=kind)
    [(stored, _)] = whole_batches(encoded(marker, created_ms=7))
    [read] = as_batches(stored)
    assert isinstance(read, ControlBatch)
    assert (read.control_type, read.coordinator_epoch, read.base_offset, read.leader_epoch) == (
        kind,
        5,
        42,
        2,
    )


def wire_request(request: Any, version: int) -> Any:
    return to_wire(request, OneVersion(version), ON_CLUSTER).wire


def test_microseconds_of_the_model_are_milliseconds_on_the_wire() -> None:
    """A round trip hides a mistake that encoder and decoder share, so this test reads the wire."""
    produce = REQUESTS[0]
    fetch = next(each for each in REQUESTS if isinstance(each, protocol.FetchRequest))
    join = next(each for each in REQUESTS if isinstance(each, messages.JoinGroupRequest))
    init = next(each for each in REQUESTS if isinstance(each, protocol.InitProducerIdRequest))
    assert wire_request(produce, 9).timeout_ms == 30
    assert wire_request(fetch, 10).max_wait_ms == 20
    assert wire_request(init, 5).transaction_timeout_ms == 60_000
    assert (wire_request(join, 9).session_timeout_ms, wire_request(join, 9).rebalance_timeout_ms) == (9, 8)


def test_each_number_of_a_partition_goes_to_its_own_field() -> None:
    """A round trip hides two fields that are swapped in both directions."""
    fetch, epochs = (
        protocol.FetchRequest(-1, 0, 900, {"t-3": protocol.PartitionData(5, 2)}),
        protocol.OffsetsForLeaderEpochRequest(-1, {"t-3": (4, 2)}),
    )
    partition = wire_request(fetch, 10).topics[0].partitions[0]
    assert (partition.partition, partition.fetch_offset, partition.current_leader_epoch) == (3, 5, 2)
    partition = wire_request(epochs, 3).topics[0].partitions[0]
    assert (partition.partition, partition.current_leader_epoch, partition.leader_epoch) == (3, 4, 2)
    [sent] = list(sent_in_each_version(epochs))[-1:]
    response = protocol.OffsetsForLeaderEpochResponse({"t-3": (errors.UNKNOWN_LEADER_EPOCH, 2, 9)})
    ended = answer_to_wire(sent.wire, response, ON_CLUSTER).topics[0].partitions[0]
    assert (ended.error_code, ended.leader_epoch, ended.end_offset) == (75, 2, 9)


@pytest.mark.parametrize(
    ("supported", "is_v2", "used"), [(3, False, 3), (4, True, 4), (5, False, 3), (5, True, 5)]
)
def test_leaders_add_partitions_in_their_own_version_of_the_request(
    supported: int, is_v2: bool, used: int
) -> None:
    request = messages.AddPartitionsToTxnRequest("x", 7, 2, ("t-0",), is_v2=is_v2)
    wire = to_wire(request, OneVersion(supported, lowest=0), ON_CLUSTER).wire
    assert used == wire.API_VERSION
    assert bool(wire.transactions) == (used >= 4)


def test_a_group_error_is_reported_for_each_requested_partition() -> None:
    request = messages.OffsetFetchRequest("g", ("t-0", "t-1"), member="m", epoch=3)
    [sent] = sent_in_each_version(request)
    refused = messages.OffsetFetchResponse({}, errors.STALE_MEMBER_EPOCH)
    assert round_trip(sent, refused).partitions == dict.fromkeys(
        ("t-0", "t-1"), (errors.STALE_MEMBER_EPOCH, messages.NO_OFFSET_COMMITTED)
    )
