"""A Spark session for a sweep, embedded by default, or any master or Spark Connect server; and its SQL."""

import atexit
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from harrow.campaigns.record.redaction import without_secrets
from harrow.campaigns.sweep.engine import EngineError
from harrow.campaigns.sweep.queries import Sql
from harrow.campaigns.sweep.spark_availability import is_on_this_machine
from harrow.campaigns.sweep.sweep_folder import RUNS
from harrow.campaigns.temporary_folder import temporary_folder

DEFAULT_MASTER: Final = "local[*]"
TASK_FAILURES_MAX: Final = 4
"""How often Spark tries a task before it gives its job up; embedded Spark would not try again at all."""

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Known since Spark 4.1, and no more than ignored before.
    "spark.python.unix.domain.socket.enabled": "true" if hasattr(socket, "AF_UNIX") else "false",
    "spark.sql.session.timeZone": "UTC",
    # Names of campaigns stay text, also those that are numbers.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
# Spark has little to do here, and is gone soon: to optimise its own code, or to collect its garbage in
# several threads, takes the cores from the runs.
_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SETTINGS_HERE: Final = {
    "spark.driver.defaultJavaOptions": _JAVA_OPTIONS,
    "spark.executor.defaultJavaOptions": _JAVA_OPTIONS,
}
"""For Spark on this machine; what an administrator of a cluster has set stays."""
_LOCAL_ADDRESS: Final = "127.0.0.1"
_CONNECT_PORT: Final = 15002
_CONNECT_MAX_S: Final = 10.0
_PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy")
_STOPPED: Final = "stopped SparkContext"


def start_session(
    *, master: str = DEFAULT_MASTER, remote: str | None = None, log: Path | None = None
) -> SparkSession:
    """Start a session, or take the one that is there; what Java says goes to *log*.

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
    _be_quiet_about_a_lost_java()
    try:
        with _output_into(log), _interrupts_as_before():
            if remote is None:
                _start_java({**settings, "spark.master": _with_retries(master)})
            session: SparkSession = builder.getOrCreate()
            session.range(1).collect()
    except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
        more = "" if log is None else f" ({log} has more)"
        raise EngineError(f"Spark at {where} cannot be used: {in_short(error)}{more}") from error
    if remote is None:
        # Nor does the thread that takes in accumulators print a traceback then.
        server = getattr(session.sparkContext, "_accumulatorServer", None)
        if server is not None:
            server.handle_error = lambda *_: None
    return session


def spark_sql(session: SparkSession, folder: Path) -> Sql:
    """Return Spark SQL over the files of a sweep's folder, which the session's executors have to see."""
    # To Spark a path is a pattern.
    path = re.sub(r"([\\*?{}\[\]])", r"\\\1", str((folder / RUNS).absolute()))
    session.read.parquet(path).createOrReplaceTempView("runs")
    return Sql("Spark SQL", "explode", lambda query: session.sql(query).collect())


def stop_session(session: SparkSession) -> None:
    """Stop a session; one that is gone already is as good as stopped."""
    with suppress(Exception):
        session.stop()


def _check_reachable(url: str) -> None:
    """Try the address of a server first: Spark would wait for it for a minute, Spark Connect for ten.

    Raises:
        EngineError: nothing listens there.

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
    """Return where the servers of an address are; none where that is not for us to say."""
    scheme, _, rest = url.partition("://")
    if scheme == "spark":
        parts = [each.strip().rpartition(":") for each in rest.split(",")]
        return [(host.strip("[]"), int(port)) for host, _, port in parts if host and port.isdigit()]
    if scheme == "sc" and not any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES):
        with suppress(ValueError):  # Spark says itself what is wrong with an address
            found = urlsplit(url)
            return [(found.hostname, found.port or _CONNECT_PORT)] if found.hostname else []
    return []


def _be_quiet_about_a_lost_java() -> None:
    """Keep Py4J from logging tracebacks when Java dies: who asked hears of it, and says so in one line."""
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    logging.getLogger().addFilter(_is_not_of_py4j)  # its exceptions go to the root logger


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def in_short(error: Exception) -> str:
    """Return in one line what an error of Spark says: the Python error within, else what Java said, else the first line."""
    if _STOPPED in str(error):
        return "it has given up: no master answers, or none that takes applications"
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
        if "SPARK_WORKER_DIR" not in os.environ:
            until_exit = ExitStack()
            atexit.register(until_exit.close)
            os.environ["SPARK_WORKER_DIR"] = str(until_exit.enter_context(temporary_folder()))


@contextmanager
def _output_into(log: Path | None) -> Iterator[None]:
    """Let Java inherit *log* as its output and standard error; this process keeps its own."""
    if log is None:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        with log.open("ab") as stream:
            for descriptor in kept:
                os.dup2(stream.fileno(), descriptor)
        yield
    finally:
        for descriptor, ours in kept.items():
            os.dup2(ours, descriptor)
            os.close(ours)


def _start_java(settings: Mapping[str, str]) -> None:
    """Start the process of Java that a session will use, if there is none; an interrupt waits for it.

    PySpark removes the file in which it awaits Java's answer when it is interrupted there, and Java, which
    cannot write it then, would stay for ever.
    """
    with _interrupts_held():
        conf = SparkConf().setAll(list(settings.items()))
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - nothing public starts Java alone


@contextmanager
def _interrupts_held() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    held: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held:
        raise KeyboardInterrupt


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
