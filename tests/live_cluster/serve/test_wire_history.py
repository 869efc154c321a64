"""Requests and responses of real clients become the history that rules judge."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.coordinators.protocol import EndTxnRequest, EndTxnResponse
from harrow.cluster_model.history import History
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.protocol import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ProduceRequest,
    ProduceResponse,
)
from harrow.live_cluster.serve.wire_history import ConnectionHistory, WireHistory


class Wire:
    """The history of one server with one connection."""

    def __init__(self) -> None:
        self.history = History()
        clock = cast("Any", SimpleNamespace(now_us=0))
        self.shared = WireHistory(self.history, clock, lambda _: True)
        self.connection = self.connect()

    def connect(self) -> ConnectionHistory:
        return self.shared.connection("client")

    def produce(self, batch: RecordBatch, *answers: tuple[str, int], acks: int = -1) -> None:
        request = ProduceRequest(acks, 0, {"t-0": batch})
        fetch = self.connection.request(request, 0)
        for answer in answers:
            self.connection.answer(request, ProduceResponse({"t-0": answer}), fetch)

    def fetch(self, offset: int, *batches: RecordBatch) -> None:
        request = FetchRequest(-1, 0, 0, {"t-0": PartitionData(offset, -1)})
        fetch = self.connection.request(request, 0)
        self.connection.answer(
            request, FetchResponse({"t-0": FetchedPartition(errors.NONE, 9, batches)}), fetch
        )

    def lines(self) -> list[tuple[str, str, tuple[Any, ...]]]:
        self.shared.close()
        return [(operation.f, operation.type, operation.value) for operation in self.history.operations]


def batch_of(*values: str, sequence: int = -1, transactional: bool = False) -> RecordBatch:
    producer = (-1, -1) if sequence < 0 else (5, 0)
    return RecordBatch(values, *producer, sequence, is_transactional=transactional)


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_retry_is_no_second_send_whether_it_comes_before_or_after_the_answer(wire: Wire) -> None:
    batch = batch_of("5.0.0", "5.0.1", sequence=0)
    wire.produce(batch)
    wire.produce(batch, (errors.NONE, 0))
    wire.produce(batch, (errors.NONE, 0))
    kinds = [(f, kind) for f, kind, _ in wire.lines()]
    assert kinds == [("send", "invoke")] * 2 + [("send", "ok")] * 2


def test_a_send_without_an_answer_has_an_unknown_outcome(wire: Wire) -> None:
    wire.produce(batch_of("c1.1.0"))
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", "info"]


@pytest.mark.parametrize(
    ("error", "kind"), [("NOT_ENOUGH_REPLICAS", "fail"), ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "info")]
)
def test_a_refused_send_has_failed_unless_the_leader_may_have_appended_it(
    wire: Wire, error: str, kind: str
) -> None:
    wire.produce(batch_of("c1.1.0"), (error, -1))
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", kind]


def test_a_refused_batch_of_an_idempotent_producer_may_still_be_retried(wire: Wire) -> None:
    batch = batch_of("5.0.0", sequence=0)
    wire.produce(batch, ("NOT_ENOUGH_REPLICAS", -1))
    wire.produce(batch, (errors.NONE, 4))
    assert wire.lines()[-1] == ("send", "ok", (("send", "t-0", (4, "5.0.0")),))


def test_acks_0_acknowledges_without_an_offset(wire: Wire) -> None:
    wire.produce(batch_of("c1.1.0"), acks=0)
    assert wire.lines()[-1] == ("send", "ok", (("send", "t-0", "c1.1.0"),))


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_completes_as_its_coordinator_decides(wire: Wire, committed: bool) -> None:
    wire.produce(batch_of("5.0.0", sequence=0, transactional=True), (errors.NONE, 7))
    request = EndTxnRequest("pay", 5, 0, committed)
    wire.connection.answer(request, EndTxnResponse(errors.NONE), wire.connection.request(request, 0))
    sent = (7, "5.0.0") if committed else "5.0.0"
    assert wire.lines()[-1] == ("txn", "ok" if committed else "fail", (("send", "t-0", sent),))


def test_a_committed_transaction_does_not_vouch_for_records_without_an_acknowledgement(wire: Wire) -> None:
    wire.produce(batch_of("5.0.0", sequence=0, transactional=True), (errors.NONE, 7))
    wire.produce(batch_of("5.0.1", sequence=1, transactional=True), ("NOT_ENOUGH_REPLICAS", -1))
    request = EndTxnRequest("pay", 5, 0, committed=True)
    wire.connection.answer(request, EndTxnResponse(errors.NONE), wire.connection.request(request, 0))
    outcomes = [(kind, value) for _, kind, value in wire.lines() if kind != "invoke"]
    assert outcomes == [("ok", (("send", "t-0", (7, "5.0.0")),)), ("info", (("send", "t-0", "5.0.1"),))]


@pytest.mark.parametrize(("committed", "kind"), [(True, "info"), (False, "fail")])
def test_a_transaction_without_an_answer_is_unknown_only_if_a_commit_was_sent(
    wire: Wire, committed: bool, kind: str
) -> None:
    wire.produce(batch_of("5.0.0", sequence=0, transactional=True), (errors.NONE, 7))
    wire.connection.request(EndTxnRequest("pay", 5, 0, committed), 0)
    assert [each for f, each, _ in wire.lines() if f == "txn"] == ["invoke", kind]


def test_a_client_that_chooses_another_offset_gets_its_partition_again(wire: Wire) -> None:
    stored = [batch_of("a", "b").stored_at(0, 0), batch_of("c").stored_at(2, 0)]
    wire.fetch(0, *stored)
    wire.fetch(3)
    wire.fetch(1, *stored)
    lines = [(f, value) for f, kind, value in wire.lines() if kind == "ok"]
    assert lines == [
        ("assign", ("t-0",)),
        ("poll", (("poll", {"t-0": [(0, "a"), (1, "b"), (2, "c")]}),)),
        ("assign", ()),
        ("assign", ("t-0",)),
        ("poll", (("poll", {"t-0": [(1, "b"), (2, "c")]}),)),
    ]


def test_a_later_fetch_does_not_change_what_an_earlier_one_asked_for(wire: Wire) -> None:
    early = FetchRequest(-1, 0, 0, {"t-0": PartitionData(0, -1)})
    asked = wire.connection.request(early, 0)
    wire.connection.request(FetchRequest(-1, 0, 0, {"t-0": PartitionData(1, -1)}), 0)
    batches = (batch_of("a").stored_at(0, 0),)
    answer = FetchResponse({"t-0": FetchedPartition(errors.NONE, 9, batches)})
    wire.connection.answer(early, answer, asked)
    assert wire.lines()[-1] == ("poll", "ok", (("poll", {"t-0": [(0, "a")]}),))
