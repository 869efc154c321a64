"""Applications of a campaign on real brokers, with the processes of each instance."""

import time
from collections.abc import Mapping
from typing import Any, Final

from harrow.campaigns.clients.application_instance import ApplicationInstance
from harrow.cluster_model.clients.programs import ResultStore
from harrow.cluster_model.events import ApplicationEnded, ApplicationStep, ClientStopped
from harrow.cluster_model.history import effect_of
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import between
from harrow.cluster_model.topology import CONFLUENT_KAFKA, ApplicationSpec
from harrow.live_cluster.clients.application_worker import OF_CONSUMER, OF_PRODUCER
from harrow.live_cluster.clients.client_host import ClientHost
from harrow.live_cluster.clients.client_process import ClientProcess
from harrow.live_cluster.clients.client_settings import consumer_settings, producer_settings
from harrow.live_cluster.clients.live_clients import (
    NS_PER_US,
    RECORDS_MAX,
    begins_at_zero,
)
from harrow.live_cluster.clients.member_session import MemberSession
from harrow.live_cluster.clients.producer_sessions import producer_session

_WORK_TIME_COUNT: Final = 1_000
"""How many working times are drawn for an application. Then they repeat."""
_Hold = tuple[str, int]


class LiveApplication(ApplicationInstance["_LiveApplicationSession"]):
    """An instance of an application on real brokers."""

    def __init__(self, spec: ApplicationSpec, host: ClientHost) -> None:
        super().__init__(spec, host.release, RELEASES[host.release].behaviours)
        self._host = host
        self._restart_us: int | None = None

    def start(self) -> None:
        self._host.supervised.append(self._supervise)
        self._start_session(self.spec.start_us)

    def start_again(self) -> None:
        self._start_session(self._host.clock.tick())

    def _start_session(self, first_us: int) -> None:
        self._restart_us = None
        hold = self._sessions[-1].hold if self._sessions else None
        self._sessions.append(_LiveApplicationSession(self, self._host, len(self._sessions) + 1))
        # A hold at a step applies to the next process, too.
        self._sessions[-1].start(first_us, hold, self._slow_us)

    def _supervise(self) -> None:
        """End processes whose programs are over, and restart the last one if it has failed."""
        for session in self._sessions:
            if session.is_running and session.has_ended:
                session.kill()
                self._host.report(ClientStopped, self.spec.name)
                if session.error is not None and session is self._sessions[-1]:
                    self._restart_us = self._host.clock.tick() + self.spec.restart_us
        if self._restart_us is not None and self._host.clock.tick() >= self._restart_us:
            self.start_again()

    # Effects of faults

    def stop(self) -> None:
        self._restart_us = None
        for session in self._sessions:
            session.stop()

    def crash(self) -> None:
        self._restart_us = None
        for session in self._sessions:
            session.crash()
        self._host.report(ClientStopped, self.spec.name)

    def pause(self) -> None:
        self._sessions[-1].pause()

    def slow_down(self, by_us: int) -> None:
        self._slow_us += by_us
        for session in self._sessions:
            session.order(slow_ns=self._slow_us * NS_PER_US)

    def close(self) -> None:
        self._sessions[-1].order(close=True)

    def _partition_names(self) -> tuple[str, ...]:
        return self._host.partitions


