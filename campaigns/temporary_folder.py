"""Temporary folders that a later process removes if their own was killed.

Each folder has a lock, which the system releases however its holder ends. Before a process makes a
folder, it removes those whose lock is free.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, FileLock, Timeout

_PREFIX: Final = "harrow-"
_LOCK: Final = ".lock"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder of the system, and remove it when the block ends.

    Raises:
        OSError: the folder cannot be made.

    """
    _remove_left_over(Path(tempfile.gettempdir()))
    folder, lock = _locked()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _locked() -> tuple[Path, BaseFileLock]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = FileLock(folder / _LOCK)
        with suppress(Timeout, FileNotFoundError):
            lock.acquire(blocking=False)
            if (folder / _LOCK).exists():
                return folder, lock
        # Another process saw the folder before it was locked, and removed it.
        lock.release()


def _remove_left_over(place: Path) -> None:
    """Remove the folders of ended processes, but not those of other users and programs."""
    for file in place.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(Timeout, OSError), FileLock(file).acquire(blocking=False):
            shutil.rmtree(file.parent, ignore_errors=True)
