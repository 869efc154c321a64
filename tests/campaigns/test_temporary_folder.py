"""A temporary folder is removed at the end of its block or, after a kill, by the next process."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from harrow.campaigns.temporary_folder import temporary_folder
from tests.conftest import kill_after_test
from tests.plain_environment import PYTHONPATH, plain_environment

HOLDER = """
import sys
from harrow.campaigns.temporary_folder import temporary_folder

with temporary_folder() as folder:
    (folder / "broker-0").mkdir()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_temporary_folder_is_removed_at_the_end_of_its_block(parent: Path) -> None:
    with temporary_folder() as folder:
        (folder / "file").touch()
    assert not list(parent.iterdir())
    with pytest.raises(KeyError), temporary_folder():
        raise KeyError
    assert not list(parent.iterdir())


def test_the_next_process_removes_only_folders_of_killed_processes(
    processes: ExitStack, parent: Path
) -> None:
    (killed, gone), (_, stays) = start_holder(processes, parent), start_holder(processes, parent)
    other_folder = parent / "harrow-of-another-user"
    other_folder.mkdir()
    killed.kill()
    killed.wait()
    assert gone.exists()
    with temporary_folder() as folder:
        assert set(parent.iterdir()) == {stays, other_folder, folder}


def start_holder(processes: ExitStack, parent: Path) -> tuple["subprocess.Popen[str]", Path]:
    """Start a process with a temporary folder until its input ends."""
    process = kill_after_test(
        processes,
        subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            env={**plain_environment(), "PYTHONPATH": PYTHONPATH, "TMPDIR": str(parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ),
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())
