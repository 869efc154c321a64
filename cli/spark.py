"""Chooses what executes runs, Spark or the cores of this machine, and starts Spark."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.storage.location import LocalLocation, Location, location
from harrow.cli.extras import need
from harrow.cli.options import SweepEngine, refuse
from harrow.cli.session import Refusal, note
from harrow.cli.worker_processes import workers_of

if TYPE_CHECKING:
    from harrow.campaigns.sweep.cell import Cell
    from harrow.cli.requests.advise import AdviseRequest
    from harrow.cli.requests.assess import AssessRequest
    from harrow.cli.requests.sweep import SweepRequest

    EngineRequest = AdviseRequest | AssessRequest | SweepRequest

_LOG: Final = "spark.log"


def check_engine(request: "EngineRequest") -> None:
    """Refuse options of Spark that contradict each other or the engine."""
    spark = {"--master": request.master, "--remote": request.remote}
    if all(spark.values()):
        raise typer.BadParameter("give --master or --remote, not both", param_hint="--remote")
    if request.engine == "process":
        refuse(spark, "has no meaning with --engine process")


def wants_spark(request: "EngineRequest") -> bool:
    """Return whether an option asks for Spark."""
    return request.engine == "spark" or bool(request.master or request.remote)


def available_engine(request: "EngineRequest") -> SweepEngine:
    """Return an available engine. Refuse if an option asks for Spark, but Spark is missing."""
    from harrow.campaigns.sweep.spark_availability import why_spark_cannot_start

    if request.engine == "process":
        return "process"
    missing = why_spark_cannot_start(remote=request.remote is not None)
    if missing is None:
        return "spark"
    if wants_spark(request):
        raise Refusal(missing)
    note(request, f"no Spark ({missing}): running in a pool of processes")
    return "process"


def start_spark(request: "EngineRequest", workers: int | None, folder: Location, stack: ExitStack) -> Any:
    """Start a session, or connect to one, which ends with *stack*.

    Java's log is in *folder*, if that is local and can be written.

    Raises:
        EngineError: Spark cannot be started or reached.

    """
    from harrow.campaigns.record.redaction import without_secrets
    from harrow.campaigns.sweep.spark_session import DEFAULT_MASTER, start_session, stop_session

    embedded = f"local[{workers}]" if workers else DEFAULT_MASTER
    master = request.master or embedded
    note(request, f"starting Spark ({without_secrets(request.remote or master)})")
    log = Path(os.devnull)
    if isinstance(folder, LocalLocation) and os.access(folder.path, os.W_OK):
        log = folder.path / _LOG
    session = start_session(master=master, remote=request.remote, log=log)
    stack.callback(stop_session, session)
    return session


def spark_engine(
    request: "EngineRequest",
    session: Any,
    cells: "Sequence[Cell]",
    workers: int | None,
    stack: ExitStack,
    folder: Location | None = None,
) -> Any:
    """Return an engine on Spark, which ends with *stack*, and say how its executors run harrow.

    Executors write a sweep's rows into *folder*, unless it may be a folder of this machine only.

    Raises:
        EngineError: The executors cannot run tasks.

    """
    from harrow.campaigns.sweep.spark_availability import is_on_this_machine
    from harrow.campaigns.sweep.spark_engine import SparkEngine

    is_shared = (
        not isinstance(folder, LocalLocation)
        or folder.is_shared
        or is_on_this_machine(request.remote or request.master)
    )
    engine = SparkEngine(session, cells, workers, folder if is_shared else None)
    stack.callback(engine.close)
    note(request, f"harrow on Spark's executors: {engine.core}")
    return engine


def engine_of_search(request: "AdviseRequest | AssessRequest") -> SweepEngine:
    """Return the engine that a request asks for. Refuse what cannot run before any work is lost."""
    check_engine(request)
    engine = available_engine(request)
    if engine == "spark":
        need("sweep")
    return engine


def workers_on(engine: SweepEngine, request: "AdviseRequest | AssessRequest", stack: ExitStack) -> Workers:
    """Return workers on an engine. They end with *stack*."""
    if engine == "process":
        return stack.enter_context(workers_of(request))
    from harrow.campaigns.run.workers.engine_pool import EnginePool
    from harrow.campaigns.sweep.engine import EngineError

    request.results.mkdir(parents=True, exist_ok=True)
    try:
        session = start_spark(request, request.jobs, location(request.results), stack)
        spark = spark_engine(request, session, (), request.jobs, stack)
    except EngineError as error:
        raise Refusal(str(error)) from None
    return stack.enter_context(workers_of(request, pool=EnginePool(spark), pool_size=spark.workers))
