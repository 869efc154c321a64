"""Only one process at a time builds a cache entry, and a killed one leaves no files behind."""

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
    (folder / "file").write_text("content")
    print("building", flush=True)
    sys.stdin.read()
"""


def start_builder(processes: ExitStack, path: Path) -> "subprocess.Popen[str]":
    """Start a process that builds until its input ends, and wait until it has begun."""
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
    assert process.stdout.readline() == "building\n"
    return process


def test_only_one_process_builds_at_a_time(processes: ExitStack, tmp_path: Path) -> None:
    path = tmp_path / "release"
    first = start_builder(processes, path)
    with pytest.raises(Timeout), exclusive_build_folder(path, waits=False):
        pass
    assert (tmp_path / ".release" / "file").exists()
    first.communicate("")
    with exclusive_build_folder(path) as folder:
        assert not list(folder.iterdir())
    assert not folder.exists()


def test_the_folder_of_a_killed_builder_can_be_locked_and_is_emptied(
    processes: ExitStack, tmp_path: Path
) -> None:
    path = tmp_path / "release"
    killed = start_builder(processes, path)
    killed.kill()
    killed.wait()
    with exclusive_build_folder(path, waits=False) as folder:
        assert not list(folder.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == [".release.lock"]
