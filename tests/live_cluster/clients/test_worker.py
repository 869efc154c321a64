"""A client's process obeys orders with any client library. The library is a fake here."""

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from harrow.cluster_model.clients.programs import InitTransactions, WaitForRecord
from harrow.live_cluster.clients import run_clock, worker
from harrow.live_cluster.clients.channel import Channel
from harrow.live_cluster.clients.client_library import OnOutcome, Poll, TransactionCallError
from tests.patience import PATIENCE_S

TOPIC_NAMES = {"a-b": "harrow-1f-a-b"}


class FakeLibrary:
    """Records its calls and knows topics only by their names on the cluster."""

    def __init__(self, over: Callable[[], None]) -> None:
        self._over = over
        self.sent: list[tuple[str, int]] = []
        self.keys: list[bytes | None] = []
        self.assigned: list[str] = []
        self.calls: list[str] = []
        self.failures: dict[str, list[TransactionCallError]] = {}
        self.over_after = ""
        self.fatal: str | None = None
        self.fatal_when_sending: str | None = None
        self.polls: list[dict[str, list[tuple[int, str]]]] = []
        self.commit_error: str | None = None

    def make_transactions(self, _: dict[str, Any]) -> Any:
        calls = {
            f"{name}_transaction{'s' if name == 'init' else ''}": partial(self._call, name)
            for name in ("init", "begin", "commit", "abort")
        }
        return SimpleNamespace(send=self.send, poll=lambda _: None, fatal_error=lambda: self.fatal, **calls)

    call_takes_s = 0.0

    def _call(self, name: str) -> None:
        self.calls.append(name)
        time.sleep(self.call_takes_s)
        failures = self.failures.get(name, [])
        error = failures.pop(0) if failures else None
        if error is not None and error.is_fatal:
            self.fatal = error.name
        if name == self.over_after and not failures:
            self._over()
        if error is not None:
            raise error

    def make_member(self, _: dict[str, Any]) -> Any:
        def subscribe(topics: list[str], on_assigned: Any, on_revoked: Any) -> None:
            self.assigned += topics
            on_assigned(["called-0", "called-1"], 3)
            on_revoked(["called-1"], False)

        def poll(_max: int, _timeout_s: float) -> dict[str, list[tuple[int, str]]]:
            if self.polls:
                return self.polls.pop(0)
            self._over()
            return {}

        def commit(offsets: dict[str, int]) -> str | None:
            self.calls.append(f"commit {offsets}")
            return self.commit_error

        return SimpleNamespace(
            subscribe=subscribe,
            committed=lambda names: dict.fromkeys(names, -1),
            poll=poll,
            commit=commit,
            set_processed=lambda offsets: self.calls.append(f"processed {offsets}"),
            close=self._close,
        )

    def _close(self) -> None:
        self.calls.append("close")
        self._over()

    def make_producer(self, _: dict[str, Any]) -> Any:
        def fatal_error() -> str | None:
            if self.fatal is not None:
                self._over()
            return self.fatal

        return SimpleNamespace(send=self.send, poll=lambda _: None, fatal_error=fatal_error)

    def make_consumer(self, _: dict[str, Any]) -> Any:
        return SimpleNamespace(assign=self.assigned.extend, poll=self.poll)

    def send(self, topic: str, partition: int, _value: bytes, key: bytes | None, ended: OnOutcome) -> None:
        self.sent.append((topic, partition))
        self.keys.append(key)
        self.fatal = self.fatal_when_sending
        if self.fatal is None:
            ended("ok", 3, None)
        else:
            ended("info", None, self.fatal)
        if not self.over_after:
            self._over()

    def poll(self, _records_max: int, _timeout_s: float) -> Poll:
        self._over()
        name = self.assigned[0]
        return Poll({name: [(0, "v")]}, dict.fromkeys(self.assigned, 1), frozenset(self.assigned))


@contextmanager
def worked(
    monkeypatch: pytest.MonkeyPatch, *orders: dict[str, Any], **about: Any
) -> Iterator[tuple[FakeLibrary, list[dict[str, Any]]]]:
    """Let a worker obey orders until its library is used, then yield the library and the reports.

    *about* sets attributes of the library.
    """
    reports: list[dict[str, Any]] = []
    over = threading.Event()
    library = FakeLibrary(over.set)
    for name, value in about.items():
        setattr(library, name, value)
    monkeypatch.setattr(worker, "load_library", lambda _: library)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(sys, "argv", ["worker", *map(str, server.getsockname()), "token"])

        def work() -> None:
            with pytest.raises(SystemExit):
                worker.main()

        thread = threading.Thread(target=work)
        thread.start()
        connection, _ = server.accept()
        with connection:
            first, *later = orders
            sent = (first, {"zero_ns": time.monotonic_ns()}, *later)
            connection.sendall("".join(json.dumps(order) + "\n" for order in sent).encode())
            assert over.wait(60)
            connection.shutdown(socket.SHUT_WR)
            received = b"".join(iter(lambda: connection.recv(65536), b""))
        thread.join()
    reports += map(json.loads, received.splitlines())
    yield library, [report for report in reports if "at" in report]


