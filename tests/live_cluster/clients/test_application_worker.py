"""The process of an application runs between a client library and harrow; both are fakes here."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.clients import programs
from harrow.cluster_model.events import ApplicationStep
from harrow.cluster_model.history import effect_of
from harrow.cluster_model.topology import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    AUTO_COMMITTED,
    EXACTLY_ONCE,
    HIGHEST_FINISHED,
    IDEMPOTENT_SINK,
    WATERMARK,
)
from harrow.live_cluster.clients import application_worker
from harrow.live_cluster.clients.channel import Channel
from harrow.live_cluster.clients.client_library import MembershipError, OnOutcome, TransactionCallError
from tests.patience import PATIENCE_S

THREE = {"called-0": [(0, "a"), (1, "b"), (2, "c")]}


class FakeLibrary:
    """Records its calls, returns the *polls* in turn, and fails calls as *failures* states."""

    def __init__(
        self,
        polls: list[dict[str, list[tuple[int, str]]]],
        failures: Mapping[str, list[Any]],
        committed: int,
        *,
        keeps: bool,
    ) -> None:
        self.keeps = keeps
        self.kept: list[Callable[[], None]] = []
        self.polls = polls
        self.failures = {call: list(each) for call, each in failures.items()}
        self.calls: list[str] = []
        self.fatal: str | None = None
        self.where = committed
        self._assign: Callable[[], Mapping[str, int]] = dict

    def make_member(self, _: dict[str, Any]) -> Any:
        return self

    def make_producer(self, _: dict[str, Any]) -> Any:
        return self

    make_transactions = make_consumer = make_producer

    # Its consumer

    def subscribe(self, topics: list[str], on_assigned: Any, on_revoked: Any) -> None:
        self.calls.append("subscribe")
        self.on_revoked = on_revoked
        self._assign = lambda: on_assigned([f"{topics[0]}-0"], 3)

    def committed(self, partitions: list[str]) -> dict[str, int]:
        return dict.fromkeys(partitions, self.where)

    def read(self, _records_max: int, _timeout_s: float) -> dict[str, list[tuple[int, str]]]:
        assign, self._assign = self._assign, dict
        if begins := assign():
            self.calls.append(f"assign {begins}")
        if self.polls:
            records = self.polls.pop(0)
            if not records:
                raise MembershipError("FENCED_INSTANCE_ID")
            return records
        time.sleep(0.001)
        return {}

    def poll(self, *arguments: Any) -> Any:
        return self.read(*arguments) if len(arguments) == 2 else time.sleep(0.02)

    def read_end(self) -> dict[str, int]:
        return {"called-0": 3}

    def commit(self, offsets: dict[str, int]) -> Any:
        self.calls.append(f"commit {offsets}")
        failures = self.failures.get("commit_offsets", [])
        return failures.pop(0) if failures else None

    def set_processed(self, offsets: dict[str, int]) -> None:
        if offsets:
            self.calls.append(f"processed {offsets}")

    def rewind(self, partitions: list[str]) -> dict[str, int]:
        self.calls.append(f"rewind {partitions}")
        return self.committed(partitions)

    def group_metadata(self, *, as_member: bool) -> str:
        return "me" if as_member else "my group"

    def close(self) -> None:
        self.calls.append("close")

    # Its producer

    def send(self, topic: str, partition: int, value: bytes, _key: bytes | None, ended: OnOutcome) -> None:
        self.calls.append(f"send {topic}-{partition} {value.decode()}")
        failures = self.failures.get("send", [])
        if failures:
            ended("fail", None, failures.pop(0))
        elif self.keeps:
            self.kept.append(lambda: ended("ok", 7, None))
        else:
            ended("ok", 7, None)

    def fatal_error(self) -> str | None:
        return self.fatal

    def init_transactions(self) -> None:
        self._call("init")

    def begin_transaction(self) -> None:
        self._call("begin")

    def send_offsets(self, offsets: Mapping[str, int], group_metadata: Any) -> None:
        self._call(f"send_offsets {dict(offsets)} of {group_metadata}", "send_offsets")

    def commit_transaction(self) -> None:
        self._call("commit")

    def abort_transaction(self) -> None:
        self._call("abort")

    def _call(self, call: str, name: str | None = None) -> None:
        self.calls.append(call)
        failures = self.failures.get(name or call, [])
        if failures:
            error: TransactionCallError = failures.pop(0)
            if error.is_fatal:
                self.fatal = error.name
            raise error


class HarrowEnd:
    """The other end of the channel, which numbers results from 5 on and accepts every stored
    result.
    """

    def __init__(self, connection: socket.socket, library: FakeLibrary) -> None:
        self._connection = connection
        self.library = library
        self.reports: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []
        self.stored: dict[str, int] = {}
        self._numbers = 4

    def order(self, **what: Any) -> None:
        self._connection.sendall(json.dumps(what).encode() + b"\n")

    def listen(self) -> None:
        rest = b""
        while received := self._connection.recv(65536):
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, report: dict[str, Any]) -> None:
        self.reports.append(report)
        if not {"next", "store", "stored"}.isdisjoint(report):
            self.questions.append(report)
            self._numbers += "next" in report
            self.order(answer=self.stored if "stored" in report else self._numbers)

    def steps(self) -> list[str]:
        return [report["step"] for report in self.reports if "step" in report]

    def of_consumer(self, *keys: str) -> list[tuple[Any, ...]]:
        return [
            tuple(r.get(key) for key in keys)
            for r in self.reports
            if keys[0] in r and r.get("of") == "consumer"
        ]

    def wait(self, holds: Callable[[], object]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until_s, (self.library.calls, self.reports)
            time.sleep(0.002)

    def wait_for_poll(self, number: int = 2) -> None:
        """Wait for a number of polls, and then until the application is idle."""
        self.wait(lambda: self.steps().count("poll") >= number)
        self.wait(lambda: "idle" in self.reports[-1])


@contextmanager
def running(
    delivery: str,
    *polls: dict[str, list[tuple[int, str]]],
    failures: Mapping[str, list[Any]] | None = None,
    stored: Mapping[str, int] | None = None,
    committed: int = -1,
    orders: tuple[dict[str, Any], ...] = (),
    keeps: bool = False,
    fatal: str | None = None,
    zero_ns: int | None = 0,
    **client: Any,
) -> Iterator[HarrowEnd]:
    """Run an application in a thread. With *keeps*, the test decides when records are sent.

    Without *zero_ns*, the test decides when the run begins.
    """
    library = FakeLibrary(list(polls), failures or {}, committed, keeps=keeps)
    library.fatal = fatal
    client_settings = {
        "delivery": delivery,
        "name": "app",
        "source": "t",
        "partitions": ["u-0"],
        "start_ns": 0,
        "stop_ns": None,
        "work_ns": 0,
        "slow_ns": 0,
        "begins_at_zero": True,
        "workers": 2,
        "takes_ns": [0],
        "rewinds": True,
        "group_metadata": True,
        "hold": None,
        "max_poll_records": 5,
        "consumer": {},
        "producer": None if delivery == IDEMPOTENT_SINK else {},
        "topics": {"t": "called"},
    }
    mine, its = socket.socketpair()
    harrow = HarrowEnd(mine, library)
    harrow.stored = dict(stored or {})
    app = application_worker.ApplicationWorker(Channel(its), {**client_settings, **client}, library)

    def work() -> None:
        with pytest.raises(SystemExit):
            app.work([*orders, *([] if zero_ns is None else [{"zero_ns": zero_ns}])])

    threads = [threading.Thread(target=harrow.listen), threading.Thread(target=work)]
    for thread in threads:
        thread.start()
    try:
        yield harrow
    finally:
        # A held application ends with harrow.
        mine.shutdown(socket.SHUT_WR)
        threads[1].join(PATIENCE_S)
        its.close()
        threads[0].join(PATIENCE_S)
        mine.close()


MODELLED = """
name: modelled
settings: {{auto.offset.reset: earliest}}
cluster: {{brokers: 3, topics: [{{name: t}}, {{name: u}}]}}
workload: {{producers: [{{settings: {{linger.ms: 50}}}}], applications: [{{name: app, from: t, {to}delivery: {delivery}{work}}}]}}
script: [{{at: 5s, do: {{send: {{value: m, count: 3, partition: t-0}}}}}}, {{after: 5s}}]
"""


@pytest.mark.parametrize("delivery", programs.APPLICATIONS)
def test_worker_takes_the_steps_of_the_program(delivery: str) -> None:
    to = "" if delivery == IDEMPOTENT_SINK else "to: u, "
    is_parallel = delivery in (WATERMARK, HIGHEST_FINISHED)
    work = ", workers: 2, work: 100ms" if is_parallel else ""
    (plan,) = load_text(MODELLED.format(delivery=delivery, to=to, work=work), "modelled.yaml").plans
    trace = run_plan(plan, 0).evidence.trace
    steps = [event[4] for event in trace if event[1] == ApplicationStep.name]
    polls = 3 if is_parallel else 2
    # One of two workers has the last record while the offsets of the first are committed.
    with running(delivery, THREE, takes_ns=[20_000_000]) as harrow:
        harrow.wait_for_poll(polls)
        assert harrow.steps() == steps
    assert steps.count("poll") == polls


def test_records_are_flushed_before_a_hold() -> None:
    with running(EXACTLY_ONCE, THREE, hold=("send_offsets", 0), keeps=True) as harrow:
        harrow.wait(lambda: any("passed" in report for report in harrow.reports))
        time.sleep(0.1)
        assert not any("held" in report for report in harrow.reports)
        for end in harrow.library.kept:
            end()
        harrow.wait(lambda: any("held" in report for report in harrow.reports))


def test_unsendable_records_delay_a_hold_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_worker, "_OUTCOMES_TIMEOUT_S", 0.05)
    with running(EXACTLY_ONCE, THREE, hold=("send_offsets", 0), keeps=True) as harrow:
        harrow.wait(lambda: any("held" in report for report in harrow.reports))
        assert len(harrow.library.kept) == len(THREE["called-0"])


def sent(*values: str, first: int = 5) -> list[str]:
    return [f"send u-0 {effect_of('app', number, value)}" for number, value in enumerate(values, first)]


def test_results_and_offsets_share_a_transaction() -> None:
    with running(EXACTLY_ONCE, THREE) as harrow:
        harrow.wait_for_poll()
        assert harrow.library.calls == [
            *("init", "subscribe", "begin"),
            *sent("a", "b", "c"),
            *("send_offsets {'called-0': 3} of me", "commit"),
        ]
        (committed,) = [r for r in harrow.reports if "writes" in r]
        assert (committed["type"], len(committed["writes"]), committed["of"]) == ("ok", 3, "producer")
        assert harrow.of_consumer("committing") == [({"t-0": 3},)]
        assert harrow.of_consumer("committed", "outcome", "error") == [({"t-0": 3}, "ok", None)]


def test_offsets_without_member_metadata_name_only_the_group() -> None:
    with running(EXACTLY_ONCE, THREE, group_metadata=False) as harrow:
        harrow.wait_for_poll()
        assert "send_offsets {'called-0': 3} of my group" in harrow.library.calls


REFUSED = TransactionCallError("ILLEGAL_GENERATION", is_fatal=False, is_retriable=False)
FENCED = TransactionCallError("PRODUCER_FENCED", is_fatal=True, is_retriable=False)
LATE = TransactionCallError("_TIMED_OUT", is_fatal=False, is_retriable=True)


@pytest.mark.parametrize("rewinds", [True, False])
def test_failed_commit_is_aborted_and_records_are_read_again(rewinds: bool) -> None:
    with running(
        EXACTLY_ONCE, THREE, failures={"send_offsets": [REFUSED]}, committed=2, rewinds=rewinds
    ) as harrow:
        harrow.wait_for_poll()
        assert harrow.library.calls[-1 - rewinds :] == ["abort", "rewind ['called-0']"][: 1 + rewinds]
        assert "commit" not in harrow.library.calls
        assert harrow.steps() == ["poll", "begin", "process", "send", "send_offsets", "abort", "poll"]
        assert harrow.of_consumer("outcome", "error") == [("fail", "ILLEGAL_GENERATION")]
        assert harrow.of_consumer("rewound") == ([(["t-0"],)] if rewinds else [])
        assert [r["type"] for r in harrow.reports if "writes" in r] == ["fail"]


def test_fenced_producer_ends_the_application() -> None:
    with running(EXACTLY_ONCE, THREE, failures={"commit": [FENCED]}) as harrow:
        harrow.wait(lambda: [r for r in harrow.reports if "ended" in r])
        assert harrow.reports[-1]["ended"] == "PRODUCER_FENCED"
        assert "abort" not in harrow.library.calls
        # The outcome of the commit is unknown.
        assert harrow.of_consumer("outcome", "error") == [("info", "PRODUCER_FENCED")]


def test_fatal_producer_error_ends_an_application_without_transactions() -> None:
    with running(AT_LEAST_ONCE, THREE, fatal="OUT_OF_ORDER_SEQUENCE_NUMBER") as harrow:
        harrow.wait(lambda: [r for r in harrow.reports if "ended" in r])
        assert harrow.reports[-1]["ended"] == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_failed_initialization_ends_the_application() -> None:
    with running(EXACTLY_ONCE, failures={"init": [LATE, FENCED]}) as harrow:
        harrow.wait(lambda: [r for r in harrow.reports if "ended" in r])
        assert (harrow.reports[-1]["ended"], harrow.library.calls) == ("PRODUCER_FENCED", ["init", "init"])


def test_timed_out_commit_is_repeated() -> None:
    with running(EXACTLY_ONCE, THREE, failures={"commit": [LATE]}) as harrow:
        harrow.wait_for_poll()
        assert harrow.library.calls[-2:] == ["commit", "commit"]
        assert harrow.of_consumer("outcome", "error") == [("ok", None)]


def test_offsets_are_committed_after_results_are_acknowledged() -> None:
    with running(AT_LEAST_ONCE, THREE) as harrow:
        harrow.wait_for_poll()
        assert harrow.library.calls == ["subscribe", *sent("a", "b", "c"), "commit {'called-0': 3}"]
        assert harrow.of_consumer("committed", "error") == [({"t-0": 3}, None)]


def test_records_of_failed_results_are_read_again() -> None:
    with running(
        AT_LEAST_ONCE, THREE, {"called-0": [(3, "d")]}, failures={"send": ["_MSG_TIMED_OUT"]}
    ) as harrow:
        harrow.wait_for_poll(3)
        calls = harrow.library.calls
        assert calls[4:] == ["rewind ['called-0']", *sent("d", first=8), "commit {'called-0': 4}"]


@pytest.mark.parametrize("error", [None, "ILLEGAL_GENERATION"])
def test_at_most_once_processes_after_the_commit(error: str | None) -> None:
    failures = {"commit_offsets": [error] if error else []}
    with running(AT_MOST_ONCE, THREE, failures=failures) as harrow:
        harrow.wait_for_poll()
        written = [] if error else sent("a", "b", "c")
        assert harrow.library.calls == ["subscribe", "commit {'called-0': 3}", *written]


def test_auto_commit_covers_earlier_polls() -> None:
    with running(AUTO_COMMITTED, THREE) as harrow:
        harrow.wait_for_poll()
        assert harrow.library.calls == ["subscribe", *sent("a", "b", "c"), "processed {'called-0': 3}"]


def test_sink_stores_results_and_resumes_from_its_store() -> None:
    with running(IDEMPOTENT_SINK, THREE, stored={"t-0": 1}) as harrow:
        harrow.wait_for_poll()
        assert harrow.library.calls == ["subscribe", "assign {'called-0': 1}"]
        stored = [(r["partition"], r["offset"], r["store"]) for r in harrow.questions if "store" in r]
        assert stored == [("t-0", 0, "a"), ("t-0", 1, "b"), ("t-0", 2, "c")]


@pytest.fixture
def slowest(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return the event that ends the work on the one record that takes 1 ns."""
    done = threading.Event()
    monkeypatch.setattr(application_worker, "_work", lambda takes_ns: takes_ns and done.wait(PATIENCE_S))
    return done


