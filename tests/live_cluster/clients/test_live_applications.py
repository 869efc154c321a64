"""harrow supervises applications on real brokers, here with fake processes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harrow.cluster_model.events import ApplicationEnded, ApplicationStep, ClientStopped, TransactionReported
from harrow.cluster_model.topology import AT_LEAST_ONCE, IDEMPOTENT_SINK, ApplicationSpec
from harrow.live_cluster.clients import client_host
from harrow.live_cluster.clients.client_host import ClientHost
from harrow.live_cluster.clients.live_applications import LiveApplication
from harrow.live_cluster.clients.reports import ClientReports
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.watches.event_queue import WallClock
from tests.recorded_choices import recorded_choices

SECOND = 1_000_000


class FakeProcess:
    """The process of an application that a test controls."""

    processes: list["FakeProcess"]

    def __init__(
        self,
        _children: ChildProcesses,
        folder: Path,
        client: Mapping[str, Any],
        on_report: Callable[[dict[str, Any]], Any],
    ) -> None:
        self.folder = folder
        self.client = client
        self.orders: list[dict[str, Any]] = []
        self.signals: list[str] = []
        self._on_report = on_report
        self.processes.append(self)

    def begin(self, zero_ns: int) -> None:
        self.zero_ns = zero_ns

    def order(self, **what: Any) -> None:
        self.orders.append(what)

    def pause(self) -> None:
        self.signals.append("pause")

    def resume(self) -> None:
        self.signals.append("resume")

    def kill(self) -> None:
        self.signals.append("kill")

    def tell(self, **what: Any) -> Any:
        return self._on_report({"at": 0, **what})

    def ask(self, **what: Any) -> Any:
        return self.tell(**what)["answer"]


class Clock(WallClock):
    """A clock that a test sets."""

    def tick(self) -> int:
        return self.now_us


EVENTS: list[tuple[Any, ...]] = []


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[FakeProcess]:
    FakeProcess.processes = []
    EVENTS.clear()
    monkeypatch.setattr(client_host, "ClientProcess", FakeProcess)
    return FakeProcess.processes


@pytest.fixture
def host(processes: list[FakeProcess], tmp_path: Path) -> ClientHost:
    return ClientHost(
        children=ChildProcesses(),
        folder=tmp_path,
        servers={0: ("127.0.0.1", 90)},
        release="3.9",
        present=lambda: ("in-0", "in-1", "out-0"),
        clock=Clock(),
        reports=ClientReports(lambda: None),
        report=lambda *event: EVENTS.append(event),
        draw=recorded_choices({}).workload,
    )


def start_application(host: ClientHost, **spec: Any) -> LiveApplication:
    fields: dict[str, Any] = {"name": "app", "source": "in", "target": "out", **spec}
    application = LiveApplication(ApplicationSpec(**fields), host)
    application.start()
    return application


def at(host: ClientHost, now_us: int) -> None:
    """Run the supervision of clients at a time."""
    host.clock.now_us = now_us
    for supervise in host.supervised:
        supervise()


def test_a_process_gets_the_settings_of_the_campaign(host: ClientHost, processes: list[FakeProcess]) -> None:
    application = start_application(
        host, work_us=7, consumer={"max.poll.records": 3, "auto.offset.reset": "earliest"}, stop_us=9 * SECOND
    )
    client = processes[0].client
    assert (client["role"], client["delivery"], client["source"]) == ("application", "exactly_once", "in")
    assert (client["partitions"], client["work_ns"], client["max_poll_records"]) == (("out-0",), 7_000, 3)
    assert (client["begins_at_zero"], client["stop_ns"]) == (True, 9_000_000_000)
    # The names derive from the application's name, as in the model.
    assert client["producer"]["transactional.id"] == client["consumer"]["group.id"] == "app"
    assert client["consumer"]["enable.auto.commit"] is False
    assert processes[0].folder == host.folder / "app"
    assert application.sources() == ("in-0", "in-1")


def test_consumer_and_producer_are_separate_processes(host: ClientHost, processes: list[FakeProcess]) -> None:
    application = start_application(host)
    process = processes[0]
    process.tell(of="producer", initialized=True)
    process.tell(of="consumer", subscribed=True)
    process.tell(of="consumer", assigned=["in-0"], generation=1, owned=["in-0"])
    process.tell(of="consumer", invoked=0, records={"in-0": [[0, "a"]]}, positions={"in-0": 1}, at_end=False)
    process.tell(of="producer", type="invoke", partition="out-0", value="app:0(a)")
    process.tell(of="consumer", committing={"in-0": 1})
    process.tell(of="producer", committing=True)
    process.tell(of="producer", type="ok", writes=[["out-0", "app:0(a)", 0]], error=None)
    process.tell(of="consumer", committed={"in-0": 1}, outcome="ok", error=None)
    process.tell(of="consumer", rewound=["in-0"])
    operations = [(o.process, o.type, o.f) for o in host.reports.operations()]
    assert operations == [
        *((0, type_, "subscribe") for type_ in ("invoke", "ok")),
        *((0, type_, "assign") for type_ in ("invoke", "ok")),
        *((0, type_, "poll") for type_ in ("invoke", "ok")),
        *((1, "invoke", "txn"), (0, "invoke", "commit"), (1, "ok", "txn"), (0, "ok", "commit")),
        *((0, type_, "assign") for type_ in ("invoke", "ok", "invoke", "ok")),
    ]
    assert (TransactionReported, "app", True) in EVENTS
    assert application.producer_settings()[1].transactional_id == "app"
    settings = application.consumer_settings()[0]
    assert (settings.group, settings.name) == ("app", "app")
    promised = application.application_settings()
    assert (promised.consumers, promised.producers, promised.delivery) == ((0,), (1,), "exactly_once")


def test_application_is_unfinished_until_it_waits_for_records(
    host: ClientHost, processes: list[FakeProcess]
) -> None:
    application = start_application(host, delivery=AT_LEAST_ONCE)
    assert application.unfinished() == 1
    processes[0].tell(idle=True, reached={"in-0": 4})
    assert (application.unfinished(), application.positions()) == (0, {"in-0": 4})
    processes[0].tell(of="producer", type="invoke", partition="out-0", value="x")
    assert application.unfinished() == 1
    processes[0].tell(idle=False, reached={"in-0": 4})
    assert application.unfinished() == 2
    application.crash()
    assert (application.unfinished(), application.positions()) == (0, {})


def test_held_application_can_be_killed(host: ClientHost, processes: list[FakeProcess]) -> None:
    application = start_application(host)
    assert "send_offsets" in application.steps()
    application.hold_at("send", 2)
    processes[0].tell(step="send")
    processes[0].tell(passed="send", hold=["send", 1])
    assert application.held_at() is None
    application.crash()
    application.start_again()
    # A hold survives a restart.
    assert (processes[0].orders, processes[1].client["hold"]) == ([{"hold": ("send", 2)}], ("send", 1))
    processes[1].tell(passed="send", hold=None)
    processes[1].tell(held="send")
    assert application.held_at() == "send"
    application.crash()
    application.start_again()
    assert (application.held_at(), processes[2].client["hold"]) == (None, None)
    assert [(ApplicationStep, "app", "app", "send"), (ClientStopped, "app"), (ClientStopped, "app")] == EVENTS


def test_paused_application_resumes_at_its_step(host: ClientHost, processes: list[FakeProcess]) -> None:
    application = start_application(host)
    application.hold_at("commit", 0)
    processes[0].tell(passed="commit", hold=None)
    processes[0].tell(held="commit")
    application.pause()
    assert application.is_paused()
    application.resume()
    assert (processes[0].signals, processes[0].orders[-1]) == (["pause", "resume"], {"go": True})
    assert (application.is_paused(), application.held_at()) == (False, None)


def test_ended_application_restarts_after_its_delay(host: ClientHost, processes: list[FakeProcess]) -> None:
    application = start_application(host, restart_us=2 * SECOND)
    processes[0].tell(ended="PRODUCER_FENCED")
    at(host, 5 * SECOND)
    assert not application.is_running()
    assert [(ApplicationEnded, "app", "app", "PRODUCER_FENCED"), (ClientStopped, "app")] == EVENTS
    at(host, 6 * SECOND)
    assert len(processes) == 1
    at(host, 7 * SECOND)
    assert (len(processes), application.is_running()) == (2, True)


@pytest.mark.parametrize("ending", ["closed", "crashed"])
def test_closed_application_does_not_restart(
    host: ClientHost, processes: list[FakeProcess], ending: str
) -> None:
    application = start_application(host)
    if ending == "closed":
        application.close()
        assert processes[0].orders == [{"close": True}]
        processes[0].tell(ended=None)
    else:
        processes[0].tell(ended="PRODUCER_FENCED")
        at(host, 1 * SECOND)
        application.crash()
    at(host, 2 * SECOND)
    at(host, 20 * SECOND)
    assert (len(processes), application.is_running()) == (1, False)


def test_zombie_runs_beside_its_successor(host: ClientHost, processes: list[FakeProcess]) -> None:
    application = start_application(host)
    assert processes[0].ask(next=True) == 0
    application.make_zombie()
    assert (processes[0].signals, len(processes), application.is_paused()) == (["pause"], 2, False)
    assert processes[1].ask(next=True) == 1
    application.resume()
    assert processes[0].signals == ["pause", "resume"]
    # Both processes write, and every value is unique.
    assert [processes[0].ask(next=True), processes[1].ask(next=True)] == [2, 3]
    processes[0].tell(ended="PRODUCER_FENCED")
    at(host, 1 * SECOND)
    at(host, 9 * SECOND)
    assert (processes[0].signals[-1], len(processes), application.is_running()) == ("kill", 2, True)


def test_instances_share_a_store_that_refuses_older_results(
    host: ClientHost, processes: list[FakeProcess]
) -> None:
    fields = {"target": None, "delivery": IDEMPOTENT_SINK, "consumer": {"group.id": "g"}}
    start_application(host, name="one", **fields)
    start_application(host, name="two", **fields)
    one, two = processes
    assert one.ask(stored=["in-0", "in-1"]) == {}
    assert one.ask(store="a", partition="in-0", offset=0)
    assert one.ask(store="b", partition="in-0", offset=1)
    assert two.ask(stored=["in-0", "in-1"]) == {"in-0": 2}
    assert not two.ask(store="b", partition="in-0", offset=1)
    assert two.ask(store="c", partition="in-0", offset=2)
    stored = [(o.process, o.type, o.value) for o in host.reports.operations() if o.f == "store"]
    assert stored == [
        (process, type_, (("store", "in-0", (offset, result)),))
        for process, offset, result in ((0, 0, "one:0(a)"), (0, 1, "one:1(b)"), (1, 2, "two:0(c)"))
        for type_ in ("invoke", "ok")
    ]


def test_slowness_survives_a_restart(host: ClientHost, processes: list[FakeProcess]) -> None:
    application = start_application(host)
    application.slow_down(3 * SECOND)
    application.slow_down(-SECOND)
    assert processes[0].orders == [{"slow_ns": 3_000_000_000}, {"slow_ns": 2_000_000_000}]
    application.crash()
    application.start_again()
    assert processes[1].client["slow_ns"] == 2_000_000_000


@pytest.mark.parametrize(("is_committing", "type_"), [(False, "fail"), (True, "info")])
def test_crash_during_commit_is_indeterminate(
    host: ClientHost, processes: list[FakeProcess], is_committing: bool, type_: str
) -> None:
    application = start_application(host)
    processes[0].tell(of="producer", type="invoke", partition="out-0", value="app:0(a)")
    if is_committing:
        processes[0].tell(of="producer", committing=True)
    application.crash()
    last = host.reports.operations()[-1]
    assert (last.process, last.type, last.f, last.error) == (1, type_, "txn", "CRASHED")


def test_open_transaction_at_the_end_has_no_outcome(host: ClientHost, processes: list[FakeProcess]) -> None:
    application = start_application(host)
    processes[0].tell(of="producer", type="invoke", partition="out-0", value="app:0(a)")
    application.stop()
    assert [o.type for o in host.reports.operations()] == ["invoke"]
    assert not application.is_running()
