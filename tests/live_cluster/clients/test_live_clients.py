"""harrow supervises its clients, here with fake processes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harrow.checks.evidence import ConsumerSettings
from harrow.cluster_model.events import (
    ClientStopped,
    CommitFailed,
    GroupOffsetFound,
    PartitionsAssigned,
    PartitionsRevoked,
    TransactionReported,
)
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import ConsumerSpec, ProducerSpec
from harrow.live_cluster.clients import client_host
from harrow.live_cluster.clients.client_host import ClientHost
from harrow.live_cluster.clients.live_clients import LiveConsumer, LiveProducer
from harrow.live_cluster.clients.reports import ClientReports
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.watches.event_queue import WallClock
from tests.recorded_choices import recorded_choices

SECOND = 1_000_000


class FakeProcess:
    """A client's process that a test controls."""

    processes: list["FakeProcess"]

    def __init__(
        self,
        children: ChildProcesses,
        folder: Path,
        client: Mapping[str, Any],
        on_report: Callable[[dict[str, Any]], None],
    ) -> None:
        self.folder = folder
        self.client = client
        self.orders: list[dict[str, Any]] = []
        self.zero_ns: int | None = None
        self.is_running = True
        self.signals: list[str] = []
        self.last_words: list[dict[str, Any]] = []
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
        for report in self.last_words:
            self._on_report(report)
        self.is_running = False

    def report(self, type_: str, value: str, **more: Any) -> None:
        self._on_report(sent(type_, value, **more))

    def tell(self, **what: Any) -> None:
        self._on_report({"at": 0, **what})

    def report_poll(self, *, at_end: bool = False, **records: list[list[Any]]) -> None:
        positions = {name: pairs[-1][0] + 1 for name, pairs in by_partition_name(records).items()}
        self._on_report(
            {
                "invoked": 0,
                "at": 0,
                "records": by_partition_name(records),
                "positions": positions,
                "at_end": at_end,
            }
        )


def sent(type_: str, value: str, partition: str = "t-0", **more: Any) -> dict[str, Any]:
    return {"at": 0, "type": type_, "partition": partition, "value": value, **more}


