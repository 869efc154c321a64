"""A Spark session: embedded, on any master, at a Spark Connect server, or inside spark-submit."""

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
from harrow.campaigns.sweep.spark_availability import is_on_this_machine, is_submitted
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.cluster_model.lazy_dataclass import dataclass

DEFAULT_MASTER: Final = "local[*]"
TASK_FAILURES_MAX: Final = 4
"""How often Spark tries a task before it gives up the job. Embedded Spark would try only once."""

_SESSION_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # Campaign names stay text even if they look like numbers.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_SETTINGS: Final = {
    **_SESSION_SETTINGS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark before 4.1 ignores this setting.
    "spark.python.unix.domain.socket.enabled": "true" if hasattr(socket, "AF_UNIX") else "false",
}
_SUBMITTED_SETTINGS: Final = {"spark.log.level": "WARN"}
"""Defaults for an application of spark-submit, whose log is beside the output of harrow."""
_CLUSTER_SETTINGS: Final = {
    # An attempt writes the same file as another, so a slow machine need not hold up a chunk.
    "spark.speculation": "true",
    "spark.speculation.minTaskRuntime": "60s",
}
"""Defaults on a cluster, which its users can replace."""
_CONTAINER_MASTERS: Final = ("yarn", "k8s:")
"""Managers that kill an executor whose Python takes more memory than its container has."""
_OVERHEADS: Final = (
    "spark.executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor",
    "spark.executor.pyspark.memory",
    "spark.kubernetes.memoryOverheadFactor",
)
_JAVA_OVERHEAD_MIB: Final = 384
_CORE_MIB: Final = 512
"""The memory of a Python worker. A run of a usual campaign needs less than half of it."""
_STATED: Final = {
    "spark.task.cpus": "1",
    "spark.speculation": "false",
    "spark.executor.memoryOverhead": None,
    "spark.executor.pyspark.memory": None,
}
"""What a sweep says about its executors, with Spark's defaults."""
# A sweep leaves little work to Spark's own code. If Java optimised that code, or collected its
# garbage in several threads, it would take cores away from the runs.
_FEW_OPTIMISATIONS: Final = "-XX:TieredStopAtLevel=1"
_JAVA_OPTIONS: Final = f"{_FEW_OPTIMISATIONS} -XX:+UseSerialGC"
_SETTINGS_HERE: Final = {
    "spark.driver.defaultJavaOptions": _JAVA_OPTIONS,
    "spark.executor.defaultJavaOptions": _JAVA_OPTIONS,
}
"""Settings for Spark on this machine. On a cluster, those of its administrator apply."""
_CLUSTER_SETTINGS_FOR_PYTHON: Final = {"spark.executor.defaultJavaOptions": _FEW_OPTIMISATIONS}
"""Defaults on a cluster where executors mainly run Python.

They name no garbage collector: Java does not start with two, and an administrator may have named
another.
"""
_SETTINGS_HERE_FOR_SQL: Final = {
    "spark.driver.memory": "3g",
    "spark.driver.defaultJavaOptions": "-XX:+UseSerialGC",
    "spark.executor.defaultJavaOptions": "-XX:+UseSerialGC",
}
"""The same if Java itself does the work, so that optimising its code pays."""
_LOCAL_ADDRESS: Final = "127.0.0.1"
_CONNECT_PORT: Final = 15002
_KUBERNETES_PORT: Final = 443
_CONNECT_MAX_S: Final = 10.0
_PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy")
_STOPPED: Final = "stopped SparkContext"


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """The URL of a master, or of a Spark Connect server.

    It is *given* if spark-submit or another service chose it. Then the service may also have put
    the driver on the cluster, or have started the session, which harrow does not stop.
    """

    url: str
    is_connect: bool = False
    is_given: bool = False
    has_driver_on_cluster: bool = False
    is_session_running: bool = False

    def __str__(self) -> str:
        return without_secrets(self.url)

    @property
    def is_here(self) -> bool:
        """Whether the executors share this machine's files."""
        return is_on_this_machine(self.url)


def spark_address(
    master: str | None = None, remote: str | None = None, *, default: str = DEFAULT_MASTER
) -> SparkAddress:
    """Return where Spark is: as an option says, as spark-submit or SPARK_REMOTE says, or *default*.

    Raises:
        EngineError: The Java process of spark-submit does not respond.

    """
    if master or remote:
        return SparkAddress(remote or master or default, is_connect=remote is not None)
    if is_submitted():
        try:
            return _given_address(default)
        except Exception as error:  # Spark and Py4J each have errors of their own
            raise EngineError(f"spark-submit does not respond: {in_short(error)}") from error
    if server := os.environ.get("SPARK_REMOTE"):
        is_running = SparkSession.getActiveSession() is not None
        return SparkAddress(server, is_connect=True, is_given=True, is_session_running=is_running)
    return SparkAddress(default)


