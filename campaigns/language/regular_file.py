"""Opens files in folders that may come from anywhere.

To open a pipe means to wait for a process at its other end. Inside a library, even Ctrl-C may not
end that wait. So this module opens only regular files. It is not for paths that the user types,
because `harrow check <(command)` reads a pipe.
"""

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags to open a pipe without waiting for its other end. Then the type of the file is checked."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: The file cannot be opened, or is not a regular file.

    """
    return open(path, "rb", opener=_open_regular)


def regular_text(path: Path) -> str:
    """Return the text of a regular file.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
        UnicodeDecodeError: The file is not UTF-8.

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
