"""Clients of a campaign on real brokers: their processes, their sessions, and what they report."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.run.clients.client import Client, Reader, Sender
from harrow.campaigns.run.clients.clients import CLIENTS, CONSUMERS, PRODUCERS
from harrow.checks.evidence import ConsumerSettings, ProducerSettings
from harrow.cluster_model import errors
from harrow.cluster_model.events import (
    ClientStopped,
    CommitFailed,
    GroupOffsetFound,
    PartitionsAssigned,
    PartitionsRevoked,
    RecordsProcessed,
    TransactionError,
    TransactionReported,
)
from harrow.cluster_model.history import ASSIGN, FAIL, INFO, INVOKE, OK, SEND, SUBSCRIBE, TXN
from harrow.cluster_model.release import RELEASES
from harrow.cluster_model.settings import ISOLATION_LEVEL, READ_COMMITTED, producer_config
from harrow.cluster_model.sim.choices import Stream, between
from harrow.cluster_model.topology import ConsumerSpec, ProducerSpec
from harrow.live_cluster.clients.client_process import ClientProcess
from harrow.live_cluster.clients.client_settings import LIBRARIES, consumer_settings, producer_settings
from harrow.live_cluster.clients.reports import ClientReports
from harrow.live_cluster.happenings import WallClock
from harrow.live_cluster.links.frame import client_id_of
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.processes.child_processes import ChildProcesses

LIVE: Final = "kafka"
"""The kind of target whose clients are processes of their own."""
_GAPS: Final = 1_000
"""How many gaps between records are drawn; then they begin again."""
_CRASHED: Final = "CRASHED"
_ABORTED: Final = "ABORTED"
_MAY_COUNT: Final = frozenset(
    {errors.NETWORK_EXCEPTION, errors.REQUEST_TIMED_OUT, "_TIMED_OUT", "_TRANSPORT"}
)
"""Errors of commits that leave open whether they have been stored, and what librdkafka calls them."""
_NS_PER_US: Final = 1_000
_RECORDS_MAX: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHost:
    """What clients run on. ``servers`` are the brokers' addresses by id, ``release`` is that of the model.

    ``security`` are the settings that let any client in, under the names of librdkafka, ``topics`` what the campaign's are called
    there.
    """

    children: ChildProcesses
    folder: Path
    servers: Mapping[int, tuple[str, int]]
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    topics: Mapping[str, str] = field(default_factory=dict)
    release: str
    partitions: tuple[str, ...]
    clock: WallClock
    reports: ClientReports
    report: Report
    initialized: Callable[[str, str], None] = lambda _client, _transactional_id: None
    """Told of a client that has been given an epoch of its transactional id."""
    draw: Stream
    processes: list[ClientProcess] = field(default_factory=list)

    def start(
        self, folder: str, client: Mapping[str, Any], take: Callable[[dict[str, Any]], None]
    ) -> ClientProcess:
        """Start a client's process."""
        told = {**client, "topics": dict(self.topics)}
        process = ClientProcess(self.children, self.folder / folder, told, take)
        self.processes.append(process)
        return process

    def connection_settings(self, library: str, client: str, brokers: tuple[int, ...] = ()) -> dict[str, Any]:
        """Return what any client of a library gets to find these brokers, or all of them."""
        known = [self.servers[broker] for broker in brokers or self.servers]
        servers = [f"{host}:{port}" for host, port in known]
        own = LIBRARIES[library]
        return {**own.secured(self.security), **own.connection(servers, client_id_of(client))}


class _LiveClient(Client):
    """A client application with a process, or none while it is down."""

    def __init__(self, host: ClientHost) -> None:
        self._host = host
        self._process: ClientProcess | None = None
        self._is_paused = False

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None
            self._is_paused = False

    def is_running(self) -> bool:
        return self._process is not None

    def is_paused(self) -> bool:
        return self._is_paused

    def crash(self) -> None:
        self.stop()

    def pause(self) -> None:
        if self._process is not None:
            self._process.pause()
            self._is_paused = True

    def resume(self) -> None:
        if self._process is not None and self._is_paused:
            self._process.resume()
        self._is_paused = False


