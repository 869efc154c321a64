"""Sweeps in processes of their own, and the processes below them, which a test may kill."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from tests.conftest import kill_after_test
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

CLUSTER = "local-cluster[2,1,1024]"

SMALL = """
name: small
kafka: "2.4"
behaviours: {hw_waits_for_whole_isr: false}
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 5s, producers: [{name: p, rate: 4/s, settings: {enable.idempotence: false}}]}
faults:
  - rate: 30/m
    do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}
"""
"""Some runs break promises, so that rows have all kinds of contents."""


def start(processes: ExitStack, folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Start a sweep. It and its descendants are killed when the test ends."""
    environment = {**plain_environment(), "PYTHONPATH": PYTHONPATH, **variables}
    process = subprocess.Popen(
        [sys.executable, "-m", "harrow", "sweep", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return kill_with_children_after_test(processes, process)


def kill_with_children_after_test(
    processes: ExitStack, process: subprocess.Popen[str]
) -> subprocess.Popen[str]:
    """Kill a process when the test ends, with its Java and Python children, which would live on."""
    kill_after_test(processes, process)

    def end_children() -> None:
        for pid in descendants_of(process.pid) if process.poll() is None else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    processes.callback(end_children)
    return process


def sweep(processes: ExitStack, folder: Path, out: str, *words: str, **variables: str) -> str:
    """Run a sweep to its end, and return its output. Some of its runs must fail."""
    process = start(processes, folder, "small.yaml", "--out", out, *words, **variables)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr
    return stdout


def process_table() -> dict[int, tuple[int, str]]:
    """Return the parent and the command line of every process."""
    processes = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = (status.parent / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        processes[int(status.parent.name)] = (parent, command)
    return processes


def descendants_of(root: int) -> dict[int, str]:
    """Return the command lines of a process's descendants."""
    table = process_table()
    descendants: dict[int, str] = {}
    children = {root}
    while children:
        children = {
            pid for pid, (parent, _) in table.items() if parent in children and pid not in descendants
        }
        descendants |= {pid: table[pid][1] for pid in children}
    return descendants


def python_workers(root: int) -> list[int]:
    """Return the Python workers of Spark below a process."""
    daemons = {pid for pid, command in descendants_of(root).items() if "pyspark.daemon" in command}
    return [pid for pid, (parent, _) in process_table().items() if parent in daemons]


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str]) -> Any:
    deadline_s = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    return result
