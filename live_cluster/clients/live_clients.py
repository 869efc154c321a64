"""Producers and consumers of a campaign on real brokers, and their processes."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

from harrow.campaigns.clients.client import Client, Reader, Sender
from harrow.campaigns.clients.client_promises import consumer_promises, producer_promises
from harrow.checks.evidence import ConsumerSettings, ProducerSettings
from harrow.cluster_model.clients.partitioner import partition_number
from harrow.cluster_model.events import ClientStopped
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import AUTO_OFFSET_RESET, Value, consumer_config, producer_config
from harrow.cluster_model.sim.choices import between
from harrow.cluster_model.topology import ConsumerSpec, ProducerSpec
from harrow.live_cluster.clients.client_host import ClientHost
from harrow.live_cluster.clients.client_process import ClientProcess
from harrow.live_cluster.clients.client_settings import consumer_settings, producer_settings
from harrow.live_cluster.clients.member_session import MemberSession
from harrow.live_cluster.clients.producer_sessions import LiveProducerSession, producer_session

NS_PER_US: Final = 1_000
RECORDS_MAX: Final = 500
"""The default of ``max.poll.records``."""
_EARLIEST: Final = "earliest"
_GAP_COUNT: Final = 1_000
"""How many gaps between records are drawn for a producer. Then they repeat."""


class LiveClient(Client):
    """A client. It has a process unless it is down."""

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

    def _order(self, **fields: Any) -> None:
        if self._process is not None:
            self._process.order(**fields)


class LiveProducer(LiveClient, Sender):
    """A producer, which gets a new process at each start."""

    def __init__(self, spec: ProducerSpec, host: ClientHost) -> None:
        super().__init__(host)
        self.spec = spec
        self._sessions: list[LiveProducerSession] = []
        self._generated = 0
        self._has_failed = False
        # The partitions that the producer's process knows, if it writes to all of them.
        self._partitions: tuple[str, ...] = ()

    def start(self) -> None:
        self._host.supervised.append(self._supervise)
        interval_us = self.spec.interval_us
        self._begin(
            self.spec.start_us + between(self._host.draw, 0, interval_us) if interval_us is not None else 0
        )

    def _begin(self, first_us: int) -> None:
        host, interval_us, keys = self._host, self.spec.interval_us, self.spec.keys
        id_ = self.spec.transactional_id
        session = producer_session(host, self.spec.name, id_)
        self._sessions.append(session)
        self._has_failed = False
        self._partitions = host.partitions
        # Gaps between half and one and a half times the mean.
        gaps_us = (
            []
            if interval_us is None
            else [interval_us // 2 + host.draw.below(interval_us + 1) for _ in range(_GAP_COUNT)]
        )
        self._process = host.start(
            f"{self.spec.name}-{len(self._sessions)}",
            {
                "role": "transactions" if id_ else "producer",
                "transaction_records": self.spec.transaction_records,
                "abort_every": self.spec.transaction_abort_every,
                "begun": sum(session.begun for session in self._sessions),
                "library": self.spec.library,
                "name": self.spec.name,
                "first": self._generated,
                "partitions": self.spec.partitions or self._partitions,
                "record_bytes": self.spec.record_bytes,
                "start_ns": first_us * NS_PER_US,
                "stop_ns": None if self.spec.stop_us is None else self.spec.stop_us * NS_PER_US,
                "gaps_ns": [gap_us * NS_PER_US for gap_us in gaps_us],
                "keys": [self._with_partition(f"k{host.draw.below(keys)}") for _ in gaps_us] if keys else [],
                "settings": {
                    **producer_settings(self.spec.library, host.release, self.spec.settings),
                    **host.connection_settings(self.spec.library, self.spec.name),
                },
            },
            partial(self._take, session),
        )

    def _take(self, session: LiveProducerSession, report: Mapping[str, Any]) -> None:
        if "fatal" in report:
            self._has_failed = True
        else:
            session.take(report)

    def _supervise(self) -> None:
        """Restart the process after a fatal error, as users of librdkafka must.

        Also tell a process that generates records for all partitions about new ones.
        """
        if self._process is None:
            return
        if self._has_failed:
            self._host.report(ClientStopped, self.spec.name)
            self.restart()
        elif not self.spec.partitions and self._host.partitions != self._partitions:
            self._partitions = self._host.partitions
            self._process.order(partitions=self._partitions)

    def send(
        self, value: str, partition: str | None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        assert not tombstone, "campaigns with tombstones are skipped"
        # An application that is down takes no records.
        if self._process is None:
            return
        self._sessions[-1].hand_over(value)
        if key is not None:
            key, placed = self._with_partition(key)
            partition = partition or placed
        self._process.order(value=value, partition=partition, key=key)

    def _with_partition(self, key: str) -> tuple[str, str]:
        """Return a key and the partition that the Java client's partitioner chooses for it."""
        partitions = self.spec.partitions or self._host.partitions
        return key, partitions[partition_number(key, len(partitions))]

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
        release = self._host.release
        config = producer_config(release, self.spec.settings, RELEASES[release].behaviours)
        promised = producer_promises(self.spec.name, config)
        return {session.process: promised for session in self._sessions}


