"""The control plane of a local cluster with KRaft: a controller in a process of its own."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from harrow.live_cluster.control_plane import CannotBeDoneError
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.metadata_seen import MetadataSeen
from harrow.live_cluster.metadata_watch import MetadataWatch
from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.processes.java_program import JavaPrograms, properties
from harrow.live_cluster.processes.kraft_controller import LocalController, new_uuid
from harrow.live_cluster.processes.ports import LOOPBACK, Ports
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import elect_preferred_leaders

QUORUM_NAME: Final = "zookeeper"
"""What a campaign calls the end of a link where brokers find their metadata, whatever is there."""
CONTROLLER_ID: Final = 3_000
CONTROLLER_FOLDER: Final = "controller"
_LISTENER: Final = "CONTROLLER"


class KRaftControlPlane:
    """A controller behind a proxy (`harrow.live_cluster.control_plane.LocalControlPlane`).

    It is not asked itself: brokers tell what they have learned.
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
        self._controller = LocalController(
            programs, folder / CONTROLLER_FOLDER, address, own, self._cluster_id
        )
        self._seen = seen
        self._brokers = tuple(brokers)
        self._watch = MetadataWatch(seen, topics)

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
        self._watch.start({broker: connect(broker) for broker in self._brokers}, alive)

    def knows_controller(self) -> bool:
        """Return whether there is one: brokers that are registered have found it."""
        return bool(self._seen.registered())

    def close(self) -> None:
        self._watch.close()

    def expire_session(self, broker: int) -> None:
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
