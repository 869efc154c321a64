"""Which runs and sweeps below ``results/`` are old, and their removal.

Nothing is removed but what harrow wrote as it is known to write it: a folder two below, with a
``run.json`` that names it and no file besides those of a run; or a sweep that is complete. Symbolic
links are neither followed nor removed, but for ``latest``, when there is no run left that it could
point to.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.record.results_folder import FILES, LATEST, RUN
from harrow.campaigns.record.whole_file import is_left_over, unfinished

_HIDDEN: Final = "."
_SWEEP: Final = "sweep.json"
_SWEEP_SCHEMA: Final = "harrow.sweep/"
_SWEEP_FILES: Final = frozenset(
    {_SWEEP, "runs", "campaigns", "failures", "repeated.jsonl", "spark.log", ".lock"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A run or a sweep on disk; ``written_ns`` is when it was last written, by its file's time."""

    path: Path
    campaign: str
    is_sweep: bool
    written_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OldResults:
    """What is below a folder of results: what is too old, how many are not, and what is left alone, and why.

    What a process that was killed had not finished writing, or removing, is too old at once.
    """

    old: tuple[Result, ...]
    kept: int
    left: tuple[tuple[Path, str], ...]


def old_results(results: Path, keep: int, *, with_sweeps: bool = False) -> OldResults:
    """Return which results are not among the newest *keep* of their campaign, the oldest first.

    What ``latest`` points to is kept, unless nothing is. Sweeps are all kept, unless *with_sweeps*: then
    the newest *keep* of them.

    Raises:
        OSError: a folder cannot be read.

    """
    known: dict[str, list[Result]] = {}
    left: list[tuple[Path, str]] = []
    old: list[Result] = []
    for path in _folders(results):
        if (path / _SWEEP).is_file():
            if with_sweeps:
                _sort_in(_sweep(path), known, left)
            continue
        for folder in _folders(path):
            _sort_in(_run(folder), known, left)
        old += _left_over(path)
    old += _left_over(results)
    latest = _latest(results) if keep else None
    kept = 0
    for found in known.values():
        found.sort(key=lambda result: (result.written_ns, result.path.name), reverse=True)
        too_old = [result for result in found[keep:] if result.path.resolve() != latest]
        kept += len(found) - len(too_old)
        old += too_old
    old.sort(key=lambda result: (result.written_ns, str(result.path)))
    return OldResults(old=tuple(old), kept=kept, left=tuple(left))


def remove(results: Path, result: Result) -> None:
    """Remove a run or a sweep, its campaign's folder when it is empty then, and ``latest`` if it pointed there.

    It is renamed first: what can be seen under its name is whole.

    Raises:
        OSError: it cannot be removed.

    """
    pointed_to = _latest(results) == result.path.resolve()
    hidden = unfinished(result.path)
    result.path.rename(hidden)
    shutil.rmtree(hidden)
    if pointed_to:
        (results / LATEST).unlink()
    parent = result.path.parent
    if parent != results and not any(parent.iterdir()):
        parent.rmdir()


def _folders(path: Path) -> Iterator[Path]:
    for entry in sorted(path.iterdir()):
        if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith(_HIDDEN):
            yield entry


def _left_over(path: Path) -> Iterator[Result]:
    """Yield what killed processes have left in a folder, if nothing in it is from anybody else."""
    for entry in sorted(path.iterdir()):
        if entry.is_dir() and not entry.is_symlink() and is_left_over(entry):
            is_sweep = (entry / _SWEEP).is_file()
            if _foreign(entry, _SWEEP_FILES if is_sweep else FILES) is None:
                written_ns = entry.stat().st_mtime_ns
                yield Result(
                    path=entry, campaign="", is_sweep=is_sweep, written_ns=written_ns, size_bytes=_size(entry)
                )


def _sort_in(
    found: Result | tuple[Path, str] | None, known: dict[str, list[Result]], left: list[tuple[Path, str]]
) -> None:
    if isinstance(found, Result):
        known.setdefault("" if found.is_sweep else found.campaign, []).append(found)
    elif found is not None:
        left.append(found)


def _run(folder: Path) -> Result | tuple[Path, str] | None:
    """Return the run in a folder, or why it is left alone; None where nothing looks like a run."""
    if not (folder / RUN).exists():
        return None
    said = _mapping(folder / RUN)
    if said is None or said.get("run_id") != folder.name or said.get("campaign") != folder.parent.name:
        return folder, f"its {RUN} is not that of a run of this name"
    if (reason := _foreign(folder, FILES)) is not None:
        return folder, reason
    written_ns = (folder / RUN).stat().st_mtime_ns
    return Result(
        path=folder,
        campaign=folder.parent.name,
        is_sweep=False,
        written_ns=written_ns,
        size_bytes=_size(folder),
    )


def _sweep(folder: Path) -> Result | tuple[Path, str]:
    said = _mapping(folder / _SWEEP)
    if said is None or not str(said.get("schema")).startswith(_SWEEP_SCHEMA):
        return folder, f"its {_SWEEP} is not that of a sweep"
    if said.get("complete") is not True:
        return folder, "a sweep that is not complete"
    if (reason := _foreign(folder, _SWEEP_FILES)) is not None:
        return folder, reason
    written_ns = (folder / _SWEEP).stat().st_mtime_ns
    return Result(path=folder, campaign="", is_sweep=True, written_ns=written_ns, size_bytes=_size(folder))


def _size(folder: Path) -> int:
    return sum(Path(place, name).lstat().st_size for place, _, names in os.walk(folder) for name in names)


def _foreign(folder: Path, known: frozenset[str]) -> str | None:
    for entry in sorted(folder.iterdir()):
        if entry.name not in known or entry.is_symlink():
            return f"it has {entry.name}, which harrow did not write"
    return None


def _mapping(path: Path) -> dict[str, Any] | None:
    if path.is_symlink() or not path.is_file():
        return None
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _latest(results: Path) -> Path | None:
    """Return what ``latest`` points to, whether a symbolic link or a file in its place."""
    link = results / LATEST
    if link.is_symlink():
        return link.resolve()
    if link.is_file():
        return (results / link.read_text(encoding="utf-8").strip()).resolve()
    return None
