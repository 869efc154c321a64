"""Runs a sweep on Spark: a chunk is a job, and each of its tasks a partition with one number in it.

A search runs on Spark in the same way: several runs are a job, and each of them is a partition.

This works the same embedded, on a cluster and through Spark Connect. `DataFrame.mapInArrow` passes
the numbers to Python workers, which write rows and return counts. Plans travel with the function,
as data. The code travels as one zip, with the library of the compiled core beside it. Spark returns
one result for each partition, however often it retried the partition.
"""

import gc
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.utils import is_remote

from harrow.campaigns.run.workers.workers import Run, RunOne
from harrow.campaigns.storage.location import Location, storage_variables
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.chunk import Chunk
from harrow.campaigns.sweep.code_archive import library, write_code_archive
from harrow.campaigns.sweep.engine import ChunkLostError, EngineError, EngineLostError
from harrow.campaigns.sweep.part_file import PartFile
from harrow.campaigns.sweep.spark_session import in_short, task_cpus
from harrow.campaigns.sweep.task_result import TaskResult, check_worker, execute_nth, merge_nth, perform_nth
from harrow.campaigns.temporary_folder import temporary_folder

NAME: Final = "spark"

_MANY_ROWS: Final = 100_000
_NUMBER: Final = "number"
_RESULT: Final = "result"

T = TypeVar("T")


class SparkEngine:
    """Runs chunks as jobs of a session, *workers* tasks at a time.

    ``core`` says how executors run harrow: compiled or in plain Python.

    Raises:
        EngineError: The executors cannot run tasks.

    """

    def __init__(
        self,
        session: SparkSession,
        cells: Sequence[Cell],
        workers: int | None = None,
        folder: Location | None = None,
    ) -> None:
        self.name = NAME
        self.folder = None if folder is None else folder.absolute()
        self.session = session
        self._cells = tuple(cells)
        self.workers = _parallelism(session) if workers is None else workers
        # Executors may fetch the archive whenever they start, so it stays until the end.
        with ExitStack() as opened:
            ship_code(session, opened.enter_context(temporary_folder()))
            self.core = self._check_executors()
            self._archive = opened.pop_all()

    def run(self, chunk: Chunk) -> list[TaskResult]:
        cells = {task.cell: self._cells[task.cell] for task in chunk.tasks}
        return self._map_or_lose(partial(perform_nth, cells, chunk.tasks, self.folder), len(chunk.tasks))

    def merge(self, parts: Sequence[PartFile]) -> PartFile | None:
        assert self.folder is not None, "the driver merges what only it can reach"
        found: list[PartFile | None] = self._map_or_lose(partial(merge_nth, self.folder, [parts]), 1)
        return found[0]

    def results(self, run_one: RunOne[T], runs: Sequence[Run]) -> list[T]:
        """Execute runs at once, and return what *run_one* returns for each.

        Raises:
            ChunkLostError: A worker died, or *run_one* failed.
            EngineLostError: The engine is gone.

        """
        return self._map_or_lose(partial(execute_nth, run_one, tuple(runs)), len(runs))

    def _map(self, work: Callable[[int], Any], count: int) -> list[Any]:
        """Call a function of this package on executors, with each number up to *count*."""
        numbers = self.session.range(0, count, 1, count)
        schema = f"{_NUMBER} long, {_RESULT} binary"
        results = numbers.mapInArrow(_on_executor(work), schema).toArrow().sort_by(_NUMBER)
        return [pickle.loads(result) for result in results.column(_RESULT).to_pylist()]  # noqa: S301 - of our own code

    def _map_or_lose(self, work: Callable[[int], Any], count: int) -> list[Any]:
        try:
            return self._map(work, count)
        except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
            if self._is_lost():
                raise EngineLostError(f"it no longer responds ({in_short(error)})") from error
            raise ChunkLostError(in_short(error)) from error

    def _check_executors(self) -> str:
        """Have Python workers import harrow's modules and write, so that mistakes show at once.

        Return how the workers run harrow: compiled, in plain Python, or both.

        Raises:
            EngineError: The executors cannot run tasks, or cannot write their results.

        """
        try:
            checks = self._map(partial(check_worker, self.folder), self.workers)
        except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
            message = f"Spark's executors cannot run harrow: {in_short(error)} (they need Python and pyarrow)"
            raise EngineError(message) from error
        if problems := [check.problem for check in checks if check.problem is not None]:
            raise EngineError(f"Spark's executors cannot write results: {problems[0]}")
        return " and ".join(sorted({check.core for check in checks}))

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


def _on_executor(
    work: Callable[[int], Any],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that a Python worker applies to numbers.

    Spark sends a nested function as code. A function of this module would go by name, and a worker
    would import this module, with libraries that executors need not have.
    """
    shipped = pickle.dumps(work)
    variables = storage_variables()

    def run_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ.update(variables)
        work = pickle.loads(shipped)  # noqa: S301 - the driver's own plans
        if not gc.get_freeze_count():
            # PySpark collects garbage after each task. For modules that takes as long as a run.
            gc.freeze()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = pickle.dumps(work(number))
                yield pa.RecordBatch.from_pydict({_NUMBER: [number], _RESULT: [result]})

    return run_numbers


def _parallelism(session: SparkSession) -> int:
    if is_remote():
        numbers = session.range(_MANY_ROWS).select(F.spark_partition_id().alias("partition"))
        cores = int(numbers.distinct().count())
    else:
        cores = int(session.sparkContext.defaultParallelism)
    return max(1, cores // task_cpus(session))


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
