"""A Spark session for a sweep: embedded by default, or any master or Spark Connect server."""

import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from campaigns.sweep.engine import EngineError
from campaigns.sweep.spark_availability import is_on_this_machine

DEFAULT_MASTER: Final = "local[*]"
TASK_FAILURES_MAX: Final = 4
"""How often Spark tries a task before it gives its job up; embedded Spark would not try again at all."""

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Names of campaigns stay text, also those that are numbers.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_LOCAL_ADDRESS: Final = "127.0.0.1"


def start_session(
    *, master: str = DEFAULT_MASTER, remote: str | None = None, log: Path | None = None
) -> SparkSession:
    """Start a session, or take the one that is there; what Java says goes to *log*.

    Raises:
        EngineError: Spark cannot be started or reached.

    """
    builder = SparkSession.builder.appName("harrow sweep")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.master(_with_retries(master)) if remote is None else builder.remote(remote)
    if is_on_this_machine(remote or master):
        _prepare_for_this_machine(remote or master)
    try:
        with _errors_into(log), _interrupts_as_before():
            session: SparkSession = builder.getOrCreate()
            session.range(1).collect()
    except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
        where = "" if log is None else f" ({log} has more)"
        raise EngineError(f"Spark at {remote or master} cannot be used: {in_short(error)}{where}") from error
    return session


def in_short(error: Exception) -> str:
    """Return in one line what an error of Spark says: the Python error within, else what Java said, else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    said_by_python = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt): ", line)]
    said_by_java = [line.removeprefix(": ") for line in lines[1:2] if line.startswith(": ")]
    return (said_by_python[-1:] or said_by_java or lines)[0]


def _with_retries(master: str) -> str:
    """Have embedded Spark try a task again whose Python died, as a cluster does."""
    if master == "local":
        return f"local[1,{TASK_FAILURES_MAX}]"
    return re.sub(r"^local\[(\d+|\*)\]$", rf"local[\1,{TASK_FAILURES_MAX}]", master)


def _prepare_for_this_machine(master: str) -> None:
    """Have the workers be this Python, and everybody talk on this machine alone."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", _LOCAL_ADDRESS)
    if master.startswith("local-cluster"):
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        os.environ.setdefault("SPARK_HOME", str(Path(spec.origin).parent))
        os.environ.setdefault("SPARK_WORKER_DIR", tempfile.mkdtemp(prefix="harrow-spark-"))


@contextmanager
def _errors_into(log: Path | None) -> Iterator[None]:
    """Let Java inherit *log* as its standard error; this process keeps its own."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as stream:
            os.dup2(stream.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """Keep PySpark from taking Ctrl-C for itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
