"""Runs application instances on the model: their processes, and zombies beside them."""

from collections.abc import Mapping

from harrow.campaigns.clients.application_instance import ApplicationInstance
from harrow.campaigns.clients.model_clients import pause
from harrow.cluster_model.clients.application import Application
from harrow.cluster_model.clients.programs import ResultStore
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import ClientStopped, ClockStepped
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topology import ApplicationSpec


class ApplicationClient(ApplicationInstance["_ApplicationSession"]):
    """An application instance on the model."""

    def __init__(self, spec: ApplicationSpec, cluster: Cluster) -> None:
        super().__init__(spec, cluster.release, cluster.behaviours)
        self._cluster = cluster
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

    def session_ended(self, session: "_ApplicationSession", *, failed: bool) -> None:
        """Restart the instance after its process failed, unless a successor is running already."""
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

    # Methods for faults

    def stop(self) -> None:
        for session in self._sessions:
            session.stop()

    def crash(self) -> None:
        self._cluster.trace.emit(ClientStopped, self.spec.name)
        self.stop()

    def start_again(self) -> None:
        session = _ApplicationSession(self, self._cluster, self._skew_us)
        if self._sessions:
            # A fault that waits for a step also waits for it in the next process.
            session.application.hold_point.hold = self._sessions[-1].application.hold_point.hold
        self._sessions.append(session)
        session.application.slow_us = self._slow_us
        session.application.start()

    def pause(self) -> None:
        pause(self._cluster, self._sessions[-1].process)

    def step_clock(self, by_us: int) -> None:
        self._skew_us += by_us
        self._cluster.trace.emit(ClockStepped, self.spec.name, by_us, self._skew_us)
        for session in self._sessions:
            if session.is_running:
                session.application.on_clock_step(by_us)

    def set_clock(self) -> None:
        if self._skew_us:
            self.step_clock(-self._skew_us)

    def slow_down(self, by_us: int) -> None:
        self._slow_us += by_us
        for session in self._sessions:
            session.application.slow_us = self._slow_us

    def close(self) -> None:
        if self.is_running():
            self._sessions[-1].close()

    # Queries by the run

    def partitions(self) -> dict[str, tuple[str, ...]]:
        """Return the partitions of the topics that the application reads and writes."""
        topics = [self.spec.source] if self.spec.target is None else [self.spec.source, self.spec.target]
        return {topic: self.partitions_of(topic) for topic in topics}

    def _partition_names(self) -> tuple[str, ...]:
        return self._cluster.partition_names()


class _ApplicationSession:
    """A process of an application instance."""

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

    @property
    def is_running(self) -> bool:
        return self.process.running

    @property
    def is_paused(self) -> bool:
        return self.process.paused

    @property
    def held_at(self) -> str | None:
        return self.application.held_at

    @property
    def positions(self) -> Mapping[str, int]:
        return self.application.read_end()

    def hold_at(self, step: str, passes: int) -> None:
        self.application.hold_point.hold = step, passes

    def unfinished(self) -> int:
        return self.application.unfinished() if self.process.running else 0

    def close(self) -> None:
        """Close its Kafka clients; a paused process closes them when it resumes."""
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
