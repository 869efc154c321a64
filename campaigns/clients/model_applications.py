"""Applications on the model: the processes of each instance, one after the other, and those that were left behind beside them."""

from collections.abc import Mapping

from harrow.campaigns.clients.client import GroupReader
from harrow.campaigns.clients.client_promises import (
    promised_to_application,
    promised_to_consumer_of,
    promised_to_producer,
)
from harrow.campaigns.clients.model_clients import pause
from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.cluster_model.clients.application import Application
from harrow.cluster_model.clients.programs import APPLICATIONS, ResultStore
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import ClientStopped, ClockStepped
from harrow.cluster_model.settings import producer_config
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topology import ApplicationSpec


class ApplicationClient(GroupReader):
    """An instance of an application. What supervises it starts it again when it has ended by itself."""

    def __init__(self, spec: ApplicationSpec, cluster: Cluster) -> None:
        self.spec = spec
        self._cluster = cluster
        self._sessions: list[_ApplicationSession] = []
        self._written = 0
        self._slow_us = 0
        self._skew_us = 0

    def start(self) -> None:
        now_us = self._cluster.simulator.now_us
        self._cluster.simulator.schedule(
            max(self.spec.start_us, now_us), Process(self.spec.name), self._start_first, None
        )
        if self.spec.stop_us is not None:
            self._cluster.at(max(self.spec.stop_us, now_us), self._close)

    def _start_first(self, _: None) -> None:
        if not self._sessions:
            self.start_again()

    def _close(self, _: None) -> None:
        if self.is_running():
            self._sessions[-1].close()

    def next_number(self) -> int:
        """Return the number of what is written next: whichever process writes it, no value comes twice."""
        self._written += 1
        return self._written - 1

    def session_ended(self, session: "_ApplicationSession", *, failed: bool) -> None:
        """A process has ended by itself; one that has a successor already gets none."""
        self._cluster.trace.emit(ClientStopped, self.spec.name)
        session.kill()
        if failed and session is self._sessions[-1]:
            now_us = self._cluster.simulator.now_us
            self._cluster.simulator.schedule(
                now_us + self.spec.restart_us, Process(self.spec.name), self._restart, session
            )

    def _restart(self, ended: "_ApplicationSession") -> None:
        if ended is self._sessions[-1]:
            self.start_again()

    # What faults do to it

    def stop(self) -> None:
        for session in self._sessions:
            session.stop()

    def is_running(self) -> bool:
        return bool(self._sessions) and self._sessions[-1].process.running

    def is_paused(self) -> bool:
        return self._sessions[-1].process.paused

    def crash(self) -> None:
        self._cluster.trace.emit(ClientStopped, self.spec.name)
        self.stop()

    def start_again(self) -> None:
        session = _ApplicationSession(self, self._cluster, self._skew_us)
        if self._sessions:
            # What waits for a step waits for it in the next life, too.
            session.application.hold_point.hold = self._sessions[-1].application.hold_point.hold
        self._sessions.append(session)
        session.application.slow_us = self._slow_us
        session.application.start()

    def pause(self) -> None:
        pause(self._cluster, self._sessions[-1].process)

    def resume(self) -> None:
        for session in self._sessions:
            session.let_go()

    def step_clock(self, by_us: int) -> None:
        self._skew_us += by_us
        self._cluster.trace.emit(ClockStepped, self.spec.name, by_us, self._skew_us)
        for session in self._sessions:
            if session.process.running:
                session.application.clock_stepped(by_us)

    def set_clock(self) -> None:
        if self._skew_us:
            self.step_clock(-self._skew_us)

    def can_be_left_behind(self) -> bool:
        return True

    def leave_behind(self) -> None:
        self.pause()
        self.start_again()

    def steps(self) -> tuple[str, ...]:
        return APPLICATIONS[self.spec.delivery].steps

    def hold_at(self, step: str, passes: int) -> None:
        self._sessions[-1].application.hold_point.hold = step, passes

    def held_at(self) -> str | None:
        return self._sessions[-1].application.held_at if self.is_running() else None

    def can_be_slowed(self) -> bool:
        return True

    def is_member(self) -> bool:
        return True

    def slow_down(self, by_us: int) -> None:
        self._slow_us += by_us
        for session in self._sessions:
            session.application.slow_us = self._slow_us

    def close(self) -> None:
        if self.is_running():
            self._sessions[-1].close()

    # What a run looks at

    def unfinished(self) -> int:
        return sum(session.unfinished() for session in self._sessions)

    def group(self) -> str:
        return self.spec.group

    def sources(self) -> tuple[str, ...]:
        return self._partitions_of(self.spec.source)

    def reached(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for session in self._sessions:
            if session.process.running:
                found |= session.application.reached()
        return found

    def _partitions_of(self, topic: str) -> tuple[str, ...]:
        return tuple(name for name in self._cluster.partition_names() if name.rpartition("-")[0] == topic)

    def partitions(self) -> dict[str, tuple[str, ...]]:
        """Return the partitions of its topics."""
        topics = [self.spec.source] if self.spec.target is None else [self.spec.source, self.spec.target]
        return {topic: self._partitions_of(topic) for topic in topics}

    def producer_settings(self) -> dict[int, ProducerSettings]:
        if self.spec.target is None:
            return {}
        config = producer_config(
            self._cluster.release, self.spec.producer_settings(), self._cluster.behaviours
        )
        known = promised_to_producer(self.spec.name, config)
        return {session.processes[1]: known for session in self._sessions}

    def consumer_settings(self) -> dict[int, ConsumerSettings]:
        known = promised_to_consumer_of(self.spec, self._cluster.release)
        return {session.processes[0]: known for session in self._sessions}

    def application_settings(self) -> ApplicationSettings:
        return promised_to_application(self.spec, [session.processes for session in self._sessions])


class _ApplicationSession:
    """A process of an instance."""

    def __init__(self, client: ApplicationClient, cluster: Cluster, skew_us: int) -> None:
        spec = client.spec
        self._cluster = cluster
        self.process = Process(spec.name, skew_us=skew_us)
        history = cluster.history
        consumer = history.new_process(spec.name)
        self.processes = (consumer, consumer if spec.target is None else history.new_process(spec.name))
        self.application = Application(
            spec,
            (cluster.host(self.process), cluster.host(self.process)),
            self.processes,
            cluster.release,
            cluster.behaviours,
            history,
            tuple(cluster.processes),
            client.partitions(),
            cluster.result_stores.setdefault(spec.group, ResultStore()),
            client.next_number,
            lambda failed: client.session_ended(self, failed=failed),
        )

    def unfinished(self) -> int:
        return self.application.unfinished() if self.process.running else 0

    def close(self) -> None:
        """Have it close its clients; one that stands still does so when it goes on."""
        simulator = self._cluster.simulator
        simulator.schedule(simulator.now_us, self.process, lambda _: self.application.close(), None)

    def let_go(self) -> None:
        if self.process.paused:
            self._cluster.simulator.resume(self.process)
        if self.process.running:
            self.application.let_go()

    def stop(self) -> None:
        if self.process.running:
            self.application.abandon()
            self.kill()

    def kill(self) -> None:
        self.process.kill()
        self._cluster.network.process_died(self.process, power_loss=False)
