"""Makes temporary folders, and removes those that processes left behind when they were killed.

Each folder has a lock, which the operating system releases when the process ends for any reason.
Before a process makes a folder, it removes all folders whose lock is free.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, FileLock, Timeout

_PREFIX: Final = "harrow-"
_LOCK_FILE: Final = ".lock"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder in the system's temporary folder, and remove it when the block ends.

    Raises:
        OSError: The folder cannot be made.

    """
    _remove_abandoned_folders(Path(tempfile.gettempdir()))
    folder, lock = _make_locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _make_locked_folder() -> tuple[Path, BaseFileLock]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = FileLock(folder / _LOCK_FILE)
        with suppress(Timeout, FileNotFoundError):
            lock.acquire(blocking=False)
            if (folder / _LOCK_FILE).exists():
                return folder, lock
        # Another process saw the folder before it was locked, and removed it, so try again.
        lock.release()


def _remove_abandoned_folders(parent: Path) -> None:
    """Remove the folders of processes that have ended. Folders of other users and programs stay."""
    for file in parent.glob(f"{_PREFIX}*/{_LOCK_FILE}"):
        with suppress(Timeout, OSError), FileLock(file).acquire(blocking=False):
            shutil.rmtree(file.parent, ignore_errors=True)
