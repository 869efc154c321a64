"""A controller of KRaft, in a process of its own."""

import base64
import shutil
import socket
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from filelock import Timeout

from harrow.campaigns.record.building_site import building_site
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.local.java_program import JavaPrograms, properties
from harrow.live_cluster.local.local_node import LocalNode

_FORMAT: Final = "kafka.tools.StorageTool"
_ANSWER_S: Final = 1.0
_FORMAT_S: Final = 180.0


class FormatError(LiveError):
    """The storage of a controller could not be formatted; the message has what the tool said."""


META_PROPERTIES: Final = "meta.properties"
_FORMATTED: Final = "formatted"
"""The folder beside the jars of a release with what the tool has written."""


def meta_properties(cluster_id: str, node: int) -> str:
    """Return what a formatted log directory says of itself in a file (`META_PROPERTIES`)."""
    return properties({"version": 1, "cluster.id": cluster_id, "node.id": node, "directory.id": new_uuid()})


def new_uuid() -> str:
    """Return a new id as Kafka writes one (``Uuid.java``): base64 of 16 bytes, not beginning with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        pass
    return text


class LocalController(LocalNode):
    """A controller alone, which listens at an *address*."""

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
        """Return whether it listens."""
        try:
            with socket.create_connection(self._address, _ANSWER_S):
                return True
        except OSError:
            return False

    def format(self) -> None:
        """Format its storage.

        All controllers of a release have the same but for their ids, so the tool, which takes Java seconds to start, runs for the first one alone.

        Raises:
            FormatError: that cannot be done.

        """
        cache = self._programs.cache
        kept = None if cache is None else cache / _FORMATTED
        if kept is None or not kept.exists():
            self._run_tool()
            if kept is not None:
                _keep(self.logs, kept)
            return
        self.take_storage(kept)

    def take_storage(self, formatted: Path) -> None:
        """Take storage that another controller of the release was formatted with, before that one ran."""
        shutil.copytree(formatted, self.logs, ignore=shutil.ignore_patterns(META_PROPERTIES))
        file = self.logs / META_PROPERTIES
        file.write_text(meta_properties(self._cluster_id, self.id), encoding="utf-8")

    def _run_tool(self) -> None:
        file = self._write_settings()
        tool = self._programs.start(
            _FORMAT, ["format", "--cluster-id", self._cluster_id, "--config", file], self.folder
        )
        if not tool.wait(_FORMAT_S) or tool.code != 0:
            raise FormatError(tool.log.read_text(encoding="utf-8", errors="backslashreplace").strip())


def _keep(formatted: Path, kept: Path) -> None:
    """Copy formatted storage to a folder beside the jars, without the ids; a cache that cannot be written to has none."""
    with suppress(OSError, Timeout), building_site(kept, waits=False) as site:
        shutil.copytree(formatted, site / "copy", ignore=shutil.ignore_patterns(META_PROPERTIES))
        # Where another process was quicker this fails.
        (site / "copy").rename(kept)
