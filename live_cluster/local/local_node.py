"""The process of a broker or of a KRaft controller on this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harrow.live_cluster.local.java_program import JavaPrograms, properties
from harrow.live_cluster.processes.child_processes import ChildProcess

_MAIN: Final = "kafka.Kafka"


class LocalNode:
    """A broker or controller. Its files are below *folder*, and outlive its process.

    *settings* are its complete settings.
    """

    def __init__(
        self,
        programs: JavaPrograms,
        node: int,
        folder: Path,
        settings: Mapping[str, object],
        log_dirs: int = 1,
    ) -> None:
        self.id = node
        self.folder = folder
        self.logs = folder / "data"
        self.log_dirs = (self.logs, *(folder / f"data-{number}" for number in range(1, log_dirs)))
        self._programs = programs
        self._settings = {**settings, "log.dirs": ",".join(map(str, self.log_dirs))}
        self.process: ChildProcess | None = None
        self.is_paused = False

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_running

    def poll(self) -> None:
        """Do nothing: a local node needs no supervision."""

    def start(self) -> None:
        if self.is_running:
            return
        file = self._write_settings()
        self.is_paused = False
        self.process = self._programs.start(_MAIN, [file], self.folder)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def stop(self) -> None:
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

    def _write_settings(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "server.properties"
        file.write_text(properties(self._settings), encoding="utf-8")
        return file