class LiveProducer(_LiveClient, Sender):
    """A producer application: one process after the other."""

    def __init__(self, spec: ProducerSpec, host: ClientHost) -> None:
        super().__init__(host)
        self.spec = spec
        self._config = producer_config(host.release, spec.settings, RELEASES[host.release].behaviours)
        self._sessions: list[_LiveSession] = []
        self._generated = 0

    def start(self) -> None:
        interval_us = self.spec.interval_us
        self._begin(
            self.spec.start_us + between(self._host.draw, 0, interval_us) if interval_us is not None else 0
        )

    def _begin(self, first_us: int) -> None:
        host, interval_us = self._host, self.spec.interval_us
        number = host.reports.new_process(self.spec.name)
        id_ = self.spec.transactional_id
        session = (
            _TransactionsSession(host, number, self.spec.name, id_) if id_ else _LiveSession(host, number)
        )
        self._sessions.append(session)
        # Gaps between half and one and a half times the mean.
        gaps_us = (
            []
            if interval_us is None
            else [interval_us // 2 + host.draw.below(interval_us + 1) for _ in range(_GAPS)]
        )
        self._process = host.start(
            f"{self.spec.name}-{len(self._sessions)}",
            {
                "role": "transactions" if id_ else "producer",
                "transaction_records": self.spec.transaction_records,
                "abort_every": self.spec.transaction_abort_every,
                "library": self.spec.library,
                "name": self.spec.name,
                "first": self._generated,
                "partitions": self.spec.partitions or host.partitions,
                "record_bytes": self.spec.record_bytes,
                "start_ns": host.clock.ns_of(first_us),
                "stop_ns": None if self.spec.stop_us is None else host.clock.ns_of(self.spec.stop_us),
                "gaps_ns": [gap_us * _NS_PER_US for gap_us in gaps_us],
                "settings": {
                    **producer_settings(self.spec.library, host.release, self.spec.settings),
                    **host.connection_settings(self.spec.library, self.spec.name),
                },
            },
            session.take,
        )

    def send(
        self, value: str, partition: str | None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        assert key is None, "campaigns with keys are skipped"
        # An application that is down takes no records.
        if self._process is None:
            return
        self._sessions[-1].hand_over(value)
        self._process.order(value=value, partition=partition)

    def begin_transaction(self) -> None:
        self._call("begin")

    def commit_transaction(self) -> None:
        self._call("commit")

    def abort_transaction(self) -> None:
        self._call("abort")

    def _call(self, call: str) -> None:
        # An application that is down calls nothing.
        if self._process is not None:
            self._process.order(call=call, number=self._sessions[-1].call())

    def restart(self) -> None:
        self.crash()
        self.start_again()

    def start_again(self) -> None:
        self._generated += self._sessions[-1].generated
        self._begin(self._host.clock.tick() + (self.spec.interval_us or 0))

    def stop(self) -> None:
        if self._process is not None:
            super().stop()
            self._sessions[-1].end()

    def crash(self) -> None:
        if self._process is not None:
            super().stop()
            self._sessions[-1].abandon()

    def unfinished(self) -> int:
        return self._sessions[-1].unfinished() if self._sessions else 0

    def producer_settings(self) -> dict[int, ProducerSettings]:
        config = self._config
        settings = ProducerSettings(
            name=self.spec.name,
            acks="all" if config.acks == -1 else str(config.acks),
            idempotence=config.idempotence,
            max_in_flight=config.max_in_flight,
            retries=config.retries,
            transactional_id=config.transactional_id,
        )
        return {session.process: settings for session in self._sessions}


class _LiveSession:
    """What the process of a producer has been handed and has generated, and what it has reported of it."""

    def __init__(self, host: ClientHost, process: int) -> None:
        self._host = host
        self.process = process
        self._lock = threading.Lock()
        # An application may send one value several times.
        self._handed_over: Counter[str] = Counter()
        self._under_way: Counter[tuple[str, str]] = Counter()
        self.generated = 0

    def hand_over(self, value: str) -> None:
        with self._lock:
            self._handed_over[value] += 1

    def take(self, report: Mapping[str, Any]) -> None:
        """Take a report of the process."""
        type_, partition, value = report["type"], report["partition"], report["value"]
        # It is in the history before anybody can take it for done.
        self._host.reports.add_send(
            self.process,
            type_,
            partition,
            value,
            self._host.clock.us_of(report["at"]),
            offset=report.get("offset"),
            error=report.get("error"),
        )
        with self._lock:
            if type_ != INVOKE:
                self._under_way[partition, value] -= 1
            else:
                self._under_way[partition, value] += 1
                if self._handed_over[value]:
                    self._handed_over[value] -= 1
                else:
                    self.generated += 1

    def call(self) -> int:
        """Note that the application is to make a call, and return its number."""
        raise NotImplementedError("a producer without a transactional.id")

    def unfinished(self) -> int:
        with self._lock:
            return self._handed_over.total() + self._under_way.total()

    def end(self) -> None:
        """The run is over."""
        self.abandon()

    def abandon(self) -> None:
        """The process is gone: the outcome of what was under way stays unknown."""
        with self._lock:
            under_way, self._under_way = self._under_way, Counter()
            self._handed_over.clear()
        now_us = self._host.clock.tick()
        for partition, value in under_way.elements():
            self._host.reports.add_send(self.process, INFO, partition, value, now_us, error=_CRASHED)


class _TransactionsSession(_LiveSession):
    """That of a process with transactions: what is sent in one is under way until that has ended, and may stay so."""

    def __init__(self, host: ClientHost, process: int, name: str, transactional_id: str) -> None:
        super().__init__(host, process)
        self._name = name
        self._transactional_id = transactional_id
        self._calls = 0
        self._returned = 0
        # What the transaction that is open has sent, and whether it is being committed.
        self._open: dict[tuple[str, str], None] = {}
        self._is_committing = False

    def call(self) -> int:
        with self._lock:
            self._calls += 1
            return self._calls

    def take(self, report: Mapping[str, Any]) -> None:
        host, at_us = self._host, self._host.clock.us_of(report["at"])
        if "writes" in report:
            writes = [(partition, value, offset) for partition, value, offset in report["writes"]]
            host.reports.add_transaction(self.process, report["type"], writes, at_us, report["error"])
            with self._lock:
                self._open.clear()
                self._is_committing = False
            if report["error"] in (None, _ABORTED):
                host.report(TransactionReported, self._name, report["type"] == OK)
        elif "type" in report:
            self._take_send(report, at_us)
        elif "initialized" in report:
            host.initialized(self._name, self._transactional_id)
        elif "transaction_error" in report:
            host.report(TransactionError, self._name, report["transaction_error"], report["fatal"])
        else:
            with self._lock:
                self._is_committing = self._is_committing or "committing" in report
                self._returned = report.get("returned", self._returned)

    def _take_send(self, report: Mapping[str, Any], at_us: int) -> None:
        """Take that a record was handed over, or that it was thrown back."""
        type_, partition, value = report["type"], report["partition"], report["value"]
        self._host.reports.add_send(
            *(self.process, type_, partition, value, at_us),
            error=report.get("error"),
            f=TXN if type_ == INVOKE else SEND,
        )
        with self._lock:
            if type_ != INVOKE:
                self._open.pop((partition, value), None)
                return
            self._open[partition, value] = None
            if self._handed_over[value]:
                self._handed_over[value] -= 1
            else:
                self.generated += 1

    def unfinished(self) -> int:
        with self._lock:
            return self._handed_over.total() + self._calls - self._returned

    def end(self) -> None:
        """The run is over: a transaction that is open then has come to nothing yet."""

    def abandon(self) -> None:
        """The process is gone: what it had not asked to be committed never is."""
        with self._lock:
            writes = [(partition, value, None) for partition, value in self._open]
            type_ = INFO if self._is_committing else FAIL
            self._open.clear()
            self._handed_over.clear()
            self._calls = self._returned
        if writes:
            at_us = self._host.clock.tick()
            self._host.reports.add_transaction(self.process, type_, writes, at_us, _CRASHED)


class LiveConsumer(_LiveClient, Reader):
    """A consumer application: one process."""

    def __init__(self, spec: ConsumerSpec, host: ClientHost, bootstrap: tuple[int, ...] = ()) -> None:
        super().__init__(host)
        self.spec = spec
        self._bootstrap = bootstrap
        self._number = -1
        self._numbers: list[int] = []
        self._consumed: set[str] = set()
        self._positions: Mapping[str, int] = {}
        self._at_end = False
        self._starts = 0
        self._generation = -1

    def start(self) -> None:
        host = self._host
        self._starts += 1
        self._positions, self._at_end = {}, False
        self._number = host.reports.new_process(self.spec.name)
        self._numbers.append(self._number)
        self._process = host.start(
            self.spec.name if self._starts == 1 else f"{self.spec.name}-{self._starts}",
            {
                **self._role(),
                "library": self.spec.library,
                "name": self.spec.name,
                "partitions": self.spec.partitions or host.partitions,
                "start_ns": host.clock.ns_of(self.spec.start_us),
                "poll_interval_ns": self.spec.poll_interval_us * _NS_PER_US,
                "max_poll_records": int(self.spec.settings.get("max.poll.records", _RECORDS_MAX)),
                "settings": {
                    **consumer_settings(self.spec.library, host.release, self.spec.settings),
                    **host.connection_settings(self.spec.library, self.spec.name, self._bootstrap),
                },
            },
            self._take,
        )

    def _role(self) -> dict[str, Any]:
        spec, host = self.spec, self._host
        if not spec.group:
            return {"role": "consumer"}
        return {
            "role": "member",
            "subscribed": self._topics(),
            "assigned": spec.partitions,
            "commit": spec.commit,
            "stop_ns": None if spec.stop_us is None else host.clock.ns_of(spec.stop_us),
        }

    def _topics(self) -> list[str]:
        known = (partition.rpartition("-")[0] for partition in self._host.partitions)
        return list(self.spec.topics or dict.fromkeys(known))

    def _take_of_member(self, report: Mapping[str, Any]) -> None:
        """Take what a member of a group reports beside what it reads."""
        host, name, group = self._host, self.spec.name, self.spec.group
        at_us = host.clock.us_of(report["at"])
        if "subscribed" in report:
            topics = self._topics()
            read = [p for p in host.partitions if p.rpartition("-")[0] in topics]
            host.reports.add_assignment(self._number, SUBSCRIBE, read, at_us)
        elif "assigned" in report:
            self._generation = report["generation"]
            host.report(PartitionsAssigned, name, group, self._generation, tuple(report["assigned"]))
            host.reports.add_assignment(self._number, ASSIGN, report["owned"], at_us)
        elif "revoked" in report:
            revoked, is_lost = tuple(report["revoked"]), report["lost"]
            host.report(PartitionsRevoked, name, group, self._generation, revoked, is_lost)
            host.reports.add_assignment(self._number, ASSIGN, report["owned"], at_us)
        elif "found" in report:
            for partition, offset in report["found"].items():
                host.report(GroupOffsetFound, name, partition, offset)
        elif "processed" in report:
            for partition, (end, values) in report["processed"].items():
                host.report(RecordsProcessed, name, group, partition, end, tuple(values))
        elif "closed" in report:
            host.report(ClientStopped, name)
        else:
            self._take_commit(report, at_us)

    def _take_commit(self, report: Mapping[str, Any], at_us: int) -> None:
        reports, error = self._host.reports, report.get("error")
        if "committing" in report:
            reports.add_commit(self._number, INVOKE, report["committing"], at_us)
        elif error is None:
            reports.add_commit(self._number, OK, report["committed"], at_us)
        else:
            type_ = INFO if error in _MAY_COUNT else FAIL
            offsets = report["committed"]
            reports.add_commit(self._number, type_, offsets, at_us, error)
            self._host.report(CommitFailed, self.spec.name, self.spec.group, error, tuple(offsets.items()))

    def crash(self) -> None:
        if self.spec.group and self._process is not None:
            self._host.report(ClientStopped, self.spec.name)
        super().crash()

    def _take(self, report: Mapping[str, Any]) -> None:
        if "records" not in report:
            self._take_of_member(report)
            return
        records = {
            partition: [(offset, value) for offset, value in pairs]
            for partition, pairs in report["records"].items()
        }
        us_of = self._host.clock.us_of
        # They are in the history before anybody can take them for read.
        if records:
            self._host.reports.add_poll(self._number, records, us_of(report["invoked"]), us_of(report["at"]))
        self._consumed.update(value for pairs in records.values() for _, value in pairs)
        self._positions = {**self._positions, **report["positions"]}
        self._at_end = report["at_end"]

    def start_again(self) -> None:
        self.start()

    def consumer_settings(self) -> dict[int, ConsumerSettings]:
        isolation = self.spec.settings.get(ISOLATION_LEVEL)
        known = ConsumerSettings(name=self.spec.name, read_committed=isolation == READ_COMMITTED)
        return dict.fromkeys(self._numbers, known)

    def has_consumed(self, value: str) -> bool:
        return value in self._consumed

    def position(self, partition: str) -> int | None:
        return self._positions.get(partition)

    def has_read_to_end(self) -> bool:
        return self._at_end


CLIENTS[PRODUCERS].made_on[LIVE] = LiveProducer
CLIENTS[CONSUMERS].made_on[LIVE] = LiveConsumer
