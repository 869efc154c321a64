"""Opens files in folders that may come from anywhere.

To open a pipe means to wait for a process at its other end. Inside a library, even Ctrl-C may not
end that wait. So `open_regular` opens only regular files. It is not for paths that the user types,
because `harrow check <(command)` reads a pipe. For them `first_bytes` opens a pipe too, if a
process writes to it.
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


def first_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a file or a pipe, at most *limit* bytes.

    Raises:
        OSError: It cannot be read, or nothing writes to the pipe.

    """
    with open(path, "rb", buffering=0, opener=_open_without_waiting) as file:
        assert isinstance(file, io.FileIO), "it is open without a buffer"
        content = file.read(limit)
        if content == b"" and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EPIPE, "nothing writes to this pipe", str(path))
        os.set_blocking(file.fileno(), True)
        chunks = [content or b""]
        while (rest := limit - sum(map(len, chunks))) > 0 and (chunk := file.read(rest)):
            chunks.append(chunk)
    return b"".join(chunks)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | _FLAGS)


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
