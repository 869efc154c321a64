"""How harrow opens a file of a folder that may come from anywhere.

To open a pipe is to wait for a process at its other end, in code of a library even without an ear for Ctrl-C. So
nothing but a regular file is opened. A path that the user has typed is another matter: `harrow check <(command)` reads a pipe.
"""

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Without waiting for the other end of a pipe: what it is can be asked only then, if it is not to be exchanged in between."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: it cannot be opened, or is something else.

    """
    return open(path, "rb", opener=_opened)


def regular_text(path: Path) -> str:
    """Return the text of a regular file.

    Raises:
        OSError: it cannot be read, or is something else.
        UnicodeDecodeError: it is not UTF-8.

    """
    with io.TextIOWrapper(open_regular(path), encoding="utf-8") as stream:
        return stream.read()


def _opened(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _FLAGS)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        wrong = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        reason = os.strerror(wrong) if stat.S_ISDIR(mode) else "it is not a file"
        raise OSError(wrong, reason, path)
    return descriptor
