"""A Spark Connect server on this machine."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.plain_environment import plain_environment
from tests.spark.standalone_cluster import ENVIRONMENT, SPARK_HOME
from tests.spark.sweep_processes import descendants_of


@contextmanager
def connect_server(folder: Path, command: str) -> Iterator[str]:
    """Run the command of a page that starts a server, and yield the server's URL.

    *folder* gets its log and files.
    """
    log = folder / "connect.log"
    variables = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOG_DIR": str(folder), "SPARK_PID_DIR": str(folder)}
    words = f"{command} --conf spark.connect.grpc.binding.port=0".split()
    with log.open("wb") as stream:
        server = subprocess.Popen(
            ["/bin/bash", "-c", " ".join([words[0], "--wait", *words[1:]])],
            env={**plain_environment(), **ENVIRONMENT, **variables},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        yield f"sc://127.0.0.1:{_port(server, log)}"
    finally:
        for pid in [server.pid, *descendants_of(server.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.wait()


def _port(server: subprocess.Popen[bytes], log: Path) -> str:
    deadline_s = time.monotonic() + PATIENCE_S
    pattern = r"Spark Connect server started at: \S+:(\d+)\n"
    while (match := re.search(pattern, log.read_text(errors="replace"))) is None:
        assert server.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline_s, log.read_text(errors="replace")
        time.sleep(0.1)
    return match[1]
