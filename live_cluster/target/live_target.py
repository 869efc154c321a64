"""Runs a campaign on a cluster of real brokers."""

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from harrow.campaigns.clients.clients import Clients
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.targets.partition_promises import partition_settings
from harrow.campaigns.run.targets.target import CannotDoError, CommittedCopies, Patience
from harrow.checks.evidence import Evidence, FinalLog, PartitionSettings
from harrow.cluster_model.events import ControllerResigned, CoreHealed, Healed
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.replication import HANGS
from harrow.cluster_model.settings import BrokerConfig, TopicConfig, broker_config, topic_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import ApplicationSpec, ConsumerSpec, ProducerSpec
from harrow.cluster_model.trace import Trace
from harrow.faults.handlers import Handlers
from harrow.live_cluster.clients.client_host import ClientHost
from harrow.live_cluster.clients.live_kinds import LIVE
from harrow.live_cluster.clients.reports import ClientReports
from harrow.live_cluster.reach.feasible import NO_BROKERS_ADDED, NO_THROTTLE
from harrow.live_cluster.reach.rehearsal import applications_of
from harrow.live_cluster.target.administrator import Administrator
from harrow.live_cluster.target.live_environment import LiveEnvironment
from harrow.live_cluster.target.live_observer import LiveObserver
from harrow.live_cluster.target.log_starts import LogStarts
from harrow.live_cluster.target.real_cluster import ClusterContext, MakeCluster
from harrow.live_cluster.target.thread_failures import ThreadFailures
from harrow.live_cluster.watches.activity import QUIET_POLL_INTERVAL_S, Activity
from harrow.live_cluster.watches.broker_watch import BrokerWatch
from harrow.live_cluster.watches.event_queue import EventQueue, WallClock
from harrow.live_cluster.watches.group_watch import GroupWatch
from harrow.live_cluster.watches.internal_topic_watch import InternalTopicWatch
from harrow.live_cluster.watches.transaction_watch import TransactionWatch

_POLL_INTERVAL_US: Final = 30 * US_PER_MS
"""The interval between observations of brokers while there is `Activity`."""
_QUIET_POLL_INTERVAL_US: Final = round(QUIET_POLL_INTERVAL_S * US_PER_SECOND)
_PATIENCE: Final = Patience(transient_us=3 * US_PER_SECOND, step_us=180 * US_PER_SECOND)
"""Longer than the slowest changes: a failover of half a minute, a checkpoint once a minute."""


