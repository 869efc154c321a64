"""Writes files and folders atomically: a kill or a full disk leaves none of them incomplete.

Everything that harrow writes for its user goes through `whole_path` or `whole_folder`. Content is
first written under a hidden name beside the final one, on the same file system. It is flushed
before it is renamed, and the rename is flushed before harrow continues.
"""

import errno
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Final, TextIO

_UNFINISHED: Final = r"\.(.+)\.([0-9]{1,9})"


@contextmanager
def whole_path(path: Path, *, is_new: bool = False) -> Iterator[Path]:
    """Yield a temporary path that is renamed to *path* when the block ends without an error.

    Raises:
        FileExistsError: *is_new* is set, but *path* exists.
        OSError: The file cannot be written. The error names *path*, not the temporary path.

    """
    temporary = unfinished(path)
    try:
        yield temporary
        _flush(temporary)
        if is_new:
            _rename_to_new(temporary, path)
        else:
            temporary.replace(path)
        _flush_names(path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path, *, is_new: bool = False) -> Iterator[TextIO]:
    """Open a text file for writing, as `whole_path` does.

    An existing path that is not a regular file (a pipe, a terminal) is written to directly.
    """
    if not is_new and path.exists() and not path.is_file():
        with open_text(path) as stream:
            yield stream
        return
    with whole_path(path, is_new=is_new) as temporary, open_text(temporary) as stream:
        yield stream


def open_text(path: Path, mode: str = "w") -> TextIO:
    """Open a text file. Bytes of file names that are not UTF-8 are written as escapes."""
    stream = path.open(mode, encoding="utf-8", errors="backslashreplace", newline="\n")
    assert isinstance(stream, TextIOWrapper)
    return stream


@contextmanager
def whole_folder(folder: Path, *, last: str) -> Iterator[Path]:
    """Yield a temporary folder. Its files move to *folder* when the block ends without an error.

    An existing folder keeps its other files. The file named *last* is moved last, so a folder with
    that file is complete.

    Raises:
        OSError: The folder cannot be written.

    """
    temporary = unfinished(folder)
    shutil.rmtree(temporary, ignore_errors=True)  # A killed process with the same pid may have left it.
    temporary.mkdir(parents=True)
    try:
        yield temporary
        files = sorted(temporary.iterdir(), key=lambda file: (file.name == last, file.name))
        _flush_all(files)
        _flush_names(temporary)
        _move_into_place(temporary, files, folder)
    except OSError as error:
        # The error of a full disk has no file name.
        raise OSError(error.errno, error.strerror, error.filename or str(folder)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def unfinished(path: Path) -> Path:
    """Return the temporary name of a file or folder that this process writes or removes."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def is_left_over(path: Path) -> bool:
    """Return whether a file or folder has an `unfinished` name of a process that has ended."""
    match = re.fullmatch(_UNFINISHED, path.name)
    if match is None or sys.platform == "win32":  # On Windows `os.kill` would end the process.
        return False
    try:
        os.kill(int(match[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # The process is another user's, or the number is not a pid.
        return False
    return False


def _move_into_place(temporary: Path, files: Iterable[Path], folder: Path) -> None:
    if not folder.exists():
        try:
            temporary.rename(folder)
        except OSError:
            # Another process may have written the same folder meanwhile.
            if not folder.is_dir():
                raise
        else:
            _flush_names(folder.parent)
            return
    for file in files:
        file.replace(folder / file.name)
    _flush_names(folder)


def _flush(path: Path) -> None:
    """Flush the content of a file before the file is renamed.

    Some file systems write the new name to disk before the content, or report only here that the
    disk is full.
    """
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_all(files: Iterable[Path]) -> None:
    """Flush files in parallel. On ext4, the files of a run take 5 ms instead of 15."""
    failures: list[OSError] = []

    def flush(file: Path) -> None:
        try:
            _flush(file)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=flush, args=(file,)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _flush_names(folder: Path) -> None:
    """Flush the names in a folder, if the system and its file system can do so."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename a file, but never over another file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        # The file system has no hard links. On Windows, `rename` refuses an existing name.
        # Elsewhere, a file that another process creates at this very moment would be overwritten.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.rename(path)
