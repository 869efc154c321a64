"""Requests of an administrator to real brokers: their receivers, retries and trace events."""

import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from harrow.cluster_model.events import BrokerRegistered, DeleteRecordsAnswered, RequestRejected
from harrow.cluster_model.settings import LONG_MAX
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.target.administrator import Administrator
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from tests.patience import PATIENCE_S

NOT_LEADER, OUT_OF_RANGE, NOT_CONTROLLER, INVALID_PARTITIONS, NO_REASSIGNMENT = 6, 1, 41, 37, 85


class Broker(BrokerConnection):
    """A broker that answers each DeleteRecords with the next of some errors, then stays silent."""

    def __init__(self, *errors: int) -> None:
        super().__init__(("127.0.0.1", 1))
        self._errors = list(errors)
        self.asked: list[tuple[str, int, int]] = []
        self.was_requested = threading.Event()

    def version_of(self, request: Any, *versions: int) -> int:
        return versions[-1]

    def send(self, request: Any) -> None:
        (topic,) = request.topics
        (partition,) = topic.partitions
        self.asked.append((topic.name, partition.partition_index, partition.offset))
        self.was_requested.set()

    def has_answered(self, timeout_s: float) -> bool:
        return bool(self._errors)

    def receive(self, request: Any) -> Any:
        result = SimpleNamespace(partition_index=0, error_code=self._errors.pop(0), low_watermark=2)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[result])])


