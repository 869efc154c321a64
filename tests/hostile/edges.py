"""Invalid files and failing streams for all parameters: ``python -m tests.hostile.edges``.

The parameters are those that the commands declare, so that new commands and options are included.
Each case runs in a fork of a process that has imported harrow. A case succeeds if its command exits
with 0 to 3, explains itself in a few lines, and uses little time and memory.
"""

import argparse
import os
import resource
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import typer

from harrow.cli import exit_code
from harrow.cli.main import app
from harrow.cli.requests import COMMANDS, request_of
from tests.cli.conftest import CAMPAIGNS
from tests.hostile.trial import run_harrow

CPU_MAX_S: Final = 20.0
RSS_MAX_KIB: Final = 1 << 20
WALL_MAX_S: Final = 600.0
LINES_MAX: Final = 12
LINE_MAX: Final = 4_000
"""How long a line of messages may be. A message may not repeat a long value completely."""
_EXPECTED_EXIT_CODES: Final = frozenset(range(4))

SAMPLES: Final = {
    **dict.fromkeys(("CAMPAIGN", "PATH"), "calm.yaml"),
    "RUN": "run",
    **dict.fromkeys(("DIR", "DIR|URI"), "corpus"),
    **dict.fromkeys(("SOURCE", "CLUSTER"), "server.properties"),
    "HISTORY": "run/history.jsonl",
    "COMMAND": "true",
    "FILE": "cluster.yaml",
    "KIND": "faults",
    "NAME": "fresh",
    "RELEASE": "9.9.9",
    "kafka:RELEASE|FILE": "cluster.yaml",
    "N": "0",
}
"""A valid value for each kind of argument, by its placeholder in the help."""
QUICK: Final = {
    "--seeds": "0..2",
    "--max-time": "5s",
    "--jobs": "1",
    "--workers": "1",
    "--runs": "1",
    "--survive": "broker-dies",
}
"""Options that let commands end soon."""


def _fifo(folder: Path) -> str:
    path = folder / "pipe"
    os.mkfifo(path)
    # Threads hold both other ends, as in a shell: one writes nothing, one reads everything.
    for flags in (os.O_WRONLY, os.O_RDONLY):
        threading.Thread(target=_hold_other_end, args=(path, flags), daemon=True).start()
    return str(path)


