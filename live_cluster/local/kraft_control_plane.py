"""Runs the control plane of a local KRaft cluster: controllers in their own processes."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from harrow.faults.fault import process_name
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.java_program import JavaPrograms
from harrow.live_cluster.local.kraft_controller import (
    META_PROPERTIES,
    LocalController,
    meta_properties,
    new_uuid,
)
from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.processes.ports import LOOPBACK, Ports
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.target.control_plane import CannotBeDoneError
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.metadata_watch import MetadataWatch
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.watches.quorum_watch import QuorumWatch
from harrow.live_cluster.wire.administration import elect_preferred_leaders
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.quorum import depose_leader

_LISTENER: Final = "CONTROLLER"
_INITIAL_REGISTRATION_MAX_MS: Final = 300_000
"""How long a broker waits for controllers that start after it. They take less time."""
_FIRST_WITH_ADVERTISED_CONTROLLERS: Final = (3, 9)
"""Since 3.9 the quorum's answers contain the address of its leader (KIP-853), so a controller
behind a proxy needs ``advertised.listeners``. Earlier controllers refuse that setting."""


class KRaftControlPlane:
    """Controllers behind proxies (a `LocalControlPlane`).

    harrow asks the controllers only about the quorum. It learns of their decisions from brokers
    that have applied them.
    """

    keeps_registrations = False
    is_waited_for = True

    def __init__(
        self,
        programs: JavaPrograms,
        folder: Path,
        ports: Ports,
        proxies: Proxies,
        *,
        voters: Iterable[int],
        brokers: Iterable[int],
        topics: Iterable[str],
        observed_metadata: ObservedMetadata,
        activity: Activity,
        settings: Mapping[str, object],
        release: KafkaRelease,
    ) -> None:
        self.addresses = {voter: (LOOPBACK, ports.reserve()) for voter in voters}
        """The controllers' own addresses, which harrow uses to bypass the proxies."""
        proxy_ports = {voter: ports.reserve() for voter in self.addresses}
        for voter, address in self.addresses.items():
            proxies.listen_for_broker(process_name(voter), proxy_ports[voter], address)
        self._voters = ",".join(f"{voter}@{LOOPBACK}:{port}" for voter, port in proxy_ports.items())
        self.cluster_id = new_uuid()
        self._controllers = {
            voter: LocalController(
                programs,
                voter,
                controller_folder(folder, voter),
                address,
                {
                    "process.roles": "controller",
                    "node.id": voter,
                    "listeners": _listener_text(address),
                    **_advertised(release, (LOOPBACK, proxy_ports[voter])),
                    **self._quorum_settings(),
                    **settings,
                },
                self.cluster_id,
            )
            for voter, address in self.addresses.items()
        }
        self.controllers: Mapping[int, NodeProcess] = self._controllers
        self.process_names = tuple(map(process_name, self.addresses))
        self._observed_metadata = observed_metadata
        self._brokers = tuple(brokers)
        self._watch = MetadataWatch(observed_metadata, topics, activity)
        self._quorum_watch = QuorumWatch(
            observed_metadata,
            self._controllers,
            {voter: BrokerConnection(address) for voter, address in self.addresses.items()},
            activity,
        )

    def start(self) -> None:
        first, *others = self._controllers.values()
        first.format()
        for other in others:
            other.copy_storage(first.logs)
        for controller in self._controllers.values():
            controller.start()

    def processes(self) -> Iterable[ChildProcess]:
        nodes = self._controllers.values()
        return [node.process for node in nodes if node.process is not None]

    def is_ready(self) -> bool:
        return all(controller.is_ready() for controller in self._controllers.values())

    def settings(self, broker: int) -> Mapping[str, object]:
        return {
            "process.roles": "broker",
            "node.id": broker,
            "initial.broker.registration.timeout.ms": _INITIAL_REGISTRATION_MAX_MS,
            **self._quorum_settings(),
        }

    def prepare(self, broker: int, folder: Path) -> None:
        """Format a broker's folder, as ``kafka-storage format`` does."""
        file = folder / META_PROPERTIES
        if not file.exists():
            folder.mkdir(parents=True)
            file.write_text(meta_properties(self.cluster_id, broker), encoding="utf-8")

    def watch(self, connect: Callable[[int], BrokerConnection], alive: Callable[[int], bool]) -> None:
        self._connect = connect
        self._alive = alive
        self._watch.start({broker: connect(broker) for broker in self._brokers}, alive)
        self._quorum_watch.start()

    def knows_controller(self) -> bool:
        return self._observed_metadata.controller() is not None

    def close(self) -> None:
        self._watch.close()
        self._quorum_watch.close()

    def expire_session(self, broker: int) -> None:
        """Make a controller resign if it is active. Controllers have terms instead of sessions."""
        if broker not in self.controllers:
            raise CannotBeDoneError("brokers have no sessions without ZooKeeper")
        self._depose(broker)

    def delete_controller(self) -> None:
        """Make the active controller resign, if there is one."""
        controller = self._observed_metadata.controller()
        if controller is not None:
            self._depose(controller)

    def _depose(self, controller: int) -> None:
        # Another thread uses the watch's connection.
        with BrokerConnection(self.addresses[controller]) as connection, suppress(ConnectionLostError):
            depose_leader(connection)

    def elect_preferred_leaders(self, partitions: Iterable[str]) -> None:
        for broker in filter(self._alive, self._brokers):
            # Another thread uses the watch's connection.
            with self._connect(broker) as connection:
                try:
                    elect_preferred_leaders(connection, partitions)
                except ConnectionLostError:
                    continue
            return

    def _quorum_settings(self) -> dict[str, object]:
        return {
            "controller.quorum.voters": self._voters,
            "controller.listener.names": _LISTENER,
            "listener.security.protocol.map": f"{_LISTENER}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }


def _listener_text(address: tuple[str, int]) -> str:
    host, port = address
    return f"{_LISTENER}://{host}:{port}"


def _advertised(release: KafkaRelease, proxy_address: tuple[str, int]) -> dict[str, object]:
    """Return the setting that makes brokers and controllers use the proxy of a controller."""
    if release.version < _FIRST_WITH_ADVERTISED_CONTROLLERS:
        return {}
    return {"advertised.listeners": _listener_text(proxy_address)}


def controller_folder(folder: Path, controller: int) -> Path:
    return folder / process_name(controller)