class LiveTarget:
    """Real brokers with the clients of a run (`harrow.campaigns.run.targets.target.Target`).

    One thread runs the campaign. Other threads observe brokers, clients and links, and each
    step of the campaign adds their reports to the trace.
    """

    kind = LIVE
    patience: Patience | None = _PATIENCE
    invariants: Collection[str] = ()

    def __init__(
        self,
        plan: Plan,
        choices: Choices,
        folder: Path,
        make: MakeCluster,
        handlers: Handlers[LiveEnvironment],
        wait: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Use the cluster that *make* returns. While the cluster starts, it calls *wait*.

        The files of clients go to *folder*.
        """
        self._plan = plan
        self._open = ExitStack()
        self._timers: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._numbers = count()
        self._events_noted = 0
        # If a later step fails, close all that earlier steps have opened.
        with ExitStack() as opened:
            self._open_resources(opened, plan, choices, folder, make, handlers, wait)
            self._open = opened.pop_all()

    def _open_resources(
        self,
        opened: ExitStack,
        plan: Plan,
        choices: Choices,
        folder: Path,
        make: MakeCluster,
        handlers: Handlers[LiveEnvironment],
        wait: Callable[[str], None],
    ) -> None:
        spec = plan.cluster
        release = RELEASES[plan.kafka]
        threads = opened.enter_context(ThreadFailures())
        self._check_threads = threads.check

        def wait_for(what: str) -> None:
            threads.check()
            wait(what)

        self._elects_uncleanly = release.behaviours.allows_unclean_election(spec.metadata or release.metadata)
        self._clock = WallClock()
        self.trace = Trace(self._clock)
        self._activity = activity = Activity()
        self._event_queue = EventQueue(self._clock, self.trace, activity)
        report = self._event_queue.report
        self._reports = ClientReports(self._event_queue.wake)
        self._configs = {
            broker.id: broker_config(plan.kafka, {**spec.settings, **broker.settings})
            for broker in spec.brokers
        }
        context = ClusterContext(
            plan=plan,
            folder=folder,
            choices=choices,
            clock=self._clock,
            trace=self.trace,
            report=report,
            activity=activity,
            wait=wait_for,
        )
        cluster = self._cluster = opened.enter_context(make(context))
        cluster.observed_metadata.elected_cleanly = frozenset(
            name.rpartition("-")[0]
            for name, settings in self.partition_settings().items()
            if not settings.unclean_leader_election
        )
        self._watches = {
            broker: BrokerWatch(
                process,
                cluster.connect(broker),
                partial(cluster.observed_metadata.assignments.owned_by, broker),
                cluster.observed_metadata,
                report,
                activity,
                cluster.names,
            )
            for broker, process in cluster.brokers.items()
        }
        transactions = None
        writers: tuple[ProducerSpec | ApplicationSpec, ...] = (*plan.producers, *applications_of(plan))
        if cluster.follows_logs and any(writer.transactional_id for writer in writers):
            transactions = TransactionWatch(
                {broker: cluster.connect(broker) for broker in cluster.brokers},
                report,
                activity,
                cluster.names,
            )
        readers: tuple[ConsumerSpec | ApplicationSpec, ...] = (*plan.consumers, *applications_of(plan))
        groups = sorted({reader.group for reader in readers if reader.group})
        self._coordination: list[InternalTopicWatch] = [] if transactions is None else [transactions]
        if cluster.follows_logs and groups:
            connections = {broker: cluster.connect(broker) for broker in cluster.brokers}
            self._coordination.append(GroupWatch(groups, connections, report, activity, cluster.names))
        host = ClientHost(
            children=cluster.children,
            folder=folder / "clients",
            servers=cluster.servers,
            security=cluster.security,
            topics=cluster.names.topics,
            release=plan.kafka,
            present=self.partition_names,
            clock=self._clock,
            reports=self._reports,
            report=report,
            initialized=(lambda *_: None) if transactions is None else transactions.initialized,
            draw=choices.workload,
        )
        self._administrator = opened.enter_context(
            Administrator(
                cluster.connect,
                report,
                leader_of=self._running_leader,
                controller=self._running_controller,
                observed_metadata=cluster.observed_metadata,
                racks={each.id: each.rack for each in spec.brokers if each.rack is not None},
                names=cluster.names,
            )
        )
        self._log_starts = LogStarts(
            self.trace,
            cluster.logs,
            lambda broker: self._watches[broker].log_starts(),
            cluster.observed_metadata.partition_state,
            self._administrator.deleted_below,
        )
        self._client_processes = host.processes
        self._supervised = host.supervised
        self.clients = Clients(plan.clients(), LIVE, host, on_started=host.begin)
        self.observer = LiveObserver(
            cluster, self.clients, self._reports, self.trace, self._watches, self._log_starts.log_start_of
        )
        self.environment = LiveEnvironment(
            cluster,
            handlers,
            self.clients,
            self.observer,
            self.trace,
            self._watches,
            self._clock.tick,
            self._event_queue.move_to_trace,
            self.partition_settings,
            survivable=plan.survivable,
            hangs=RELEASES[plan.kafka].behaviours.replication.out_of_range_follower == HANGS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, traceback)

    @property
    def now_us(self) -> int:
        return self._clock.tick()

    @property
    def events_handled(self) -> int:
        return len(self.trace.events)

    def start(self) -> None:
        self._cluster.start()
        for watch in self._watches.values():
            self._open.enter_context(watch)
        for watch_of_topic in self._coordination:
            self._open.enter_context(watch_of_topic)
        self.environment.report_start()
        self._observe()

    def advance(self, until_us: int) -> None:
        while self.step(until_us):
            pass

    def step(self, until_us: int) -> bool:
        assert self._clock.zero_ns is not None, "time passes only after the clients have started"
        now_us = self._clock.tick()
        if now_us >= until_us:
            return False
        while self._timers and self._timers[0][0] <= now_us:
            _, _, callback, argument = heapq.heappop(self._timers)
            callback(argument)
        next_us = self._timers[0][0] if self._timers else until_us
        limit_us = min(until_us - now_us, max(next_us - now_us, 0))
        busy_us, quiet_us = min(_POLL_INTERVAL_US, limit_us), min(_QUIET_POLL_INTERVAL_US, limit_us)
        self._event_queue.wait(busy_us / US_PER_SECOND, quiet_us / US_PER_SECOND)
        if len(self.trace.events) > self._events_noted:
            self._activity.note()
        self._observe()
        self._events_noted = len(self.trace.events)
        for process in self._client_processes:
            process.check()
        for supervise in self._supervised:
            supervise()
        return True

    def at(self, at_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        heapq.heappush(self._timers, (at_us, next(self._numbers), callback, argument))

    def watch_messages(self) -> None:
        self._cluster.links.watch_messages()

    def watch_fetches(self) -> None:
        self._cluster.links.watch_fetches()

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        self._administrator.alter_partition_reassignment(partition, target)

    def create_partitions(self, topic: str, total: int) -> None:
        self._administrator.create_partitions(topic, total)

    def add_broker(self, broker: int) -> None:
        """Refuse: all real brokers start when the run starts."""
        raise CannotDoError(NO_BROKERS_ADDED)

    def throttle_replication(self, rate: int | None) -> None:
        """Refuse: replication on real brokers is never throttled."""
        raise CannotDoError(NO_THROTTLE)

    def committed_copies(self) -> Mapping[str, CommittedCopies]:
        return self.environment.committed_copies()

    def partition_names(self) -> Sequence[str]:
        return self._cluster.observed_metadata.assignments.partition_names()

    def delete_records(self, partition: str, offset: int) -> None:
        self._administrator.delete_records(partition, offset)

    def elect_preferred_leaders(self) -> None:
        self._cluster.control.elect_preferred_leaders(self.partition_names())

    def heal(self) -> None:
        self._timers.clear()
        self.trace.emit(Healed)
        self.environment.heal()
        self.clients.resume()

    def heal_core(self, brokers: Collection[int]) -> None:
        self._timers.clear()
        self.trace.emit(CoreHealed, tuple(brokers))
        self.environment.heal_core(brokers)
        self.clients.resume()

    def broker_config(self, broker: int) -> BrokerConfig:
        return self._configs[broker]

    @property
    def registration_time_max_us(self) -> int:
        return max(config.zookeeper_session_timeout_us for config in self._configs.values())

    def partition_settings(self) -> Mapping[str, PartitionSettings]:
        cluster = self._cluster
        return partition_settings(
            *(cluster.spec, self.partition_names(), cluster.replicas_of, self._topic_config),
            allows_unclean_election=self._elects_uncleanly,
        )

    def evidence(self) -> Evidence:
        """Return the evidence for the rules.

        Stop the clients first, so that the logs are not older than the history.
        """
        self.clients.stop()
        for process in self._client_processes:
            process.kill()
        self._observe()
        for logs in self._cluster.logs.values():
            logs.reread(self._clock.now_us)
        return Evidence(
            release=self._plan.kafka,
            metadata=self._plan.metadata,
            operations=self._reports.operations(),
            trace=self.trace.events,
            process_names=self._reports.process_names,
            producers=self.clients.producer_settings(),
            consumers=self.clients.consumer_settings(),
            applications=self.clients.application_settings(),
            partitions=self.partition_settings(),
            replicas={partition: self._replica_logs(partition) for partition in self.partition_names()},
            read_back=frozenset(),
            in_order=False,
            follows_logs=self._cluster.follows_logs,
        )

    def _topic_config(self, topic: str, broker: int) -> TopicConfig:
        settings = next(spec.settings for spec in self._cluster.spec.topics if spec.name == topic)
        return topic_config(settings, self._configs[broker])

    def _observe(self) -> None:
        """Add the reports of other threads to the trace, and observe logs and processes."""
        self._check_threads()
        self._event_queue.move_to_trace()
        for broker, refusal in self._cluster.refusals():
            self.environment.report_truncation_refusal(broker, refusal)
        for broker, controller_epoch in self._cluster.resignations():
            self.trace.emit(ControllerResigned, broker, controller_epoch)
        self.environment.check_nodes()
        # Observe leaders first, because followers append what leaders have.
        logs = self._cluster.logs
        led = {broker: self.observer.led_by(broker) for broker in logs}
        for broker in sorted(logs, key=lambda broker: not led[broker]):
            logs[broker].observe(self._clock.now_us, led[broker])
            if self._cluster.follows_logs:
                owned = self._cluster.observed_metadata.assignments.owned_by(broker)
                self._log_starts.observe(broker, filter(logs[broker].has_log, owned))

    def _running_leader(self, partition: str) -> int | None:
        """Return the leader that the control plane names, None if its process cannot answer."""
        state = self._cluster.observed_metadata.partition_state(partition)
        return None if state is None or not self._can_answer(state.leader) else state.leader

    def _running_controller(self) -> int | None:
        """Return the broker for controller requests: the controller, or with KRaft any broker."""
        controller = self._cluster.observed_metadata.controller()
        if controller is not None and controller in self._cluster.brokers:
            return controller if self._can_answer(controller) else None
        has_zookeeper = self._cluster.control.keeps_registrations
        return None if has_zookeeper else next(filter(self._can_answer, self._cluster.brokers), None)

    def _can_answer(self, broker: int) -> bool:
        process = self._cluster.brokers.get(broker)
        return process is not None and process.is_running and not process.is_paused

    def _replica_logs(self, partition: str) -> dict[int, FinalLog]:
        final = {}
        state = self.observer.partition_state(partition)
        for broker in self._cluster.replicas_of(partition):
            logs, observed_replica = self._cluster.logs[broker], self.observer.replica(partition, broker)
            if not logs.has_log(partition):
                continue
            log_start = self._log_starts.log_start_of(broker, partition)
            final[broker] = FinalLog(
                leo=logs.leo(partition),
                hw=0 if observed_replica is None else observed_replica.hw,
                flushed=logs.flushed(partition),
                epochs=logs.epochs(partition),
                batches=tuple(batch for batch in logs.batches(partition) if batch.next_offset > log_start),
                begins_at=log_start,
                in_sync=state is not None and broker in state[2],
            )
        return final