def test_reports_use_tcp_nodelay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: list[int] = []

    def channel(connection: socket.socket) -> Channel:
        options.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        return Channel(connection)

    monkeypatch.setattr(worker, "Channel", channel)
    client = {"role": "producer", "library": "any", "name": "p", "partitions": ["t-0"], "gaps_ns": []}
    more: dict[str, Any] = {"start_ns": 0, "stop_ns": None, "settings": {}, "topics": {}}
    with worked(monkeypatch, {**client, **more}, {"value": "v", "partition": "t-0"}):
        pass
    assert options == [1]


@pytest.mark.parametrize(("topics", "name"), [(TOPIC_NAMES, "harrow-1f-a-b"), ({}, "a-b")])
def test_producer_uses_topic_names_of_the_cluster(
    monkeypatch: pytest.MonkeyPatch, topics: dict[str, str], name: str
) -> None:
    client = {"role": "producer", "library": "any", "name": "p", "partitions": ["a-b-0"], "gaps_ns": []}
    more = {"start_ns": 0, "stop_ns": None, "settings": {}, "topics": topics}
    with worked(monkeypatch, {**client, **more}, {"value": "v", "partition": "a-b-2"}) as (library, reports):
        assert library.sent == [(name, 2)]
        assert [(report["type"], report["partition"]) for report in reports] == [
            ("invoke", "a-b-2"),
            ("ok", "a-b-2"),
        ]


def test_producer_distributes_records_over_its_latest_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = {"role": "producer", "library": "any", "name": "p", "partitions": ["t-0"], "gaps_ns": []}
    more: dict[str, Any] = {"start_ns": 0, "stop_ns": None, "settings": {}, "topics": {}}
    orders: list[dict[str, Any]] = [{"partitions": ["t-0", "t-1"]}]
    orders += [{"value": value, "partition": None} for value in "ab"]
    with worked(monkeypatch, {**client, **more}, *orders) as (library, _):
        assert library.sent == [("t", 0), ("t", 1)]


@pytest.mark.parametrize(
    ("generated", "order", "sent"),
    [
        ([["k1", "t-1"]], None, (("t", 1), b"k1")),
        ([], {"value": "v", "partition": "t-0", "key": "k2"}, (("t", 0), b"k2")),
        # The padding gives the record its size.
        ([], {"value": "v", "partition": "t-0", "key": None}, (("t", 0), b"  ")),
    ],
)
def test_record_is_sent_with_its_key(
    monkeypatch: pytest.MonkeyPatch,
    generated: list[list[str]],
    order: dict[str, Any] | None,
    sent: tuple[Any, ...],
) -> None:
    client = {"role": "producer", "library": "any", "name": "p", "partitions": ["t-0"], "record_bytes": 3}
    more: dict[str, Any] = {"start_ns": 0, "stop_ns": None, "settings": {}, "topics": {}, "keys": generated}
    gaps_ns = [10**18] if generated else []
    with worked(monkeypatch, {**client, **more, "gaps_ns": gaps_ns}, *([order] if order else [])) as (
        library,
        _,
    ):
        assert (library.sent[0], library.keys[0]) == sent


@pytest.mark.parametrize(("topics", "name"), [(TOPIC_NAMES, "harrow-1f-a-b"), ({}, "a-b")])
def test_consumer_reports_topic_names_of_the_campaign(
    monkeypatch: pytest.MonkeyPatch, topics: dict[str, str], name: str
) -> None:
    client = {"role": "consumer", "library": "any", "name": "c", "partitions": ["a-b-0", "a-b-1"]}
    more = {"start_ns": 0, "poll_interval_ns": 0, "max_poll_records": 5, "settings": {}, "topics": topics}
    with worked(monkeypatch, {**client, **more}) as (library, reports):
        assert library.assigned == [f"{name}-0", f"{name}-1"]
        first = reports[0]
        assert first["records"] == {"a-b-0": [[0, "v"]]}
        assert (first["positions"], first["at_end"]) == ({"a-b-0": 1, "a-b-1": 1}, True)


