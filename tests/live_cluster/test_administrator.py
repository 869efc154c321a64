"""Requests of an administrator to real brokers: whom they are sent to, until when, and what the trace has of them."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.admin import DeleteRecordsRequest

from harrow.cluster_model.events import DeleteRecordsAnswered, RequestRejected
from harrow.cluster_model.settings import LONG_MAX
from harrow.live_cluster.administrator import Administrator
from harrow.live_cluster.names import Names
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from tests.patience import PATIENCE_S

NOT_LEADER, OUT_OF_RANGE = 6, 1


class Broker(BrokerConnection):
    """A broker that answers each DeleteRecords with the next of some errors; it is silent when there are none."""

    def __init__(self, *errors: int) -> None:
        super().__init__(("127.0.0.1", 1))
        self._errors = list(errors)
        self.asked: list[tuple[str, int, int]] = []
        self.was_asked = threading.Event()

    def version_of(self, request: Any, *known: int) -> int:
        return known[-1]

    def send(self, request: Any) -> None:
        (topic,) = request.topics
        (partition,) = topic.partitions
        self.asked.append((topic.name, partition.partition_index, partition.offset))
        self.was_asked.set()

    def has_answered(self, timeout_s: float) -> bool:
        return bool(self._errors)

    def receive(self, request: Any) -> Any:
        told = SimpleNamespace(partition_index=0, error_code=self._errors.pop(0), low_watermark=2)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[told])])


class Told:
    """Waits for events that are reported."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self._answered = threading.Event()

    def report(self, kind: Any, *fields: Any) -> None:
        self.events.append((kind, *fields))
        if kind is DeleteRecordsAnswered:
            self._answered.set()

    def all_of_it(self) -> list[tuple[Any, ...]]:
        assert self._answered.wait(PATIENCE_S)
        return self.events


@pytest.mark.parametrize(("offset", "answered"), [(2, 2), (-1, 2)])
def test_a_leader_is_asked_until_it_answers(offset: int, answered: int) -> None:
    told, leader = Told(), Broker(NOT_LEADER, 0)
    with Administrator({1: leader}.__getitem__, lambda _: 1, told.report, Names(topics={"t": "x"})) as admin:
        assert admin.deleted_below("t-0") == 0
        admin.delete_records("t-0", offset)
        assert told.all_of_it() == [
            (RequestRejected, 1, "DeleteRecords", "t-0", "admin", "NOT_LEADER_FOR_PARTITION"),
            (DeleteRecordsAnswered, 1, "t-0", answered, "NONE"),
        ]
        # Where all that is committed is to be deleted the answer says what that was.
        assert admin.deleted_below("t-0") == answered
    assert leader.asked == [("x", 0, offset)] * 2


def test_all_may_be_deleted_until_the_answer_says_what_was_committed() -> None:
    leader = Broker()
    with Administrator({1: leader}.__getitem__, lambda _: 1, Told().report) as admin:
        admin.delete_records("t-0", -1)
        assert admin.deleted_below("t-0") == LONG_MAX
        assert leader.was_asked.wait(PATIENCE_S)


def test_the_next_leader_is_asked_when_one_is_gone_before_it_answers() -> None:
    told, first, second = Told(), Broker(), Broker(0)
    brokers = {1: first, 2: second}

    def leader(_: str) -> int:
        return 2 if first.was_asked.is_set() else 1

    with Administrator(brokers.__getitem__, leader, told.report) as admin:
        admin.delete_records("t-0", 2)
        assert told.all_of_it() == [(DeleteRecordsAnswered, 2, "t-0", 2, "NONE")]


def test_an_error_that_no_retry_mends_is_the_answer() -> None:
    told = Told()
    with Administrator({1: Broker(OUT_OF_RANGE)}.__getitem__, lambda _: 1, told.report) as admin:
        admin.delete_records("t-0", 7)
        assert told.all_of_it() == [(DeleteRecordsAnswered, 1, "t-0", 7, "OFFSET_OUT_OF_RANGE")]


def test_a_request_without_an_answer_ends_with_the_run() -> None:
    told, leader = Told(), Broker()
    with Administrator({1: leader}.__getitem__, lambda _: 1, told.report) as admin:
        admin.delete_records("t-0", 2)
        assert leader.was_asked.wait(PATIENCE_S)
    assert told.events == []


def test_a_broker_that_does_not_answer_is_asked_again() -> None:
    told, attempts = Told(), 0
    leader = Broker(0)

    def connect(_: int) -> BrokerConnection:
        nonlocal attempts
        attempts += 1
        return Lost() if attempts == 1 else leader

    with Administrator(connect, lambda _: 1, told.report) as admin:
        admin.delete_records("t-0", 2)
        assert told.all_of_it() == [(DeleteRecordsAnswered, 1, "t-0", 2, "NONE")]


class Lost(Broker):
    """A broker whose connection breaks."""

    def send(self, request: Any) -> None:
        raise ConnectionLostError("nobody is there")
