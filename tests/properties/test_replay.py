"""A recorded run replays to the same digest in every process and with every hash seed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plain_environment import PYTHONPATH
from tests.properties.replayed_runs import record

ROOT = Path(__file__).parents[2]
HASH_SEEDS = ("0", "1", "4242", "random")


def replay_digests(folders: list[Path], hash_seed: str) -> list[str]:
    """Replay these runs in a new process, and return their digests."""
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": hash_seed, "PYTHONPATH": PYTHONPATH}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "tests.properties.replayed_runs"],
        env=environment,
        input="".join(f"{folder}\n" for folder in folders),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.soak(size=20, rounds_in_test=1, rounds_in_soak=100)
def test_recorded_runs_replay_to_the_same_digests(tmp_path: Path, numbers: range) -> None:
    recorded = record(tmp_path, numbers)
    assert len({folder for folder, _ in recorded}) == len(numbers)
    assert len({digest for _, digest in recorded}) > len(numbers) / 2, "most runs are identical"
    for number, hash_seed in enumerate(HASH_SEEDS):
        # Each process replays pairs of runs, because runs alternate between two kinds of campaigns.
        share = [run for place, run in enumerate(recorded) if place // 2 % len(HASH_SEEDS) == number]
        assert replay_digests([folder for folder, _ in share], hash_seed) == [digest for _, digest in share]
