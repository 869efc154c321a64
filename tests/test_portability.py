"""harrow works without POSIX, as on Windows."""

import subprocess
import sys

from tests.plain_environment import PYTHONPATH, plain_environment

WITHOUT_POSIX = """
import multiprocessing.pool, concurrent.futures.process, pkgutil, runpy, signal, subprocess, sys, tempfile, importlib, os
import hypothesis, pytest  # libraries may need POSIX
for library in ("confluent_kafka", "duckdb", "kafka", "kazoo.client", "numpy", "pandas", "pyarrow.parquet", "pyspark.sql", "pyspark.sql.utils"):
    try:
        importlib.import_module(library)
    except ImportError:
        pass

for module in ("fcntl", "termios", "resource", "pwd", "grp", "tty", "pty", "readline", "curses", "syslog", "posix"):
    sys.modules[module] = None
for name in dir(signal):
    if name.startswith("SIG") and "_" not in name and name not in ("SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV", "SIGKILL"):
        delattr(signal, name)
for name in ("fork", "forkpty", "killpg", "getpgid", "setsid", "mkfifo", "sched_getaffinity", "O_NONBLOCK"):
    delattr(os, name)

import harrow
for module in pkgutil.walk_packages(harrow.__path__, "harrow."):
    if module.name.rpartition(".")[2] not in ("__main__", "worker", "supervisor"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("harrow", *sys.builtin_module_names, *sys.stdlib_module_names):
                raise
from harrow.cli.main import main
sys.argv = ["harrow", "run", "ack-lost", "--no-results", "--quiet", "-j", "1"]
main()
"""


def test_without_posix_all_modules_can_be_imported_and_a_campaign_runs() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX],
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
