"""A Spark session for a sweep: embedded by default, or any master or Spark Connect server."""

import atexit
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from harrow.campaigns.record.redaction import without_secrets
from harrow.campaigns.sweep.engine import EngineError
from harrow.campaigns.sweep.part_file import RUNS
from harrow.campaigns.sweep.queries import Sql
from harrow.campaigns.sweep.spark_availability import is_on_this_machine
from harrow.campaigns.temporary_folder import temporary_folder

DEFAULT_MASTER: Final = "local[*]"
TASK_FAILURES_MAX: Final = 4
"""How often Spark tries a task before it gives up the job. Embedded Spark would try only once."""

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark before 4.1 ignores this setting.
    "spark.python.unix.domain.socket.enabled": "true" if hasattr(socket, "AF_UNIX") else "false",
    "spark.sql.session.timeZone": "UTC",
    # Campaign names stay text even if they look like numbers.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
# On this machine, Spark does little and ends soon. If Java optimised Spark's code, or collected its
# garbage in several threads, it would take cores away from the runs.
_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SETTINGS_HERE: Final = {
    "spark.driver.defaultJavaOptions": _JAVA_OPTIONS,
    "spark.executor.defaultJavaOptions": _JAVA_OPTIONS,
}
"""Settings for Spark on this machine. On a cluster, those of its administrator apply."""
_LOCAL_ADDRESS: Final = "127.0.0.1"
_CONNECT_PORT: Final = 15002
_CONNECT_MAX_S: Final = 10.0
_PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy")
_STOPPED: Final = "stopped SparkContext"


def start_session(
    *, master: str = DEFAULT_MASTER, remote: str | None = None, log: Path | None = None
) -> SparkSession:
    """Start a session, or return the existing one. Java's output goes to *log*.

    Raises:
        EngineError: Spark cannot be started or reached.

    """
    where = without_secrets(remote or master)
    _check_reachable(remote or master)
    is_here = is_on_this_machine(remote or master)
    settings = {**_SETTINGS, **_SETTINGS_HERE} if is_here else _SETTINGS
    builder = SparkSession.builder.appName("harrow sweep")
    for name, value in settings.items():
        builder = builder.config(name, value)
    builder = builder.master(_with_retries(master)) if remote is None else builder.remote(remote)
    if is_here:
        _prepare_for_this_machine(remote or master)
    _silence_py4j()
    try:
        with _output_into(log), _interrupt_handler_kept():
            if remote is None:
                _start_java({**settings, "spark.master": _with_retries(master)})
            session: SparkSession = builder.getOrCreate()
            session.range(1).collect()
    except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
        more = "" if log is None else f" ({log} has more)"
        raise EngineError(f"Spark at {where} cannot be used: {in_short(error)}{more}") from error
    if remote is None:
        # When Java dies, the thread that receives accumulators must not print a traceback either.
        server = getattr(session.sparkContext, "_accumulatorServer", None)
        if server is not None:
            server.handle_error = lambda *_: None
    return session


def spark_sql(session: SparkSession, folder: Path) -> Sql:
    """Return Spark SQL over a sweep's local files, which the session's executors have to see."""
    # Spark reads a path as a pattern.
    path = re.sub(r"([\\*?{}\[\]])", r"\\\1", str((folder / RUNS).absolute()))
    session.read.parquet(path).createOrReplaceTempView("runs")
    return Sql("Spark SQL", "explode", lambda query: session.sql(query).collect())


def stop_session(session: SparkSession) -> None:
    """Stop a session, even one that is gone already."""
    with suppress(Exception):
        session.stop()


def _check_reachable(url: str) -> None:
    """Check that the server accepts connections.

    Without this check, Spark would wait a minute for a missing server, and Spark Connect ten.

    Raises:
        EngineError: Nothing listens at the URL.

    """
    addresses = _addresses(url)
    why = ""
    for host, port in addresses:
        try:
            socket.create_connection((host, port), _CONNECT_MAX_S).close()
        except OSError as error:
            why = f"{host}:{port}: {error.strerror or error}"
        else:
            return
    if addresses:
        raise EngineError(f"Spark at {without_secrets(url)} cannot be reached: {why}")


def _addresses(url: str) -> list[tuple[str, int]]:
    """Return the servers of a URL; none if the URL does not show them."""
    scheme, _, rest = url.partition("://")
    if scheme == "spark":
        parts = [address.strip().rpartition(":") for address in rest.split(",")]
        return [(host.strip("[]"), int(port)) for host, _, port in parts if host and port.isdigit()]
    if scheme == "sc" and not any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES):
        with suppress(ValueError):  # Spark reports what is wrong with an address
            parsed = urlsplit(url)
            return [(parsed.hostname, parsed.port or _CONNECT_PORT)] if parsed.hostname else []
    return []


def _silence_py4j() -> None:
    """Keep Py4J from logging tracebacks when Java dies.

    The caller gets the error too, and reports it in one line.
    """
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    logging.getLogger().addFilter(_is_not_of_py4j)  # its exceptions go to the root logger


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def in_short(error: Exception) -> str:
    """Return a line from an error of Spark: a Python error, else a Java error, else the first."""
    if _STOPPED in str(error):
        return "it gave up: no master responds, or none accepts applications"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    python_errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt): ", line)]
    java_errors = [line.removeprefix(": ") for line in lines[1:2] if line.startswith(": ")]
    return (python_errors[-1:] or java_errors or lines)[0]


def _with_retries(master: str) -> str:
    """Let embedded Spark retry a task whose Python process died, as a cluster does."""
    if master == "local":
        return f"local[1,{TASK_FAILURES_MAX}]"
    return re.sub(r"^local\[(\d+|\*)\]$", rf"local[\1,{TASK_FAILURES_MAX}]", master)


def _prepare_for_this_machine(master: str) -> None:
    """Let workers use this Python, and let all processes communicate on this machine only."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", _LOCAL_ADDRESS)
    if master.startswith("local-cluster"):
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        os.environ.setdefault("SPARK_HOME", str(Path(spec.origin).parent))
        if "SPARK_WORKER_DIR" not in os.environ:
            until_exit = ExitStack()
            atexit.register(until_exit.close)
            os.environ["SPARK_WORKER_DIR"] = str(until_exit.enter_context(temporary_folder()))


@contextmanager
def _output_into(log: Path | None) -> Iterator[None]:
    """Let Java inherit *log* as its standard output and error. This process keeps its own."""
    if log is None:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    originals = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        with log.open("ab") as stream:
            for descriptor in originals:
                os.dup2(stream.fileno(), descriptor)
        yield
    finally:
        for descriptor, original in originals.items():
            os.dup2(original, descriptor)
            os.close(original)


def _start_java(settings: Mapping[str, str]) -> None:
    """Start the Java process of a session, if there is none. An interrupt waits until it runs.

    If PySpark is interrupted while it waits for Java, it removes the file through which Java would
    respond. Java then cannot write that file, and never exits.
    """
    interrupts: list[int] = []
    with _interrupt_handler_kept(lambda number, _frame: interrupts.append(number)):
        conf = SparkConf().setAll(list(settings.items()))
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - nothing public starts Java alone
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def _interrupt_handler_kept(
    meanwhile: Callable[[int, FrameType | None], object] | None = None,
) -> Iterator[None]:
    """Restore, at the end of the block, the handler of Ctrl-C, which PySpark replaces.

    During the block, *meanwhile* handles Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    if meanwhile is not None:
        signal.signal(signal.SIGINT, meanwhile)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
