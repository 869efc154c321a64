"""A transactional producer on a fake host, where the test plays the cluster."""

from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients import transaction_manager as manager
from harrow.cluster_model.clients.transactional_producer import TransactionalProducer
from harrow.cluster_model.coordinators.protocol import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    FindCoordinatorResponse,
    TxnOffsetCommitResponse,
)
from harrow.cluster_model.history import TXN, History
from harrow.cluster_model.protocol import InitProducerIdResponse, MetadataResponse, ProduceResponse
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, producer_config
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE
from tests.cluster_model.fakes import MS, SECOND, FakeHost, Sent

P, Q = "t-0", "t-1"
BROKERS = (0, 1, 2)
COORDINATOR = 2
RETRY = 100 * MS
"""retry.backoff.ms"""
FIRST = (7, 0)
"""The first producer id and epoch."""


class App:
    """An application with transactions. Broker 0 leads t-0, 1 leads t-1, 2 coordinates."""

    def __init__(self, release: str = "2.8", *, initialized: bool = True, **settings: Value) -> None:
        options: dict[str, Value] = {"transactional.id": "orders", "linger.ms": 0}
        options |= {name.replace("_", "."): value for name, value in settings.items()}
        self.host = FakeHost("app")
        self.history = History()
        process = self.history.new_process("app")
        self.producer = TransactionalProducer(
            self.host,
            process,
            BROKERS,
            (P, Q),
            producer_config(release, options),
            RELEASES[release].behaviours,
            self.history,
            30,
        )
        self.producer.start()
        self.done: list[str] = []
        self.metadata()
        if initialized:
            self.producer.init_transactions(self.done.append)
            self.find()
            self.host.advance(RETRY)
            self.give_id()

    def metadata(self) -> None:
        """Answer metadata requests that are the first in flight on their connections."""
        for sent in self.host.requests("Metadata"):
            if next(s for s in self.host.sent if s.connection is sent.connection) is sent:
                self.host.sent.remove(sent)
                sent.answer(MetadataResponse(BROKERS, {P: (0, 1), Q: (1, 1)}))

    def find(self, node: int = COORDINATOR, error: str = errors.NONE) -> Any:
        self.metadata()
        sent = self.host.take("FindCoordinator")
        sent.answer(FindCoordinatorResponse(error, node))
        return sent.body

    def give_id(self, producer_id: int = FIRST[0], epoch: int = FIRST[1], error: str = errors.NONE) -> Any:
        sent = self.host.take("InitProducerId")
        sent.answer(InitProducerIdResponse(error, producer_id, epoch))
        return sent.body

    def add(self, error: str = errors.NONE) -> Any:
        sent = self.host.take("AddPartitionsToTxn")
        sent.answer(AddPartitionsToTxnResponse(dict.fromkeys(sent.body.partitions, error)))
        return sent.body

    def produced(self, error: str = errors.NONE, offset: int = 0) -> Any:
        sent = self.host.take("Produce")
        sent.answer(ProduceResponse(dict.fromkeys(sent.body.batches, (error, offset))))
        return next(iter(sent.body.batches.values()))

    def end(self, error: str = errors.NONE, *, producer_id: int = -1, epoch: int = -1) -> Any:
        sent = self.host.take("EndTxn")
        sent.answer(EndTxnResponse(error, producer_id, epoch))
        return sent.body

    def commit(self) -> None:
        self.producer.commit_transaction(self.done.append)

    def abort(self) -> None:
        self.producer.abort_transaction(self.done.append)

    def send(self, *values: str, to: str = P) -> None:
        for value in values:
            self.producer.send(value, to)

    def begin(self, *values: str) -> None:
        """Begin a transaction, and write its records to the log of t-0."""
        assert self.producer.begin_transaction() == errors.NONE
        for value in values:
            self.send(value)
            if self.host.requests("AddPartitionsToTxn"):
                self.add()
            self.produced(offset=len(value))

    @property
    def state(self) -> str:
        return self.producer.transactions.state

    def in_flight(self) -> list[str]:
        return [
            sent.body.api
            for sent in self.host.sent
            if sent.body.api != "Metadata" and sent.connection.is_open
        ]

    def completed(self) -> list[tuple[str, tuple[Any, ...], str | None]]:
        """Return the completed transactions in the history."""
        operations = [o for o in self.history.operations if o.is_completion and o.f == TXN]
        return [(o.type, tuple(argument for _, _, argument in o.value), o.error) for o in operations]


