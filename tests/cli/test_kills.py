"""A kill of any process of a command leaves no process, no partial file and no wrong exit code.

A moment is a number of file operations and messages of the command, so it does not depend on the
speed of the machine. The number of the test decides the victim; `make soak` draws thirty.
"""

import json
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
import yaml

from tests.cli.test_failing_streams import LOSING
from tests.conftest import kill_after_test
from tests.marked_processes import mark_of, marked_processes
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"
)

HELD_LOCK: Final = """
name: held
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 5s, producers: [{name: p, rate: 4/s}]}
faults:
  - rate: 30/m
    do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}
"""

PARENT: Final = "parent"
FORK_SERVER: Final = "multiprocessing.forkserver"
WORKER: Final = "worker"
JAVA: Final = "java"
SPARK_WORKER: Final = "pyspark"
SIGNALS: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

KILLING: Final = f"""
import os, sys
from pathlib import Path

tally, moment, victim, number = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
del sys.argv[1:5]
sys.argv[0] = "harrow"
events_seen, is_busy, own = 0, False, os.getpid()

def processes():
    commands_by_pid = {{}}
    for place in os.listdir("/proc"):
        if place.isdigit():
            try:
                with open(f"/proc/{{place}}/stat", "rb") as stat, open(f"/proc/{{place}}/cmdline", "rb") as command:
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
                    commands_by_pid[int(place)] = parent, command.read().decode(errors="replace")
            except OSError:
                pass
    return commands_by_pid

def victims():
    if victim == {PARENT!r}:
        return [own]
    commands_by_pid = processes()
    below = {{own}}
    while more := {{pid for pid, (parent, _) in commands_by_pid.items() if parent in below}} - below:
        below |= more
    servers = [pid for pid in below if {FORK_SERVER!r} in commands_by_pid.get(pid, (0, ""))[1] and commands_by_pid[pid][0] == own]
    if victim == {WORKER!r}:
        return [pid for pid in below if pid in commands_by_pid and commands_by_pid[pid][0] in servers]
    if victim == {FORK_SERVER!r}:
        return servers
    commands = {{pid: commands_by_pid[pid][1] for pid in below - {{own}} if pid in commands_by_pid}}
    is_java = {{pid: command.partition(chr(0))[0].endswith("java") for pid, command in commands.items()}}
    return [pid for pid, command in commands.items() if is_java[pid] == (victim == {JAVA!r}) and {SPARK_WORKER!r} in command]

def counts(event, args):
    if event == "open":
        return isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    return event in ("os.rename", "os.remove", "os.mkdir", "os.link", "os.symlink", "pickle.find_class", "socket.connect")

def hook(event, args):
    global events_seen, is_busy, moment
    if is_busy or not counts(event, args):
        return
    events_seen += 1
    if not moment:
        return
    if events_seen >= moment:
        is_busy = True
        try:
            for pid in victims()[:1]:
                os.kill(pid, number)
                moment = 0
        except ProcessLookupError:
            pass
        finally:
            is_busy = False

if __name__ == "__main__":
    sys.addaudithook(hook)
    from harrow.cli.main import main
    try:
        main()
    finally:
        is_busy = True
        tally.write_text(str(events_seen))
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and the kinds of processes that it starts."""

    line: str
    victims: tuple[str, ...] = ()

    @property
    def can_resume(self) -> bool:
        return self.line.startswith("sweep")


SWEPT: Final = 30
SWEEP: Final = f"sweep held.yaml --seeds 0..{SWEPT} --out swept --workers 2 --quiet"
COMMANDS: Final = (
    Command(f"{SWEEP} --engine process", (WORKER, FORK_SERVER)),
    Command("run held.yaml --seeds 0..30 -j 2 --quiet", (WORKER, FORK_SERVER)),
    Command("regress corpus --add losing.yaml --seed 0"),
    Command("shrink losing.yaml --seed 0 -o small.yaml --quiet"),
)
ON_SPARK: Final = Command(f"{SWEEP} --engine spark", (JAVA, SPARK_WORKER))


