"""Starts processes through `harrow.live_cluster.processes.supervisor`."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.processes import supervisor

_WAIT_MAX_S: Final = 60
"""How long an order to the supervisor may take. It waits only for the operating system."""


class SupervisorError(LiveError):
    """The supervisor has ended, or a process could not be started."""


class ChildProcess:
    """A started process, with its output in ``log``.

    ``code`` is None while the process runs, then its exit code, or the negative number of a signal.
    """

    def __init__(self, children: "ChildProcesses", pid: int, log: Path) -> None:
        self.pid = pid
        self.log = log
        self.code: int | None = None
        self._children = children
        self._ended = threading.Event()

    @property
    def is_running(self) -> bool:
        """Whether the process exists; it may be paused."""
        return self.code is None

    def terminate(self) -> None:
        self._children.send_signal(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process, even if it is paused, and wait for its end."""
        self._children.send_signal(self.pid, signal.SIGKILL)
        self.wait()

    def pause(self) -> None:
        self._children.send_signal(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        self._children.send_signal(self.pid, signal.SIGCONT)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the process; return whether it has ended."""
        return self._ended.wait(timeout_s)

    def record_end(self, code: int) -> None:
        self.code = code
        self._ended.set()


class ChildProcesses:
    """The processes of a run. They end with this context, and with harrow, even if it is killed.

    A thread calls *on_ended* with each process that has ended.
    """

    def __init__(self, on_ended: Callable[[ChildProcess], None] = lambda _: None) -> None:
        self._on_ended = on_ended
        self._children: dict[int, ChildProcess] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._supervisor_has_ended = False
        self._orders = 0
        self._condition = threading.Condition()
        self._supervisor = subprocess.Popen(  # noqa: S603 - this Python, and a module of ours
            # -I ignores the working directory and the environment.
            [sys.executable, "-I", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        threading.Thread(target=self._read, name="supervisor", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all processes, and wait for their end."""
        stdin = self._supervisor.stdin
        assert stdin is not None
        if not stdin.closed:
            stdin.close()
        self._supervisor.wait()

    def start(
        self,
        command: Sequence[str | Path],
        *,
        folder: Path,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> ChildProcess:
        """Start a process in a folder, and append its output to *log*.

        Raise `SupervisorError` if it fails.
        """
        answer = self._order(
            order="start",
            command=list(map(str, command)),
            folder=str(folder),
            log=str(log.absolute()),
            environment=dict(os.environ if environment is None else environment),
        )
        if "error" in answer:
            raise SupervisorError(f"cannot start {command[0]}: {answer['error']}")
        child: ChildProcess = answer["child"]
        return child

    def send_signal(self, pid: int, number: signal.Signals) -> bool:
        """Send a signal to the session of a process; return whether the process was running."""
        return bool(self._order(order="signal", pid=pid, signal=int(number)).get("running"))

    def _order(self, **order: Any) -> dict[str, Any]:
        stdin = self._supervisor.stdin
        assert stdin is not None
        with self._condition:
            self._orders += 1
            number = self._orders
            try:
                stdin.write(json.dumps({"number": number, **order}).encode() + b"\n")
                stdin.flush()
            except (OSError, ValueError) as error:
                raise SupervisorError("the supervisor of the processes has ended") from error
            self._condition.wait_for(
                lambda: number in self._answers or self._supervisor_has_ended, _WAIT_MAX_S
            )
            if number not in self._answers:
                raise SupervisorError("the supervisor of the processes does not answer")
            return self._answers.pop(number)

    def _read(self) -> None:
        stdout = self._supervisor.stdout
        assert stdout is not None
        for line in stdout:
            message = json.loads(line)
            ended = None
            with self._condition:
                if "answer" in message:
                    # Create the child in this thread, which also handles its end: the process may
                    # end before `start` returns.
                    if "pid" in message:
                        child = ChildProcess(self, message["pid"], Path(message["log"]))
                        message["child"] = self._children[child.pid] = child
                    self._answers[message["answer"]] = message
                else:
                    ended = self._children.pop(message["ended"])
                self._condition.notify_all()
            if ended is not None:
                ended.record_end(message["code"])
                self._on_ended(ended)
        stdout.close()
        with self._condition:
            self._supervisor_has_ended = True
            remaining, self._children = list(self._children.values()), {}
            self._condition.notify_all()
        for child in remaining:
            child.record_end(-signal.SIGKILL)
