"""Whatever ends harrow in the middle of a run on brokers, nothing of it is left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harrow.live_cluster.live_run import StartedBrokers
from tests.live.conftest import Wait
from tests.plain_environment import PYTHONPATH, plain_environment

LONG = """
name: long
cluster: {brokers: 3, topics: [{name: t, partitions: 2, replication_factor: 3}]}
workload: {duration: 10m, producers: [{rate: 20/s}], consumers: [{}]}
faults:
  - {every: 2s, do: {broker_pause: {broker: any, duration: 1s}}}
"""


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


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_nothing_is_left_behind(
    brokers: StartedBrokers, wait_until: Wait, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    file, results = tmp_path / "long.yaml", tmp_path / "results"
    file.write_text(LONG.replace("name: long", f'name: long\nkafka: "{brokers.release.model_release}"'))
    target = f"kafka:{brokers.release.name}-{brokers.metadata}"
    harrow = subprocess.Popen(
        [sys.executable, "-m", "harrow", "run", file, "--target", target, "--results", results],
        env={**os.environ, **plain_environment(), "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        # The clients are the last to be started.
        wait_until(
            lambda: len(list(results.glob("long/*/cluster/clients/*"))) == 2 and bool(processes_in(results))
        )
        harrow.send_signal(how)
        assert harrow.wait() == code
        wait_until(lambda: not processes_in(results))
    finally:
        harrow.kill()
        harrow.wait()
