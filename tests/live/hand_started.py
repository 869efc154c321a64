"""A cluster that a shell script starts, so that harrow does not know its processes."""

import os
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from harrow.live_cluster.local.java_program import OPTIONS, class_path, properties
from harrow.live_cluster.local.kraft_controller import new_uuid
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.processes.ports import Ports
from harrow.live_cluster.releases.kafka_release import KRAFT
from tests.live.networks import Loopback, network
from tests.live.protection import LISTENER, SCRAM, Protection

BROKERS: Final = (1, 2, 3)
PLAINTEXT: Final = "PLAINTEXT"
_CONTROLLER: Final = 3_000

_SCRIPT: Final = """\
#!/bin/sh
# start.sh NAME MAIN: starts the process with its files in the folder NAME, unless it runs.
cd "$(dirname "$0")/$1" || exit 1
if [ -f pid ] && kill -0 "$(cat pid)" 2>/dev/null; then exit 0; fi
$(cat runs_on) setsid {java} "$2" server.properties >>log 2>&1 </dev/null &
echo $! >pid
"""

_END_SCRIPT: Final = """\
#!/bin/sh
# end.sh SIGNAL NAME: ends what runs in the folder NAME, and waits until it is gone.
cd "$(dirname "$0")/$2" || exit 1
kill "$1" "$(cat pid)" || exit 1
while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.05; done
"""

CLUSTER: Final = """\
bootstrap: [{bootstrap}]
commands:
  kill: ./end.sh -KILL broker-{{broker}}
  stop: ./end.sh -TERM broker-{{broker}}
  start: [./start.sh, "broker-{{broker}}", kafka.Kafka]
  pause: kill -STOP "$(cat broker-{{broker}}/pid)"
  resume: kill -CONT "$(cat broker-{{broker}}/pid)"
{cuts}timeout: 30s
"""


