"""Requests of an administrator to real brokers: whom they are sent to, until when, and what the trace has of them."""

import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from harrow.cluster_model.events import BrokerRegistered, DeleteRecordsAnswered, RequestRejected
from harrow.cluster_model.settings import LONG_MAX
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.target.administrator import Administrator
from harrow.live_cluster.watches.metadata_seen import MetadataSeen
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from tests.patience import PATIENCE_S

NOT_LEADER, OUT_OF_RANGE, NOT_CONTROLLER, INVALID_PARTITIONS, NO_REASSIGNMENT = 6, 1, 41, 37, 85


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
        if kind is not BrokerRegistered:
            self.events.append((kind, *fields))
        if kind is DeleteRecordsAnswered:
            self._answered.set()

    def all_of_it(self) -> list[tuple[Any, ...]]:
        assert self._answered.wait(PATIENCE_S)
        return self.events


def administrator(
    brokers: Mapping[int, BrokerConnection],
    report: Report,
    names: Names = SAME,
    *,
    leader_of: Callable[[str], int] = lambda _: 1,
) -> Administrator:
    """Return an administrator of a topic t with one partition on brokers 1 and 2, whose controller is 2."""
    seen = MetadataSeen(report)
    seen.assignments.begin({"t": [(1, 2)]})
    seen.set_registered([1, 2], {})
    return Administrator(
        brokers.__getitem__,
        report,
        leader_of=leader_of,
        controller=lambda: 2,
        seen=seen,
        names=names,
    )


@pytest.mark.parametrize(("offset", "answered"), [(2, 2), (-1, 2)])
def test_a_leader_is_asked_until_it_answers(offset: int, answered: int) -> None:
    told, leader = Told(), Broker(NOT_LEADER, 0)
    with administrator({1: leader}, told.report, Names(topics={"t": "x"})) as admin:
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
    with administrator({1: leader}, Told().report) as admin:
        admin.delete_records("t-0", -1)
        assert admin.deleted_below("t-0") == LONG_MAX
        assert leader.was_asked.wait(PATIENCE_S)


def test_the_next_leader_is_asked_when_one_is_gone_before_it_answers() -> None:
    told, first, second = Told(), Broker(), Broker(0)
    brokers = {1: first, 2: second}

    def leader(_: str) -> int:
        return 2 if first.was_asked.is_set() else 1

    with administrator(brokers, told.report, leader_of=leader) as admin:
        admin.delete_records("t-0", 2)
        assert told.all_of_it() == [(DeleteRecordsAnswered, 2, "t-0", 2, "NONE")]


def test_an_error_that_no_retry_mends_is_the_answer() -> None:
    told = Told()
    with administrator({1: Broker(OUT_OF_RANGE)}, told.report) as admin:
        admin.delete_records("t-0", 7)
        assert told.all_of_it() == [(DeleteRecordsAnswered, 1, "t-0", 7, "OFFSET_OUT_OF_RANGE")]


def test_a_request_without_an_answer_ends_with_the_run() -> None:
    told, leader = Told(), Broker()
    with administrator({1: leader}, told.report) as admin:
        admin.delete_records("t-0", 2)
        assert leader.was_asked.wait(PATIENCE_S)
    assert told.events == []


def test_a_broker_that_does_not_answer_is_asked_again() -> None:
    told, brokers = Told(), {1: Lost(), 2: Broker(0)}
    leaders = iter([1])
    with administrator(brokers, told.report, leader_of=lambda _: next(leaders, 2)) as admin:
        admin.delete_records("t-0", 2)
        assert told.all_of_it() == [(DeleteRecordsAnswered, 2, "t-0", 2, "NONE")]


class Controller(BrokerConnection):
    """A controller that answers orders with the next of some errors, and takes note of them."""

    def __init__(self, *errors: int) -> None:
        super().__init__(("127.0.0.1", 1))
        self._errors = list(errors)
        self.asked: list[Any] = []
        self.has_done = threading.Event()

    def version_of(self, request: Any, *known: int) -> int:
        return known[-1]

    def ask(self, request: Any) -> Any:
        self.asked.append(request.topics[0])
        error = self._errors.pop(0)
        if not self._errors:
            self.has_done.set()
        told = SimpleNamespace(error_code=error)
        return SimpleNamespace(error_code=0, results=[told], responses=[SimpleNamespace(partitions=[told])])


def test_partitions_that_are_added_get_the_replicas_that_the_model_gives_them() -> None:
    told, controller = Told(), Controller(NOT_CONTROLLER, 0)
    with administrator({2: controller}, told.report, Names({1: 7, 2: 5}, {"t": "x"})) as admin:
        admin.create_partitions("t", 3)
        assert controller.has_done.wait(PATIENCE_S)
    for asked in controller.asked:
        assert (asked.name, asked.count) == ("x", 3)
        # By the names that the cluster has for brokers 2 and 1, 1 and 2.
        assert [each.broker_ids for each in asked.assignments] == [[5, 7], [7, 5]]
    assert len(controller.asked) == 2
    assert told.events == []


def test_fewer_partitions_than_there_are_the_controller_refuses() -> None:
    told, controller = Told(), Controller(INVALID_PARTITIONS)
    with administrator({2: controller}, told.report) as admin:
        admin.create_partitions("t", 1)
        assert controller.has_done.wait(PATIENCE_S)
    assert controller.asked[0].assignments is None
    assert told.events == [(RequestRejected, 2, "CreatePartitions", "t-1", "admin", "INVALID_PARTITIONS")]


@pytest.mark.parametrize(("target", "asked"), [((2, 1), [2, 1]), (None, None)])
def test_a_reassignment_is_asked_for_and_cancelled(
    target: tuple[int, ...] | None, asked: list[int] | None
) -> None:
    told, controller = Told(), Controller(NO_REASSIGNMENT)
    with administrator({2: controller}, told.report) as admin:
        admin.alter_partition_reassignment("t-0", target)
        assert controller.has_done.wait(PATIENCE_S)
    (topic,) = controller.asked
    assert [(each.partition_index, each.replicas) for each in topic.partitions] == [(0, asked)]
    error = "NO_REASSIGNMENT_IN_PROGRESS"
    assert told.events == [(RequestRejected, 2, "AlterPartitionReassignments", "t-0", "admin", error)]


class Lost(Broker):
    """A broker whose connection breaks."""

    def send(self, request: Any) -> None:
        raise ConnectionLostError("nobody is there")
