"""What faults act on, on real brokers: processes, links, sessions."""

from collections.abc import Callable, Mapping

from harrow.campaigns.run.clients import Clients
from harrow.campaigns.run.spared_power import can_spare
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
)
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.trace import Trace
from harrow.faults.fault import process_name
from harrow.live_cluster.broker_watch import BrokerWatch
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.live_observer import LiveObserver
from harrow.live_cluster.local_cluster import LocalCluster


class LiveEnvironment:
    """Brokers' processes, links and sessions of a cluster on this machine (`harrow.faults.fault.Environment`).

    Where a run is ``survivable``, power losses leave enough copies of every committed record.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        clients: Clients,
        observer: LiveObserver,
        trace: Trace,
        proxies: Proxies,
        watches: dict[int, BrokerWatch],
        now_us: Callable[[], int],
        take_over: Callable[[], None],
        settings: Mapping[str, PartitionSettings],
        *,
        survivable: bool,
    ) -> None:
        self.strike = 0
        self._cluster = cluster
        self._observer = observer
        self._trace = trace
        self._proxies = proxies
        self._watches = watches
        self._now_us = now_us
        self._take_over = take_over
        self._settings = settings
        self._survivable = survivable
        self._stopping: set[int] = set()
        # Those that run, as far as the trace knows, and those that are to be started as soon as they can.
        self._running: set[int] = set()
        self._to_start: list[int] = []
        self.client_names = clients.names
        self.controller = observer.controller

    def started(self) -> None:
        """Take note of the brokers that the cluster was started with."""
        for broker in self.broker_ids():
            self._running.add(broker)
            self._trace.emit(BrokerStarted, broker)

    def look(self) -> None:
        """Take note of brokers that have ended by themselves, and start those that can be started now.

        One that was killed is registered until its session is over; up to 1.0 the same broker fails to start meanwhile, and
        whatever looks after it in production would start it again until it does.
        """
        for broker in sorted(self._running):
            if not self._cluster.brokers[broker].is_running:
                self._has_stopped(broker, SHUT_DOWN if broker in self._stopping else KILLED)
        for broker in list(self._to_start):
            if broker not in self._running and not self._is_kept(broker):
                self._to_start.remove(broker)
                self._start(broker)

    def broker_ids(self) -> tuple[int, ...]:
        return tuple(self._cluster.brokers)

    def is_running(self, broker: int) -> bool:
        return self._cluster.brokers[broker].is_running or broker in self._to_start

    def is_paused(self, broker: int) -> bool:
        process = self._cluster.brokers[broker]
        return process.is_running and process.is_paused

    def is_stopping(self, broker: int) -> bool:
        return broker in self._stopping and self._cluster.brokers[broker].is_running

    def crash_broker(self, broker: int, *, power_loss: bool) -> None:
        if broker in self._to_start:
            self._to_start.remove(broker)
            return
        led = self._observer.led_by(broker)
        self._cluster.brokers[broker].kill()
        # What it did before it ended is told before.
        self._take_over()
        self._observer.disks[broker].look(self._now_us(), led)
        self._has_stopped(broker, POWER_LOSS if power_loss else KILLED)
        if power_loss:
            self._observer.disks[broker].lose_power(self._now_us())

    def may_lose_power(self, broker: int) -> bool:
        return not self._survivable or all(
            self._can_spare(
                partition, max(own.min_insync_replicas for own in settings.on_broker.values()), broker
            )
            for partition, settings in self._settings.items()
            if broker in settings.replicas
        )

    def _can_spare(self, partition: str, enough: int, broker: int) -> bool:
        disks = self._observer.disks
        return can_spare(
            self._observer, partition, broker, lambda replica: disks[replica].leo(partition), enough
        )

    def stop_broker(self, broker: int) -> None:
        self._stopping.add(broker)
        self._cluster.seen.stopping.add(broker)
        self._trace.emit(BrokerStopping, broker)
        self._cluster.brokers[broker].stop()

    def start_broker(self, broker: int) -> None:
        if broker not in self._to_start:
            self._to_start.append(broker)
        self.look()

    def pause_broker(self, broker: int) -> None:
        self._cluster.brokers[broker].pause()
        self._trace.emit(BrokerPaused, broker)

    def resume_broker(self, broker: int) -> None:
        self._cluster.brokers[broker].resume()
        self._trace.emit(BrokerResumed, broker)

    def expire_session(self, broker: int) -> None:
        self._cluster.control.expire_session(broker)

    def under_replicated_partitions(self) -> tuple[str, ...]:
        return tuple(
            partition
            for partition in self._cluster.spec.partition_names()
            if (state := self._observer.partition_state(partition)) is None
            or len(state[2]) < len(self._cluster.replicas_of(partition))
        )

    def delete_controller_znode(self) -> None:
        controller = self.controller()
        self._cluster.control.delete_controller()
        if controller is not None:
            self._trace.emit(ControllerZnodeDeleted, controller)

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        self._in_loop(lambda faults: faults.cut(process_name(sender), process_name(receiver)))

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        self._in_loop(lambda faults: faults.restore(process_name(sender), process_name(receiver)))

    def add_message_rule(self, rule: MessageRule) -> None:
        rule.strike = self.strike
        self._in_loop(lambda faults: faults.add(rule))

    def remove_message_rules(self) -> None:
        strike = self.strike

        def remove(faults: LinkFaults) -> None:
            for rule in faults.rules():
                if rule.strike == strike:
                    faults.remove(rule)

        self._in_loop(remove)

    def has_message_rule(self, name: str) -> bool:
        return self._proxies.in_loop(lambda faults: any(rule.name == name for rule in faults.rules()))

    def release_messages(self, name: str) -> None:
        def remove(faults: LinkFaults) -> None:
            for rule in faults.rules():
                if rule.name == name:
                    faults.remove(rule)

        self._in_loop(remove)

    def heal(self) -> None:
        """End every fault, and start what is down."""
        self._in_loop(LinkFaults.restore_all)
        for broker in self.broker_ids():
            if self.is_paused(broker):
                self.resume_broker(broker)
            if self.is_stopping(broker) or not self.is_running(broker):
                self.start_broker(broker)

    def _in_loop(self, do: Callable[[LinkFaults], None]) -> None:
        self._proxies.in_loop(do)

    def _start(self, broker: int) -> None:
        self._proxies.in_loop(lambda _: self._observer.requests.forget(broker))
        self._cluster.seen.stopping.discard(broker)
        # What it has written before it ended, before it is what it begins with.
        self._observer.disks[broker].look(self._now_us(), frozenset())
        self._running.add(broker)
        self._trace.emit(BrokerStarted, broker)
        self._observer.disks[broker].open()
        self._cluster.brokers[broker].start()

    def _is_kept(self, broker: int) -> bool:
        """Return whether a registration of a broker's former life is in its way."""
        return self._cluster.control.keeps_registrations and self._observer.is_registered(broker)

    def _has_stopped(self, broker: int, cause: str) -> None:
        self._running.discard(broker)
        self._stopping.discard(broker)
        self._watches[broker].forget()
        self._trace.emit(BrokerStopped, broker, cause)
