"""Starts a cluster of real brokers on this machine, with all files in one folder."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from harrow.cluster_model.controller.assignment import topic_assignments
from harrow.cluster_model.settings import CONTROL_PLANE_LISTENER, NO_LISTENER, NO_SELECTOR, Value
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec
from harrow.faults.fault import process_name
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.java_program import JavaPrograms
from harrow.live_cluster.local.kraft_control_plane import KRaftControlPlane
from harrow.live_cluster.local.local_control_plane import LocalControlPlane
from harrow.live_cluster.local.local_node import LocalNode
from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.local.zookeeper_control_plane import ZooKeeperControlPlane
from harrow.live_cluster.processes.child_processes import ChildProcess, ChildProcesses
from harrow.live_cluster.processes.ports import LOOPBACK, Ports
from harrow.live_cluster.reach.small_segments import accepted_broker_settings, accepted_topic_settings
from harrow.live_cluster.releases.kafka_release import KRAFT, KafkaRelease
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.wire.administration import create_topic
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import WITH_TOPIC_IDS, broker_metadata
from harrow.live_cluster.wire.replicas import ReplicaOffsets, replica_offsets

_POLL_INTERVAL_S: Final = 0.05
_POLL_TIMEOUT_S: Final = 2.0
"""The timeout of requests that are repeated anyway."""
_ADMIN_TIMEOUT_S: Final = 60.0
_LOG_EXCERPT_LINES: Final = 15
_INTERNAL_REPLICAS: Final = 3
INTERNAL_PARTITIONS: Final[dict[str, Value]] = {
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}
"""The numbers of partitions of internal topics, unless the campaign sets them."""
_SMALL_BROKER_DEFAULTS: Final = {
    **INTERNAL_PARTITIONS,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
    "auto.create.topics.enable": False,
}
"""Defaults that keep brokers small: they store little except the campaign's topics."""


class ClusterError(LiveError):
    """The cluster did not come up; the message says why, with the log of a process that ended."""


