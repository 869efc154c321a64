"""The control plane of a local cluster with KRaft: a controller in a process of its own."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from harrow.cluster_model.topology import FIRST_CONTROLLER_ID
from harrow.faults.fault import process_name
from harrow.live_cluster.control_plane import CannotBeDoneError, NodeProcess
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.metadata_seen import MetadataSeen
from harrow.live_cluster.metadata_watch import MetadataWatch
from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.processes.java_program import JavaPrograms, properties
from harrow.live_cluster.processes.kraft_controller import LocalController, new_uuid
from harrow.live_cluster.processes.ports import LOOPBACK, Ports
from harrow.live_cluster.quorum_watch import QuorumWatch
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import elect_preferred_leaders
from harrow.live_cluster.wire.quorum import depose_leader

CONTROLLER_ID: Final = FIRST_CONTROLLER_ID
CONTROLLER_FOLDER: Final = "controller"
_LISTENER: Final = "CONTROLLER"


class KRaftControlPlane:
    """A controller behind a proxy (`harrow.live_cluster.control_plane.LocalControlPlane`).

    It is asked for the quorum alone: what it has decided brokers tell, once they have learned it.
    """

    process_names: tuple[str, ...] = (process_name(CONTROLLER_ID),)
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
        proxies.listen_for_broker(process_name(CONTROLLER_ID), proxied[1], address)
        self._voters = f"{CONTROLLER_ID}@{proxied[0]}:{proxied[1]}"
        self.cluster_id = new_uuid()
        own = {
            "process.roles": "controller",
            "node.id": CONTROLLER_ID,
            "listeners": f"{_LISTENER}://{address[0]}:{address[1]}",
            **self._quorum(),
            **settings,
        }
        self._controller = LocalController(
            programs, CONTROLLER_ID, folder / CONTROLLER_FOLDER, address, own, self.cluster_id
        )
        self.controllers: Mapping[int, NodeProcess] = {CONTROLLER_ID: self._controller}
        self.address = address
        """Where harrow itself finds the controller, past the proxies."""
        self._seen = seen
        self._brokers = tuple(brokers)
        self._watch = MetadataWatch(seen, topics)
        self._quorum_watch = QuorumWatch(seen, self._controller, BrokerConnection(address))

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
                "cluster.id": self.cluster_id,
                "node.id": broker,
                "directory.id": new_uuid(),
            }
            file.write_text(properties(known), encoding="utf-8")

    def watch(self, connect: Callable[[int], BrokerConnection], alive: Callable[[int], bool]) -> None:
        self._connect = connect
        self._alive = alive
        self._watch.start({broker: connect(broker) for broker in self._brokers}, alive)
        self._quorum_watch.start()

    def knows_controller(self) -> bool:
        return self._seen.controller() is not None

    def close(self) -> None:
        self._watch.close()
        self._quorum_watch.close()

    def expire_session(self, broker: int) -> None:
        """Have a controller resign: what it has in place of a session is its term."""
        if broker not in self.controllers:
            raise CannotBeDoneError("brokers have no sessions without ZooKeeper")
        self.delete_controller()

    def delete_controller(self) -> None:
        """Have the active controller resign; where there is none at the moment nothing is done."""
        # One of its own: another thread looks at the quorum.
        with BrokerConnection(self.address) as connection, suppress(ConnectionLostError):
            depose_leader(connection)

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
