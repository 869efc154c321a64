"""Runs a sweep on Spark: a chunk is a job, and each of its tasks a partition with one number in it.

A search runs on Spark in the same way: several runs are a job, and each of them is a partition.

This works the same embedded, on a cluster and through Spark Connect. `DataFrame.mapInArrow` passes
the numbers to Python workers, which return rows. Plans travel with the function, as data. The code
travels as one zip, with the library of the compiled core beside it. Spark returns one result for
each partition, however often it retried the partition.
"""

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from harrow.campaigns.run.workers.workers import Run, RunOne
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.chunk import Chunk
from harrow.campaigns.sweep.code_archive import library, write_code_archive
from harrow.campaigns.sweep.engine import ChunkLostError, EngineError, EngineLostError
from harrow.campaigns.sweep.row_table import (
    NUMBER,
    RESULT,
    RESULT_SCHEMA,
    TRANSPORT_SCHEMA,
    result_batch,
    task_batch,
)
from harrow.campaigns.sweep.spark_session import in_short
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.compilation import compilation

NAME: Final = "spark"

_MANY_ROWS: Final = 100_000
_CORE: Final = "core"

T = TypeVar("T")
_OnExecutor = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class SparkEngine:
    """Runs chunks as jobs of a session, *workers* tasks at a time.

    ``core`` says how executors run harrow: compiled or in plain Python.

    Raises:
        EngineError: The executors cannot run tasks.

    """

    def __init__(self, session: SparkSession, cells: Sequence[Cell], workers: int | None = None) -> None:
        self.name = NAME
        self.session = session
        self._cells = tuple(cells)
        self.workers = _parallelism(session) if workers is None else workers
        # Executors may fetch the archive whenever they start, so it stays until the end.
        with ExitStack() as opened:
            ship_code(session, opened.enter_context(temporary_folder()))
            self.core = _core_of_executors(session, self.workers)
            self._archive = opened.pop_all()

    def run(self, chunk: Chunk) -> pa.Table:
        cells = {task.cell: self._cells[task.cell] for task in chunk.tasks}
        on_executor = _on_executor(task_batch, cells, chunk.tasks)
        return self._table(on_executor, len(chunk.tasks), TRANSPORT_SCHEMA)

    def results(self, run_one: RunOne[T], runs: Sequence[Run]) -> list[T]:
        """Execute runs at once, and return what *run_one* returns for each.

        Raises:
            ChunkLostError: A worker died, or *run_one* failed.
            EngineLostError: The engine is gone.

        """
        on_executor = _on_executor(result_batch, run_one, tuple(runs))
        table = self._table(on_executor, len(runs), RESULT_SCHEMA).sort_by(NUMBER)
        return [pickle.loads(result) for result in table.column(RESULT).to_pylist()]  # noqa: S301 - the driver's own code made it

    def _table(self, on_executor: _OnExecutor, parts: int, schema: pa.Schema) -> pa.Table:
        """Have Spark apply a function to the numbers of the parts of a job, each on a worker."""
        try:
            numbers = self.session.range(0, parts, 1, parts)
            table: pa.Table = numbers.mapInArrow(on_executor, from_arrow_schema(schema)).toArrow()
        except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
            if self._is_lost():
                raise EngineLostError(f"it no longer responds ({in_short(error)})") from error
            raise ChunkLostError(in_short(error)) from error
        return table.cast(schema)

    def cancel(self) -> None:
        """Cancel all running chunks, unless Spark itself is gone."""
        with suppress(Exception):
            if is_remote():
                self.session.interruptAll()
            else:
                self.session.sparkContext.cancelAllJobs()

    def close(self) -> None:
        """Remove the shipped code. The session belongs to the code that started it."""
        self._archive.close()

    def _is_lost(self) -> bool:
        try:
            self.session.range(1).collect()
        except Exception:  # noqa: BLE001 - Spark, Py4J and gRPC each have errors of their own
            return True
        return False


def _on_executor(batch_of: Callable[..., pa.RecordBatch], *arguments: Any) -> _OnExecutor:
    """Return the function that a Python worker applies to the numbers of a job's parts.

    It calls *batch_of* with *arguments* and with each number.
    """
    shipped = pickle.dumps((batch_of, arguments))

    def run_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batch_of, arguments = pickle.loads(shipped)  # noqa: S301 - the driver's own plans
        if not gc.get_freeze_count():
            # PySpark collects garbage after each task. For modules that takes as long as a run.
            gc.freeze()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield batch_of(*arguments, number)

    return run_numbers


def _parallelism(session: SparkSession) -> int:
    if not is_remote():
        return int(session.sparkContext.defaultParallelism)
    numbers = session.range(_MANY_ROWS).select(F.spark_partition_id().alias("partition"))
    return int(numbers.distinct().count())


def ship_code(session: SparkSession, folder: Path) -> None:
    """Send harrow's code to the executors, which may fetch it from *folder* until the session ends.

    Raises:
        EngineError: Spark does not accept it.

    """
    archive = str(write_code_archive(folder / "harrow_code.zip"))
    compiled = None if library() is None else str(library())
    try:
        if is_remote():
            session.addArtifacts(archive, pyfile=True)
        else:
            session.sparkContext.addPyFile(archive)
        if compiled is not None:
            # Executors have the library on Python's path. They import it if it fits their Python.
            if is_remote():
                session.addArtifacts(compiled, file=True)
            else:
                session.sparkContext.addFile(compiled)
    except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
        raise EngineError(f"Spark does not accept harrow's code: {in_short(error)}") from error


def _core_of_executors(session: SparkSession, workers: int) -> str:
    """Have Python workers import harrow's modules, so that a missing one is reported at once.

    Return how the workers run harrow: compiled, in plain Python, or both.

    Raises:
        EngineError: The executors cannot run tasks.

    """
    try:
        numbers = session.range(0, workers, 1, workers)
        cores = numbers.mapInArrow(_core_on_executor(), f"{_CORE} string").toArrow().column(_CORE).unique()
    except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
        message = f"Spark's executors cannot run harrow: {in_short(error)} (they need Python and pyarrow)"
        raise EngineError(message) from error
    return " and ".join(sorted(cores.to_pylist()))


def _core_on_executor() -> _OnExecutor:
    """Return a function that imports what runs tasks, and yields how this worker runs harrow.

    Spark sends a nested function as code. A function of this module would go by name, and a worker
    would import this module, with libraries that executors need not have.
    """

    def core(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        result_batch, task_batch  # noqa: B018 - a worker imports the modules of the names that it unpickles
        yield pa.RecordBatch.from_pydict({_CORE: [compilation()[0]]})

    return core
