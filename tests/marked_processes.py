"""Processes that a test has started, and those that these have started: all have the same mark in their environment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

_MARK: Final = "HARROW_TEST_OF_KILLS"


def marked(folder: Path) -> dict[str, str]:
    """Return what marks the processes of a test, which has this folder for itself."""
    return {_MARK: str(folder)}


def left_of(folder: Path) -> Sequence[str]:
    """Return the processes with the mark of a test that are there."""
    found = []
    wanted = f"{_MARK}={folder}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (place / "environ").read_bytes().split(b"\0"):
                found.append(f"{place.name}: {(place / 'cmdline').read_bytes()[:200]!r}")
        except OSError:
            continue
    return found