class LocalCluster:
    """Brokers and their control plane (``zookeeper`` or ``kraft``). Their processes end on exit.

    Clients and brokers connect through *proxies*; harrow itself bypasses them. *patience_s* limits
    each step of the start, and is long enough for a very slow machine. With
    *translates_small_segments*, brokers and topics get small segments in the way that 4.x accepts
    (`harrow.live_cluster.reach.small_segments`).
    """

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        release: KafkaRelease,
        java: Path,
        jars: Path,
        folder: Path,
        proxies: Proxies,
        observed_metadata: ObservedMetadata,
        metadata: str,
        activity: Activity,
        patience_s: float = 180.0,
        translates_small_segments: bool = False,
        shared: SharedClasses | None = None,
        wait: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.spec = spec
        self._release = release
        self._shared = shared
        self._report_wait = wait
        self._folder = folder
        self._translates_small_segments = translates_small_segments
        self._activity = activity
        self.observed_metadata = observed_metadata
        self.assignments = topic_assignments(spec)
        observed_metadata.assignments.set_initial(self.assignments)
        self._patience_s = patience_s
        self._open = ExitStack()
        # If a later step fails, close all that earlier steps have opened.
        with ExitStack() as opened:
            self._open_resources(opened, java, jars, folder, proxies, metadata)
            self._open = opened.pop_all()

    def _open_resources(
        self, opened: ExitStack, java: Path, jars: Path, folder: Path, proxies: Proxies, metadata: str
    ) -> None:
        spec = self.spec
        self.children = opened.enter_context(ChildProcesses())
        programs = self._programs = JavaPrograms(java, jars, self.children, self._shared)
        ports = opened.enter_context(Ports())
        self.control = self._control_plane(programs, folder, ports, proxies, metadata)
        self._own_addresses = {broker.id: (LOOPBACK, ports.reserve()) for broker in spec.brokers}
        self.addresses: dict[int, tuple[str, int]] = {}
        for broker, own_address in self._own_addresses.items():
            self.addresses[broker] = (LOOPBACK, ports.reserve())
            proxies.listen_for_broker(process_name(broker), self.addresses[broker][1], own_address)
        self.brokers = {
            broker.id: LocalNode(
                programs,
                broker.id,
                broker_folder(folder, broker.id),
                {**_SMALL_BROKER_DEFAULTS, **self._settings(broker)},
                spec.disk.log_dirs,
            )
            for broker in spec.brokers
        }
        self._connections = {
            broker: opened.enter_context(BrokerConnection(address, timeout_s=_ADMIN_TIMEOUT_S))
            for broker, address in self._own_addresses.items()
        }

    def _control_plane(
        self, programs: JavaPrograms, folder: Path, ports: Ports, proxies: Proxies, metadata: str
    ) -> LocalControlPlane:
        spec = self.spec
        if metadata == KRAFT:
            return KRaftControlPlane(
                programs,
                folder,
                ports,
                proxies,
                voters=spec.controller_ids(),
                brokers=[broker.id for broker in spec.brokers],
                topics=[topic.name for topic in spec.topics],
                observed_metadata=self.observed_metadata,
                activity=self._activity,
                settings=self._accepted(_without_zookeeper(spec.settings)),
                release=self._release,
            )
        return ZooKeeperControlPlane(
            programs,
            folder,
            ports,
            proxies,
            brokers=[broker.id for broker in spec.brokers],
            topics=[topic.name for topic in spec.topics],
            tick_ms=spec.zookeeper_tick_us // US_PER_MS,
            observed_metadata=self.observed_metadata,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()
        if kind is None:
            self._programs.share_classes(self._folder)

    def start(self) -> None:
        """Start everything, create the topics, and wait until all replicas are in sync.

        Brokers that wait for their control plane start at the same time. With ZooKeeper, the broker
        that the campaign wants as controller starts first. Raise `ClusterError` if the start fails.
        """
        control, observed_metadata = self.control, self.observed_metadata
        for broker, process in self.brokers.items():
            for log_dir in process.log_dirs:
                control.prepare(broker, log_dir)
            if control.is_waited_for:
                process.start()
        control.start()
        self._wait("the control plane", control.is_ready, control.processes())
        self._open.callback(control.close)
        control.watch(self.connect, self._is_alive)
        first = self.spec.controller
        if first is not None and control.keeps_registrations:
            self.brokers[first].start()
            self._wait_for_brokers("the controller", lambda: observed_metadata.controller() == first)
        for process in self.brokers.values():
            process.start()
        self._wait_for_brokers("all brokers", lambda: observed_metadata.registered() >= self.brokers.keys())
        self._wait_for_brokers(
            "answers", lambda: all(connection.answers() for connection in self._connections.values())
        )
        self._wait_for_brokers("a controller", control.knows_controller)
        for topic in self.spec.topics:
            # With ZooKeeper only the controller creates topics, with KRaft any broker.
            controller = observed_metadata.controller()
            broker = controller if controller in self._connections else next(iter(self._connections))
            settings = (
                accepted_topic_settings(self.spec, topic)
                if self._translates_small_segments
                else topic.settings
            )
            create_topic(self._connections[broker], topic.name, self.assignments[topic.name], settings)
        self._wait_for_brokers("all replicas", self._is_in_sync)

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        return self.observed_metadata.assignments.replicas_of(partition)

    def connect(self, broker: int, timeout_s: float = _POLL_TIMEOUT_S) -> BrokerConnection:
        """Return a new connection to a broker that bypasses the proxies; the caller closes it."""
        return BrokerConnection(self._own_addresses[broker], timeout_s=timeout_s)

    def topics_by_id(self) -> Mapping[UUID, str]:
        """Return the topics by their ids; older releases have none (KIP-516)."""
        connection = next(iter(self._connections.values()))
        if not connection.speaks(MetadataRequest, WITH_TOPIC_IDS):
            return {}
        return broker_metadata(connection, [topic.name for topic in self.spec.topics]).topics_by_id

    def offsets(self, broker: int) -> dict[str, ReplicaOffsets]:
        """Return the offsets of a broker's replicas; none while it does not answer."""
        owned = [name for name in self.spec.partition_names() if broker in self.replicas_of(name)]
        try:
            return replica_offsets(self._connections[broker], owned)
        except ConnectionLostError:
            return {}

    def _settings(self, broker: BrokerSpec) -> dict[str, object]:
        broker_settings: dict[str, object] = {
            "listeners": _listener_text(self._own_addresses[broker.id]),
            "advertised.listeners": _listener_text(self.addresses[broker.id]),
            "offsets.topic.replication.factor": min(_INTERNAL_REPLICAS, len(self.spec.brokers)),
            "transaction.state.log.replication.factor": min(_INTERNAL_REPLICAS, len(self.spec.brokers)),
            "transaction.state.log.min.isr": min(_INTERNAL_REPLICAS - 1, len(self.spec.brokers)),
            **self.control.settings(broker.id),
        }
        if broker.rack is not None:
            broker_settings["broker.rack"] = broker.rack
        settings = {
            name: value
            for name, value in {**self.spec.settings, **broker.settings}.items()
            if (name, value) not in _UNSET_VALUES
        }
        if not self.control.keeps_registrations:
            settings = _without_zookeeper(settings)
        return {**broker_settings, **self._accepted(settings)}

    def _accepted(self, settings: Mapping[str, Value]) -> Mapping[str, Value]:
        return accepted_broker_settings(settings) if self._translates_small_segments else settings

    def _is_alive(self, broker: int) -> bool:
        process = self.brokers[broker]
        return process.is_running and not process.is_paused

    def _is_in_sync(self) -> bool:
        """Return whether all replicas are in their ISRs and have logs on their brokers."""
        existing = {broker: self.offsets(broker).keys() for broker in self.brokers}
        for partition in self.spec.partition_names():
            state, replicas = self.observed_metadata.partition_state(partition), self.replicas_of(partition)
            if state is None or len(state[2]) < len(replicas):
                return False
            if any(partition not in existing[broker] for broker in replicas):
                return False
        return True

    def _wait_for_brokers(self, what: str, condition: Callable[[], bool]) -> None:
        started = [broker.process for broker in self.brokers.values() if broker.process is not None]
        self._wait(what, condition, [*self.control.processes(), *started])

    def _wait(self, what: str, condition: Callable[[], bool], processes: Iterable[ChildProcess]) -> None:
        until_s = time.monotonic() + self._patience_s
        while not condition():
            for process in processes:
                if not process.is_running:
                    raise ClusterError(
                        f"a process ended while harrow waited for {what}:\n{_last_lines(process.log)}"
                    )
            self._report_wait(what)
            if time.monotonic() > until_s:
                raise ClusterError(f"waited {self._patience_s:.0f} s in vain for {what}")
            time.sleep(_POLL_INTERVAL_S)


_UNSET_VALUES: Final = (("replica.selector.class", NO_SELECTOR), (CONTROL_PLANE_LISTENER, NO_LISTENER))
"""Values for which the properties file omits the setting."""


def broker_folder(folder: Path, broker: int) -> Path:
    return folder / f"broker-{broker}"


def _without_zookeeper(settings: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in settings.items() if not name.startswith("zookeeper.")}


def _listener_text(address: tuple[str, int]) -> str:
    host, port = address
    return f"PLAINTEXT://{host}:{port}"


def _last_lines(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="backslashreplace").splitlines()
    return "\n".join([f"the end of {log}:", *lines[-_LOG_EXCERPT_LINES:]])