class _LiveApplicationSession:
    """One process of an application instance.

    In the history its consumer and its producer are separate processes.
    """

    def __init__(self, client: LiveApplication, host: ClientHost, number: int) -> None:
        spec = client.spec
        self._client = client
        self._host = host
        self._number = number
        self._store = host.stores.setdefault(spec.group, ResultStore())
        consumer = host.reports.new_process(spec.name)
        self._consumer = MemberSession(host, consumer, spec.name, spec.group, (spec.source,))
        self._producer = (
            None if spec.target is None else producer_session(host, spec.name, spec.transactional_id)
        )
        self.processes = (consumer, consumer if self._producer is None else self._producer.process)
        self._process: ClientProcess | None = None
        self.is_paused = False
        self.hold: _Hold | None = None
        self.held_at: str | None = None
        self.positions: Mapping[str, int] = {}
        self._is_idle = False
        self.has_ended = False
        self.error: str | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self, first_us: int, hold: _Hold | None, slow_us: int) -> None:
        self.hold = hold
        client, host, spec = self._client, self._host, self._client.spec
        connection = host.connection_settings(CONFLUENT_KAFKA, spec.name)
        consumer = consumer_settings(CONFLUENT_KAFKA, host.release, spec.consumer_settings())
        producer = None
        if spec.target is not None:
            own = producer_settings(CONFLUENT_KAFKA, host.release, spec.producer_settings())
            producer = {**own, **connection}
        never_stops = spec.stop_us is None or spec.stop_us <= first_us
        work_times_us = [
            between(host.draw, 0, 2 * spec.work_us) for _ in range(_WORK_TIME_COUNT if spec.work_us else 1)
        ]
        self._process = host.start(
            spec.name if self._number == 1 else f"{spec.name}-{self._number}",
            {
                "role": "application",
                "library": CONFLUENT_KAFKA,
                "delivery": spec.delivery,
                "name": spec.name,
                "source": spec.source,
                "partitions": client.partitions_of(spec.target),
                "start_ns": first_us * NS_PER_US,
                "stop_ns": None if never_stops else (spec.stop_us or 0) * NS_PER_US,
                "work_ns": spec.work_us * NS_PER_US,
                "slow_ns": slow_us * NS_PER_US,
                "workers": spec.workers,
                "takes_ns": [work_us * NS_PER_US for work_us in work_times_us],
                "rewinds": spec.rewinds,
                "group_metadata": spec.group_metadata,
                "hold": hold,
                "begins_at_zero": begins_at_zero(spec.consumer),
                "max_poll_records": int(spec.consumer.get("max.poll.records", RECORDS_MAX)),
                "consumer": {**consumer, **connection},
                "producer": producer,
            },
            self._take,
        )

    # Reports, which arrive in a thread of their own

    def _take(self, report: dict[str, Any]) -> dict[str, Any] | None:
        of = report.get("of")
        if of == OF_CONSUMER:
            self._consumer.take(report)
        elif of == OF_PRODUCER:
            assert self._producer is not None, "only a producer reports as one"
            self._producer.take(report)
        elif "step" in report:
            spec = self._client.spec
            self._host.report(ApplicationStep, spec.name, spec.group, report["step"])
        elif "idle" in report:
            self.positions, self._is_idle = report["reached"], report["idle"]
        elif "passed" in report:
            self._take_passed(report["passed"], report["hold"])
        elif "held" in report:
            self.held_at = report["held"]
        elif "ended" in report:
            self._take_end(report["ended"])
        else:
            return {"answer": self._answer(report)}
        return None

    def _take_passed(self, step: str, hold: list[Any] | None) -> None:
        if self.hold is not None and self.hold[0] == step:
            self.hold = None if hold is None else (hold[0], hold[1])

    def _take_end(self, error: str | None) -> None:
        spec = self._client.spec
        if error is not None:
            self._host.report(ApplicationEnded, spec.name, spec.group, error)
        self.error = error
        self.has_ended = True

    def _answer(self, report: Mapping[str, Any]) -> Any:
        with self._host.stores_lock:
            if "next" in report:
                return self._client.next_number()
            if "stored" in report:
                offsets = {name: self._store.next_offset(name) for name in report["stored"]}
                return {name: offset for name, offset in offsets.items() if offset is not None}
            return self._store_result(report)

    def _store_result(self, report: Mapping[str, Any]) -> bool:
        """Store a result with the offset of its record. This is atomic: harrow does not crash."""
        partition, offset, spec = report["partition"], report["offset"], self._client.spec
        if not self._store.add(partition, offset):
            return False
        result = effect_of(spec.name, self._client.next_number(), report["store"])
        at_us = self._host.clock.us_of(time.monotonic_ns())
        self._host.reports.add_stored(self.processes[0], partition, offset, result, at_us)
        return True

    # Orders and effects of faults

    def order(self, **fields: Any) -> None:
        if self._process is not None:
            self._process.order(**fields)

    def hold_at(self, step: str, passes: int) -> None:
        self.hold = step, passes
        self.order(hold=self.hold)

    def pause(self) -> None:
        if self._process is not None:
            self._process.pause()
            self.is_paused = True

    def let_go(self) -> None:
        if self._process is None:
            return
        if self.is_paused:
            self._process.resume()
            self.is_paused = False
        self.hold = self.held_at = None
        self.order(go=True)

    def kill(self) -> None:
        """Kill the process; the outcome of its pending records stays unknown."""
        if self._end() and self._producer is not None:
            self._producer.abandon()

    crash = kill

    def stop(self) -> None:
        """End the process at the end of the run."""
        if self._end() and self._producer is not None:
            self._producer.end()

    def _end(self) -> bool:
        """Kill the process; return whether there was one."""
        if self._process is None:
            return False
        self._process.kill()
        self._process = None
        self.is_paused = False
        self.held_at = None
        return True

    def unfinished(self) -> int:
        if self._process is None:
            return 0
        written = 0 if self._producer is None else self._producer.unfinished()
        return written if self.has_ended else written + (not self._is_idle)
