"""Processes with harrow already imported, because a short command mostly spends time importing.

A server imports harrow once and forks for each command, which gets its own environment, folder and
standard streams, as from a shell.
"""

import multiprocessing
import multiprocessing.context
import multiprocessing.forkserver
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from tests.plain_environment import PYTHONPATH, plain_environment

_SERVER = "tests.cli.warm_server"
_STREAMS = ("stdin", "stdout", "stderr")
_ARROW = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Arrow's own pool reserves a gigabyte of addresses, which is the limit of some commands."""


class _ForkServer:
    """The server of this process, which the pools of harrow share."""

    warm_pid: int | None = None

    @classmethod
    def context(cls) -> multiprocessing.context.ForkServerContext:
        """Return a context whose processes come from a warm server, not from one that a pool
        started.
        """
        context = multiprocessing.get_context("forkserver")
        server: Any = multiprocessing.forkserver
        if cls.warm_pid is None or server._forkserver._forkserver_pid != cls.warm_pid:
            server._forkserver._stop()
            context.set_forkserver_preload([_SERVER])
            environment = {**plain_environment(), "PYTHONPATH": PYTHONPATH, **_ARROW}
            with mock.patch.dict(os.environ, environment, clear=True):
                server.ensure_running()
            cls.warm_pid = server._forkserver._forkserver_pid
        return context


def run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    *,
    prepare: Callable[[], object] = bool,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder after *prepare*, and return its output and exit code."""
    context = _ForkServer.context()
    with TemporaryDirectory() as place:
        streams = Path(place)
        process = context.Process(target=_run, args=(arguments, folder, dict(environment), streams, prepare))
        process.start()
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired(["harrow", *arguments], timeout_s)
        code = process.exitcode
        process.close()
        assert code is not None
        stdout, stderr = ((streams / name).read_text(encoding="utf-8") for name in _STREAMS[1:])
        return subprocess.CompletedProcess(["harrow", *arguments], code, stdout, stderr)


def _run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    streams: Path,
    prepare: Callable[[], object],
) -> None:
    (streams / "stdin").touch()
    for number, name in enumerate(_STREAMS):
        os.dup2(os.open(streams / name, os.O_RDWR | os.O_CREAT), number)
    # No with: the streams stay open as long as the process lives.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - see above
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - see above
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115 - see above
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["harrow", *arguments]
    assert _SERVER in sys.modules, "the server failed to import it silently"
    prepare()
    from harrow.cli.__main__ import main

    main()
