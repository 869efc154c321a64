"""Processes that harrow starts, through `harrow.live_cluster.processes.supervisor`."""

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

_PATIENCE_S: Final = 60
"""How long an order may take; none waits for anything but the system."""


class SupervisorError(LiveError):
    """The supervisor is gone, or a process could not be started."""


class ChildProcess:
    """A process that was started. ``code`` is None while it runs, then its exit code, or minus a signal's number.

    What it prints is in ``log``.
    """

    def __init__(self, children: "ChildProcesses", pid: int, log: Path) -> None:
        self.pid = pid
        self.log = log
        self.code: int | None = None
        self._children = children
        self._ended = threading.Event()

    @property
    def is_running(self) -> bool:
        """Return whether it has not ended yet; it may be paused."""
        return self.code is None

    def terminate(self) -> None:
        """Tell it to stop (SIGTERM); one that has ended already is left alone."""
        self._children.send_signal(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it (SIGKILL), and wait until it is gone; also one that is paused."""
        self._children.send_signal(self.pid, signal.SIGKILL)
        self.wait()

    def pause(self) -> None:
        """Let it stand still (SIGSTOP)."""
        self._children.send_signal(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._children.send_signal(self.pid, signal.SIGCONT)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended, and return whether it has."""
        return self._ended.wait(timeout_s)

    def has_ended(self, code: int) -> None:
        self.code = code
        self._ended.set()


class ChildProcesses:
    """The processes of a run. They end with this context, with harrow, and with harrow's death.

    *on_ended* is called, in a thread of its own, with each process that has ended.
    """

    def __init__(self, on_ended: Callable[[ChildProcess], None] = lambda _: None) -> None:
        self._on_ended = on_ended
        self._children: dict[int, ChildProcess] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._is_over = False
        self._orders = 0
        self._changed = threading.Condition()
        self._supervisor = subprocess.Popen(  # noqa: S603 - this Python, and a module of ours
            # Alone (-I): neither the folder that harrow was started in nor the environment has a say.
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
        """End all processes, and wait until they are gone."""
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
        """Start a process in a folder; what it prints goes to the end of *log*.

        Raises:
            SupervisorError: it could not be started.

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
        """Send a signal to a process and all of its session; return whether it was running."""
        return bool(self._order(order="signal", pid=pid, signal=int(number)).get("running"))

    def _order(self, **order: Any) -> dict[str, Any]:
        stdin = self._supervisor.stdin
        assert stdin is not None
        with self._changed:
            self._orders += 1
            number = self._orders
            try:
                stdin.write(json.dumps({"number": number, **order}).encode() + b"\n")
                stdin.flush()
            except (OSError, ValueError) as error:
                raise SupervisorError("what looks after the processes is gone") from error
            self._changed.wait_for(lambda: number in self._answers or self._is_over, _PATIENCE_S)
            if number not in self._answers:
                raise SupervisorError("what looks after the processes does not answer")
            return self._answers.pop(number)

    def _read(self) -> None:
        stdout = self._supervisor.stdout
        assert stdout is not None
        for line in stdout:
            message = json.loads(line)
            ended = None
            with self._changed:
                if "answer" in message:
                    # Made here, where it is told when one ends: it may have ended before the code that started it looks.
                    if "pid" in message:
                        child = ChildProcess(self, message["pid"], Path(message["log"]))
                        message["child"] = self._children[child.pid] = child
                    self._answers[message["answer"]] = message
                else:
                    ended = self._children.pop(message["ended"])
                self._changed.notify_all()
            if ended is not None:
                ended.has_ended(message["code"])
                self._on_ended(ended)
        stdout.close()
        with self._changed:
            self._is_over = True
            left, self._children = list(self._children.values()), {}
            self._changed.notify_all()
        for child in left:
            child.has_ended(-signal.SIGKILL)
