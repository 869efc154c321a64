"""What faults act on, on real brokers: processes, links, sessions."""

from collections.abc import Callable, Collection, Iterator, Mapping

from harrow.campaigns.clients.client import Client
from harrow.campaigns.clients.clients import Clients
from harrow.campaigns.run.targets.spared_power import HELD_BACK_MAX_US, copies_of
from harrow.campaigns.run.targets.target import CommittedCopies
from harrow.checks.evidence import PartitionSettings
from harrow.cluster_model.events import (
    KILLED,
    POWER_LOSS,
    SHUT_DOWN,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    BrokerStopped,
    BrokerStopping,
    ControllerZnodeDeleted,
    TruncationRefused,
)
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.trace import Trace
from harrow.faults.links.link_ends import ZOOKEEPER
from harrow.live_cluster.broker_logs.log_lines import RefusalLine
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.target.live_observer import LiveObserver
from harrow.live_cluster.target.real_cluster import RealCluster
from harrow.live_cluster.watches.broker_watch import BrokerWatch
from harrow.live_cluster.watches.metadata_seen import NO_BROKER


class LiveEnvironment:
    """The processes of brokers and controllers, the links and the sessions of a cluster (`harrow.faults.fault.Environment`).

    Where a run is ``survivable``, power losses leave enough copies of every committed record. ``hangs`` says that a broker which
    refuses to truncate never ends by itself.
    """

    def __init__(
        self,
        cluster: RealCluster,
        clients: Clients,
        observer: LiveObserver,
        trace: Trace,
        watches: dict[int, BrokerWatch],
        now_us: Callable[[], int],
        take_over: Callable[[], None],
        settings: Callable[[], Mapping[str, PartitionSettings]],
        *,
        survivable: bool,
        hangs: bool,
    ) -> None:
        self.strike = 0
        self._cluster = cluster
        self._nodes: Mapping[int, NodeProcess] = {**cluster.brokers, **cluster.control.controllers}
        self._observer = observer
        self._trace = trace
        self._watches = watches
        self._now_us = now_us
        self._take_over = take_over
        self._settings = settings
        self._survivable = survivable
        self._hangs = hangs
        self._stopping: set[int] = set()
        self._hanging: set[int] = set()
        # Those that run, as far as the trace knows, and those that are to be started as soon as they can: since when.
        self._running: set[int] = set()
        self._to_start: dict[int, int] = {}
        # Those that were paused before they could be started.
        self._paused_early: set[int] = set()
        self.client_names = clients.names
        self._clients = clients
        self.controller = observer.controller

    def started(self) -> None:
        """Take note of the nodes that the cluster was started with."""
        for node in self._nodes:
            self._running.add(node)
            self._trace.emit(BrokerStarted, node)

    def look(self) -> None:
        """Take note of brokers that have ended by themselves, and start those that can be started now.

        One that was killed is registered until its session is over; up to 1.0 the same broker fails to start meanwhile, and
        whatever looks after it in production would start it again until it does.
        """
        for node in self._nodes.values():
            node.look_after()
        for broker in sorted(self._running):
            if not self._nodes[broker].is_running:
                self._has_stopped(broker, SHUT_DOWN if broker in self._stopping else KILLED)
        for broker in sorted(self._to_start.keys() - self._paused_early):
            if broker not in self._running and not self._is_kept(broker) and not self._is_held_back(broker):
                del self._to_start[broker]
                self._start(broker)

    def truncation_refused(self, broker: int, refusal: RefusalLine) -> None:
        """Take note that a broker stops by itself, which it does in good order, or hangs in."""
        partition, leader = refusal.partition, refusal.leader
        if leader is None:
            state = self._observer.partition_state(partition)
            leader = NO_BROKER if state is None else state[0]
        self._trace.emit(TruncationRefused, broker, partition, leader, refusal.end_offset, refusal.leo)
        if broker in self._running:
            if broker not in self._stopping:
                self._begin_to_stop(broker)
            if self._hangs:
                self._hanging.add(broker)

    def client(self, name: str) -> Client:
        return self._clients.client(name)

    def broker_ids(self) -> tuple[int, ...]:
        return tuple(self._cluster.brokers)

    def is_running(self, broker: int) -> bool:
        return self._nodes[broker].is_running or broker in self._to_start

    def is_paused(self, broker: int) -> bool:
        process = self._nodes[broker]
        return broker in self._paused_early or (process.is_running and process.is_paused)

    def is_stopping(self, broker: int) -> bool:
        return broker in self._stopping and self._nodes[broker].is_running

    def crash_broker(self, broker: int, *, power_loss: bool, torn_after: int | None = None) -> None:
        assert torn_after is None, "what `started_reach` lacks is skipped"
        self._give_up_start(broker)
        if not self._nodes[broker].is_running:
            # It had yet to be started: there is no process to kill, and its machine may lose its power.
            if power_loss and self.has_logs(broker):
                self._cluster.logs[broker].lose_power(self._now_us())
            return
        if broker in self._cluster.control.controllers:
            self._crash_controller(broker, power_loss=power_loss)
            return
        led = self._observer.led_by(broker)
        # One that is killed while it stops closes no session.
        self._cluster.seen.stopping.discard(broker)
        self._nodes[broker].kill()
        # What it did before it ended is told before.
        self._take_over()
        self._cluster.logs[broker].look(self._now_us(), led)
        self._has_stopped(broker, POWER_LOSS if power_loss else KILLED)
        if power_loss:
            self._cluster.logs[broker].lose_power(self._now_us())

    def _crash_controller(self, controller: int, *, power_loss: bool) -> None:
        """Kill a controller that is no broker: what it has committed is on its disk already (``RaftLog.flush``)."""
        self._nodes[controller].kill()
        self._take_over()
        self._has_stopped(controller, POWER_LOSS if power_loss else KILLED)

    def has_logs(self, broker: int) -> bool:
        return broker in self._cluster.logs

    def may_lose_disk(self, broker: int) -> bool:
        return self.has_logs(broker) and self.may_lose_power(broker)

    def lose_disk(self, broker: int) -> None:
        self._cluster.logs[broker].lose()

    def log_dirs(self) -> int:
        return self._cluster.spec.disk.log_dirs

    def fail_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        """Do nothing: what `started_reach` lacks is skipped."""

    def repair_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        """Do nothing: what `started_reach` lacks is skipped."""

    def slow_broker(self, broker: int, request_us: int) -> None:
        """Have the proxies pass its requests on one after the other, each after so long: its threads are not at hand."""
        for sender in self._everybody():
            self.degrade_link(sender, broker, LinkQuality(request_us=request_us))

    def recover_broker(self, broker: int, request_us: int) -> None:
        for sender in self._everybody():
            self.recover_link(sender, broker, LinkQuality(request_us=request_us))

    def slow_disk(self, broker: int, write_us: int) -> None:
        """Do nothing: what `started_reach` lacks is skipped."""

    def recover_disk(self, broker: int, write_us: int) -> None:
        """Do nothing: what `started_reach` lacks is skipped."""

    def _everybody(self) -> tuple[int | str, ...]:
        return (*self.broker_ids(), *self.client_names())

    def step_clock(self, end: int | str, by_us: int) -> None:
        """Do nothing: what `started_reach` lacks is skipped."""

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        return (offset or 0) < self._cluster.logs[broker].leo(partition)

    def damage_batch(self, broker: int, partition: str, offset: int | None) -> None:
        """Do nothing: what `started_reach` lacks is skipped."""

    def revert_checkpoint(self, broker: int, name: str, age_us: int | None) -> None:
        assert age_us is None, "what `started_reach` lacks is skipped"
        self._cluster.logs[broker].remove_checkpoint(name)

    def may_lose_power(self, broker: int) -> bool:
        return all(
            copies.can_spare(broker)
            for partition, copies in self.committed_copies().items()
            if broker in self._observer.replicas_of(partition)
        )

    def committed_copies(self) -> dict[str, CommittedCopies]:
        """Return which brokers can lead each partition with all that is committed; nothing where the run need not be survivable."""
        settings = self._settings().items() if self._survivable else ()
        return {partition: self._copies_of(partition, known) for partition, known in settings}

    def _copies_of(self, partition: str, settings: PartitionSettings) -> CommittedCopies:
        logs = self._cluster.logs
        return copies_of(
            self._observer,
            partition,
            end_of_log=lambda replica: logs[replica].leo(partition),
            # What a broker that is down has taken for committed is not known.
            high_watermark_before=lambda _: None,
            enough=max(own.min_insync_replicas for own in settings.on_broker.values()),
        )

    def _is_held_back(self, broker: int) -> bool:
        """Return whether a broker that is down could lead some partition without a committed record that others have."""
        return self._now_us() < self._to_start[broker] + HELD_BACK_MAX_US and any(
            broker in copies.hollow and copies.whole for copies in self.committed_copies().values()
        )

    def _give_up_start(self, broker: int) -> bool:
        """Return whether a broker was to be started, which it is no more. Its former process may be stopping still."""
        self._paused_early.discard(broker)
        return self._to_start.pop(broker, None) is not None

    def stop_broker(self, broker: int) -> None:
        if self._give_up_start(broker):
            return
        self._begin_to_stop(broker)
        self._nodes[broker].stop()

    def _begin_to_stop(self, broker: int) -> None:
        self._stopping.add(broker)
        self._cluster.seen.stopping.add(broker)
        self._trace.emit(BrokerStopping, broker)

    def start_broker(self, broker: int) -> None:
        self._to_start.setdefault(broker, self._now_us())
        self.look()

    def pause_broker(self, broker: int) -> None:
        if broker in self._to_start and not self._nodes[broker].is_running:
            self._paused_early.add(broker)
        else:
            self._nodes[broker].pause()
        self._trace.emit(BrokerPaused, broker)

    def resume_broker(self, broker: int) -> None:
        if broker in self._paused_early:
            self._paused_early.discard(broker)
        else:
            self._nodes[broker].resume()
        self._trace.emit(BrokerResumed, broker)

    def expire_session(self, broker: int) -> None:
        self._cluster.control.expire_session(broker)

    def under_replicated_partitions(self) -> tuple[str, ...]:
        return tuple(
            partition
            for partition in self._cluster.seen.assignments.partition_names()
            if (state := self._observer.partition_state(partition)) is None
            or len(state[2]) < len(self._cluster.replicas_of(partition))
        )

    def delete_controller_znode(self) -> None:
        controller = self.controller()
        self._cluster.control.delete_controller()
        if controller is not None:
            self._trace.emit(ControllerZnodeDeleted, controller)

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        for link in self._links(sender, receiver):
            self._cluster.links.cut(*link)

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        for link in self._links(sender, receiver):
            self._cluster.links.restore(*link)

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        links = list(self._links(sender, receiver))
        return bool(links) and all(self._cluster.links.is_cut(*link) for link in links)

    def degrade_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        for link in self._links(sender, receiver):
            self._cluster.links.degrade(*link, quality)

    def recover_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        for link in self._links(sender, receiver):
            self._cluster.links.recover(*link, quality)

    def reset_link(self, one: int | str, other: int | str) -> None:
        for link in self._links(one, other):
            self._cluster.links.reset(*link)

    def add_message_rule(self, rule: MessageRule) -> None:
        rule.strike = self.strike
        rule.senders, rule.receivers = self._all_at(rule.senders), self._all_at(rule.receivers)
        self._cluster.links.add(rule)

    def _links(self, sender: int | str, receiver: int | str) -> Iterator[tuple[int | str, int | str]]:
        """Yield the links between two ends, of which the control plane may be several processes."""
        for one in self._processes_at(sender):
            for other in self._processes_at(receiver):
                if one != other:
                    yield one, other

    def _processes_at(self, end: int | str) -> tuple[int | str, ...]:
        return self._cluster.control.process_names if end == ZOOKEEPER else (end,)

    def _all_at(self, ends: frozenset[str] | None) -> frozenset[str] | None:
        if ends is None or ZOOKEEPER not in ends:
            return ends
        return (ends - {ZOOKEEPER}) | frozenset(self._cluster.control.process_names)

    def remove_message_rules(self) -> None:
        self._cluster.links.remove(lambda rule: rule.strike == self.strike)

    def has_message_rule(self, name: str) -> bool:
        return self._cluster.links.has_rule(name)

    def release_messages(self, name: str) -> None:
        self._cluster.links.remove(lambda rule: rule.name == name)

    def heal(self) -> None:
        """End every fault, kill what hangs, and start what is down."""
        self._cluster.links.restore_all()
        for node in self._nodes:
            self._revive(node)

    def heal_core(self, brokers: Collection[int]) -> None:
        """Do so for some brokers and for all controllers; the other brokers stay down, paused or cut off, and none of them is started."""
        self._cluster.links.restore_all_but([broker for broker in self.broker_ids() if broker not in brokers])
        nodes = (*self._cluster.control.controllers, *brokers)
        self._to_start = {node: since_us for node, since_us in self._to_start.items() if node in nodes}
        for node in nodes:
            self._revive(node)

    def _revive(self, node: int) -> None:
        if node in self._hanging:
            self.crash_broker(node, power_loss=False)
        if self.is_paused(node):
            self.resume_broker(node)
        if self.is_stopping(node) or not self.is_running(node):
            self.start_broker(node)

    def _start(self, broker: int) -> None:
        if broker in self._cluster.control.controllers:
            self._running.add(broker)
            self._trace.emit(BrokerStarted, broker)
            self._nodes[broker].start()
            return
        self._cluster.links.forget(broker)
        self._cluster.seen.stopping.discard(broker)
        # What it has written before it ended, before it is what it begins with.
        self._cluster.logs[broker].look(self._now_us(), frozenset())
        self._running.add(broker)
        self._trace.emit(BrokerStarted, broker)
        self._cluster.logs[broker].open()
        self._nodes[broker].start()

    def _is_kept(self, broker: int) -> bool:
        """Return whether a registration of a broker's former life is in its way."""
        return self._cluster.control.keeps_registrations and self._observer.is_registered(broker)

    def _has_stopped(self, broker: int, cause: str) -> None:
        self._running.discard(broker)
        self._stopping.discard(broker)
        self._hanging.discard(broker)
        if broker in self._watches:
            self._watches[broker].forget()
        self._trace.emit(BrokerStopped, broker, cause)