APPLICATION = {
    "role": "transactions",
    "library": "any",
    "name": "app",
    "partitions": ["t-0"],
    "gaps_ns": [],
    "start_ns": 0,
    "stop_ns": None,
    "settings": {},
    "transaction_records": 2,
    "abort_every": 0,
}


def orders_for(*calls: str) -> list[dict[str, Any]]:
    """Return orders for transactional calls and for values to send."""
    return [
        {"call": call, "number": number}
        if call in ("begin", "commit", "abort")
        else {"value": call, "partition": "t-0"}
        for number, call in enumerate(calls, 1)
    ]


def summaries(reports: list[dict[str, Any]]) -> list[Any]:
    """Return short forms of the reports without the returns of calls."""
    short: list[Any] = []
    for report in reports:
        if "writes" in report:
            short.append((report["type"], [value for _, value, _ in report["writes"]], report["error"]))
        elif "value" in report:
            short.append((report["type"], report["value"], report.get("error")))
        elif "transaction_error" in report:
            short.append((report["transaction_error"], report["fatal"]))
    return short


def test_transaction_is_one_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = orders_for("begin", "a", "commit", "begin", "b", "abort")
    with worked(monkeypatch, APPLICATION, *orders, over_after="abort") as (library, reports):
        assert library.calls == ["init", "begin", "commit", "begin", "abort"]
        assert summaries(reports) == [
            ("invoke", "a", None),
            ("ok", ["a"], None),
            ("invoke", "b", None),
            ("fail", ["b"], "ABORTED"),
        ]
        assert next(report for report in reports if "writes" in report)["writes"] == [["t-0", "a", 3]]
        assert [report["returned"] for report in reports if "returned" in report][:3] == [1, 3, 4]
        kinds = [next(key for key in report if key != "at") for report in reports]
        assert kinds.index("initialized") < kinds.index("type")
        assert kinds.index("committing") < kinds.index("type", kinds.index("committing"))


def test_timed_out_call_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    late = TransactionCallError("_TIMED_OUT", is_fatal=False, is_retriable=True)
    failures = {"init": [late, late], "commit": [late]}
    with worked(
        monkeypatch,
        APPLICATION,
        *orders_for("begin", "a", "commit", "begin"),
        over_after="begin",
        failures=failures,
    ) as (library, reports):
        assert library.calls[:3] == ["init", "init", "init"]
        assert summaries(reports)[:1] == [("invoke", "a", None)]


def test_nothing_is_sent_after_a_fatal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fenced = TransactionCallError("PRODUCER_FENCED", is_fatal=True, is_retriable=False)
    orders = orders_for("begin", "a", "commit", "begin", "b")
    with worked(monkeypatch, APPLICATION, *orders, over_after="commit", failures={"commit": [fenced]}) as (
        library,
        reports,
    ):
        assert "abort" not in library.calls
        assert library.calls.count("begin") == 1
        assert summaries(reports)[:3] == [
            ("invoke", "a", None),
            ("PRODUCER_FENCED", True),
            ("info", ["a"], "PRODUCER_FENCED"),
        ]


@pytest.mark.parametrize("workload", [{}, {"gaps_ns": [1], "stop_ns": 0}], ids=["none", "over"])
def test_fatal_error_is_reported_after_the_outcomes(
    monkeypatch: pytest.MonkeyPatch, workload: dict[str, Any]
) -> None:
    client = {**APPLICATION, "role": "producer", **workload}
    error = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    first, second = {"value": "a", "partition": "t-0"}, {"value": "b", "partition": "t-0"}
    with worked(monkeypatch, client, first, second, over_after="failure", fatal_when_sending=error) as (
        _,
        reports,
    ):
        assert summaries(reports)[:2] == [("invoke", "a", None), ("info", "a", error)]
        assert reports[-1]["fatal"] == error


def test_failed_commit_can_be_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = TransactionCallError("INVALID_TXN_STATE", is_fatal=False, is_retriable=False)
    orders = orders_for("begin", "a", "commit", "b", "commit", "abort")
    with worked(monkeypatch, APPLICATION, *orders, over_after="abort", failures={"commit": [refused]}) as (
        library,
        reports,
    ):
        assert library.calls == ["init", "begin", "commit", "abort"]
        assert summaries(reports) == [
            ("invoke", "a", None),
            ("INVALID_TXN_STATE", False),
            ("invoke", "b", None),
            ("fail", "b", "INVALID_TXN_STATE"),
            ("fail", ["a"], "ABORTED"),
        ]