@pytest.mark.parametrize(
    ("delivery", "committed"),
    [(WATERMARK, "commit {'called-0': 0}"), (HIGHEST_FINISHED, "commit {'called-0': 3}")],
)
def test_parallel_workers_finish_in_any_order(
    delivery: str, committed: str, slowest: threading.Event
) -> None:
    polls = {"called-0": [(number, str(number)) for number in range(3)]}, {"called-0": [(3, "3")]}
    with running(delivery, *polls, takes_ns=[1, 0, 0, 0]) as harrow:
        calls = harrow.library.calls
        # The other worker processes the rest, and the loop continues when every record is handed
        # out.
        harrow.wait(lambda: sum(call.startswith("send") for call in calls) == 3)
        harrow.wait(lambda: committed in calls or "commit {'called-0': 4}" in calls)
        if delivery == WATERMARK:
            assert {call for call in calls if call.startswith("commit")} == {committed}
        slowest.set()
        harrow.wait(lambda: sum(call.startswith("send") for call in calls) == 4)
        # Finished records are committed even if no other record arrives.
        harrow.wait(lambda: calls[-1] == "commit {'called-0': 4}")


def test_workers_do_not_commit_revoked_partitions(slowest: threading.Event) -> None:
    with running(WATERMARK, {"called-0": [(0, "a"), (1, "b")]}, takes_ns=[1, 0]) as harrow:
        calls = harrow.library.calls
        harrow.wait(lambda: harrow.steps().count("poll") == 2)
        harrow.library.on_revoked(["called-0"], True)
        slowest.set()
        harrow.wait(lambda: sum(call.startswith("send") for call in calls) == 2)
        harrow.wait(lambda: harrow.steps().count("poll") == 3)
        # The workers finish the records that they already have.
        assert [call for call in calls if call.startswith("commit")] == ["commit {'called-0': 0}"]
        assert sorted(call[-2:] for call in calls if call.startswith("send")) == ["a)", "b)"]