def _given_address(default: str) -> SparkAddress:
    SparkContext._ensure_initialized()  # noqa: SLF001 - nothing public connects to Java alone
    conf = SparkConf()
    if server := conf.get("spark.remote"):
        return SparkAddress(server, is_connect=True, is_given=True)
    active = SparkSession.getActiveSession()
    return SparkAddress(
        (conf if active is None else active.sparkContext.getConf()).get("spark.master") or default,
        is_given=True,
        # On Kubernetes, the driver's container submits once more, in client mode.
        has_driver_on_cluster=conf.get("spark.submit.deployMode") == "cluster"
        or conf.get("spark.kubernetes.submitInDriver") == "true",
        is_session_running=active is not None,
    )


def start_session(address: SparkAddress, *, log: Path | None = None, for_sql: bool = False) -> SparkSession:
    """Start a session, or return the existing one. Java's output goes to *log*.

    A session *for_sql* computes with Java rather than with Python.

    Raises:
        EngineError: Spark cannot be started or reached.

    """
    _check_reachable(address.url)
    master = _with_retries(address.url)
    settings = _SUBMITTED_SETTINGS if address.is_given else _SETTINGS
    if address.is_here:
        if not address.is_given:
            settings = {**settings, **(_SETTINGS_HERE_FOR_SQL if for_sql else _SETTINGS_HERE)}
        _prepare_for_this_machine(address.url)
    _silence_py4j()
    start = 0 if log is None or not log.exists() else log.stat().st_size
    try:
        with _output_into(log), _interrupt_handler_kept():
            builder = SparkSession.builder
            if address.is_connect:
                builder = builder.remote(address.url)
                settings = _SESSION_SETTINGS
            else:
                if not address.is_given:
                    if not address.is_here and not for_sql:
                        os.environ.setdefault("SPARK_SUBMIT_OPTS", _FEW_OPTIMISATIONS)
                    _start_java({**settings, "spark.master": master})
                    builder = builder.appName("harrow").master(master)
                settings = _with_defaults(settings, address, SparkConf(), for_sql=for_sql)
                settings |= _SESSION_SETTINGS
            for name, value in settings.items():
                builder = builder.config(name, value)
            session: SparkSession = builder.getOrCreate()
            session.range(1).collect()
    except Exception as error:  # Spark, Py4J and gRPC each have errors of their own
        reason = (None if log is None else _reason_of_java(log, start)) or in_short(error)
        raise EngineError(f"Spark at {address} cannot be used: {reason}") from error
    if not address.is_connect:
        # When Java dies, the thread that receives accumulators must not print a traceback either.
        server = getattr(session.sparkContext, "_accumulatorServer", None)
        if server is not None:
            server.handle_error = lambda *_: None
    return session


def _with_defaults(
    settings: Mapping[str, str], address: SparkAddress, conf: SparkConf, *, for_sql: bool = False
) -> dict[str, str]:
    """Return settings, and harrow's defaults for those that the user has not set."""
    defaults: dict[str, str] = {}
    if not address.is_here:
        defaults = {**_CLUSTER_SETTINGS, **({} if for_sql else _CLUSTER_SETTINGS_FOR_PYTHON)}
    if address.url.startswith(_CONTAINER_MASTERS) and not any(map(conf.contains, _OVERHEADS)):
        cores = int(conf.get("spark.executor.cores") or 1)
        defaults["spark.executor.memoryOverhead"] = f"{_JAVA_OVERHEAD_MIB + _CORE_MIB * cores}m"
    if address.is_given:
        defaults |= settings
        settings = {}
    return {**{name: value for name, value in defaults.items() if not conf.contains(name)}, **settings}


def task_cpus(session: SparkSession) -> int:
    """Return how many cores of an executor a task takes."""
    return int(_setting(session, "spark.task.cpus") or 1)


def stated_settings(session: SparkSession) -> str:
    """Return the settings that decide how many runs an executor has at a time, and their memory."""
    found = {name: _setting(session, name) for name in _STATED}
    return ", ".join(f"{name}={value}" for name, value in found.items() if value is not None)


def _setting(session: SparkSession, name: str) -> str | None:
    with suppress(Exception):  # Services do not let their users read every setting.
        value: str | None = session.conf.get(name, _STATED[name])
        return value
    return _STATED[name]


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
    port = {"sc": _CONNECT_PORT, "k8s": _KUBERNETES_PORT}.get(scheme)
    if port and not any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES):
        with suppress(ValueError):  # Spark reports what is wrong with an address
            parsed = urlsplit(rest if "://" in rest else url)
            return [(parsed.hostname, parsed.port or port)] if parsed.hostname else []
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


def _reason_of_java(log: Path, start: int) -> str | None:
    """Return why Java ended, from the bytes of its log after *start*; None if it did not end so."""
    with suppress(OSError), log.open("rb") as stream:
        stream.seek(start)
        text = stream.read().decode("utf-8", "replace")
        reasons = re.findall(r'(?m)^(?:Exception in thread "main" [\w.$]+: |Error: )(.+)$', text)
        return str(reasons[-1]) if reasons else None
    return None


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
