"""The interface of engines, which run a sweep's chunks: a Spark cluster, or local processes."""

from typing import Protocol

import pyarrow as pa

from harrow.campaigns.sweep.chunk import Chunk


class EngineError(Exception):
    """An engine cannot be used. The message says why and what to do."""


class ChunkLostError(Exception):
    """A chunk did not come back because a worker died."""


class EngineLostError(Exception):
    """The engine itself is gone and can run nothing more."""


class Engine(Protocol):
    """Runs chunks. Several threads call `run` at the same time, each with one chunk."""

    name: str
    workers: int

    def run(self, chunk: Chunk) -> pa.Table:
        """Run a chunk and return its rows, in `row_table.TRANSPORT_SCHEMA`.

        Raises:
            ChunkLostError: A worker died, or the engine gave up the chunk.
            EngineLostError: The engine is gone.

        """

    def cancel(self) -> None:
        """Cancel all running chunks. Their `run` may raise any error."""

    def close(self) -> None:
        """Release workers and connections."""