def test_hold_stops_at_the_given_pass_of_a_step() -> None:
    with running(AT_LEAST_ONCE, THREE, orders=({"hold": ["send", 1]},)) as harrow:
        harrow.wait(lambda: [r for r in harrow.reports if "held" in r])
        assert harrow.library.calls == ["subscribe", *sent("a")]
        # The hold survives a restart, because harrow learns of each pass.
        passed = [(r["passed"], r["hold"]) for r in harrow.reports if "passed" in r]
        assert passed == [("send", ["send", 0]), ("send", None)]
        harrow.order(go=True)
        harrow.wait_for_poll()
        assert harrow.library.calls[2:] == [*sent("b", "c", first=6), "commit {'called-0': 3}"]
        assert harrow.steps() == ["poll", "process", "send", "flush", "commit", "poll"]


def test_hold_may_arrive_before_or_after_the_start() -> None:
    with running(AT_MOST_ONCE, THREE, hold=["commit", 0]) as harrow:
        harrow.wait(lambda: [r for r in harrow.reports if "held" in r])
        assert harrow.library.calls == ["subscribe"]


def test_slow_application_takes_longer_for_each_poll() -> None:
    began_s = time.monotonic()
    with running(AT_LEAST_ONCE, THREE, orders=({"slow_ns": 200_000_000},)) as harrow:
        harrow.wait_for_poll()
        assert time.monotonic() - began_s > 0.2


