"""Runs a KRaft controller in its own process."""

import base64
import shutil
import socket
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from filelock import Timeout

from harrow.campaigns.record.build_folder import exclusive_build_folder
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.local.java_program import JavaPrograms, properties
from harrow.live_cluster.local.local_node import LocalNode

_FORMAT_TOOL: Final = "kafka.tools.StorageTool"
_ANSWER_TIMEOUT_S: Final = 1.0
_FORMAT_MAX_S: Final = 180.0


class FormatError(LiveError):
    """Formatting the storage of a controller failed; the message has the output of the tool."""


META_PROPERTIES: Final = "meta.properties"
_FORMATTED: Final = "formatted"
"""The folder beside the jars of a release with a copy of formatted storage."""


def meta_properties(cluster_id: str, node: int) -> str:
    """Return the contents of `META_PROPERTIES` in a formatted log directory."""
    return properties({"version": 1, "cluster.id": cluster_id, "node.id": node, "directory.id": new_uuid()})


def new_uuid() -> str:
    """Return a new id in Kafka's format (``Uuid.java``): base64 without a leading dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        pass
    return text


class LocalController(LocalNode):
    """A controller that listens on an *address*."""

    def __init__(
        self,
        programs: JavaPrograms,
        controller: int,
        folder: Path,
        address: tuple[str, int],
        settings: Mapping[str, object],
        cluster_id: str,
    ) -> None:
        super().__init__(programs, controller, folder, settings)
        self._address = address
        self._cluster_id = cluster_id

    def is_ready(self) -> bool:
        """Return whether the controller listens."""
        try:
            with socket.create_connection(self._address, _ANSWER_TIMEOUT_S):
                return True
        except OSError:
            return False

    def format(self) -> None:
        """Format the storage; raise `FormatError` if the tool fails.

        The formatted storage of two controllers of a release differs only in ids. The tool takes
        seconds to start, so it runs once, and later controllers get a copy.
        """
        cache = self._programs.cache
        cached = None if cache is None else cache / _FORMATTED
        if cached is not None and cached.exists():
            self.copy_storage(cached)
            return
        self._run_tool()
        if cached is not None:
            _save_copy(self.logs, cached)

    def copy_storage(self, formatted: Path) -> None:
        """Copy the formatted storage of another controller, which has not run yet, with new ids."""
        shutil.copytree(formatted, self.logs, ignore=shutil.ignore_patterns(META_PROPERTIES))
        file = self.logs / META_PROPERTIES
        file.write_text(meta_properties(self._cluster_id, self.id), encoding="utf-8")

    def _run_tool(self) -> None:
        file = self._write_settings()
        tool = self._programs.start(
            _FORMAT_TOOL, ["format", "--cluster-id", self._cluster_id, "--config", file], self.folder
        )
        if not tool.wait(_FORMAT_MAX_S) or tool.code != 0:
            raise FormatError(tool.log.read_text(encoding="utf-8", errors="backslashreplace").strip())


def _save_copy(formatted: Path, target: Path) -> None:
    """Copy formatted storage without its ids into the cache, if the cache is writable."""
    with suppress(OSError, Timeout), exclusive_build_folder(target, waits=False) as site:
        shutil.copytree(formatted, site / "copy", ignore=shutil.ignore_patterns(META_PROPERTIES))
        # This fails if another process was quicker.
        (site / "copy").rename(target)
