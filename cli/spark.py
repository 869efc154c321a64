"""Chooses what executes runs, Spark or the cores of this machine, and starts Spark."""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import typer

from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.storage.location import LocalLocation, Location, location
from harrow.campaigns.sweep.spark_availability import is_connect, is_submitted, why_spark_cannot_start
from harrow.cli.extras import need
from harrow.cli.options import SweepEngine, refuse
from harrow.cli.session import Refusal, note
from harrow.cli.worker_processes import workers_of

if TYPE_CHECKING:
    from harrow.campaigns.sweep.cell import Cell
    from harrow.campaigns.sweep.spark_session import SparkAddress
    from harrow.cli.requests.advise import AdviseRequest
    from harrow.cli.requests.assess import AssessRequest
    from harrow.cli.requests.results import CheckRequest
    from harrow.cli.requests.sweep import SweepRequest

    EngineRequest = AdviseRequest | AssessRequest | CheckRequest | SweepRequest

_LOG: Final = "spark.log"


def check_engine(request: "EngineRequest") -> None:
    """Refuse options of Spark that contradict each other or the engine."""
    spark = {"--master": request.master, "--remote": request.remote}
    if all(spark.values()):
        raise typer.BadParameter("give --master or --remote, not both", param_hint="--remote")
    if request.engine == "process":
        refuse(spark, "has no meaning with --engine process")
    elif is_submitted():
        refuse(spark, "has no meaning in spark-submit, which has the same option")


def wants_spark(request: "EngineRequest") -> bool:
    """Return whether an option asks for Spark, or spark-submit has started it."""
    return request.engine == "spark" or bool(request.master or request.remote) or is_submitted()


def extra_of_engine(request: "EngineRequest") -> str:
    """Return the extra that the engine needs which the options ask for."""
    if is_submitted() or not wants_spark(request):
        return "sweep"
    return "connect" if is_connect(request.master, request.remote) else "spark"


def available_engine(request: "EngineRequest") -> SweepEngine:
    """Return an available engine. Refuse if an option asks for Spark, but Spark is missing."""
    if request.engine == "process":
        return "process"
    missing = why_spark_cannot_start(remote=is_connect(request.master, request.remote))
    if missing is None:
        return "spark"
    if wants_spark(request):
        need(extra_of_engine(request))
        raise Refusal(missing)
    note(request, f"no Spark ({missing}): running in a pool of processes")
    return "process"


def address_of(request: "EngineRequest", workers: int | None = None) -> "SparkAddress":
    """Return where Spark runs."""
    from harrow.campaigns.sweep.spark_session import DEFAULT_MASTER, spark_address

    embedded = f"local[{workers}]" if workers else DEFAULT_MASTER
    return spark_address(request.master, request.remote, default=embedded)


def program_words(address: "SparkAddress | None") -> list[str]:
    """Return the words that start this program again, before its command."""
    if address is None or not is_submitted():
        return ["harrow"]
    return ["spark-submit", "--master", str(address), sys.argv[0]]


def need_shared(folder: Location, address: "SparkAddress") -> None:
    """Refuse a folder that vanishes with the driver."""
    if address.has_driver_on_cluster and isinstance(folder, LocalLocation) and not folder.is_shared:
        raise Refusal(
            f"the driver runs on the cluster, and {folder} would be lost with its disk: give --out a URI"
        )


def start_spark(
    request: "EngineRequest",
    address: "SparkAddress",
    stack: ExitStack,
    folder: Location | None = None,
    *,
    for_sql: bool = False,
) -> Any:
    """Start a session, or connect to one, which ends with *stack* if harrow started it.

    Java's log is in *folder*, if that is local and can be written.

    Raises:
        EngineError: Spark cannot be started or reached.

    """
    from harrow.campaigns.sweep.spark_session import start_session, stop_session

    note(request, f"{'using' if address.is_given else 'starting'} Spark ({address})")
    if isinstance(folder, LocalLocation) and os.access(folder.path, os.W_OK):
        log = folder.path / _LOG
    else:
        from harrow.campaigns.temporary_folder import temporary_folder

        log = stack.enter_context(temporary_folder()) / _LOG
    session = start_session(address, log=None if address.is_given else log, for_sql=for_sql)
    if not address.is_session_running:
        stack.callback(stop_session, session)
    return session


def spark_engine(
    request: "EngineRequest",
    session: Any,
    address: "SparkAddress",
    stack: ExitStack,
    *,
    cells: "Sequence[Cell]" = (),
    workers: int | None = None,
    folder: Location | None = None,
) -> Any:
    """Return an engine on Spark, which ends with *stack*, and say how its executors run harrow.

    Executors write a sweep's rows into *folder*, unless it may be a folder of this machine only.

    Raises:
        EngineError: The executors cannot run tasks.

    """
    from harrow.campaigns.sweep.spark_engine import SparkEngine
    from harrow.campaigns.sweep.spark_session import stated_settings

    is_shared = not isinstance(folder, LocalLocation) or folder.is_shared or address.is_here
    engine = SparkEngine(session, cells, workers, folder if is_shared else None)
    stack.callback(engine.close)
    note(request, f"harrow on Spark's executors: {engine.core}")
    note(request, f"tasks at a time: {engine.workers} ({stated_settings(session)})")
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
        address = address_of(request, request.jobs)
        session = start_spark(request, address, stack, location(request.results))
        spark = spark_engine(request, session, address, stack, workers=request.jobs)
    except EngineError as error:
        raise Refusal(str(error)) from None
    return stack.enter_context(workers_of(request, pool=EnginePool(spark), pool_size=spark.workers))
