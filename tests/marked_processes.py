"""Finds the processes that a test started, and their descendants, by a mark in the environment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

_MARK: Final = "HARROW_TEST_OF_KILLS"


def mark_of(folder: Path) -> dict[str, str]:
    """Return an environment variable that marks the processes of the test that owns a folder."""
    return {_MARK: str(folder)}


def marked_processes(folder: Path) -> Sequence[str]:
    """Return the live processes with the mark of a test."""
    processes = []
    mark = f"{_MARK}={folder}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0"):
                processes.append(f"{place.name}: {(place / 'cmdline').read_bytes()[:200]!r}")
        except OSError:
            continue
    return processes
