"""The program that uses a served cluster: harrow starts it, and faults may pause and kill it."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import IO, Any, Final

from harrow.live_cluster.processes import group_watcher

_BOOTSTRAP: Final = "{bootstrap}"
_SERVERS: Final = "KAFKA_BOOTSTRAP_SERVERS"
_CONTROL: Final = "HARROW_CONTROL"
_STDIN: Final = 0
_GRACE_S: Final = 10.0
"""How long a program may take to end after Ctrl-C, and again after SIGTERM."""
_ENDED: Final = frozenset({-signal.SIGTERM, -signal.SIGKILL})


_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    """Let Linux end the program when harrow is killed.

    No other thread runs while a program starts, so this may run in the new process.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class ClientProgram:
    """A program with its arguments, in which ``{bootstrap}`` stands for the addresses of brokers.

    *output* and *errors* take the place of its standard output and standard error. With
    *own_group*, signals reach all processes that the program starts, and all of them end if harrow
    is killed; but the program cannot read from the terminal. Without it, only Linux ends the
    program, and none of those that it starts.
    """

    def __init__(
        self,
        command: Sequence[str],
        output: IO[Any] | None,
        *,
        own_group: bool,
        errors: IO[Any] | None = None,
    ) -> None:
        self.command = command
        self.servers = ""
        self.control_url = ""
        self.is_paused = False
        self.is_killed = False
        """Whether a fault has killed it."""
        self._output, self._errors = output, errors
        self._own_group = own_group
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._signals: list[tuple[float, signal.Signals]] = []
        self._was_ended = False

    @property
    def is_running(self) -> bool:
        if self._process is not None and self._process.poll() is None:
            return True
        self._end_watch()
        return False

    @property
    def code(self) -> int:
        """The exit code; 0 while there is none, and if a fault or `end` has ended the program."""
        code = None if self._process is None or self.is_killed else self._process.returncode
        if code is None or (self._was_ended and code in _ENDED):
            return 0
        return code if code >= 0 else 128 - code

    def start(self) -> None:
        """Start the program, unless it runs.

        Raises:
            OSError: There is no such program.

        """
        if self.is_running:
            return
        self.is_killed = self.is_paused = False
        self._process = subprocess.Popen(  # noqa: S603 - the user names the program
            [word.replace(_BOOTSTRAP, self.servers) for word in self.command],
            env={**os.environ, **self._variables()},
            stdout=self._output,
            stderr=self._errors,
            process_group=0 if self._own_group else None,
            preexec_fn=_end_with_parent if _LIBC is not None else None,  # noqa: PLW1509 - no threads run
        )

        if self._own_group:
            self._watcher = subprocess.Popen(  # noqa: S603 - this Python, and a module of ours
                [sys.executable, "-I", "-S", group_watcher.__file__, str(self._process.pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def _end_watch(self) -> None:
        """Let the processes stay that the program has left behind."""
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.wait()
            assert self._watcher.stdin is not None
            self._watcher.stdin.close()
            self._watcher = None

    def _variables(self) -> dict[str, str]:
        control = {_CONTROL: self.control_url} if self.control_url else {}
        return {_SERVERS: self.servers, **control}

    def kill(self) -> None:
        if self._process is not None and self.is_running:
            self.is_killed, self.is_paused = True, False
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._end_watch()

    def pause(self) -> None:
        self.is_paused = True
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.is_paused = False
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Ask the program to end. Later calls kill it if it takes too long.

        Ctrl-C reaches a program that shares harrow's terminal, so that one first gets time to end
        by itself.
        """
        now_s = time.monotonic()
        if not self._was_ended:
            self._was_ended = True
            first_s = now_s + (_GRACE_S if self._shares_terminal() else 0)
            self._signals = [(first_s, signal.SIGTERM), (first_s + _GRACE_S, signal.SIGKILL)]
        while self._signals and self._signals[0][0] <= now_s:
            self._signal(self._signals.pop(0)[1])
            if self.is_paused:
                self.resume()

    def stop(self) -> None:
        """End the program at once: ask it to, and kill it if it takes too long."""
        if self._process is None or not self.is_running:
            return
        self._was_ended = True
        self._signal(signal.SIGTERM)
        if self.is_paused:
            self.resume()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._end_watch()

    def _shares_terminal(self) -> bool:
        return not self._own_group and os.isatty(_STDIN)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or not self.is_running:
            return
        if self._own_group:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)