class HandStarted:
    """Three brokers below a folder with their process ids in ``broker-N/pid``.

    With a *mechanism* they accept only clients with a password, over TLS.
    """

    def __init__(self, folder: Path, brokers: StartedBrokers, mechanism: str | None = None) -> None:
        self.folder = folder
        self.file = folder / "cluster.yaml"
        folder.mkdir(parents=True)
        protection = None if mechanism is None else Protection(folder, brokers.java, mechanism)
        self._by_scram = protection if mechanism == SCRAM else None
        self._listener = PLAINTEXT if protection is None else LISTENER
        # The certificate names the loopback.
        self._network = network(folder) if mechanism is None else Loopback(folder)
        # The archive of classes from an earlier run of harrow makes brokers start faster.
        shared = brokers.shared_classes()
        archive = [] if shared is None else [f"-XX:SharedArchiveFile={shared.archive}"]
        self._java = (str(brokers.java), *OPTIONS, *archive, "-cp", class_path(brokers.jars))
        self._metadata = brokers.metadata
        self._protection = protection
        for name, text in (
            ("start.sh", _SCRIPT.format(java=shlex.join(self._java))),
            ("end.sh", _END_SCRIPT),
        ):
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)
        # A port stays reserved before its broker binds it and while the broker is down.
        self._held = Ports()
        self.ports = {broker: self._held.reserve() for broker in BROKERS}
        self._control_port = self._held.reserve()
        self._hosts: dict[int, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all started processes."""
        for file in self.folder.glob("*/pid"):
            with suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGKILL)
        self._network.end()
        self._held.close()

    def start(self) -> None:
        """Start the control plane and the brokers, and write the target file."""
        folder, metadata, protection, control = (
            self.folder,
            self._metadata,
            self._protection,
            self._control_port,
        )
        self._hosts = {broker: self._network.host(f"broker-{broker}") for broker in BROKERS}
        shared = self._kraft(control) if metadata == KRAFT else self._zookeeper(control)
        for broker, port in self.ports.items():
            own = {"node.id": broker} if metadata == KRAFT else {"broker.id": broker}
            logs = folder / f"broker-{broker}" / "data"
            self._write(
                f"broker-{broker}",
                {
                    "listeners": f"{self._listener}://{self._hosts[broker]}:{port}",
                    "log.dirs": logs,
                    "offsets.topic.num.partitions": 3,
                    "log.cleaner.dedupe.buffer.size": 4_194_304,
                    "replica.lag.time.max.ms": 10_000,
                    # A late metadata request of a client would create a deleted topic again.
                    "auto.create.topics.enable": False,
                    **own,
                    **shared,
                    **({} if protection is None else protection.settings()),
                },
            )
            if metadata == KRAFT:
                logs.mkdir()
                identity = {"version": 1, "cluster.id": self._cluster_id, "node.id": broker}
                text = properties({**identity, "directory.id": new_uuid()})
                (logs / "meta.properties").write_text(text, encoding="utf-8")
            self._start(f"broker-{broker}", "kafka.Kafka")
        bootstrap = ", ".join(f'"{self._hosts[broker]}:{port}"' for broker, port in self.ports.items())
        security = "" if protection is None else protection.lines()
        text = CLUSTER.format(bootstrap=bootstrap, cuts=self._network.commands())
        self.file.write_text(text + security, encoding="utf-8")

    def start_missing(self) -> None:
        """Restart ended brokers, because one of several may fail to start on an empty ZooKeeper."""
        for broker in self.ports:
            self._start(f"broker-{broker}", "kafka.Kafka")

    def pid(self, broker: int) -> int:
        return int((self.folder / f"broker-{broker}" / "pid").read_text())

    def state(self, broker: int) -> str:
        """Return ``up``, ``down`` or ``paused``, according to the system."""
        try:
            status = Path(f"/proc/{self.pid(broker)}/stat").read_text(encoding="utf-8")
        except OSError:
            return "down"
        return {"T": "paused", "Z": "down"}.get(status.rpartition(")")[2].split()[0], "up")

    def cuts(self) -> list[str]:
        return self._network.cuts()

    def _zookeeper(self, port: int) -> dict[str, object]:
        data = self.folder / "control" / "data"
        host = self._network.host("control")
        ensemble = {"dataDir": data, "clientPort": port, "clientPortAddress": host, "tickTime": 2_000}
        self._write("control", {**ensemble, "admin.enableServer": False})
        self._start("control", "org.apache.zookeeper.server.quorum.QuorumPeerMain")
        if self._by_scram is not None:
            # The broker waits until ZooKeeper answers.
            program = self._by_scram.in_zookeeper(f"{host}:{port}")
            subprocess.run([*self._java, *program], check=True, stdout=subprocess.DEVNULL)
        return {"zookeeper.connect": f"{host}:{port}", "zookeeper.session.timeout.ms": 6_000}

    def _kraft(self, port: int) -> dict[str, object]:
        host = self._network.host("control")
        quorum: dict[str, object] = {
            "controller.quorum.voters": f"{_CONTROLLER}@{host}:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{self._listener}:{self._listener}",
        }
        own = {"process.roles": "controller", "node.id": _CONTROLLER}
        listener = {
            "listeners": f"CONTROLLER://{host}:{port}",
            "log.dirs": self.folder / "control" / "data",
        }
        self._cluster_id = new_uuid()
        file = self._write("control", {**own, **listener, **quorum})
        subprocess.run(
            [
                *(*self._java, "kafka.tools.StorageTool"),
                *("format", "--cluster-id", self._cluster_id, "--config", file),
                *(() if self._by_scram is None else self._by_scram.in_format()),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self._start("control", "kafka.Kafka")
        return {"process.roles": "broker", **quorum}

    def _write(self, name: str, values: dict[str, object]) -> Path:
        file = self.folder / name / "server.properties"
        file.parent.mkdir()
        (file.parent / "runs_on").write_text(self._network.runs_on(name), encoding="utf-8")
        file.write_text(properties(values), encoding="utf-8")
        return file

    def _start(self, name: str, main: str) -> None:
        subprocess.run([self.folder / "start.sh", name, main], check=True)
