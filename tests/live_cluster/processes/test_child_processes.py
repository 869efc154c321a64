"""Processes can be started, paused and killed, and none survives the end of harrow."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from harrow.live_cluster.processes.child_processes import ChildProcess, ChildProcesses, SupervisorError
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

SLEEPER = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(3600)"]
STUBBORN = [
    *(sys.executable, "-c"),
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(3600)",
]


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def children() -> Iterator[ChildProcesses]:
    with ChildProcesses() as processes:
        yield processes


def start_ready(children: ChildProcesses, command: list[str], folder: Path) -> ChildProcess:
    log = folder / "log"
    child = children.start(command, folder=folder, log=log)
    wait_until(lambda: log.exists() and "ready" in log.read_text())
    return child


def test_a_process_has_a_log_and_an_exit_code(children: ChildProcesses, tmp_path: Path) -> None:
    script = (
        "import os, sys; print(os.getcwd(), os.environ['WHO']); print('bad', file=sys.stderr); sys.exit(3)"
    )
    log = tmp_path / "log"
    child = children.start(
        [sys.executable, "-c", script], folder=tmp_path, log=log, environment={"WHO": "me"}
    )
    assert child.wait(PATIENCE_S)
    assert (child.code, child.is_running) == (3, False)
    assert sorted(log.read_text().splitlines()) == sorted([f"{tmp_path} me", "bad"])


def test_a_process_may_ignore_stop_but_not_kill(children: ChildProcesses, tmp_path: Path) -> None:
    obedient = start_ready(children, SLEEPER, tmp_path)
    obedient.terminate()
    assert obedient.wait(PATIENCE_S)
    assert obedient.code == -signal.SIGTERM
    (tmp_path / "log").unlink()
    stubborn = start_ready(children, STUBBORN, tmp_path)
    stubborn.terminate()
    assert not stubborn.wait(0.2)
    stubborn.pause()
    stubborn.kill()
    assert stubborn.code == -signal.SIGKILL
    assert not is_alive(stubborn.pid)
    # Signals to an ended process are no errors.
    for signalled in (stubborn.kill, stubborn.terminate, stubborn.pause, stubborn.resume):
        signalled()


def test_a_paused_process_does_nothing(children: ChildProcesses, tmp_path: Path) -> None:
    count = "import itertools, time\nfor n in itertools.count(): print('ready', flush=True); time.sleep(0.01)"
    child = start_ready(children, [sys.executable, "-c", count], tmp_path)
    child.pause()
    wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    size = (tmp_path / "log").stat().st_size
    time.sleep(0.1)
    assert (tmp_path / "log").stat().st_size == size
    child.resume()
    wait_until(lambda: (tmp_path / "log").stat().st_size > size)


def test_the_end_of_a_process_is_reported(tmp_path: Path) -> None:
    ended: list[int] = []
    with ChildProcesses(lambda child: ended.append(child.pid)) as children:
        pids = [
            children.start([sys.executable, "-c", ""], folder=tmp_path, log=tmp_path / "log").pid
            for _ in range(20)
        ]
        wait_until(lambda: len(ended) == len(pids))
    assert sorted(ended) == sorted(pids)


def test_a_failed_start_names_the_program(children: ChildProcesses, tmp_path: Path) -> None:
    with pytest.raises(SupervisorError, match=r"cannot start /nowhere/java: .*No such file"):
        children.start(["/nowhere/java"], folder=tmp_path, log=tmp_path / "log")
    with pytest.raises(SupervisorError, match="cannot start"):
        children.start(SLEEPER, folder=tmp_path / "none", log=tmp_path / "log")


def test_the_end_of_the_context_kills_processes_and_their_children(tmp_path: Path) -> None:
    parent = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen({SLEEPER!r}, stdout=subprocess.DEVNULL)\n"
        "print('ready', child.pid, flush=True)\ntime.sleep(3600)"
    )
    with ChildProcesses() as children:
        child = start_ready(children, [sys.executable, "-c", parent], tmp_path)
        paused = start_ready(children, STUBBORN, tmp_path)
        paused.pause()
        grandchild = int((tmp_path / "log").read_text().split("ready ")[1].split()[0])
        assert is_alive(grandchild)
    assert child.wait(PATIENCE_S)
    wait_until(lambda: not any(map(is_alive, (child.pid, paused.pid, grandchild))))
    with pytest.raises(SupervisorError, match="has ended"):
        children.start(SLEEPER, folder=tmp_path, log=tmp_path / "log")


HARROW = f"""
import os, sys, time
from pathlib import Path
from harrow.live_cluster.processes.child_processes import ChildProcesses
folder = Path(sys.argv[1])
with ChildProcesses() as children:
    pids = [children.start({STUBBORN!r}, folder=folder, log=folder / "log").pid for _ in range(3)]
    print(children._supervisor.pid, *pids, flush=True)
    time.sleep(3600)
"""


ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@pytest.mark.parametrize(
    ("whom", "number"), [*product(("harrow", "session"), ENDS), ("supervisor", signal.SIGKILL)]
)
def test_a_killed_harrow_leaves_no_process(whom: str, number: int, tmp_path: Path) -> None:
    harrow = subprocess.Popen(
        [sys.executable, "-c", HARROW, str(tmp_path)],
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    assert harrow.stdout is not None
    supervisor, *pids = map(int, harrow.stdout.readline().split())
    wait_until(lambda: (tmp_path / "log").read_text().count("ready") == len(pids))
    if whom == "session":
        os.killpg(harrow.pid, number)
    else:
        os.kill(supervisor if whom == "supervisor" else harrow.pid, number)
    wait_until(lambda: not any(map(is_alive, (*pids, supervisor))))
    harrow.kill()
    harrow.communicate()