def _hold_other_end(path: Path, flags: int) -> None:
    """Open a pipe whenever a command has opened its other end, and keep the pipe empty."""
    until_s = time.monotonic() + WALL_MAX_S
    while time.monotonic() < until_s:
        try:
            descriptor = os.open(path, flags | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        except OSError:  # A command has not opened it yet.
            time.sleep(0.01)
            continue
        with suppress(OSError):
            while flags == os.O_RDONLY and time.monotonic() < until_s and path.exists():
                time.sleep(0.01)
                with suppress(BlockingIOError):
                    os.read(descriptor, 65536)
        os.close(descriptor)
        time.sleep(0.01)


def _socket(folder: Path) -> str:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
    return str(folder / "socket")


def _link(folder: Path, to: str) -> str:
    (folder / "link").symlink_to(to)
    return "link"


def _written(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return name


def _named(folder: Path, name: bytes) -> str:
    return _written(folder, os.fsdecode(name), (folder / "calm.yaml").read_bytes())


KINDS: Final[Mapping[str, Callable[[Path], str]]] = {
    "missing": lambda _: "missing",
    "missing-below-a-missing-one": lambda _: "missing/below",
    "empty": lambda _: "",
    "folder": lambda folder: str(folder / "corpus"),
    "below-a-file": lambda _: "calm.yaml/below",
    "file": lambda _: "calm.yaml",
    "empty-file": lambda folder: _written(folder, "nothing-in-it", b""),
    "loop": lambda folder: _link(folder, "link"),
    "dangling": lambda folder: _link(folder, "nothing"),
    "pipe": _fifo,
    "null": lambda _: "/dev/null",
    "endless": lambda _: "/dev/zero",
    "full": lambda _: "/dev/full",
    "socket": _socket,
    "unreadable": lambda _: "/proc/self/mem",
    "read-only": lambda _: "/sys/harrow",
    "no-utf-8": lambda folder: _named(folder, b"caf\xe9.yaml"),
    "two-lines": lambda folder: _named(folder, b"a\n::error::b.yaml"),
    "long-name": lambda _: "x" * 5_000,
    "long-path": lambda _: "x/" * 2_500,
}
"""Invalid values for files, folders and names."""

STREAMS: Final = ("full-disk", "closed-stdout", "full-stdout", "no-reader")
"""Failures of output streams and disks."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A command with an invalid value for a parameter, or without one and with a failing stream."""

    command: str
    parameter: str | None
    kind: str
    action: str | None = None
    bare: bool = False
    """Whether optional arguments are omitted."""


def parameters(command: str) -> Sequence[Any]:
    """Return the parameters of a command that take a value."""
    group: Any = typer.main.get_command(app)
    return [
        parameter for parameter in group.commands[command].params if not getattr(parameter, "is_flag", False)
    ]


def actions(command: str) -> tuple[str | None, ...]:
    """Return the actions of a command, or None if it has none."""
    hint = typing.get_type_hints(request_of(command)).get("action")
    return typing.get_args(hint) or (None,)


def edges() -> Iterator[Edge]:
    """Yield all cases."""
    for command in COMMANDS:
        for action in actions(command):
            for kind in STREAMS:
                yield Edge(command, None, kind, action)
            command_parameters = parameters(command)
            has_optional = any(
                parameter.param_type_name == "argument" and not parameter.required
                for parameter in command_parameters
            )
            for parameter in command_parameters:
                if parameter.name != "action":
                    for kind, bare in product(KINDS, {False, has_optional}):
                        yield Edge(command, parameter.name, kind, action, bare)


def words_of(edge: Edge, folder: Path) -> list[str]:
    """Return the command line of a case."""
    options: list[str] = []
    arguments: list[str] = []
    for parameter in parameters(edge.command):
        is_argument = parameter.param_type_name == "argument"
        if parameter.name == edge.parameter:
            value = KINDS[edge.kind](folder)
        elif parameter.name == "action":
            value = str(edge.action)
        elif is_argument and not (edge.bare and not parameter.required):
            value = SAMPLES[str(parameter.metavar).strip("[].")]
        elif parameter.required:
            value = SAMPLES[parameter.metavar]
        elif parameter.opts[0] in QUICK:
            value = QUICK[parameter.opts[0]]
        else:
            continue
        if is_argument:
            arguments.append(value)
        else:
            options.append(f"{parameter.opts[0]}={value}")
    return [edge.command, *options, "--", *arguments]


@dataclass(frozen=True, slots=True)
class EdgeOutcome:
    """The outcome of a case, with its faults."""

    edge: Edge
    words: Sequence[str]
    code: int
    stdout: str
    stderr: str
    faults: Sequence[str]


def run_edge(edge: Edge, template: Path) -> EdgeOutcome:
    """Run a case in a copy of the *template*, and judge its outcome."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        _copy(template, folder)
        words = words_of(edge, folder)
        with ExitStack() as ends:
            out, err = ends.enter_context(_Pipe()), ends.enter_context(_Pipe())
            pid = os.fork()
            if not pid:
                _become(words, folder, edge, out, err)
            out.close_writer()
            err.close_writer()
            if edge.kind == "no-reader":
                out.close_reader()
            is_late = not _read(pid, out, err)
            _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        stdout, stderr = (pipe.data.decode("utf-8", "surrogateescape") for pipe in (out, err))
        faults = list(_faults(edge, code, stdout, stderr))
        if is_late:
            faults.append("did not end")
        if usage.ru_utime + usage.ru_stime > CPU_MAX_S or usage.ru_maxrss > RSS_MAX_KIB:
            faults.append(f"took {usage.ru_utime + usage.ru_stime:.1f} CPU s, {usage.ru_maxrss >> 10} MiB")
        return EdgeOutcome(edge, words, code, stdout, stderr, faults)


def _faults(edge: Edge, code: int, stdout: str, stderr: str) -> Iterator[str]:
    # All samples are valid, so a failing stream must not look like a broken promise.
    codes_with_failing_streams = (_EXPECTED_EXIT_CODES - {exit_code.BROKEN}) | (
        {exit_code.BROKEN_PIPE} if edge.kind == "no-reader" else set()
    )
    if code not in (_EXPECTED_EXIT_CODES if edge.parameter else codes_with_failing_streams):
        yield f"exit code {code}"
    both = stdout + stderr
    if any("\udc80" <= character <= "\udcff" for character in both):
        yield "bytes that are not UTF-8"
    if "Traceback" in both or "internal error" in both:
        yield "a traceback"
    if any(line.startswith("::") for line in both.splitlines()):
        yield "a command to CI"
    if any(len(line) > LINE_MAX for line in stderr.splitlines()):
        yield "a line that is too long"
    if code == 2:
        # `validate` prints problems as its result.
        lines = (stderr or stdout).splitlines()
        if not lines:
            yield "no message"
        if len(lines) > LINES_MAX:
            yield f"{len(lines)} lines"


class _Pipe:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.data = b""

    def __enter__(self) -> typing.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_writer()
        self.close_reader()

    def close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def close_reader(self) -> None:
        if self.reader >= 0:
            os.close(self.reader)
            self.reader = -1


def _read(pid: int, *pipes: _Pipe) -> bool:
    """Read pipes to their ends, and return whether they ended in time.

    If they did not, kill the process.
    """
    until_s = time.monotonic() + WALL_MAX_S
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            if pipe.reader >= 0:
                selector.register(pipe.reader, selectors.EVENT_READ, pipe)
        while selector.get_map():
            if time.monotonic() > until_s or _cpu_s(pid) > 2 * CPU_MAX_S:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                return False
            for key, _ in selector.select(1):
                data = os.read(key.fd, 65536)
                key.data.data += data
                if not data:
                    selector.unregister(key.fd)
    return True


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2]
    except OSError:
        return 0.0
    return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")


def _become(words: Sequence[str], folder: Path, edge: Edge, out: "_Pipe", err: "_Pipe") -> None:
    """Become the command in a forked process, and never return."""
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, pipe in enumerate((out, err), 1):
            os.dup2(pipe.writer, number)
            pipe.close_writer()
            pipe.close_reader()
        if edge.kind == "full-stdout":
            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        if edge.kind == "closed-stdout":
            os.close(1)
        if edge.kind == "full-disk":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        # The command finds no Maven, no Java and no files of the user.
        environment = {
            "PATH": "",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        run_harrow(words, folder, environment, has_stdout=edge.kind != "closed-stdout")
    finally:
        os._exit(1)


def template_in(folder: Path) -> Path:
    """Write the files of the samples: campaigns, a corpus, a recorded run, a silent cluster."""
    from tests.written_runs import written_run

    (folder / "corpus").mkdir(parents=True)
    (folder / "server.properties").write_text("broker.id=1\n", encoding="utf-8")
    for path in (folder / "calm.yaml", folder / "corpus" / "calm.yaml"):
        path.write_text(f"name: calm{CAMPAIGNS['calm']}", encoding="utf-8")
    (folder / "cluster.yaml").write_text("bootstrap: 127.0.0.1:1\n", encoding="utf-8")
    written_run(folder / "results", folder / "calm.yaml").rename(folder / "run")
    return folder


def _copy(template: Path, folder: Path) -> None:
    for path in template.rglob("*"):
        target = folder / path.relative_to(template)
        if path.is_symlink():
            continue
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(path.read_bytes())


def main() -> int:
    """Run cases, print failed ones, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.edges", description=__doc__)
    parser.add_argument("--part", default="0/1", help="a part of all cases, such as 3/20")
    parser.add_argument("--commands", nargs="*", default=COMMANDS, help="the commands to run")
    parser.add_argument("--verbose", action="store_true", help="print each case with its messages")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    failed = number = 0
    with tempfile.TemporaryDirectory(prefix="edges-") as place:
        template = template_in(Path(place) / "template")
        for number, edge in enumerate(edges()):
            if number % parts != part or edge.command not in options.commands:
                continue
            outcome = run_edge(edge, template)
            failed += bool(outcome.faults)
            if outcome.faults or options.verbose:
                messages = (
                    outcome.stderr
                    if len(outcome.stderr) < 1_000
                    else f"{outcome.stderr[:300]} ... {outcome.stderr[-600:]}"
                )
                sys.stdout.write(
                    f"{number} {edge}: {outcome.code} {', '.join(outcome.faults)}\n{messages!a}\n"
                )
                sys.stdout.flush()
    sys.stdout.write(f"{number + 1} cases in {parts} parts, part {part}: {failed} failed\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
