"""A broker on this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.processes.java_program import JavaPrograms, properties

_MAIN: Final = "kafka.Kafka"

SMALL: Final = {
    "offsets.topic.num.partitions": 3,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
    "auto.create.topics.enable": False,
}
"""What brokers of a campaign have that its file does not say: next to nothing is stored beside its topics."""


class LocalBroker:
    """A broker: its folder stays, its process comes and goes. *settings* are all that it has, by Kafka's names."""

    def __init__(
        self, programs: JavaPrograms, broker: int, folder: Path, settings: Mapping[str, object]
    ) -> None:
        self.id = broker
        self.folder = folder
        self.logs = folder / "data"
        self._programs = programs
        self._settings = {**SMALL, **settings, "log.dirs": self.logs}
        self.process: ChildProcess | None = None
        self.is_paused = False

    @property
    def is_running(self) -> bool:
        """Return whether its process exists; it may be paused."""
        return self.process is not None and self.process.is_running

    def start(self) -> None:
        """Start its process, unless one is there."""
        if self.is_running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "server.properties"
        file.write_text(properties(self._settings), encoding="utf-8")
        self.is_paused = False
        self.process = self._programs.start(_MAIN, [file], self.folder)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def stop(self) -> None:
        """Tell it to stop in good order; it takes the time that it needs."""
        if self.process is not None:
            self.process.terminate()

    def pause(self) -> None:
        if self.process is not None:
            self.is_paused = True
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None:
            self.is_paused = False
            self.process.resume()
