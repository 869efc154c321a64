"""What a sweep asks of whatever runs its tasks: a Spark cluster, or processes of this machine."""

from typing import Protocol

import pyarrow as pa

from harrow.campaigns.sweep.chunk import Chunk


class EngineError(Exception):
    """An engine that cannot be had; the message says why, and what to do."""


class ChunkLostError(Exception):
    """A chunk did not come back: a worker died on it, again and again or not."""


class EngineLostError(Exception):
    """The engine itself is gone: nothing can be run any more."""


class Engine(Protocol):
    """Runs chunks, several at a time, each called from a thread of its own."""

    name: str
    workers: int

    def run(self, chunk: Chunk) -> pa.Table:
        """Run a chunk and return its rows, in `row_table.TRANSPORT_SCHEMA`.

        Raises:
            ChunkLostError: a worker died, or the engine gave the chunk up.
            EngineLostError: nothing can be run any more.

        """

    def cancel(self) -> None:
        """Give up what is under way; `run` may raise anything then."""

    def close(self) -> None:
        """Let go of workers and connections."""