def begins_at_zero(settings: Mapping[str, Value]) -> bool:
    """Return whether a consumer without a committed offset begins at 0, where the logs begin."""
    return settings.get(AUTO_OFFSET_RESET) == _EARLIEST


class LiveConsumer(LiveClient, Reader):
    """A consumer, which gets a new process at each start."""

    def __init__(self, spec: ConsumerSpec, host: ClientHost, bootstrap: tuple[int, ...] = ()) -> None:
        super().__init__(host)
        self.spec = spec
        self._bootstrap = bootstrap
        self._sessions: list[MemberSession] = []
        self._consumed: set[str] = set()
        self._positions: Mapping[str, int] = {}
        self._at_end = False
        self._slow_us = 0
        self._has_closed = False

    def start(self) -> None:
        self._host.supervised.append(self._supervise)
        self.start_again()

    def start_again(self) -> None:
        host = self._host
        self._has_closed = False
        self._positions, self._at_end = {}, False
        number = host.reports.new_process(self.spec.name)
        spec = self.spec
        self._sessions.append(MemberSession(host, number, spec.name, spec.group, self._topics()))
        starts = len(self._sessions)
        self._process = host.start(
            spec.name if starts == 1 else f"{spec.name}-{starts}",
            {
                **self._role(),
                "library": self.spec.library,
                "name": self.spec.name,
                "partitions": self.spec.partitions or host.partitions,
                "start_ns": self.spec.start_us * NS_PER_US,
                "poll_interval_ns": self.spec.poll_interval_us * NS_PER_US,
                "max_poll_records": int(self.spec.settings.get("max.poll.records", RECORDS_MAX)),
                "settings": {
                    **consumer_settings(self.spec.library, host.release, self.spec.settings),
                    **host.connection_settings(self.spec.library, self.spec.name, self._bootstrap),
                },
            },
            self._take,
        )

    def _role(self) -> dict[str, Any]:
        spec = self.spec
        if not spec.group:
            return {"role": "consumer"}
        return {
            "role": "member",
            "subscribed": self._topics(),
            "assigned": spec.partitions,
            "commit": spec.commit,
            "slow_ns": self._slow_us * NS_PER_US,
            "begins_at_zero": begins_at_zero(spec.settings),
            "stop_ns": None if spec.stop_us is None else spec.stop_us * NS_PER_US,
        }

    def _topics(self) -> list[str]:
        existing = (partition.rpartition("-")[0] for partition in self._host.partitions)
        return list(self.spec.topics or dict.fromkeys(existing))

    def crash(self) -> None:
        if self.spec.group and self._process is not None:
            self._host.report(ClientStopped, self.spec.name)
        super().crash()

    def _take(self, report: Mapping[str, Any]) -> None:
        session = self._sessions[-1]
        if "closed" in report:
            self._host.report(ClientStopped, self.spec.name)
            self._has_closed = True
        elif "records" not in report:
            session.take(report)
        else:
            # Add the records to the history before conditions can see them.
            records = session.take_poll(report)
            self._consumed.update(value for pairs in records.values() for _, value in pairs)
            self._positions = {**self._positions, **report["positions"]}
            self._at_end = report["at_end"]

    def _supervise(self) -> None:
        """End the process of a member that has left its group."""
        if self._has_closed:
            self._has_closed = False
            self.stop()

    def can_be_slowed(self) -> bool:
        return bool(self.spec.group)

    def slow_down(self, by_us: int) -> None:
        self._slow_us += by_us
        self._order(slow_ns=self._slow_us * NS_PER_US)

    def is_member(self) -> bool:
        return bool(self.spec.group)

    def close(self) -> None:
        self._order(close=True)

    def consumer_settings(self) -> dict[int, ConsumerSettings]:
        config = consumer_config(self._host.release, self.spec.settings)
        settings = consumer_promises(self.spec, config)
        return {session.process: settings for session in self._sessions}

    def consumed(self) -> Collection[str]:
        return self._consumed

    def position(self, partition: str) -> int | None:
        return self._positions.get(partition)

    def has_read_to_end(self) -> bool:
        return self._at_end