def begin(folder: Path, mark: str, command: str, moment: int, victim: str, number: int) -> list[str]:
    for name, text in (("held", HELD_LOCK), ("losing", LOSING)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return [
        sys.executable,
        "-c",
        KILLING,
        f"{folder}/{mark}",
        str(moment),
        victim,
        str(number),
        *command.split(),
    ]


def environment(folder: Path) -> dict[str, str]:
    return {
        **plain_environment(),
        "PYTHONPATH": PYTHONPATH,
        "PYTHONDONTWRITEBYTECODE": "1",
        **mark_of(folder),
    }


@cache
def run_undisturbed(command: Command) -> tuple[int, int]:
    """Return the exit code of an undisturbed command and its number of moments."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        ended = subprocess.run(
            begin(folder, ".tally", command.line, 0, PARENT, 0),
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.returncode, int((folder / ".tally").read_text(encoding="utf-8"))


def assert_complete_files(folder: Path) -> None:
    """Read every file under its final name."""
    for path in folder.rglob("*"):
        if any(part.startswith(".") for part in path.relative_to(folder).parts) or not path.is_file():
            continue
        if path.suffix == ".parquet":
            pq.read_table(path, partitioning=None)
        elif path.suffix == ".json":
            assert json.loads(path.read_text(encoding="utf-8")), path
        elif path.suffix == ".yaml":
            text = path.read_text(encoding="utf-8")
            assert text.endswith("\n"), path
            assert yaml.safe_load(text), path
        elif path.suffix == ".jsonl" and path.name != "repeated.jsonl":
            assert all(map(json.loads, path.read_text(encoding="utf-8").splitlines())), path


def permitted_codes(code: int, victim: str, number: signal.Signals) -> set[int]:
    """Return the permitted exit codes of a command."""
    if victim == PARENT:
        return {130, code} if number == signal.SIGINT else {-number}
    if victim == JAVA:
        return {2, 3}  # Spark does not start or has ended, and harrow reports it.
    return {code}


def kill_one(processes: ExitStack, folder: Path, command: Command, seed: int) -> None:
    chance = random.Random(seed)
    code, moments = run_undisturbed(command)
    victim = chance.choice((PARENT, *command.victims))
    number = chance.choice(SIGNALS if victim == PARENT else SIGNALS[:2])
    moment = chance.randint(1, moments)
    attack = f"{command.line}: {victim} gets {number.name} at {moment} of {moments}"
    process = kill_after_test(
        processes,
        subprocess.Popen(
            begin(folder, ".tally", command.line, moment, victim, number),
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ),
    )
    _, messages = process.communicate(timeout=PATIENCE_S)
    # A kill at a moment after the victim's end has no effect.
    assert process.returncode in permitted_codes(code, victim, number) | (
        {code} if victim != PARENT else set()
    ), f"{attack}\n{messages}"
    assert "Traceback" not in messages, f"{attack}\n{messages}"
    end_s = time.monotonic() + PATIENCE_S
    while marked_processes(folder) and time.monotonic() < end_s:
        time.sleep(0.1)
    assert marked_processes(folder) == [], attack
    assert_complete_files(folder)
    if command.can_resume:
        again = subprocess.run(
            [sys.executable, "-m", "harrow", *command.line.split(), "--resume", "--engine", "process"],
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert again.returncode == code, f"{attack}\n{again.stderr}"
        seeds = [
            row["seed"]
            for part in folder.glob("swept/runs/*/*.parquet")
            for row in pq.ParquetFile(part).read().to_pylist()
        ]
        assert sorted(seeds) == list(range(SWEPT)), attack


@pytest.mark.soak(size=1, rounds_in_test=4, rounds_in_soak=30)
def test_a_kill_leaves_no_process_and_no_partial_file(
    processes: ExitStack, tmp_path: Path, numbers: range
) -> None:
    kill_one(processes, tmp_path, COMMANDS[numbers.start % len(COMMANDS)], numbers.start)


@pytest.mark.soak(size=1, rounds_in_test=0, rounds_in_soak=6)
def test_a_kill_of_a_sweep_on_spark_leaves_no_process_and_no_partial_file(
    processes: ExitStack, tmp_path: Path, numbers: range
) -> None:
    from harrow.campaigns.sweep.spark_availability import why_spark_cannot_start

    if (missing := why_spark_cannot_start()) is not None:
        pytest.skip(missing)
    kill_one(processes, tmp_path, ON_SPARK, numbers.start)
