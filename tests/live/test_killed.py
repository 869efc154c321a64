"""If harrow or its processes are killed in the middle of a run, they leave nothing behind.

``HARROW_LIVE_KILLS`` is the number of kills. They take victims and stages of the run in turn.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from harrow.cli import exit_code
from harrow.live_cluster.local.started_brokers import StartedBrokers
from tests.live.conftest import KILLS, Wait
from tests.marked_processes import mark_of, marked_processes
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

LONG = """
name: long
cluster: {brokers: 3, topics: [{name: t, partitions: 2, replication_factor: 3}]}
workload: {duration: 10m, producers: [{rate: 20/s}], consumers: [{}]}
faults:
  - {every: 2s, do: {broker_pause: {broker: any, duration: 1s}}}
  - {every: 3s, do: {broker_isolation: {broker: any, duration: 2s}}}
"""


def processes_in(folder: Path) -> list[int]:
    """Return the processes with their working folder below a folder."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink().is_relative_to(folder):
                pids.append(int(entry.name))
        except OSError:  # It has ended, or belongs to another user.
            continue
    return pids


def is_paused(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] == "T"


Stage = Callable[[Path], bool]
"""Returns whether the run with its results below a folder has reached a stage."""


def has_clients(results: Path) -> bool:
    """Return whether the clients have started, which are the last processes of a run."""
    return len(list(results.glob("long/*/cluster/clients/*"))) == 2 and bool(processes_in(results))


STAGES: Final[tuple[Stage, ...]] = (
    lambda results: bool(processes_in(results)),
    lambda results: len(list(results.glob("long/*/cluster/broker-*/log"))) == 3,
    has_clients,
    lambda results: has_clients(results) and any(map(is_paused, processes_in(results))),
)


def started(
    brokers: StartedBrokers,
    folder: Path,
    *more: str,
    seed: int = 0,
    command: str = "run",
    temporary: Path | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a run of minutes in the background, with its results in ``results`` of the folder."""
    file = folder / "long.yaml"
    file.write_text(LONG.replace("name: long", f'name: long\nkafka: "{brokers.release.model_release}"'))
    target = f"kafka:{brokers.release.name}-{brokers.metadata}"
    seeds = ("--seed", str(seed)) if command == "run" else ()
    options = ("--target", target, *seeds, "--results", str(folder / "results"), *more)
    place = {} if temporary is None else {"TMPDIR": str(temporary)}
    with (folder / "messages").open("wb") as messages:
        return subprocess.Popen(
            [sys.executable, "-m", "harrow", command, file, *options],
            # A shell also lets commands in the background ignore SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # noqa: PLW1509 - no threads here
            # Child processes inherit this working folder, by which they are found.
            cwd=folder,
            env={**os.environ, **plain_environment(), "PYTHONPATH": PYTHONPATH, **mark_of(folder), **place},
            stdout=subprocess.DEVNULL,
            stderr=messages,
        )


PARENT: Final = "harrow"
BROKER: Final = "broker"
CONTROL_PLANE: Final = "control plane"
CLIENT: Final = "client"
SUPERVISOR: Final = "supervisor"
VICTIMS: Final = (
    (PARENT, signal.SIGKILL),
    (BROKER, signal.SIGKILL),
    (PARENT, signal.SIGTERM),
    (CONTROL_PLANE, signal.SIGKILL),
    (CLIENT, signal.SIGKILL),
    (PARENT, signal.SIGINT),
    (SUPERVISOR, signal.SIGKILL),
)
COMMANDS: Final = ("run", "conform")


def victims(name: str, harrow: int, folder: Path) -> list[int]:
    """Return the processes with a role in a run below a folder.

    The proxies are threads of harrow itself.
    """
    if name == PARENT:
        return [harrow]
    if name == SUPERVISOR:
        return [pid for pid in processes_in(folder) if "supervisor.py" in command_of(pid)]
    parts = {
        BROKER: re.compile(r"/cluster/broker-\d+"),
        CONTROL_PLANE: re.compile(r"/cluster/(zookeeper|controller-\d+)"),
        CLIENT: re.compile(r"/cluster/clients/"),
    }
    return [pid for pid in processes_in(folder / "results") if parts[name].search(working_folder(pid))]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def working_folder(pid: int) -> str:
    try:
        return f"{Path(f'/proc/{pid}/cwd').readlink()}/"
    except OSError:
        return ""


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_kill_of_any_process_leaves_only_the_results_of_the_run(
    brokers: StartedBrokers, wait_until: Wait, tmp_path: Path, kill: int
) -> None:
    """No process, pause, link or file in the cache stays.

    The evidence of the run exists unless harrow itself got SIGKILL.
    """
    victim, number = VICTIMS[kill % len(VICTIMS)]
    reached = STAGES[kill % len(STAGES)]
    command = COMMANDS[kill // len(VICTIMS) % len(COMMANDS)]
    results = tmp_path / "results"
    harrow = started(brokers, tmp_path, seed=kill, command=command)
    try:
        wait_until(
            lambda: (
                harrow.poll() is not None
                or (reached(results) and bool(victims(victim, harrow.pid, tmp_path)))
            )
        )
        time.sleep(random.Random(kill).uniform(0, 1))
        assert harrow.poll() is None, "the run ended before the kill"
        begun = processes_in(results)
        for pid in victims(victim, harrow.pid, tmp_path)[:1]:
            os.kill(pid, number)
        if victim == SUPERVISOR:
            # Without the supervisor the brokers end. The run reports that, and `conform` continues
            # with the model.
            wait_until(lambda: bool([*results.glob("long/*/run.json")]))
        if victim != PARENT:
            # The run continues without the process.
            time.sleep(1)
            harrow.send_signal(signal.SIGTERM)
        code = harrow.wait(PATIENCE_S)
        # A process that was left paused, or that starts others, would still exist. Proxies end with
        # harrow.
        wait_until(lambda: not marked_processes(tmp_path))
        assert begun or victim == PARENT
        left = [*brokers.jars.glob(".*"), *brokers.jars.parent.glob(f".{brokers.jars.name}*")]
        assert all(path.suffix == ".lock" for path in left), left
        if (victim, number) == (PARENT, signal.SIGKILL):
            assert code == -signal.SIGKILL
            return
        ended = (
            {exit_code.INTERRUPTED} if victim == PARENT else {exit_code.INTERRUPTED, exit_code.INCONCLUSIVE}
        )
        messages = (tmp_path / "messages").read_text(encoding="utf-8")
        assert code in ended, messages
        assert "Traceback" not in messages
        (run,) = results.glob("long/*/run.json")
        assert json.loads(run.read_text())["verdict"] == "inconclusive"
    finally:
        harrow.kill()
        harrow.wait()


def has_brokers_besides(temporary: Path, others: set[Path]) -> bool:
    return bool({log.parents[1] for log in temporary.glob("harrow-*/broker-*/log")} - others)


def test_remains_of_a_killed_run_without_results_are_removed_by_the_next_run(
    brokers: StartedBrokers, wait_until: Wait, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for number in (signal.SIGKILL, signal.SIGTERM):
        before = set(temporary.glob("harrow-*"))
        harrow = started(brokers, tmp_path, "--no-results", temporary=temporary)
        try:
            wait_until(partial(has_brokers_besides, temporary, before))
            assert not before & set(temporary.glob("harrow-*"))
            harrow.send_signal(number)
            harrow.wait(PATIENCE_S)
            wait_until(lambda: not marked_processes(tmp_path))
        finally:
            harrow.kill()
            harrow.wait()
    assert not list(temporary.glob("harrow-*"))
