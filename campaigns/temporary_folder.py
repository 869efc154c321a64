"""Folders for what is needed for a while only. They go with the block that they are made for, or with a later one.

A process that is killed cannot remove its folder. So a folder has a lock, which the system gives back when its holder ends however
that happens, and each new folder first removes those whose lock is free.
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
    """Yield a folder in the system's folder for temporary files, and remove it with all that it has when the block ends.

    Raises:
        OSError: there is no place for it.

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
        # Between the two steps another process has taken it for left over.
        lock.release()


def _remove_left_over(place: Path) -> None:
    """Remove the folders of processes that have ended; those of other users, and those that are none of ours, stay."""
    for file in place.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(Timeout, OSError), FileLock(file).acquire(blocking=False):
            shutil.rmtree(file.parent, ignore_errors=True)
