"""A controller of KRaft, in a process of its own."""

import base64
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.processes.child_processes import ChildProcess
from harrow.live_cluster.processes.java_program import JavaPrograms, properties

_MAIN: Final = "kafka.Kafka"
_FORMAT: Final = "kafka.tools.StorageTool"
_ANSWER_S: Final = 1.0
_FORMAT_S: Final = 180.0


class FormatError(LiveError):
    """The storage of a controller could not be formatted; the message has what the tool said."""


def new_uuid() -> str:
    """Return a new id as Kafka writes one (``Uuid.java``): base64 of 16 bytes, not beginning with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        pass
    return text


class LocalController:
    """A controller alone, below *folder*. *settings* are all that it has, by Kafka's names."""

    def __init__(
        self,
        programs: JavaPrograms,
        folder: Path,
        address: tuple[str, int],
        settings: Mapping[str, object],
        cluster_id: str,
    ) -> None:
        self._programs = programs
        self._folder = folder
        self._address = address
        self._settings = {**settings, "log.dirs": folder / "data"}
        self._cluster_id = cluster_id
        self.process: ChildProcess | None = None

    def start(self) -> None:
        """Format its storage, the first time, and start it.

        Raises:
            FormatError: the storage cannot be formatted.

        """
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "server.properties"
        file.write_text(properties(self._settings), encoding="utf-8")
        if not (self._folder / "data").exists():
            tool = self._programs.start(
                _FORMAT, ["format", "--cluster-id", self._cluster_id, "--config", file], self._folder
            )
            if not tool.wait(_FORMAT_S) or tool.code != 0:
                raise FormatError(tool.log.read_text(encoding="utf-8", errors="backslashreplace").strip())
        self.process = self._programs.start(_MAIN, [file], self._folder)

    def is_ready(self) -> bool:
        """Return whether it listens."""
        try:
            with socket.create_connection(self._address, _ANSWER_S):
                return True
        except OSError:
            return False
