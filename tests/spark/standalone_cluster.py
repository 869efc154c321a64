"""A standalone cluster of Spark on this machine: a master and workers, each a process each."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark

from tests.patience import PATIENCE_S
from tests.plain_environment import plain_environment
from tests.spark.sweep_processes import descendants_of, python_workers

SPARK_HOME: Final = Path(str(pyspark.__file__)).parent
_ADDRESS: Final = "127.0.0.1"
ENVIRONMENT: Final = {"SPARK_LOCAL_IP": _ADDRESS, "PYSPARK_PYTHON": sys.executable}
"""What a driver needs in its environment, because only a ``local`` master is known to be here."""


class StandaloneCluster:
    """A master, and workers with one core each. *folder* gets their logs and files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []
        self._started = 0
        self._master, log = self._start("Master", "--port", "0")
        self.url = self._logged(self._master, log, r"Starting Spark master at (spark://\S+)")

    def add_worker(self) -> None:
        """Start a worker, and wait until the master has it."""
        words = ("--cores", "1", "--memory", "1G", "--work-dir", str(self._folder / "work"), self.url)
        worker, log = self._start("Worker", *words)
        self._workers.append(worker)
        self._logged(worker, log, r"Successfully (registered) with master")

    def kill_worker(self) -> None:
        """Kill the oldest worker. Its executors notice that and end."""
        worker = self._workers.pop(0)
        worker.kill()
        worker.wait()

    def kill_python(self) -> bool:
        """Kill a Python worker of an executor. Return whether there was one."""
        for pid in reversed(python_workers(os.getpid())):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def close(self) -> None:
        processes = [self._master, *self._workers]
        pids = [pid for process in processes for pid in descendants_of(process.pid)]
        for process in processes:
            process.kill()
            process.wait()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _start(self, name: str, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        self._started += 1
        log = self._folder / f"{name}-{self._started}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name.lower()}.{name}"]
        environment = {**plain_environment(), **ENVIRONMENT, "SPARK_HOME": str(SPARK_HOME)}
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [*command, "--host", _ADDRESS, "--webui-port", "0", *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        return process, log

    def _logged(self, process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
        deadline_s = time.monotonic() + PATIENCE_S
        while (match := re.search(pattern, log.read_text(errors="replace"))) is None:
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline_s, log.read_text(errors="replace")
            time.sleep(0.1)
        return match[1]


@contextmanager
def standalone_cluster(workers: int) -> Iterator[StandaloneCluster]:
    """Run a cluster of *workers* workers."""
    folder = Path(tempfile.mkdtemp())
    cluster = StandaloneCluster(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)  # Executors that were killed may still write there.
