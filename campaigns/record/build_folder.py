"""A folder in which one process at a time builds an entry of the user's cache."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def exclusive_build_folder(path: Path, *, waits: bool = True) -> Iterator[Path]:
    """Yield an empty folder beside *path* to build it in, and keep other processes out.

    The folder always has the same name, so the next process removes the remains of one that was
    killed.

    Raises:
        Timeout: another process uses the folder, and this one does not wait.
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