def driver_of(
    monkeypatch: pytest.MonkeyPatch, its: socket.socket, zero_ns: int, **about: Any
) -> worker.ProducerWorker:
    """Return a driver of a run that began at *zero_ns*. The calls of its library take a while."""
    library = FakeLibrary(lambda: None)
    monkeypatch.setattr(worker, "load_library", lambda _: library)
    monkeypatch.setattr(library, "call_takes_s", 0.2)
    driver = worker.WORKERS[about["role"]](Channel(its), {**APPLICATION, **about})
    assert isinstance(driver, worker.ProducerWorker)
    driver._clock.zero_ns = zero_ns
    return driver


@pytest.mark.parametrize("role", ["producer", "transactions"])
def test_records_are_due_during_the_workload(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    ms = 10**6
    about = {"start_ns": 0, "stop_ns": 100 * ms, "gaps_ns": [10 * ms, 30 * ms]}
    mine, its = socket.socketpair()
    with mine, its:
        driver = driver_of(monkeypatch, its, 0, role=role, **about)
        # A clock that advances by a millisecond at each read.
        clock = count(0, ms)
        monkeypatch.setattr(run_clock, "time", SimpleNamespace(monotonic_ns=lambda: next(clock)))
        due = [driver.take(WaitForRecord()) for _ in range(7)]
    # At 0, 10, 40, 50, 80 and 90 ms.
    assert due == [True] * 6 + [False]


MEMBER = {
    "role": "member",
    "library": "any",
    "name": "c",
    "subscribed": ["t"],
    "assigned": [],
    "start_ns": 0,
    "stop_ns": None,
    "poll_interval_ns": 0,
    "slow_ns": 0,
    "begins_at_zero": True,
    "max_poll_records": 5,
    "settings": {},
    "topics": {"t": "called"},
}


ROLES: dict[str, dict[str, Any]] = {
    "producer": {**APPLICATION, "gaps_ns": [10**6]},
    "transactions": {**APPLICATION, "gaps_ns": [10**6]},
    "consumer": {**MEMBER, "partitions": ["t-0"], "poll_interval_ns": 10**7},
    "member": {**MEMBER, "commit": "never", "poll_interval_ns": 10**7},
}


@contextmanager
def waiting_for_beginning(
    monkeypatch: pytest.MonkeyPatch, role: str, **about: Any
) -> Iterator[socket.socket]:
    """Run a worker in a thread, and yield harrow's end of its connection before any order."""
    monkeypatch.setattr(worker, "load_library", lambda _: FakeLibrary(lambda: None))
    mine, its = socket.socketpair()
    with mine, its:
        client = worker.WORKERS[role](Channel(its), {**ROLES[role], **about, "role": role})

        def work() -> None:
            with pytest.raises(SystemExit):
                client.work([])

        thread = threading.Thread(target=work)
        thread.start()
        yield mine
        mine.shutdown(socket.SHUT_WR)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("role", ROLES)
def test_clients_work_only_after_the_run_has_begun(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    """The processes of a run take long to start. No client works until all of them are ready."""
    with waiting_for_beginning(monkeypatch, role) as connection:
        assert select.select([connection], [], [], 0.1)[0] == []
        connection.sendall(json.dumps({"zero_ns": time.monotonic_ns()}).encode() + b"\n")
        assert connection.recv(1)


@pytest.mark.parametrize("role", ["producer", "consumer", "member"])
def test_clients_start_at_their_time_of_the_run(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    zero_ns, start_ns = time.monotonic_ns(), 10**8
    with waiting_for_beginning(monkeypatch, role, start_ns=start_ns) as connection:
        connection.sendall(json.dumps({"zero_ns": zero_ns}).encode() + b"\n")
        with connection.makefile() as reports:
            assert json.loads(reports.readline())["at"] >= zero_ns + start_ns


def test_a_member_works_until_its_time_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    member = {**MEMBER, "commit": "never", "stop_ns": 30 * 10**9}
    with worked(monkeypatch, member, polls=[{"called-0": [(0, "a")]}]) as (library, reports):
        assert library.calls == []
        assert any("processed" in report for report in reports)


@pytest.mark.parametrize("role", ["producer", "transactions"])
def test_records_due_during_a_pause_are_omitted(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    second_ns = 10**9
    zero_ns = time.monotonic_ns() - 100 * second_ns
    about = {"start_ns": 0, "stop_ns": 50 * second_ns, "gaps_ns": [30 * second_ns]}
    mine, its = socket.socketpair()
    with mine, its:
        driver = driver_of(monkeypatch, its, zero_ns, role=role, **about)
        assert [driver.take(WaitForRecord()) for _ in range(2)] == [True, False]


@pytest.mark.parametrize(("stop_ns", "is_due"), [(10**8, False), (30 * 10**9, True)])
def test_records_due_during_a_call_are_omitted(
    monkeypatch: pytest.MonkeyPatch, stop_ns: int, is_due: bool
) -> None:
    about = {"start_ns": 0, "stop_ns": stop_ns, "gaps_ns": [10**7]}
    mine, its = socket.socketpair()
    with mine, its:
        driver = driver_of(monkeypatch, its, time.monotonic_ns(), role="transactions", **about)
        # The call takes longer than the shorter workload.
        driver.take(InitTransactions())
        assert driver.take(WaitForRecord()) == is_due


@pytest.mark.parametrize(("begun", "call"), [(0, "commit"), (1, "abort")])
def test_aborts_are_counted_across_processes(monkeypatch: pytest.MonkeyPatch, begun: int, call: str) -> None:
    client = {**APPLICATION, "gaps_ns": [10**6], "transaction_records": 1, "abort_every": 2, "begun": begun}
    with worked(monkeypatch, client, over_after=call) as (library, reports):
        assert library.calls[:3] == ["init", "begin", call]
        assert any("begun" in report for report in reports)


def test_fenced_producer_generates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fenced = TransactionCallError("PRODUCER_FENCED", is_fatal=True, is_retriable=False)
    client = {**APPLICATION, "gaps_ns": [10**6], "transaction_records": 1}
    orders = orders_for("a", "b", "c")
    with worked(monkeypatch, client, *orders, over_after="commit", failures={"commit": [fenced]}) as (
        library,
        reports,
    ):
        assert library.calls == ["init", "begin", "commit"]
        invoked = [report["value"] for report in reports if report.get("type") == "invoke"]
        assert [value for value in invoked if value.startswith("app:")] == ["app:0"]


def test_a_program_pauses_before_it_repeats_an_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = TransactionCallError("INVALID_TXN_STATE", is_fatal=False, is_retriable=False)
    failures = {"commit": [refused], "abort": [refused, refused]}
    client = {**APPLICATION, "gaps_ns": [10**6], "transaction_records": 1}
    before_s = time.monotonic()
    with worked(monkeypatch, client, over_after="abort", failures=failures) as (library, _):
        assert library.calls[:6] == ["init", "begin", "commit", "abort", "abort", "abort"]
        assert time.monotonic() - before_s >= 0.2


@pytest.mark.parametrize(
    ("commit", "calls"),
    [
        ("auto", ["processed {'called-0': 2}"]),
        ("after", ["commit {'called-0': 2}"]),
        ("before", ["commit {'called-0': 2}"]),
        ("never", []),
    ],
)
def test_member_commits_as_configured(monkeypatch: pytest.MonkeyPatch, commit: str, calls: list[str]) -> None:
    polls = [{"called-0": [(0, "a"), (1, "b")]}]
    with worked(monkeypatch, {**MEMBER, "commit": commit}, polls=polls) as (library, reports):
        assert library.calls == calls
        assert library.assigned == ["called"]
        kinds = [next(key for key in report if key != "at") for report in reports]
        assert kinds[:4] == ["subscribed", "assigned", "found", "revoked"]
        assert (reports[1]["assigned"], reports[1]["generation"], reports[3]["owned"]) == (
            ["t-0", "t-1"],
            3,
            ["t-0"],
        )
        rest = [kind for kind in kinds[4:] if kind != "committed"]
        assert rest == {
            "before": ["invoked", "committing", "processed"],
            "after": ["invoked", "processed", "committing"],
        }.get(commit, ["invoked", "processed"])


def test_records_are_not_processed_after_a_failed_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = [{"called-0": [(0, "a")]}]
    member = {**MEMBER, "commit": "before"}
    with worked(monkeypatch, member, polls=polls, commit_error="ILLEGAL_GENERATION") as (_, reports):
        assert not any("processed" in report for report in reports)
        assert [report["error"] for report in reports if "committed" in report] == ["ILLEGAL_GENERATION"]


def test_member_obeys_slow_and_close_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    member = {**MEMBER, "commit": "after"}
    slow, close = {"slow_ns": 150_000_000}, {"close": True}
    with worked(monkeypatch, member, slow, close, polls=[{"called-0": [(0, "a")]}]) as (library, _):
        # Both orders arrive before its first poll.
        assert library.calls == ["close"]
    with worked(monkeypatch, member, slow, polls=[{"called-0": [(0, "a")]}]) as (_, reports):
        (read,) = (report["at"] for report in reports if "records" in report)
        (processed,) = (report["at"] for report in reports if "processed" in report)
        assert processed - read >= 150_000_000
