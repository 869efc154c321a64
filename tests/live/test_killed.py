"""Whatever ends harrow in the middle of a run on brokers, nothing of it is left behind.

``HARROW_LIVE_KILLS`` says how often it is killed; each time the run has come a little further.
"""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from harrow.cli import exit_code
from harrow.live_cluster.live_run import StartedBrokers
from tests.live.conftest import KILLS, Wait
from tests.plain_environment import PYTHONPATH, plain_environment

LONG = """
name: long
cluster: {brokers: 3, topics: [{name: t, partitions: 2, replication_factor: 3}]}
workload: {duration: 10m, producers: [{rate: 20/s}], consumers: [{}]}
faults:
  - {every: 2s, do: {broker_pause: {broker: any, duration: 1s}}}
  - {every: 3s, do: {broker_isolation: {broker: any, duration: 2s}}}
"""
_PORT: Final = re.compile(r"127\.0\.0\.1:(\d+)")


def processes_in(folder: Path) -> list[int]:
    """Return the processes that work below a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink().is_relative_to(folder):
                found.append(int(entry.name))
        except OSError:  # It has ended, or belongs to somebody else.
            continue
    return found


def ports_in(folder: Path) -> set[int]:
    """Return the ports that brokers and controllers below a folder were told of, those of the proxies in front of them too."""
    return {
        int(port)
        for file in folder.glob("**/server.properties")
        for port in _PORT.findall(file.read_text(encoding="utf-8"))
    }


def is_listened_on(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def is_paused(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] == "T"


Stage = Callable[[Path], bool]
"""Returns whether the run that writes below a folder has come so far."""


def has_clients(results: Path) -> bool:
    """The clients are the last to be started."""
    return len(list(results.glob("long/*/cluster/clients/*"))) == 2 and bool(processes_in(results))


STAGES: Final[tuple[Stage, ...]] = (
    lambda results: bool(processes_in(results)),
    lambda results: len(list(results.glob("long/*/cluster/broker-*/log"))) == 3,
    has_clients,
    lambda results: has_clients(results) and any(map(is_paused, processes_in(results))),
)


def started(
    brokers: StartedBrokers, folder: Path, seed: int = 0, command: str = "run"
) -> "subprocess.Popen[bytes]":
    """Start harrow in the background with a run that takes minutes; what it leaves goes below ``results`` in the folder."""
    file = folder / "long.yaml"
    file.write_text(LONG.replace("name: long", f'name: long\nkafka: "{brokers.release.model_release}"'))
    target = f"kafka:{brokers.release.name}-{brokers.metadata}"
    seeds = ("--seed", str(seed)) if command == "run" else ()
    options = ("--target", target, *seeds, "--results", str(folder / "results"))
    return subprocess.Popen(
        [sys.executable, "-m", "harrow", command, file, *options],
        # As a shell does with what it starts in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # noqa: PLW1509 - no threads here
        # What it starts begins here too.
        cwd=folder,
        env={**os.environ, **plain_environment(), "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(("command", "how"), [("run", signal.SIGINT), ("conform", signal.SIGTERM)])
def test_only_what_a_run_has_seen_so_far_stays(
    brokers: StartedBrokers, wait_until: Wait, tmp_path: Path, command: str, how: signal.Signals
) -> None:
    results = tmp_path / "results"
    harrow = started(brokers, tmp_path, command=command)
    try:
        wait_until(lambda: has_clients(results))
        harrow.send_signal(how)
        assert harrow.wait() == exit_code.INTERRUPTED
        wait_until(lambda: not processes_in(tmp_path))
        (run,) = results.glob("long/*/run.json")
        assert "the run was given up after an interrupt" in json.loads(run.read_text())["reasons"]
        assert (run.parent / "trace.jsonl").stat().st_size
    finally:
        harrow.kill()
        harrow.wait()


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_kill_at_any_moment_leaves_no_process_no_pause_and_no_link(
    brokers: StartedBrokers, wait_until: Wait, tmp_path: Path, kill: int
) -> None:
    results = tmp_path / "results"
    harrow = started(brokers, tmp_path, seed=kill)
    try:
        wait_until(lambda: harrow.poll() is not None or STAGES[kill % len(STAGES)](results))
        time.sleep(random.Random(kill).uniform(0, 1))
        assert harrow.poll() is None, "it is killed in the middle"
        begun = processes_in(results)
        harrow.kill()
        harrow.wait()
        # One that is paused would be there still, and so would whoever starts the others.
        wait_until(lambda: not processes_in(tmp_path))
        assert begun
        # A link is cut in a proxy: that ends with harrow, and nothing listens where brokers were told to look for each other.
        assert not [port for port in ports_in(results) if is_listened_on(port)]
    finally:
        harrow.kill()
        harrow.wait()
