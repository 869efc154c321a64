"""The program that uses a served cluster: harrow starts it, and faults may pause and kill it."""

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final, TextIO

_BOOTSTRAP: Final = "{bootstrap}"
_VARIABLE: Final = "KAFKA_BOOTSTRAP_SERVERS"
_GRACE_S: Final = 10.0
"""How long a program may take to end after SIGTERM."""


class ClientProgram:
    """A program with its arguments, in which ``{bootstrap}`` stands for the addresses of brokers.

    *output* takes the place of its standard output. With *own_group*, signals reach all processes
    that the program starts, but the program cannot read from the terminal.
    """

    def __init__(self, command: Sequence[str], output: TextIO | None, *, own_group: bool) -> None:
        self.command = command
        self.servers = ""
        self.is_paused = False
        self.is_killed = False
        """Whether a fault has killed it."""
        self._output = output
        self._own_group = own_group
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int:
        """The exit code; 0 while there is none, and if a fault has killed the program."""
        code = None if self._process is None or self.is_killed else self._process.returncode
        return 0 if code is None else code if code >= 0 else 128 - code

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
            env={**os.environ, _VARIABLE: self.servers},
            stdout=self._output,
            process_group=0 if self._own_group else None,
        )

    def kill(self) -> None:
        if self._process is not None and self.is_running:
            self.is_killed, self.is_paused = True, False
            self._signal(signal.SIGKILL)
            self._process.wait()

    def pause(self) -> None:
        self.is_paused = True
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.is_paused = False
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End the program: ask it to, and kill it if it takes too long."""
        if self._process is None or not self.is_running:
            return
        self._process.terminate()
        if self.is_paused:
            self.resume()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or not self.is_running:
            return
        if self._own_group:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)
