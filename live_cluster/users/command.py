"""Commands of the user's that do something to a broker, and what stands in them for it."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.users.command_word import CommandWord

_PLACEHOLDER: Final = re.compile(r"(?<!\$)\{\{([A-Za-z_]\w*)\}\}|(?<!\$)\{([A-Za-z_]\w*)\}", re.ASCII)
"""``{broker}``; ``{{broker}}`` is the text ``{broker}``, and ``${BROKER}`` is for the shell."""
_SHELL: Final = "/bin/sh"
_START_GATE: Final = (_SHELL, "-c", 'read -r _ && exec "$@" </dev/null', _SHELL)
"""Runs what follows once a line comes in, and never where none does: harrow may be killed before it has written down what runs."""
_LOOK_S: Final = 0.02
_OUTPUT_EXCERPT_BYTES: Final = 500


_own: Final[dict[int, "subprocess.Popen[bytes]"]] = {}
"""The processes of commands that this harrow has started, by number, until it knows how they have ended."""


class CommandName(StrEnum):
    """What a command does to a broker, or to what it gets from another one, in the words of a cluster's file."""

    KILL = "kill"
    STOP = "stop"
    PAUSE = "pause"
    CUT = "cut"
    START = "start"
    RESUME = "resume"
    RESTORE = "restore"


class CommandError(LiveError):
    """A command of the user's has failed, or took too long; the message has what it said last."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, or a line for the shell (``/bin/sh -c``), with placeholders; and how long it may take."""

    run: tuple[str, ...] | str
    limit_s: float

    def placeholders(self) -> Iterator[str]:
        """Yield the names of the placeholders."""
        for part in (self.run,) if isinstance(self.run, str) else self.run:
            for found in _PLACEHOLDER.finditer(part):
                if found[2] is not None:
                    yield found[2]

    def filled(self, values: Mapping[str, CommandWord]) -> "FilledCommand":
        """Return the command for one broker."""
        if isinstance(self.run, str):
            return FilledCommand((_SHELL, "-c", _filled(self.run, values)), self.limit_s)
        return FilledCommand(tuple(_filled(part, values) for part in self.run), self.limit_s)

    def __str__(self) -> str:
        return self.run if isinstance(self.run, str) else shlex.join(self.run)


@dataclass(frozen=True, slots=True)
class FilledCommand:
    """A command line, as the system takes it, and how long it may take."""

    argv: tuple[str, ...]
    limit_s: float

    def begin(
        self, folder: Path, log: Path, note: Callable[[int], None] = lambda _pid: None
    ) -> "RunningCommand":
        """Start it in a folder; what it prints goes to the end of *log*. It does nothing before *note* has taken its process's number.

        Raises:
            CommandError: it cannot be started.

        """
        try:
            with log.open("ab") as output:
                output.write(f"$ {self}\n".encode(errors="backslashreplace"))
                output.flush()
                begin = output.tell()
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    (*_START_GATE, *self.argv),
                    cwd=folder,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    # Ctrl-C is for harrow, which then heals.
                    start_new_session=True,
                )
        except OSError as error:
            raise CommandError(f"cannot run {self}: {error.strerror}") from error
        running = RunningCommand(self, process, log, begin)
        try:
            note(running.pid)
            running.go()
        except BaseException:
            running.end()
            raise
        return running

    def run(self, folder: Path, log: Path) -> None:
        """Run it in a folder, and wait until it has done what it should; it is not left at work if that is broken off.

        Raises:
            CommandError: it cannot be started, fails, or takes too long.

        """
        running = self.begin(folder, log)
        try:
            running.wait()
        finally:
            running.end()

    def __str__(self) -> str:
        return self.argv[2] if self.argv[:2] == (_SHELL, "-c") else shlex.join(self.argv)


class RunningCommand:
    """A command that was started. One that takes too long is killed, with what it has started in its session."""

    def __init__(
        self, command: FilledCommand, process: "subprocess.Popen[bytes]", log: Path, begin: int
    ) -> None:
        self.pid = process.pid
        self._command = command
        self._process = process
        self._log = log
        self._begin = begin
        self._until_s = time.monotonic() + command.limit_s
        _own[self.pid] = process

    def go(self) -> None:
        """Let it do what it should."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as stdin:
            stdin.write(b"\n")

    def has_ended(self) -> bool:
        """Return whether it has done what it should.

        Raises:
            CommandError: it has failed, or takes too long.

        """
        code = self._process.poll()
        if code is None and time.monotonic() < self._until_s:
            return False
        if code is None:
            self.end()
            raise CommandError(
                f"{self._command} took longer than {self._command.limit_s:g} s{self._last_line()}"
            )
        _own.pop(self.pid, None)
        if code:
            raise CommandError(f"{self._command} failed with {code}{self._last_line()}")
        return True

    def wait(self) -> None:
        """Wait until it has done what it should. If that is broken off the command goes on.

        Raises:
            CommandError: it has failed, or takes too long.

        """
        while not self.has_ended():
            time.sleep(_LOOK_S)

    def end(self) -> None:
        """Kill it, unless it has ended."""
        with self._process:
            if self._process.poll() is None:
                os.killpg(self.pid, signal.SIGKILL)
        _own.pop(self.pid, None)

    def _last_line(self) -> str:
        with self._log.open("rb") as log:
            log.seek(self._begin)
            output = log.read()[-_OUTPUT_EXCERPT_BYTES:].decode("utf-8", "backslashreplace").strip()
        return f": {output.splitlines()[-1]}" if output else ""


def is_running(pid: int) -> bool:
    """Return whether the process of a command is at work, one of this harrow or of one that was killed.

    Each has a session of its own. One that has ended keeps that until its exit code is asked for, which is up to its own `RunningCommand`.
    """
    own = _own.get(pid)
    if own is not None:
        return own.poll() is None
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


def _filled(text: str, values: Mapping[str, CommandWord]) -> str:
    def value_of(place: re.Match[str]) -> str:
        return f"{{{place[1]}}}" if place[2] is None else values[place[2]]

    return _PLACEHOLDER.sub(value_of, text)
