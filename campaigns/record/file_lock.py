"""A lock on a file that ends with the process that has it, however that ends."""

import os
import sys
from pathlib import Path
from typing import Final, Self

_ALL_MAY: Final = 0o666


class TakenError(Exception):
    """Another process has the lock."""


class FileLock:
    """A lock on *path*, which is created; while the context is open no other process gets it.

    On a file system without locks everybody gets it: then it is for the user to see to it.
    """

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            TakenError: another process has it.
            OSError: the file cannot be opened.

        """
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _ALL_MAY)
        try:
            _take(self._descriptor)
        except BlockingIOError:
            os.close(self._descriptor)
            raise TakenError(str(path)) from None
        except OSError:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


# Neither module is there on the other system, so none is imported before there is a file to lock.
if sys.platform == "win32":

    def _take(descriptor: int) -> None:
        import msvcrt  # noqa: PLC0415 - see above

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, error.strerror) from None

else:

    def _take(descriptor: int) -> None:
        import fcntl  # noqa: PLC0415 - see above

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
