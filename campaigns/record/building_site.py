"""Where something for the user's cache is made, by one process at a time."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def building_site(path: Path, *, waits: bool = True) -> Iterator[Path]:
    """Yield an empty folder beside *path*, in which it is made. No other process gets that folder meanwhile.

    It has the same name every time, so what a killed process has left there goes when the next one begins.

    Raises:
        Timeout: another process is at work there, and this one does not wait.
        OSError: the folder cannot be made.

    """
    site = path.with_name(f".{path.name}")
    with FileLock(f"{site}.lock").acquire(blocking=waits):
        shutil.rmtree(site, ignore_errors=True)
        site.mkdir()
        try:
            yield site
        finally:
            shutil.rmtree(site, ignore_errors=True)
