"""Lets one process at a time build an entry of the user's cache."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def exclusive_build_folder(path: Path, *, waits: bool = True) -> Iterator[Path]:
    """Yield an empty folder beside *path* in which to build *path*, and keep other processes out.

    The folder always has the same name, so if a process is killed, the next one removes what it
    left behind.

    Raises:
        Timeout: another process uses the folder, and *waits* is false.
        OSError: the folder cannot be made.

    """
    folder = path.with_name(f".{path.name}")
    with FileLock(f"{folder}.lock").acquire(blocking=waits):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