def by_partition_name(records: Mapping[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    return {name.replace("_", "-"): pairs for name, pairs in records.items()}


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
        servers={0: ("127.0.0.1", 90), 1: ("127.0.0.1", 91)},
        release="2.4",
        present=lambda: ("t-0", "t-1"),
        clock=WallClock(),
        reports=ClientReports(lambda: None),
        report=lambda *event: EVENTS.append(event),
        initialized=lambda *who: EVENTS.append(who),
        draw=recorded_choices({}).workload,
    )


def producer(host: ClientHost, **spec: Any) -> LiveProducer:
    started = LiveProducer(ProducerSpec(name="p", **spec), host)
    started.start()
    return started


def history(host: ClientHost) -> list[tuple[int, str, Any, str | None]]:
    return [(o.process, o.type, o.value[0][2], o.error) for o in host.reports.operations()]


def test_a_process_gets_the_settings_of_the_campaign(host: ClientHost, processes: list[FakeProcess]) -> None:
    producer(host, interval_us=100, partitions=("t-1",), start_us=3 * SECOND, stop_us=5 * SECOND)
    client = processes[0].client
    assert processes[0].folder == host.folder / "p-1"
    assert (client["role"], client["first"], client["partitions"]) == ("producer", 0, ("t-1",))
    assert (client["start_ns"], client["stop_ns"]) == (
        3_000_000_000,
        5_000_000_000,
    )
    # Draws return their minimum: gaps of half the mean.
    assert set(client["gaps_ns"]) == {50_000}
    assert client["settings"]["bootstrap.servers"] == "127.0.0.1:90,127.0.0.1:91"
    assert client["settings"]["client.id"] == "harrow.p"


def test_clients_begin_together_after_all_have_started(
    host: ClientHost, processes: list[FakeProcess]
) -> None:
    client = producer(host, interval_us=100)
    producer(host, interval_us=100)
    assert [process.zero_ns for process in processes] == [None, None]
    assert host.clock.tick() == 0
    host.begin()
    client.restart()
    assert [process.zero_ns for process in processes] == [host.clock.zero_ns] * 3


@pytest.mark.parametrize("partitions", [(), ("t-1",)])
def test_producer_of_a_topic_learns_of_added_partitions(
    host: ClientHost, processes: list[FakeProcess], partitions: tuple[str, ...]
) -> None:
    partitions_now = ["t-0", "t-1"]
    growing = replace(host, present=lambda: partitions_now)
    producer(growing, interval_us=100, partitions=partitions)
    (supervise,) = growing.supervised
    supervise()
    partitions_now.append("t-2")
    supervise()
    supervise()
    assert processes[0].orders == ([] if partitions else [{"partitions": ("t-0", "t-1", "t-2")}])


def test_keys_are_partitioned_like_the_java_client(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = producer(host, interval_us=100, keys=3)
    # Draws return their minimum.
    assert set(processes[0].client["keys"]) == {("k0", "t-1")}
    client.send("a", None, "k3")
    client.send("b", "t-1", "k3")
    assert processes[0].orders == [
        {"value": "a", "partition": "t-0", "key": "k3"},
        {"value": "b", "partition": "t-1", "key": "k3"},
    ]


def test_without_a_rate_nothing_is_generated(host: ClientHost, processes: list[FakeProcess]) -> None:
    producer(host)
    assert (processes[0].client["gaps_ns"], processes[0].client["stop_ns"]) == ([], None)
    assert processes[0].client["partitions"] == ("t-0", "t-1")


def test_value_is_unfinished_until_its_outcome(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = producer(host)
    assert client.unfinished() == 0
    client.send("a", None)
    assert processes[0].orders == [{"value": "a", "partition": None, "key": None}]
    assert client.unfinished() == 1
    processes[0].report("invoke", "a")
    assert client.unfinished() == 1
    processes[0].report("ok", "a", offset=3)
    assert client.unfinished() == 0
    assert history(host) == [(0, "invoke", "a", None), (0, "ok", (3, "a"), None)]


def test_repeated_value_is_unfinished_twice(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = producer(host)
    counts = []
    steps: list[Callable[[], None]] = [
        lambda: client.send("a", "t-0"),
        lambda: client.send("a", "t-0"),
        lambda: processes[0].report("invoke", "a"),
        lambda: processes[0].report("fail", "a", error="NO"),
        lambda: processes[0].report("invoke", "a"),
        lambda: processes[0].report("info", "a", error="TIMEOUT"),
    ]
    for do in steps:
        do()
        counts.append(client.unfinished())
    assert counts == [1, 2, 2, 1, 1, 0]


def test_generated_record_is_unfinished_until_its_outcome(
    host: ClientHost, processes: list[FakeProcess]
) -> None:
    client = producer(host, interval_us=100)
    processes[0].report("invoke", "p:0")
    processes[0].report("invoke", "p:1", partition="t-1")
    assert client.unfinished() == 2
    processes[0].report("ok", "p:1", partition="t-1", offset=0)
    assert client.unfinished() == 1


def test_crash_leaves_unfinished_records_indeterminate(
    host: ClientHost, processes: list[FakeProcess]
) -> None:
    client = producer(host)
    for value in ("acked", "under way", "under way", "not begun"):
        client.send(value, "t-0")
    for value in ("acked", "under way", "under way"):
        processes[0].report("invoke", value)
    processes[0].last_words = [sent("ok", "acked", offset=0)]
    client.stop()
    assert not processes[0].is_running
    assert client.unfinished() == 0
    assert [row for row in history(host) if row[1] != "invoke"] == [
        (0, "ok", (0, "acked"), None),
        (0, "info", "under way", "CRASHED"),
        (0, "info", "under way", "CRASHED"),
    ]
    client.stop()
    assert len(history(host)) == 6


def test_restarted_producer_is_a_new_process_and_continues_counting(
    host: ClientHost, processes: list[FakeProcess]
) -> None:
    client = producer(host, interval_us=100)
    client.send("scripted", "t-0")
    for value in ("p:0", "scripted", "p:1"):
        processes[0].report("invoke", value)
    client.restart()
    assert [process.is_running for process in processes] == [False, True]
    # Values of the script do not count.
    assert processes[1].client["first"] == 2
    assert processes[1].folder == host.folder / "p-2"
    assert client.unfinished() == 0
    processes[1].report("invoke", "p:2")
    assert client.unfinished() == 1
    client.restart()
    assert processes[2].client["first"] == 3
    assert [row for row in history(host) if row[0] == 1] == [
        (1, "invoke", "p:2", None),
        (1, "info", "p:2", "CRASHED"),
    ]
    assert host.reports.process_names == {0: "p", 1: "p", 2: "p"}


def test_application_replaces_a_failed_producer(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = producer(host, interval_us=100)
    processes[0].report("invoke", "p:0")
    processes[0].report("info", "p:0")
    (supervise,) = host.supervised
    supervise()
    assert len(processes) == 1
    processes[0].tell(fatal="OUT_OF_ORDER_SEQUENCE_NUMBER")
    supervise()
    supervise()
    assert [process.is_running for process in processes] == [False, True]
    assert processes[1].client["first"] == 1
    client.crash()
    processes[1].tell(fatal="OUT_OF_ORDER_SEQUENCE_NUMBER")
    supervise()
    assert len(processes) == 2


@pytest.mark.parametrize(
    ("settings", "acks", "idempotence"),
    [({"acks": "all"}, "all", False), ({"acks": 1}, "1", False), ({"enable.idempotence": True}, "all", True)],
)
def test_sessions_have_the_producers_settings(
    host: ClientHost, settings: dict[str, Any], acks: str, idempotence: bool
) -> None:
    host.reports.new_process("other")
    client = LiveProducer(ProducerSpec(name="p", settings=settings), host)
    assert client.producer_settings() == {}
    assert client.unfinished() == 0
    client.start()
    client.restart()
    sessions = client.producer_settings()
    assert list(sessions) == [1, 2]
    assert {(one.name, one.acks, one.idempotence) for one in sessions.values()} == {("p", acks, idempotence)}


def consumer(host: ClientHost, *bootstrap: int, **spec: Any) -> LiveConsumer:
    started = LiveConsumer(ConsumerSpec(name="c", **spec), host, bootstrap)
    started.start()
    return started


def test_consumer_has_its_records_and_positions(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = consumer(host)
    assert (client.position("t-0"), client.has_read_to_end(), "a" in client.consumed()) == (
        None,
        False,
        False,
    )
    processes[0].report_poll(t_0=[[0, "a"], [1, "b"]])
    assert (client.position("t-0"), client.position("t-1"), client.has_read_to_end()) == (2, None, False)
    processes[0].report_poll(t_1=[[4, "c"]], at_end=True)
    assert (client.position("t-1"), client.has_read_to_end()) == (5, True)
    assert [value in client.consumed() for value in "abcd"] == [True, True, True, False]
    polls = [o.value[0][1] for o in host.reports.operations() if o.type == "ok"]
    assert polls == [{"t-0": [(0, "a"), (1, "b")]}, {"t-1": [(4, "c")]}]


def test_an_empty_poll_is_not_in_the_history(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = consumer(host)
    processes[0].report_poll(at_end=True)
    assert client.has_read_to_end()
    assert host.reports.operations() == []


def test_consumer_may_bootstrap_from_some_brokers(host: ClientHost, processes: list[FakeProcess]) -> None:
    consumer(host, 1, settings={"max.poll.records": 7}, poll_interval_us=3)
    client = processes[0].client
    assert client["settings"]["bootstrap.servers"] == "127.0.0.1:91"
    assert (client["max_poll_records"], client["poll_interval_ns"]) == (7, 3_000)


def test_a_stopped_consumer_ends_its_process(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = consumer(host)
    client.stop()
    client.stop()
    assert not processes[0].is_running


def test_crashed_consumer_restarts_as_a_new_process(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = consumer(host)
    processes[0].report_poll(at_end=True, t_0=[[0, "a"]])
    client.crash()
    assert not client.is_running()
    client.start_again()
    assert client.is_running()
    assert [process.is_running for process in processes] == [False, True]
    assert processes[0].folder != processes[1].folder
    # Its records count as read, but its position is not known yet.
    assert "a" in client.consumed()
    assert not client.has_read_to_end()


def test_paused_client_waits_until_resumed_or_killed(host: ClientHost, processes: list[FakeProcess]) -> None:
    makers: tuple[Callable[..., Any], ...] = (producer, consumer)
    for make in makers:
        client = make(host)
        assert client.is_running()
        client.pause()
        assert client.is_paused()
        client.resume()
        assert not client.is_paused()
        assert processes[-1].signals == ["pause", "resume"]
        client.pause()
        client.crash()
        assert not client.is_paused()
        client.start_again()
        assert client.is_running()


def test_records_for_a_stopped_producer_are_lost(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = producer(host)
    client.crash()
    client.send("lost", None)
    assert client.unfinished() == 0
    assert processes[0].orders == []


def transactional(host: ClientHost) -> LiveProducer:
    return producer(host, settings={"transactional.id": "x"})


def operations(host: ClientHost) -> list[tuple[str, str, tuple[Any, ...], str | None]]:
    return [(o.type, o.f, tuple(micro[2] for micro in o.value), o.error) for o in host.reports.operations()]


def test_transaction_is_acknowledged_as_a_whole(host: ClientHost, processes: list[FakeProcess]) -> None:
    client, process = transactional(host), processes[0]
    assert (process.client["role"], process.client["transaction_records"]) == ("transactions", 10)
    process.tell(initialized=True)
    client.begin_transaction()
    client.send("a", "t-0")
    client.send("b", "t-1")
    client.commit_transaction()
    calls = [order for order in process.orders if "call" in order]
    assert calls == [{"call": "begin", "number": 1}, {"call": "commit", "number": 2}]
    assert client.unfinished() == 4
    for value, partition in (("a", "t-0"), ("b", "t-1")):
        process.report("invoke", value, partition=partition)
    process.tell(committing=True)
    assert not host.reports.is_acked("a")
    process.tell(type="ok", writes=[["t-0", "a", 0], ["t-1", "b", None]], error=None)
    process.tell(returned=2)
    assert client.unfinished() == 0
    assert host.reports.is_acked("a")
    assert operations(host) == [
        ("invoke", "txn", ("a",), None),
        ("invoke", "txn", ("b",), None),
        ("ok", "txn", ((0, "a"), "b"), None),
    ]
    assert [("p", "x"), (TransactionReported, "p", True)] == EVENTS
    assert [each.transactional_id for each in client.producer_settings().values()] == ["x"]


@pytest.mark.parametrize(("is_committing", "type_"), [(False, "fail"), (True, "info")])
def test_a_crash_is_indeterminate_only_during_a_commit(
    host: ClientHost, processes: list[FakeProcess], is_committing: bool, type_: str
) -> None:
    client, process = transactional(host), processes[0]
    process.report("invoke", "a")
    if is_committing:
        process.tell(committing=True)
    client.crash()
    assert operations(host)[1:] == [(type_, "txn", ("a",), "CRASHED")]
    assert client.unfinished() == 0


def test_open_transaction_at_the_end_has_no_outcome(host: ClientHost, processes: list[FakeProcess]) -> None:
    client, process = transactional(host), processes[0]
    process.report("invoke", "a")
    client.stop()
    assert [each[0] for each in operations(host)] == ["invoke"]


def test_member_reports_its_assignment(host: ClientHost, processes: list[FakeProcess]) -> None:
    spec = ConsumerSpec(name="c", commit="after", settings={"group.id": "g"})
    LiveConsumer(spec, host).start()
    process = processes[0]
    client = process.client
    assert (client["role"], client["subscribed"], client["assigned"], client["commit"]) == (
        "member",
        ["t"],
        (),
        "after",
    )
    process.tell(subscribed=True)
    process.tell(assigned=["t-0"], generation=2, owned=["t-0"])
    process.tell(found={"t-0": 5})
    process.tell(committing={"t-0": 6})
    process.tell(committed={"t-0": 6}, error="ILLEGAL_GENERATION")
    process.tell(revoked=["t-0"], lost=False, owned=[])
    process.tell(closed=True)
    assert [
        (PartitionsAssigned, "c", "g", 2, ("t-0",)),
        (GroupOffsetFound, "c", "t-0", 5),
        (CommitFailed, "c", "g", "ILLEGAL_GENERATION", (("t-0", 6),)),
        (PartitionsRevoked, "c", "g", 2, ("t-0",), False),
        (ClientStopped, "c"),
    ] == EVENTS
    assert [(o.type, o.f, o.value) for o in host.reports.operations()] == [
        *((type_, "subscribe", ("t-0", "t-1")) for type_ in ("invoke", "ok")),
        *((type_, "assign", ("t-0",)) for type_ in ("invoke", "ok")),
        *((type_, "commit", (("commit", "t-0", 6),)) for type_ in ("invoke", "fail")),
        *((type_, "assign", ()) for type_ in ("invoke", "ok")),
    ]


def test_member_can_be_slowed_and_closed(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = LiveConsumer(ConsumerSpec(name="c", settings={"group.id": "g"}), host)
    client.start()
    assert (client.can_be_slowed(), client.is_member()) == (True, True)
    client.slow_down(2 * SECOND)
    client.close()
    assert processes[0].orders == [{"slow_ns": 2_000_000_000}, {"close": True}]
    processes[0].tell(closed=True)
    for supervise in host.supervised:
        supervise()
    assert (client.is_running(), processes[0].is_running) == (False, False)
    client.start_again()
    # The slowness survives the restart, but the close does not.
    assert processes[1].client["slow_ns"] == 2_000_000_000
    for supervise in host.supervised:
        supervise()
    assert client.is_running()


def test_consumer_without_group_is_not_a_member(host: ClientHost, processes: list[FakeProcess]) -> None:
    client = consumer(host)
    assert (client.can_be_slowed(), client.is_member()) == (False, False)


def test_a_member_reports_the_settings_that_rules_need(
    host: ClientHost, processes: list[FakeProcess]
) -> None:
    settings: dict[str, Value] = {
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    # Defaults of Kafka 2.4: metadata.max.age.ms, session.timeout.ms, heartbeat.interval.ms,
    # three times request.timeout.ms, auto.commit.interval.ms.
    patience_us = (300 + 10 + 3 + 3 * 30 + 5) * 1_000_000
    member = LiveConsumer(ConsumerSpec(name="c", settings=settings), host)
    member.start()
    assert list(member.consumer_settings().values()) == [
        ConsumerSettings(
            name="c",
            read_committed=True,
            group="g",
            offset_reset="earliest",
            patience_us=patience_us,
            max_poll_interval_us=300_000_000,
        )
    ]
    # A consumer with assigned partitions is not a member of its group, and Kafka's defaults apply.
    assigned = LiveConsumer(ConsumerSpec(name="d", partitions=("t-0",), settings={"group.id": "g"}), host)
    assigned.start()
    assert list(assigned.consumer_settings().values()) == [
        ConsumerSettings(
            name="d",
            read_committed=False,
            group="",
            offset_reset="latest",
            partitions=("t-0",),
            patience_us=patience_us,
            max_poll_interval_us=300_000_000,
        )
    ]
    assert len(processes) == len(("c", "d"))
