"""Runs the control plane of a local cluster with ZooKeeper."""

import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from harrow.faults.fault import process_name
from harrow.faults.link_ends import ZOOKEEPER
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.java_program import JavaPrograms, properties
from harrow.live_cluster.local.zookeeper_state import ZooKeeperState
from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.processes.ports import LOOPBACK, Ports
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.wire.connection import BrokerConnection

_ANSWER_TIMEOUT_S: Final = 1.0
_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# The start of a ``ConnectResponse``: length, protocol version, timeout, session, password length.
_CONNECT_RESPONSE: Final = struct.Struct(">iiiqi")


class _ZooKeeper:
    """A standalone ZooKeeper server with its files below *folder*."""

    def __init__(self, programs: JavaPrograms, folder: Path, port: int, tick_ms: int) -> None:
        self.server = (LOOPBACK, port)
        self.address = f"{LOOPBACK}:{port}"
        self._programs = programs
        self._folder = folder
        self._port = port
        self._tick_ms = tick_ms
        self.process: ChildProcess | None = None

    def start(self) -> None:
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        settings = {
            "dataDir": data,
            "clientPort": self._port,
            "clientPortAddress": LOOPBACK,
            "tickTime": self._tick_ms,
            "maxClientCnxns": 0,
            "admin.enableServer": False,
        }
        file = self._folder / "zoo.cfg"
        file.write_text(properties(settings), encoding="utf-8")
        self.process = self._programs.start(_MAIN, [file], self._folder)

    def is_ready(self) -> bool:
        """Return whether the server answers. It accepts connections a moment earlier."""
        try:
            with socket.create_connection((LOOPBACK, self._port), _ANSWER_TIMEOUT_S) as connection:
                connection.sendall(b"srvr")
                return connection.recv(4096).startswith(b"Zookeeper version")
        except OSError:
            return False


class ZooKeeperControlPlane:
    """A ZooKeeper server with a proxy for each broker (a `LocalControlPlane`)."""

    process_names: tuple[str, ...] = (ZOOKEEPER,)
    keeps_registrations = True
    is_waited_for = False

    def __init__(
        self,
        programs: JavaPrograms,
        folder: Path,
        ports: Ports,
        proxies: Proxies,
        *,
        brokers: Iterable[int],
        topics: Iterable[str],
        tick_ms: int,
        observed_metadata: ObservedMetadata,
    ) -> None:
        self._server = _ZooKeeper(programs, folder / "zookeeper", ports.reserve(), tick_ms)
        self.address = self._server.address
        """The server's own address, which harrow uses to bypass the proxies."""
        self.controllers: Mapping[int, NodeProcess] = {}
        self._state = ZooKeeperState(self.address)
        self._topics = tuple(topics)
        self._observed_metadata = observed_metadata
        self._sessions: dict[int, bytes] = {}
        self._addresses: dict[int, str] = {}
        for broker in brokers:
            port = ports.reserve()
            self._addresses[broker] = f"{LOOPBACK}:{port}"
            keep_response = partial(self._sessions.__setitem__, broker)
            proxies.listen_for_bytes(
                ZOOKEEPER, process_name(broker), port, self._server.server, keep_response
            )

    def start(self) -> None:
        self._server.start()

    def processes(self) -> Iterable[ChildProcess]:
        return () if self._server.process is None else (self._server.process,)

    def is_ready(self) -> bool:
        return self._server.is_ready()

    def settings(self, broker: int) -> Mapping[str, object]:
        return {"broker.id": broker, "zookeeper.connect": self._addresses[broker]}

    def prepare(self, broker: int, folder: Path) -> None:
        """Do nothing: a broker creates its own folder."""

    def watch(
        self,
        connect: Callable[[int], BrokerConnection],
        alive: Callable[[int], bool],
    ) -> None:
        self._state.start()
        self._state.watch(self._topics, self._observed_metadata)

    def knows_controller(self) -> bool:
        return self._observed_metadata.controller() is not None

    def close(self) -> None:
        self._state.close()

    def expire_session(self, broker: int) -> None:
        """End a broker's session, with the password that passed the proxy (``ConnectResponse``)."""
        if broker in self._sessions:
            answer = self._sessions[broker]
            _, _, _, session, length = _CONNECT_RESPONSE.unpack_from(answer)
            self._state.end_session(session, answer[_CONNECT_RESPONSE.size : _CONNECT_RESPONSE.size + length])

    def delete_controller(self) -> None:
        self._state.delete_controller()

    def elect_preferred_leaders(self, partitions: Iterable[str]) -> None:
        self._state.request_preferred_leaders(partitions)
