"""ZooKeeper, of the version that a release of Kafka brings along."""

import socket
from pathlib import Path
from typing import Final

from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.processes.java_program import JavaPrograms, properties
from harrow.live_cluster.processes.ports import LOOPBACK

_ANSWER_S: Final = 1.0
_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class LocalZooKeeper:
    """A ZooKeeper server alone, below *folder*."""

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
        """Return whether it serves: it takes connections a moment before, and leaves them without an answer."""
        try:
            with socket.create_connection((LOOPBACK, self._port), _ANSWER_S) as asked:
                asked.sendall(b"srvr")
                return asked.recv(4096).startswith(b"Zookeeper version")
        except OSError:
            return False