def test_initialization_finds_the_coordinator_and_gets_an_epoch() -> None:
    app = App(initialized=False)
    app.producer.init_transactions(app.done.append)
    assert app.in_flight() == ["FindCoordinator"]
    lookup = app.find()
    assert (lookup.topic, lookup.key) == (TRANSACTION_STATE, "orders")
    app.host.advance(RETRY)  # a request that had to wait for the coordinator counts as a retry
    sent = app.host.requests("InitProducerId")[0]
    assert sent.server == f"broker-{COORDINATOR}"
    body = app.give_id()
    assert (body.transactional_id, body.transaction_timeout_us) == ("orders", 60 * SECOND)
    assert (app.done, app.state) == ([errors.NONE], manager.READY)


@pytest.mark.parametrize("error", [errors.COORDINATOR_LOAD_IN_PROGRESS, errors.CONCURRENT_TRANSACTIONS])
def test_initialization_is_retried_while_the_coordinator_is_not_ready(error: str) -> None:
    app = App(initialized=False)
    app.producer.init_transactions(app.done.append)
    app.find()
    app.host.advance(RETRY)
    app.give_id(error=error)
    assert app.in_flight() == []
    app.host.advance(RETRY)
    app.give_id()
    assert app.done == [errors.NONE]


def test_a_former_coordinator_triggers_another_lookup() -> None:
    app = App(initialized=False)
    app.producer.init_transactions(app.done.append)
    app.find()
    app.host.advance(RETRY)
    app.give_id(error=errors.NOT_COORDINATOR)
    app.find(1)
    app.host.advance(RETRY)
    assert app.host.requests("InitProducerId")[0].server == "broker-1"


def test_a_refused_transaction_timeout_is_fatal() -> None:
    app = App(initialized=False)
    app.producer.init_transactions(app.done.append)
    app.find()
    app.host.advance(RETRY)
    app.give_id(error=errors.INVALID_TRANSACTION_TIMEOUT)
    assert (app.done, app.state) == ([errors.INVALID_TRANSACTION_TIMEOUT], manager.FATAL_ERROR)


def test_a_partition_is_added_to_the_transaction_before_its_first_batch() -> None:
    app = App()
    app.producer.begin_transaction()
    app.send("a", "b")
    assert app.in_flight() == ["AddPartitionsToTxn"]
    added = app.add()
    assert (added.partitions, added.producer_id, added.producer_epoch) == ((P,), *FIRST)
    batch = app.produced()
    assert (batch.values, batch.is_transactional, batch.base_sequence) == (("a", "b"), True, 0)
    app.send("c")
    assert app.in_flight() == ["Produce"]
    app.send("d", to=Q)
    assert app.add().partitions == (Q,)


def test_with_transactions_v2_leaders_add_partitions_by_themselves() -> None:
    app = App("4.0")
    app.producer.begin_transaction()
    app.send("a")
    assert app.in_flight() == ["Produce"]
    assert app.produced().producer_epoch == 0
    app.commit()
    app.end(producer_id=7, epoch=1)
    app.producer.begin_transaction()
    app.send("b")
    batch = app.produced()
    assert (batch.producer_epoch, batch.base_sequence) == (1, 0)


def test_a_commit_waits_until_all_batches_are_in_the_logs() -> None:
    app = App(linger_ms=10_000)
    app.producer.begin_transaction()
    app.send("a")
    app.add()
    assert app.in_flight() == []
    app.commit()  # a commit ends the linger time
    assert app.in_flight() == ["Produce"]
    app.produced(offset=4)
    body = app.end()
    assert body.committed
    assert app.done == [errors.NONE, errors.NONE]
    assert app.completed() == [("ok", ((4, "a"),), None)]


