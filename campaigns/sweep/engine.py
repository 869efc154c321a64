"""The interface of engines, which run a sweep's chunks: a Spark cluster, or local processes."""

from collections.abc import Sequence
from typing import Protocol

from harrow.campaigns.storage.location import Location
from harrow.campaigns.sweep.chunk import Chunk
from harrow.campaigns.sweep.part_file import PartFile
from harrow.campaigns.sweep.task_result import TaskResult


class EngineError(Exception):
    """An engine cannot be used. The message says why and what to do."""


class ChunkLostError(Exception):
    """A chunk did not come back because a worker died."""


class EngineLostError(Exception):
    """The engine itself is gone and can run nothing more."""


class Engine(Protocol):
    """Runs chunks. Several threads call `run` and `merge` at the same time.

    Workers write their rows into ``folder``. It is None if they cannot reach the sweep's folder.
    Then results contain the files.
    """

    name: str
    workers: int
    folder: Location | None

    def run(self, chunk: Chunk) -> Sequence[TaskResult]:
        """Run a chunk and return the results of its tasks.

        Raises:
            ChunkLostError: A worker died, or the engine gave up the chunk.
            EngineLostError: The engine is gone.

        """

    def merge(self, parts: Sequence[PartFile]) -> PartFile | None:
        """Have a worker merge files in ``folder`` (`harrow.campaigns.sweep.part_file.merge`).

        Raises:
            ChunkLostError: A worker died.
            EngineLostError: The engine is gone.

        """

    def cancel(self) -> None:
        """Cancel all running chunks. Their `run` may raise any error."""

    def close(self) -> None:
        """Release workers and connections."""
