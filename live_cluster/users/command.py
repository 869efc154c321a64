"""Runs the user's commands for brokers, after it has filled in their placeholders."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.users.command_word import CommandWord

_PLACEHOLDER: Final = re.compile(r"(?<!\$)\{\{([A-Za-z_]\w*)\}\}|(?<!\$)\{([A-Za-z_]\w*)\}", re.ASCII)
"""``{broker}`` is a placeholder, and ``{{broker}}`` stands for the text ``{broker}``. The shell
expands ``${BROKER}``."""
_SHELL: Final = "/bin/sh"
_START_GATE: Final = (_SHELL, "-c", 'read -r _ && exec "$@" </dev/null', _SHELL)
"""Waits for a line on standard input before it runs the command. If harrow is killed before it has
recorded the process in the journal, no line arrives, and the command never runs."""
_POLL_INTERVAL_S: Final = 0.02
_OUTPUT_EXCERPT_BYTES: Final = 500


_started: Final[dict[int, "subprocess.Popen[bytes]"]] = {}
"""The commands that this process has started, by process id, until their exit code is known."""


class CommandName(StrEnum):
    """The name of a command in a target file; it acts on a broker, or on its link from a peer."""

    KILL = "kill"
    STOP = "stop"
    PAUSE = "pause"
    CUT = "cut"
    START = "start"
    RESUME = "resume"
    RESTORE = "restore"


class CommandError(LiveError):
    """A command failed or took too long; the message has its last line of output."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, or a line for ``/bin/sh -c``. Both may have placeholders."""

    run: tuple[str, ...] | str
    limit_s: float

    def placeholders(self) -> Iterator[str]:
        """Yield the names of the placeholders."""
        for part in (self.run,) if isinstance(self.run, str) else self.run:
            yield from (match[2] for match in _PLACEHOLDER.finditer(part) if match[2] is not None)

    def filled(self, values: Mapping[str, CommandWord]) -> "FilledCommand":
        """Return the command with values in place of its placeholders."""
        if isinstance(self.run, str):
            return FilledCommand((_SHELL, "-c", _filled(self.run, values)), self.limit_s)
        return FilledCommand(tuple(_filled(part, values) for part in self.run), self.limit_s)

    def __str__(self) -> str:
        return self.run if isinstance(self.run, str) else shlex.join(self.run)


@dataclass(frozen=True, slots=True)
class FilledCommand:
    """A complete command line."""

    argv: tuple[str, ...]
    limit_s: float

    def begin(
        self, folder: Path, log: Path, record_pid: Callable[[int], None] = lambda _pid: None
    ) -> "RunningCommand":
        """Start the command, and append its output to *log*.

        The command does nothing until *record_pid* has been called with its process id.
        """
        try:
            with log.open("ab") as output:
                output.write(f"$ {self}\n".encode(errors="backslashreplace"))
                output.flush()
                output_start = output.tell()
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    (*_START_GATE, *self.argv),
                    cwd=folder,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    # Ctrl-C interrupts only harrow, which then heals.
                    start_new_session=True,
                )
        except OSError as error:
            raise CommandError(f"cannot run {self}: {error.strerror}") from error
        running = RunningCommand(self, process, log, output_start)
        try:
            record_pid(running.pid)
            running.release()
        except BaseException:
            running.end()
            raise
        return running

    def run(self, folder: Path, log: Path) -> None:
        """Run the command to its end; kill it if the wait is interrupted."""
        running = self.begin(folder, log)
        try:
            running.wait()
        finally:
            running.end()

    def __str__(self) -> str:
        return self.argv[2] if self.argv[:2] == (_SHELL, "-c") else shlex.join(self.argv)


class RunningCommand:
    """A started command. When its time limit has passed, its whole session is killed."""

    def __init__(
        self, command: FilledCommand, process: "subprocess.Popen[bytes]", log: Path, output_start: int
    ) -> None:
        self.pid = process.pid
        self._command = command
        self._process = process
        self._log = log
        self._output_start = output_start
        self._until_s = time.monotonic() + command.limit_s
        _started[self.pid] = process

    def release(self) -> None:
        """Let the waiting process run the command."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as stdin:
            stdin.write(b"\n")

    def has_ended(self) -> bool:
        """Return whether the command has succeeded. Raise `CommandError` if it has failed.

        A command that takes too long is killed, and has failed.
        """
        code = self._process.poll()
        if code is None and time.monotonic() < self._until_s:
            return False
        if code is None:
            self.end()
            raise CommandError(
                f"{self._command} took longer than {self._command.limit_s:g} s{self._last_line()}"
            )
        _started.pop(self.pid, None)
        if code:
            raise CommandError(f"{self._command} failed with {code}{self._last_line()}")
        return True

    def wait(self) -> None:
        """Wait until the command has succeeded. It continues if the wait is interrupted."""
        while not self.has_ended():
            time.sleep(_POLL_INTERVAL_S)

    def end(self) -> None:
        """Kill the command unless it has ended."""
        with self._process:
            if self._process.poll() is None:
                os.killpg(self.pid, signal.SIGKILL)
        _started.pop(self.pid, None)

    def _last_line(self) -> str:
        with self._log.open("rb") as log:
            log.seek(self._output_start)
            output = log.read()[-_OUTPUT_EXCERPT_BYTES:].decode("utf-8", "backslashreplace").strip()
        return f": {output.splitlines()[-1]}" if output else ""


def is_running(pid: int) -> bool:
    """Return whether a command is still running, even if an earlier harrow process started it.

    Each command is the leader of a session. An ended process keeps its session until its
    `RunningCommand` asks for the exit code.
    """
    own = _started.get(pid)
    if own is not None:
        return own.poll() is None
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


def _filled(text: str, values: Mapping[str, CommandWord]) -> str:
    def value_of(match: re.Match[str]) -> str:
        return f"{{{match[1]}}}" if match[2] is None else values[match[2]]

    return _PLACEHOLDER.sub(value_of, text)