def test_the_first_partitions_are_retried_sooner_while_the_previous_transaction_completes() -> None:
    app = App()
    app.producer.begin_transaction()
    app.send("a")
    app.add(errors.CONCURRENT_TRANSACTIONS)
    app.host.advance(20 * MS)
    app.add()
    app.produced()
    app.send("b", to=Q)
    app.add(errors.CONCURRENT_TRANSACTIONS)
    app.host.advance(20 * MS)
    assert app.in_flight() == []
    app.host.advance(80 * MS)
    assert app.in_flight() == ["AddPartitionsToTxn"]


def test_an_abort_drops_unsent_records_and_fails_the_whole_transaction() -> None:
    app = App()
    app.begin("a")
    app.send("b", to=Q)  # its partition is not added yet
    app.abort()
    app.add()
    body = app.end()
    assert not body.committed
    assert app.in_flight() == []
    assert app.completed() == [("fail", ("a", "b"), "ABORTED")]
    assert (app.state, app.producer.unfinished) == (manager.READY, 0)


def test_an_empty_transaction_ends_without_the_coordinator() -> None:
    app = App()
    for end in (app.commit, app.abort):
        app.producer.begin_transaction()
        end()
        assert app.in_flight() == []
    assert app.done == [errors.NONE] * 3
    assert app.completed() == []


def test_a_send_outside_of_a_transaction_fails() -> None:
    app = App()
    app.send("a")
    (invoked, failed) = app.history.operations
    assert (invoked.f, failed.type, failed.error) == ("send", "fail", manager.ILLEGAL_STATE)
    assert app.in_flight() == []


