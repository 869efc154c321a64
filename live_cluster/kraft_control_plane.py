"""The control plane of a local cluster with KRaft: a controller in a process of its own."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from harrow.live_cluster.broker_watch import rest_s
from harrow.live_cluster.control_plane import CannotBeDoneError
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.metadata_seen import MetadataSeen, SeenPartition
from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.processes.java_program import JavaPrograms, properties
from harrow.live_cluster.processes.kraft_controller import LocalController, new_uuid
from harrow.live_cluster.processes.ports import LOOPBACK, Ports
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import BrokerMetadata, broker_metadata, elect_preferred_leaders

QUORUM_NAME: Final = "zookeeper"
"""What a campaign calls the end of a link where brokers find their metadata, whatever is there."""
CONTROLLER_ID: Final = 3_000
_LISTENER: Final = "CONTROLLER"


class KRaftControlPlane:
    """A controller behind a proxy (`harrow.live_cluster.control_plane.LocalControlPlane`).

    It is not asked itself: brokers tell what they have learned. Of what they tell the newest leader epoch counts, and within one
    what the leader tells, whose ISR it is.
    """

    name = QUORUM_NAME
    keeps_registrations = False

    def __init__(
        self,
        programs: JavaPrograms,
        folder: Path,
        ports: Ports,
        proxies: Proxies,
        *,
        brokers: Iterable[int],
        topics: Iterable[str],
        seen: MetadataSeen,
        settings: Mapping[str, object],
    ) -> None:
        address, proxied = (LOOPBACK, ports.take()), (LOOPBACK, ports.take())
        proxies.listen_for_broker(self.name, proxied[1], address)
        self._voters = f"{CONTROLLER_ID}@{proxied[0]}:{proxied[1]}"
        self._cluster_id = new_uuid()
        own = {
            "process.roles": "controller",
            "node.id": CONTROLLER_ID,
            "listeners": f"{_LISTENER}://{address[0]}:{address[1]}",
            **self._quorum(),
            **settings,
        }
        self._controller = LocalController(programs, folder / "controller", address, own, self._cluster_id)
        self._topics = tuple(topics)
        self._seen = seen
        self._brokers = tuple(brokers)
        self._connections: dict[int, BrokerConnection] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="metadata", daemon=True)

    def start(self) -> None:
        self._controller.start()

    def processes(self) -> Iterable[ChildProcess]:
        return () if self._controller.process is None else (self._controller.process,)

    def is_ready(self) -> bool:
        return self._controller.is_ready()

    def settings(self, broker: int) -> Mapping[str, object]:
        return {"process.roles": "broker", "node.id": broker, **self._quorum()}

    def prepare(self, broker: int, folder: Path) -> None:
        """Format a broker's folder, as ``kafka-storage format`` does."""
        file = folder / "meta.properties"
        if not file.exists():
            folder.mkdir(parents=True)
            known = {
                "version": 1,
                "cluster.id": self._cluster_id,
                "node.id": broker,
                "directory.id": new_uuid(),
            }
            file.write_text(properties(known), encoding="utf-8")

    def watch(self, connect: Callable[[int], BrokerConnection], alive: Callable[[int], bool]) -> None:
        self._connect = connect
        self._alive = alive
        self._connections = {broker: connect(broker) for broker in self._brokers}
        self._thread.start()

    def knows_controller(self) -> bool:
        """Return whether there is one: brokers that are registered have found it."""
        return bool(self._seen.registered())

    def close(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        # Not before: the thread would make them again.
        for connection in self._connections.values():
            connection.close()

    def expire_session(self, broker: int) -> None:  # noqa: ARG002 - of none
        raise CannotBeDoneError("brokers have no sessions without ZooKeeper")

    def delete_controller(self) -> None:
        raise CannotBeDoneError("there is no /controller without ZooKeeper")

    def elect_preferred_leaders(self, partitions: Iterable[str]) -> None:
        for broker in filter(self._alive, self._brokers):
            # One of its own: another thread looks at metadata.
            with self._connect(broker) as connection:
                try:
                    elect_preferred_leaders(connection, partitions)
                except ConnectionLostError:
                    continue
            return

    def _quorum(self) -> dict[str, object]:
        return {
            "controller.quorum.voters": self._voters,
            "controller.listener.names": _LISTENER,
            "listener.security.protocol.map": f"{_LISTENER}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }

    def _watch(self) -> None:
        while not self._over.is_set():
            began_s = time.monotonic()
            told: dict[int, BrokerMetadata] = {}
            for broker in filter(self._alive, self._brokers):
                try:
                    told[broker] = broker_metadata(self._connections[broker], self._topics)
                except ConnectionLostError:
                    continue
            self._take(told)
            self._over.wait(rest_s(time.monotonic() - began_s))

    def _take(self, told: Mapping[int, BrokerMetadata]) -> None:
        if not told:
            return
        # A broker that has just started, or is cut off, may know of fewer.
        registered = max((metadata.brokers for metadata in told.values()), key=len)
        self._seen.set_registered(registered, {})
        newest: dict[str, tuple[int, bool, SeenPartition]] = {}
        for broker, metadata in told.items():
            for partition, (leader, epoch, isr) in metadata.partitions.items():
                found = (epoch, leader == broker, SeenPartition(leader, epoch, isr))
                if partition not in newest or found[:2] > newest[partition][:2]:
                    newest[partition] = found
        for partition, (epoch, is_leaders, state) in newest.items():
            known = self._seen.partition_state(partition)
            if known is None or epoch > known.leader_epoch or (epoch == known.leader_epoch and is_leaders):
                self._seen.set_partition(partition, state)
