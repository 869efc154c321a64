"""Runs a command in its own process, and checks its output, its files and its cost."""

import fcntl
import os
import re
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from tests.hostile.texts import BROKEN_OUT

CPU_MAX_S: Final = 20.0
RSS_MAX_KIB: Final = 1 << 20
_WALL_MAX_S: Final = 1_200
_POLL_S: Final = 0.01
_EXPECTED_EXIT_CODES: Final = frozenset(range(4))
_ANNOTATION: Final = re.compile(r"::(error|warning|notice) (file|title)=")
_COMMAND: Final = re.compile(r"^[^\S\n]*::.*", re.MULTILINE)
_BROKEN_OUT: Final = re.compile(rf"^[^\S\n]*(?:::|:\\x3a{BROKEN_OUT[2:]}).*", re.MULTILINE)
"""A command to GitHub, also one that only `harrow.cli.output_stream` has kept from the runner."""
_LOG_COMMAND: Final = re.compile(r"##\w*\[")
"""A command to GitHub, Azure or TeamCity anywhere in a line."""
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_TERMINAL_OWN: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""Colours and cursor movements, which only harrow itself may print."""
_FROM_DATA: Final = ("\x1b[31mred", "\x1b[2J", "\x1b]0;title")
"""Terminal commands in the hostile texts."""
_EXCERPT: Final = 120
_STREAMS: Final = ("stdout", "stderr")
_INPUTS: Final = frozenset({".jsonl", ".parquet", ".gz", ".edn", ".lock", ".yaml"})
"""Suffixes of files that may have hostile texts, because programs read them or users wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a command, with its faults."""

    words: tuple[str, ...]
    code: int
    cpu_s: float
    rss_kib: int
    faults: tuple[str, ...]

    @property
    def is_costly(self) -> bool:
        return self.cpu_s > CPU_MAX_S or self.rss_kib > RSS_MAX_KIB


def run_in_fork(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], *, on_terminal: bool = False
) -> Outcome:
    """Run a command in a fork of this process, perhaps on a pseudo-terminal."""
    before = {path: path.stat().st_mtime_ns for path in _files(folder)}
    streams = folder.parent / f"{folder.name}.streams"
    streams.mkdir(exist_ok=True)
    our_end, command_end = _terminal() if on_terminal else (-1, -1)
    pid = os.fork()
    if not pid:
        _become(words, folder, streams, environment, command_end)
    shown = bytearray()
    status, usage = _wait(pid, our_end, shown)
    if on_terminal:
        os.close(command_end)
        _drain(our_end, shown)
        os.close(our_end)
    cpu_s = usage.ru_utime + usage.ru_stime
    code = os.waitstatus_to_exitcode(status)
    is_github = "github" in words
    # If lines are wrapped, the middle of a line may start a new one.
    command = _COMMAND if "COLUMNS" in environment else _BROKEN_OUT
    faults = [] if code in _EXPECTED_EXIT_CODES else [f"exit code {code}"]
    for name in () if on_terminal else _STREAMS:
        printed = (streams / name).read_bytes()
        faults += (
            f"{name}: {fault}"
            for fault in _faults(printed, command, allows_commands=is_github and name == "stdout")
        )
    faults += (f"terminal: {fault}" for fault in _terminal_faults(shown))
    for path in _files(folder):
        is_new = before.get(path) != path.stat().st_mtime_ns
        if is_new and path.suffix not in _INPUTS:
            faults += (
                f"{path.name}: {fault}"
                for fault in _faults(path.read_bytes(), command, allows_commands=is_github)
            )
    if (folder / "planted").exists():
        faults.append("a command from data was run")
    return Outcome(words=tuple(words), code=code, cpu_s=cpu_s, rss_kib=usage.ru_maxrss, faults=tuple(faults))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def _faults(data: bytes, commands: re.Pattern[str], *, allows_commands: bool) -> Iterator[str]:
    try:
        shown = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"no UTF-8: {error.reason}"
        return
    if control := _CONTROL.search(shown):
        around = shown[max(0, control.start() - _EXCERPT) : control.end() + _EXCERPT]
        yield f"raw {control[0]!a} in {around!a}"
    if command := _LOG_COMMAND.search(shown):
        yield f"a command: {shown[max(0, command.start() - _EXCERPT) : command.end() + _EXCERPT]!a}"
    for command in commands.finditer(shown):
        if not (allows_commands and _ANNOTATION.match(command[0])):
            yield f"a command: {command[0][:_EXCERPT]!a} after {shown[max(0, command.start() - _EXCERPT) : command.start()]!a}"
            break
    if "Traceback (most recent call last)" in shown or "internal error" in shown:
        yield f"traceback: {shown[-600:]!a}"


def _terminal_faults(data: bytearray) -> Iterator[str]:
    """Yield faults in terminal output. Data may not move the cursor, for example."""
    shown = data.decode("utf-8", "replace")
    for obeyed in _FROM_DATA:
        if obeyed in shown:
            yield f"raw {obeyed!a}"
    # Commands to CI systems do not matter on a terminal, where lines may start anywhere.
    yield from _faults(_TERMINAL_OWN.sub("", shown).encode(), re.compile(r"(?!)"), allows_commands=True)


def _terminal() -> tuple[int, int]:
    """Return the two ends of a pseudo-terminal of 24 lines and 80 columns."""
    our_end, command_end = os.openpty()
    fcntl.ioctl(command_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.set_blocking(our_end, False)
    return our_end, command_end


def _drain(terminal: int, shown: bytearray) -> None:
    with suppress(OSError):  # No more data at the moment, or a closed end.
        while piece := os.read(terminal, 65_536):
            shown += piece


def _become(
    words: Sequence[str], folder: Path, streams: Path, environment: Mapping[str, str], terminal: int
) -> None:
    """Become the command in a forked process, and never return."""
    try:
        os.setsid()
        if terminal >= 0:
            for number in range(3):
                os.dup2(terminal, number)
            run_harrow(words, folder, environment)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in enumerate(_STREAMS, 1):
            os.dup2(os.open(streams / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        run_harrow(words, folder, environment)
    finally:
        os._exit(1)


def run_harrow(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], *, has_stdout: bool = True
) -> NoReturn:
    """Run a command in this forked process with prepared descriptors, and exit with its code."""
    code = 1
    try:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False) if has_stdout else None  # noqa: SIM115 - as long as the process lives
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115 - the same
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["harrow", *words]
        from harrow.cli.__main__ import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:  # noqa: BLE001 - Python itself would print it
        import traceback

        traceback.print_exc()
    finally:
        with suppress(OSError, AttributeError):
            sys.stdout.flush()
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def _wait(pid: int, terminal: int, shown: bytearray) -> tuple[int, "os.struct_rusage"]:  # type: ignore[name-defined]
    until_s = time.monotonic() + _WALL_MAX_S
    while True:
        ended_pid, status, usage = os.wait4(pid, os.WNOHANG)
        if terminal >= 0:
            _drain(terminal, shown)
        if ended_pid:
            return status, usage
        if time.monotonic() > until_s or _cpu_s(pid) > 2 * CPU_MAX_S:
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            return status, usage
        time.sleep(_POLL_S)


def _cpu_s(pid: int) -> float:
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