@pytest.mark.parametrize("error", [errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_refuses_every_call(error: str) -> None:
    app = App()
    app.begin("a")
    app.send("b", to=Q)
    app.add(error)
    assert app.state == manager.FATAL_ERROR
    assert app.completed() == [("fail", ("a", "b"), errors.PRODUCER_FENCED)]
    app.commit()
    assert app.done[-1] == errors.PRODUCER_FENCED
    assert app.producer.begin_transaction() == errors.PRODUCER_FENCED
    assert app.producer.unfinished == 0


def test_a_fence_in_answer_to_a_repeated_commit_leaves_the_outcome_unknown() -> None:
    app = App()
    app.begin("a")
    app.commit()
    app.host.take("EndTxn").lose()
    app.find(1)
    app.host.advance(RETRY)
    app.end(errors.PRODUCER_FENCED)
    assert app.completed() == [("info", ("a",), errors.PRODUCER_FENCED)]


@pytest.mark.parametrize(
    ("release", "state"), [("2.4", manager.FATAL_ERROR), ("2.8", manager.ABORTABLE_ERROR)]
)
def test_before_kip_588_invalid_producer_epoch_from_a_leader_is_fatal(release: str, state: str) -> None:
    app = App(release)
    app.producer.begin_transaction()
    app.send("a")
    app.add()
    app.produced(errors.INVALID_PRODUCER_EPOCH)
    assert app.state == state


def test_the_epoch_is_raised_after_an_abort_that_follows_an_error() -> None:
    app = App()
    app.producer.begin_transaction()
    app.send("a")
    app.add()
    app.produced(errors.UNKNOWN_SERVER_ERROR)
    assert app.state == manager.ABORTABLE_ERROR
    app.abort()
    app.end()
    assert app.done == [errors.NONE]
    body = app.give_id(7, 1)
    assert (body.producer_id, body.producer_epoch) == FIRST
    assert app.done == [errors.NONE] * 2
    app.begin("b")
    assert app.completed() == [("fail", ("a",), "ABORTED")]


def test_before_kip_360_an_abort_does_not_raise_the_epoch() -> None:
    app = App("2.4")
    app.producer.begin_transaction()
    app.send("a")
    app.add()
    app.produced(errors.UNKNOWN_SERVER_ERROR)
    app.abort()
    app.end()
    assert app.in_flight() == []
    assert (app.done, app.state) == ([errors.NONE] * 2, manager.READY)


@pytest.mark.parametrize(
    ("release", "state"), [("2.4", manager.FATAL_ERROR), ("2.8", manager.ABORTABLE_ERROR)]
)
def test_a_retried_batch_that_expires_may_be_in_the_log_and_fails_the_transaction(
    release: str, state: str
) -> None:
    app = App(release, delivery_timeout_ms=30_000, request_timeout_ms=20_000)
    app.producer.begin_transaction()
    app.send("a")
    app.add()
    app.produced(errors.NOT_ENOUGH_REPLICAS)
    app.host.advance(30 * SECOND)
    assert app.state == state


@pytest.mark.parametrize("release", ["2.4", "2.8"])
def test_a_batch_that_expires_with_its_first_request_only_requires_an_abort(release: str) -> None:
    app = App(release, delivery_timeout_ms=30_000, request_timeout_ms=30_000)
    app.producer.begin_transaction()
    app.send("a")
    app.add()
    app.host.advance(30 * SECOND)
    assert app.state == manager.ABORTABLE_ERROR


def test_after_a_timeout_only_the_same_call_is_allowed() -> None:
    app = App(max_block_ms=1_000)
    app.begin("a")
    app.commit()
    app.host.advance(SECOND)
    assert app.done == [errors.NONE, manager.CALL_TIMED_OUT]
    app.abort()
    assert app.done[-1] == manager.ILLEGAL_STATE
    assert app.producer.begin_transaction() == manager.ILLEGAL_STATE
    app.commit()
    app.end()
    assert app.done[-1] == errors.NONE
    assert app.completed() == [("ok", ((1, "a"),), None)]


def test_before_2_3_a_commit_never_times_out() -> None:
    app = App("2.0", max_block_ms=1_000)
    app.begin("a")
    app.commit()
    app.host.advance(10 * SECOND)
    assert app.done == [errors.NONE]


def test_offsets_are_committed_with_the_transaction() -> None:
    app = App()
    app.producer.begin_transaction()
    app.producer.send_offsets({"in-0": 3}, "g", "m", 5, "", app.done.append)
    sent = app.host.take("AddOffsetsToTxn")
    assert sent.body.group == "g"
    sent.answer(AddOffsetsToTxnResponse(errors.NONE))
    lookup = app.find(1)
    assert (lookup.topic, lookup.key) == (CONSUMER_OFFSETS, "g")
    app.host.advance(RETRY)
    commit: Sent = app.host.take("TxnOffsetCommit")
    assert (commit.server, commit.body.offsets, commit.body.generation) == ("broker-1", {"in-0": 3}, 5)
    commit.answer(TxnOffsetCommitResponse({"in-0": errors.NONE}))
    assert app.done == [errors.NONE] * 2
    app.commit()
    assert app.end().committed


def test_a_former_member_cannot_commit_offsets_in_a_transaction() -> None:
    app = App("4.0")
    app.producer.begin_transaction()
    app.producer.send_offsets({"in-0": 3}, "g", "m", 5, "", app.done.append)
    app.find(1)
    app.host.advance(RETRY)
    app.host.take("TxnOffsetCommit").answer(TxnOffsetCommitResponse({"in-0": errors.ILLEGAL_GENERATION}))
    assert (app.done[-1], app.state) == (errors.ILLEGAL_GENERATION, manager.ABORTABLE_ERROR)


def test_a_crash_before_the_commit_request_fails_the_transaction() -> None:
    app = App()
    app.begin("a")
    app.send("b")
    app.producer.abandon()
    assert app.completed() == [("fail", ("a", "b"), "CRASHED")]


def test_a_crash_during_the_commit_leaves_the_outcome_unknown() -> None:
    app = App()
    app.begin("a")
    app.commit()
    app.producer.abandon()
    assert app.completed() == [("info", ("a",), "CRASHED")]
