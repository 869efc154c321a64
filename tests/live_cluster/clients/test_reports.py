"""The reports of many client processes form one history."""

import pytest

from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, POLL, SEND
from harrow.live_cluster.clients.reports import ClientReports


@pytest.fixture
def reports() -> ClientReports:
    return ClientReports(lambda: None)


def test_processes_with_one_name_have_different_numbers(reports: ClientReports) -> None:
    assert [reports.new_process(name) for name in ("p", "c", "p")] == [0, 1, 2]
    assert reports.process_names == {0: "p", 1: "c", 2: "p"}


def test_operations_are_ordered_by_time(reports: ClientReports) -> None:
    reports.add_send(0, INVOKE, "t-0", "a", 30)
    reports.add_send(0, OK, "t-0", "a", 50, offset=4)
    reports.add_send(1, INVOKE, "t-1", "b", 10)
    reports.add_send(1, FAIL, "t-1", "b", 40, error="NO")
    assert [(o.index, o.time_us, o.process, o.type, o.f, o.value, o.error) for o in reports.operations()] == [
        (0, 10, 1, INVOKE, SEND, ((SEND, "t-1", "b"),), None),
        (1, 30, 0, INVOKE, SEND, ((SEND, "t-0", "a"),), None),
        (2, 40, 1, FAIL, SEND, ((SEND, "t-1", "b"),), "NO"),
        (3, 50, 0, OK, SEND, ((SEND, "t-0", (4, "a")),), None),
    ]


def test_reports_of_one_time_keep_their_order(reports: ClientReports) -> None:
    for type_ in (INVOKE, OK):
        reports.add_send(0, type_, "t-0", "z", 7)
    for type_ in (INVOKE, FAIL):
        reports.add_send(0, type_, "t-0", "a", 7)
    assert [o.type for o in reports.operations()] == [INVOKE, OK, INVOKE, FAIL]


def test_poll_is_an_operation(reports: ClientReports) -> None:
    records = {"t-0": [(0, "a"), (1, "b")]}
    reports.add_poll(3, records, 20, 30)
    reports.add_send(0, INVOKE, "t-0", "c", 25)
    assert [(o.process, o.type, o.f, o.value) for o in reports.operations()] == [
        (3, INVOKE, POLL, ((POLL,),)),
        (0, INVOKE, SEND, ((SEND, "t-0", "c"),)),
        (3, OK, POLL, ((POLL, records),)),
    ]


@pytest.mark.parametrize(
    ("type_", "acked", "failed"),
    [(INVOKE, False, False), (OK, True, False), (FAIL, False, True), (INFO, False, True)],
)
def test_outcome_decides_the_type_of_a_send(
    reports: ClientReports, type_: str, acked: bool, failed: bool
) -> None:
    reports.add_send(0, type_, "t-0", "a", 1)
    assert (reports.is_acked("a"), reports.is_failed("a")) == (acked, failed)
    assert (reports.is_acked("b"), reports.is_failed("b")) == (False, False)


def test_waiters_are_notified_of_each_addition() -> None:
    counts: list[int] = []
    added = ClientReports(lambda: counts.append(len(added.operations())))
    added.add_send(0, INVOKE, "t-0", "a", 1)
    added.add_poll(0, {}, 2, 3)
    assert counts == [1, 3]
