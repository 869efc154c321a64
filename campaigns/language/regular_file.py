"""Opens files in folders that may come from anywhere.

Opening a pipe waits for a process at its other end, and inside a library even Ctrl-C may not end
that wait. So only regular files are opened. Paths that the user types are different: `harrow check
<(command)` reads a pipe.
"""

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags to open a pipe without waiting for its other end; the type is checked after that."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: it cannot be opened, or is not a regular file.

    """
    return open(path, "rb", opener=_open_regular)


def regular_text(path: Path) -> str:
    """Return the text of a regular file.

    Raises:
        OSError: it cannot be read, or is not a regular file.
        UnicodeDecodeError: it is not UTF-8.

    """
    with io.TextIOWrapper(open_regular(path), encoding="utf-8") as stream:
        return stream.read()


def _open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _FLAGS)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        reason = os.strerror(code) if stat.S_ISDIR(mode) else "it is not a file"
        raise OSError(code, reason, path)
    return descriptor
