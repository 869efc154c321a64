"""Applies the effects of faults to real brokers, and controls their processes."""

from collections.abc import Callable, Collection, Mapping, Sequence

from harrow.campaigns.clients.clients import Clients
from harrow.campaigns.run.targets.shared_environment import HELD_BACK_MAX_US, TargetEnvironment, copies_of
from harrow.campaigns.run.targets.target import CommittedCopies
from harrow.checks.evidence import PartitionSettings
from harrow.cluster_model.events import (
    KILLED,
    SHUT_DOWN,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    BrokerStopped,
    BrokerStopping,
    TruncationRefused,
)
from harrow.cluster_model.trace import Trace
from harrow.faults.effects import End
from harrow.faults.handlers import Handlers
from harrow.faults.link_ends import ZOOKEEPER
from harrow.live_cluster.broker_logs.log_lines import RefusalLine
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.target.live_observer import LiveObserver
from harrow.live_cluster.target.real_cluster import RealCluster
from harrow.live_cluster.watches.broker_watch import BrokerWatch
from harrow.live_cluster.watches.observed_metadata import NO_BROKER


class LiveEnvironment(TargetEnvironment):
    """The processes, links and sessions of real brokers (`TargetEnvironment`).

    In a ``survivable`` run, power losses leave enough copies of every committed record. With
    ``hangs``, a broker that refuses to truncate never ends by itself.
    """

    def __init__(
        self,
        cluster: RealCluster,
        handlers: "Handlers[LiveEnvironment]",
        clients: Clients,
        observer: LiveObserver,
        trace: Trace,
        watches: dict[int, BrokerWatch],
        now_us: Callable[[], int],
        move_events: Callable[[], None],
        settings: Callable[[], Mapping[str, PartitionSettings]],
        *,
        survivable: bool,
        hangs: bool,
    ) -> None:
        super().__init__(handlers, clients, observer, cluster.links)
        self.cluster = cluster
        self._nodes: Mapping[int, NodeProcess] = {**cluster.brokers, **cluster.control.controllers}
        self._live_observer = observer
        self.trace = trace
        self._watches = watches
        self.now_us = now_us
        self._move_events = move_events
        self._settings = settings
        self._survivable = survivable
        self._hangs = hangs
        self._stopping: set[int] = set()
        self._hanging: set[int] = set()
        # The nodes that run according to the trace.
        self._running: set[int] = set()
        # Nodes that cannot start yet, with the time since which they wait for their start.
        self._waiting_since_us: dict[int, int] = {}
        # Nodes that were paused before they could start.
        self._paused_before_start: set[int] = set()

    def report_start(self) -> None:
        """Report the start of all nodes."""
        for node in self._nodes:
            self._running.add(node)
            self.trace.emit(BrokerStarted, node)

    def check_nodes(self) -> None:
        """Report nodes that have ended by themselves, and start those that can start now.

        A killed broker stays registered until its session expires. Up to 1.0, a start before that
        fails. In production, a supervisor would restart the broker until it succeeds.
        """
        for node in self._nodes.values():
            node.poll()
        for broker in sorted(self._running):
            if not self._nodes[broker].is_running:
                self._report_stop(broker, SHUT_DOWN if broker in self._stopping else KILLED)
        for broker in sorted(self._waiting_since_us.keys() - self._paused_before_start):
            if (
                broker not in self._running
                and not self._is_kept_registered(broker)
                and not self._is_held_back(broker)
            ):
                del self._waiting_since_us[broker]
                self._start(broker)

    def report_truncation_refusal(self, broker: int, refusal: RefusalLine) -> None:
        """Report that a broker refuses to truncate. It then shuts down, or hangs."""
        partition, leader = refusal.partition, refusal.leader
        if leader is None:
            state = self._observer.partition_state(partition)
            leader = NO_BROKER if state is None else state[0]
        self.trace.emit(TruncationRefused, broker, partition, leader, refusal.end_offset, refusal.leo)
        if broker in self._running:
            if broker not in self._stopping:
                self._begin_to_stop(broker)
            if self._hangs:
                self._hanging.add(broker)

    def broker_ids(self) -> tuple[int, ...]:
        return tuple(self.cluster.brokers)

    def is_running(self, broker: int) -> bool:
        return self._nodes[broker].is_running or broker in self._waiting_since_us

    def is_paused(self, broker: int) -> bool:
        process = self._nodes[broker]
        return broker in self._paused_before_start or (process.is_running and process.is_paused)

    def is_stopping(self, broker: int) -> bool:
        return broker in self._stopping and self._nodes[broker].is_running

    def kill_broker(self, broker: int, cause: str = KILLED) -> None:
        """Kill a process; if it waits for its start, only cancel the start."""
        self._cancel_start(broker)
        if not self._nodes[broker].is_running:
            return
        if broker in self.cluster.control.controllers:
            # The records that a controller has committed are already on disk (``RaftLog.flush``).
            self._nodes[broker].kill()
            self._move_events()
        else:
            led = self._live_observer.led_by(broker)
            # A broker that is killed while it stops does not close its session.
            self.cluster.observed_metadata.stopping.discard(broker)
            self._nodes[broker].kill()
            # Report what the broker did before it ended.
            self._move_events()
            self.cluster.logs[broker].observe(self.now_us(), led)
        self._report_stop(broker, cause)

    def has_logs(self, broker: int) -> bool:
        return broker in self.cluster.logs

    def may_lose_disk(self, broker: int) -> bool:
        return self.has_logs(broker) and self.may_lose_power(broker)

    def log_dirs(self) -> int:
        return self.cluster.spec.disk.log_dirs

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        return (offset or 0) < self.cluster.logs[broker].leo(partition)

    def partition_names(self) -> Sequence[str]:
        return self.cluster.observed_metadata.assignments.partition_names()

    def committed_copies(self) -> dict[str, CommittedCopies]:
        by_partition = self._settings().items() if self._survivable else ()
        return {partition: self._copies_of(partition, settings) for partition, settings in by_partition}

    def _copies_of(self, partition: str, settings: PartitionSettings) -> CommittedCopies:
        logs = self.cluster.logs
        return copies_of(
            self._observer,
            partition,
            end_of_log=lambda replica: logs[replica].leo(partition),
            # The high watermark of a broker that is down is unknown.
            last_known_high_watermark=lambda _: None,
            min_isr=max(own.min_insync_replicas for own in settings.on_broker.values()),
        )

    def _is_held_back(self, broker: int) -> bool:
        return self.now_us() < self._waiting_since_us[
            broker
        ] + HELD_BACK_MAX_US and self.could_lead_incomplete(broker)

    def _cancel_start(self, broker: int) -> bool:
        """Cancel a pending start; return whether there was one.

        The previous process may still be stopping.
        """
        self._paused_before_start.discard(broker)
        return self._waiting_since_us.pop(broker, None) is not None

    def stop_broker(self, broker: int) -> None:
        if self._cancel_start(broker):
            return
        self._begin_to_stop(broker)
        self._nodes[broker].stop()

    def _begin_to_stop(self, broker: int) -> None:
        self._stopping.add(broker)
        self.cluster.observed_metadata.stopping.add(broker)
        self.trace.emit(BrokerStopping, broker)

    def start_broker(self, broker: int) -> None:
        self._waiting_since_us.setdefault(broker, self.now_us())
        self.check_nodes()

    def pause_broker(self, broker: int) -> None:
        if broker in self._waiting_since_us and not self._nodes[broker].is_running:
            self._paused_before_start.add(broker)
        else:
            self._nodes[broker].pause()
        self.trace.emit(BrokerPaused, broker)

    def resume_broker(self, broker: int) -> None:
        if broker in self._paused_before_start:
            self._paused_before_start.discard(broker)
        else:
            self._nodes[broker].resume()
        self.trace.emit(BrokerResumed, broker)

    def processes_at(self, end: End) -> tuple[End, ...]:
        return self.cluster.control.process_names if end == ZOOKEEPER else (end,)

    def heal(self) -> None:
        """End every fault, kill nodes that hang, and start nodes that are down."""
        self.cluster.links.restore_all()
        for node in self._nodes:
            self._heal_node(node)

    def heal_core(self, brokers: Collection[int]) -> None:
        """Heal some brokers and all controllers; the other brokers stay down, paused or cut off."""
        self.cluster.links.restore_all_but([broker for broker in self.broker_ids() if broker not in brokers])
        nodes = (*self.cluster.control.controllers, *brokers)
        self._waiting_since_us = {
            node: since_us for node, since_us in self._waiting_since_us.items() if node in nodes
        }
        for node in nodes:
            self._heal_node(node)

    def _heal_node(self, node: int) -> None:
        if node in self._hanging:
            self.kill_broker(node)
        if self.is_paused(node):
            self.resume_broker(node)
        if self.is_stopping(node) or not self.is_running(node):
            self.start_broker(node)

    def _start(self, broker: int) -> None:
        is_broker = broker not in self.cluster.control.controllers
        if is_broker:
            self.cluster.links.forget(broker)
            self.cluster.observed_metadata.stopping.discard(broker)
            # Report the last writes of its previous process before they become its initial log.
            self.cluster.logs[broker].observe(self.now_us(), frozenset())
        self._running.add(broker)
        self.trace.emit(BrokerStarted, broker)
        if is_broker:
            self.cluster.logs[broker].open()
        self._nodes[broker].start()

    def _is_kept_registered(self, broker: int) -> bool:
        """Return whether the registration of a broker's previous process prevents its start."""
        return self.cluster.control.keeps_registrations and self._live_observer.is_registered(broker)

    def _report_stop(self, broker: int, cause: str) -> None:
        self._running.discard(broker)
        self._stopping.discard(broker)
        self._hanging.discard(broker)
        if broker in self._watches:
            self._watches[broker].forget()
        self.trace.emit(BrokerStopped, broker, cause)