class Reports:
    """Collects reported events and waits for the answer to DeleteRecords."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self._answered = threading.Event()

    def report(self, kind: Any, *fields: Any) -> None:
        if kind is not BrokerRegistered:
            self.events.append((kind, *fields))
        if kind is DeleteRecordsAnswered:
            self._answered.set()

    def until_answer(self) -> list[tuple[Any, ...]]:
        assert self._answered.wait(PATIENCE_S)
        return self.events


def administrator(
    brokers: Mapping[int, BrokerConnection],
    report: Report,
    names: Names = SAME_NAMES,
    *,
    leader_of: Callable[[str], int] = lambda _: 1,
) -> Administrator:
    """Return an administrator of a topic t with one partition on brokers 1 and 2, whose controller
    is 2.
    """
    metadata = ObservedMetadata(report)
    metadata.assignments.set_initial({"t": [(1, 2)]})
    metadata.set_registered([1, 2], {})
    return Administrator(
        brokers.__getitem__,
        report,
        leader_of=leader_of,
        controller=lambda: 2,
        observed_metadata=metadata,
        names=names,
    )


@pytest.mark.parametrize(("offset", "answered"), [(2, 2), (-1, 2)])
def test_a_request_to_the_leader_is_retried_until_it_succeeds(offset: int, answered: int) -> None:
    reports, leader = Reports(), Broker(NOT_LEADER, 0)
    with administrator({1: leader}, reports.report, Names(topics={"t": "x"})) as admin:
        assert admin.deleted_below("t-0") == 0
        admin.delete_records("t-0", offset)
        assert reports.until_answer() == [
            (RequestRejected, 1, "DeleteRecords", "t-0", "admin", "NOT_LEADER_FOR_PARTITION"),
            (DeleteRecordsAnswered, 1, "t-0", answered, "NONE"),
        ]
        # For a deletion of every committed record, the answer names the high watermark.
        assert admin.deleted_below("t-0") == answered
    assert leader.asked == [("x", 0, offset)] * 2


def test_until_its_answer_a_request_up_to_the_high_watermark_may_delete_all() -> None:
    leader = Broker()
    with administrator({1: leader}, Reports().report) as admin:
        admin.delete_records("t-0", -1)
        assert admin.deleted_below("t-0") == LONG_MAX
        assert leader.was_requested.wait(PATIENCE_S)


def test_a_request_moves_to_the_next_leader_if_the_first_does_not_answer() -> None:
    reports, first, second = Reports(), Broker(), Broker(0)
    brokers = {1: first, 2: second}

    def leader(_: str) -> int:
        return 2 if first.was_requested.is_set() else 1

    with administrator(brokers, reports.report, leader_of=leader) as admin:
        admin.delete_records("t-0", 2)
        assert reports.until_answer() == [(DeleteRecordsAnswered, 2, "t-0", 2, "NONE")]


def test_a_permanent_error_is_the_answer() -> None:
    reports = Reports()
    with administrator({1: Broker(OUT_OF_RANGE)}, reports.report) as admin:
        admin.delete_records("t-0", 7)
        assert reports.until_answer() == [(DeleteRecordsAnswered, 1, "t-0", 7, "OFFSET_OUT_OF_RANGE")]


def test_a_request_without_an_answer_ends_with_the_run() -> None:
    reports, leader = Reports(), Broker()
    with administrator({1: leader}, reports.report) as admin:
        admin.delete_records("t-0", 2)
        assert leader.was_requested.wait(PATIENCE_S)
    assert reports.events == []


def test_a_request_is_retried_after_a_lost_connection() -> None:
    reports, brokers = Reports(), {1: Lost(), 2: Broker(0)}
    leaders = iter([1])
    with administrator(brokers, reports.report, leader_of=lambda _: next(leaders, 2)) as admin:
        admin.delete_records("t-0", 2)
        assert reports.until_answer() == [(DeleteRecordsAnswered, 2, "t-0", 2, "NONE")]


class Controller(BrokerConnection):
    """A controller that records requests and answers each with the next of some errors."""

    def __init__(self, *errors: int) -> None:
        super().__init__(("127.0.0.1", 1))
        self._errors = list(errors)
        self.asked: list[Any] = []
        self.has_done = threading.Event()

    def version_of(self, request: Any, *versions: int) -> int:
        return versions[-1]

    def ask(self, request: Any) -> Any:
        self.asked.append(request.topics[0])
        error = self._errors.pop(0)
        if not self._errors:
            self.has_done.set()
        result = SimpleNamespace(error_code=error)
        return SimpleNamespace(
            error_code=0, results=[result], responses=[SimpleNamespace(partitions=[result])]
        )


def test_added_partitions_get_the_same_replicas_as_in_the_model() -> None:
    reports, controller = Reports(), Controller(NOT_CONTROLLER, 0)
    with administrator({2: controller}, reports.report, Names({1: 7, 2: 5}, {"t": "x"})) as admin:
        admin.create_partitions("t", 3)
        assert controller.has_done.wait(PATIENCE_S)
    for asked in controller.asked:
        assert (asked.name, asked.count) == ("x", 3)
        # The cluster's ids of brokers 2 and 1, then of 1 and 2.
        assert [each.broker_ids for each in asked.assignments] == [[5, 7], [7, 5]]
    assert len(controller.asked) == 2
    assert reports.events == []


def test_the_controller_refuses_fewer_partitions_than_exist() -> None:
    reports, controller = Reports(), Controller(INVALID_PARTITIONS)
    with administrator({2: controller}, reports.report) as admin:
        admin.create_partitions("t", 1)
        assert controller.has_done.wait(PATIENCE_S)
    assert controller.asked[0].assignments is None
    assert reports.events == [(RequestRejected, 2, "CreatePartitions", "t-1", "admin", "INVALID_PARTITIONS")]


@pytest.mark.parametrize(("target", "asked"), [((2, 1), [2, 1]), (None, None)])
def test_a_reassignment_can_be_requested_and_cancelled(
    target: tuple[int, ...] | None, asked: list[int] | None
) -> None:
    reports, controller = Reports(), Controller(NO_REASSIGNMENT)
    with administrator({2: controller}, reports.report) as admin:
        admin.alter_partition_reassignment("t-0", target)
        assert controller.has_done.wait(PATIENCE_S)
    (topic,) = controller.asked
    assert [(each.partition_index, each.replicas) for each in topic.partitions] == [(0, asked)]
    error = "NO_REASSIGNMENT_IN_PROGRESS"
    assert reports.events == [(RequestRejected, 2, "AlterPartitionReassignments", "t-0", "admin", error)]


class Lost(Broker):
    """A broker whose connection breaks."""

    def send(self, request: Any) -> None:
        raise ConnectionLostError("connection refused")
