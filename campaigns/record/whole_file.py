"""Files that appear under their name when they are whole: after a kill, on a full disk, and with two processes at work.

Everything that harrow writes for its user goes through `whole_path`. What is written first has a hidden name beside the final
one, so that both are on one file system.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


@contextmanager
def whole_path(path: Path, *, is_new: bool = False) -> Iterator[Path]:
    """Yield a temporary path; what is written there appears as *path* when the block is left without an error.

    Raises:
        FileExistsError: the file is to be new, and something has its name.
        OSError: it cannot be written; the error names *path*, as the user did.

    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        _flush_to_disk(temporary)
        if is_new:
            _rename_to_new(temporary, path)
        else:
            temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path, *, is_new: bool = False) -> Iterator[TextIO]:
    """Open a text file for writing, as `whole_path` does.

    Something that is there and is no regular file (a pipe, a terminal) is written to directly.
    """
    if not is_new and path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    with (
        whole_path(path, is_new=is_new) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        yield stream


def _flush_to_disk(path: Path) -> None:
    """Have the content on disk before the name is: some file systems reorder the two, and some report a full disk here only."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename a file, but never over another one."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        # A file system without links. On Windows `rename` refuses a name that is taken; elsewhere a name
        # that is taken at this very moment by somebody else would be lost.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.rename(path)