@pytest.mark.parametrize("way", ["order", "time"])
def test_application_closes_at_its_next_poll(way: str) -> None:
    zero_ns, stop_ns = time.monotonic_ns(), 100_000_000 if way == "time" else None
    with running(AT_LEAST_ONCE, THREE, zero_ns=zero_ns, stop_ns=stop_ns) as harrow:
        if way == "order":
            harrow.wait_for_poll()
            harrow.order(close=True)
        harrow.wait(lambda: [r for r in harrow.reports if "ended" in r])
        assert harrow.library.calls[-1] == "close"
        assert harrow.reports[-1]["ended"] is None
        assert harrow.reports[-1]["at"] >= zero_ns + (stop_ns or 0)


def test_lost_membership_ends_the_application() -> None:
    with running(AT_LEAST_ONCE, {}) as harrow:
        harrow.wait(lambda: [r for r in harrow.reports if "ended" in r])
        assert harrow.reports[-1]["ended"] == programs.CONSUMER_FAILED


def test_an_application_works_only_after_the_run_has_begun() -> None:
    with running(AT_LEAST_ONCE, THREE, zero_ns=None) as harrow:
        time.sleep(0.1)
        assert harrow.reports == []
        harrow.order(zero_ns=time.monotonic_ns())
        harrow.wait_for_poll()


def test_application_starts_at_its_time() -> None:
    zero_ns, start_ns = time.monotonic_ns(), 100_000_000
    with running(AT_LEAST_ONCE, THREE, zero_ns=zero_ns, start_ns=start_ns) as harrow:
        harrow.wait_for_poll()
        first = next(r for r in harrow.reports if "at" in r)
        assert first["at"] >= zero_ns + start_ns
