"""One process at a time builds for the cache, and a killed one leaves nothing."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import Timeout

from harrow.campaigns.record.build_folder import exclusive_build_folder
from tests.conftest import kill_after_test
from tests.plain_environment import PYTHONPATH, plain_environment

BUILDER = """
import sys
from pathlib import Path
from harrow.campaigns.record.build_folder import exclusive_build_folder

with exclusive_build_folder(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("of it")
    print("at work", flush=True)
    sys.stdin.read()
"""


def start_builder(processes: ExitStack, path: Path) -> "subprocess.Popen[str]":
    """Start a process that is at work until its input ends."""
    process = kill_after_test(
        processes,
        subprocess.Popen(
            [sys.executable, "-c", BUILDER, path],
            env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    return process


def test_only_one_process_builds_at_a_time(processes: ExitStack, tmp_path: Path) -> None:
    path = tmp_path / "release"
    first = start_builder(processes, path)
    with pytest.raises(Timeout), exclusive_build_folder(path, waits=False):
        pass
    assert (tmp_path / ".release" / "half").exists()
    first.communicate("")
    with exclusive_build_folder(path) as folder:
        assert not list(folder.iterdir())
    assert not folder.exists()


def test_the_folder_of_a_killed_process_is_free_and_empty(processes: ExitStack, tmp_path: Path) -> None:
    path = tmp_path / "release"
    killed = start_builder(processes, path)
    killed.kill()
    killed.wait()
    with exclusive_build_folder(path, waits=False) as folder:
        assert not list(folder.iterdir())
    assert [left.name for left in tmp_path.iterdir()] == [".release.lock"]
