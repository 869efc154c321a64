"""Finds old runs and sweeps in ``results/``, and removes them.

Only folders that harrow certainly wrote are removed: a run with a ``run.json`` that names its
folder, and with no other files than those of a run; or a complete sweep. Symbolic links are neither
followed nor removed, except ``latest`` when the run that it points to is removed.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.record.results_folder import FILES, LATEST, RUN
from harrow.campaigns.storage.whole_file import is_left_over, unfinished
from harrow.cluster_model.lazy_dataclass import dataclass

_HIDDEN: Final = "."
_SWEEP: Final = "sweep.json"
_SWEEP_SCHEMA: Final = "harrow.sweep/"
_SWEEP_FILES: Final = frozenset(
    {_SWEEP, "runs", "campaigns", "failures", "repeated.jsonl", "spark.log", ".lock"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A run or a sweep on disk. ``written_ns`` is the modification time of its JSON file."""

    path: Path
    campaign: str
    is_sweep: bool
    written_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OldResults:
    """The contents of a folder of results.

    ``old`` are the results to remove, ``recent`` counts those to keep, and ``skipped`` are folders
    that are left alone, with reasons. Unfinished results of a killed process count as old.
    """

    old: tuple[Result, ...]
    recent: int
    skipped: tuple[tuple[Path, str], ...]


def old_results(results: Path, keep: int, *, with_sweeps: bool = False) -> OldResults:
    """Return the results that are not among the newest *keep* of their campaign, the oldest first.

    The run that ``latest`` points to is recent, unless *keep* is 0. Sweeps are ignored. Only
    *with_sweeps*, the sweeps that are not among the newest *keep* sweeps are returned too.

    Raises:
        OSError: a folder cannot be read.

    """
    by_campaign: dict[str, list[Result]] = {}
    skipped: list[tuple[Path, str]] = []
    old: list[Result] = []
    for path in _folders(results):
        if (path / _SWEEP).is_file():
            if with_sweeps:
                _add_result(_sweep(path), by_campaign, skipped)
            continue
        for folder in _folders(path):
            _add_result(_run(folder), by_campaign, skipped)
        old += _abandoned_folders(path)
    old += _abandoned_folders(results)
    latest = _latest(results) if keep else None
    recent = 0
    for campaign_results in by_campaign.values():
        campaign_results.sort(key=lambda result: (result.written_ns, result.path.name), reverse=True)
        too_old = [result for result in campaign_results[keep:] if result.path.resolve() != latest]
        recent += len(campaign_results) - len(too_old)
        old += too_old
    old.sort(key=lambda result: (result.written_ns, str(result.path)))
    return OldResults(old=tuple(old), recent=recent, skipped=tuple(skipped))


def remove(results: Path, result: Result) -> None:
    """Remove a run or a sweep, its campaign's folder if empty, and ``latest`` if it points there.

    The folder is renamed first, so that every visible folder is complete.

    Raises:
        OSError: The result cannot be removed.

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


def _abandoned_folders(path: Path) -> Iterator[Result]:
    """Yield the unfinished folders of killed processes that contain only files of harrow."""
    for entry in sorted(path.iterdir()):
        if entry.is_dir() and not entry.is_symlink() and is_left_over(entry):
            is_sweep = (entry / _SWEEP).is_file()
            if _reason_to_skip(entry, _SWEEP_FILES if is_sweep else FILES) is None:
                yield _result(entry, "", entry, is_sweep=is_sweep)


def _add_result(
    result: Result | tuple[Path, str] | None,
    by_campaign: dict[str, list[Result]],
    skipped: list[tuple[Path, str]],
) -> None:
    if isinstance(result, Result):
        by_campaign.setdefault(result.campaign, []).append(result)
    elif result is not None:
        skipped.append(result)


def _run(folder: Path) -> Result | tuple[Path, str] | None:
    """Return the run in a folder, or the reason to skip it; None if it is not a run."""
    if not (folder / RUN).exists():
        return None
    run = _mapping(folder / RUN)
    if run is None or run.get("run_id") != folder.name or run.get("campaign") != folder.parent.name:
        return folder, f"its {RUN} is not that of a run of this name"
    if (reason := _reason_to_skip(folder, FILES)) is not None:
        return folder, reason
    return _result(folder, folder.parent.name, folder / RUN)


def _sweep(folder: Path) -> Result | tuple[Path, str]:
    sweep = _mapping(folder / _SWEEP)
    if sweep is None or not str(sweep.get("schema")).startswith(_SWEEP_SCHEMA):
        return folder, f"its {_SWEEP} is not that of a sweep"
    if sweep.get("complete") is not True:
        return folder, "the sweep is not complete"
    if (reason := _reason_to_skip(folder, _SWEEP_FILES)) is not None:
        return folder, reason
    return _result(folder, "", folder / _SWEEP, is_sweep=True)


def _result(folder: Path, campaign: str, dated: Path, *, is_sweep: bool = False) -> Result:
    size = sum(Path(place, name).lstat().st_size for place, _, names in os.walk(folder) for name in names)
    written_ns = dated.stat().st_mtime_ns
    return Result(path=folder, campaign=campaign, is_sweep=is_sweep, written_ns=written_ns, size_bytes=size)


def _reason_to_skip(folder: Path, names: frozenset[str]) -> str | None:
    for entry in sorted(folder.iterdir()):
        if entry.name not in names or entry.is_symlink():
            return f"it has {entry.name}, which harrow did not write"
    return None


def _mapping(path: Path) -> dict[str, Any] | None:
    if path.is_symlink() or not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _latest(results: Path) -> Path | None:
    """Return the target of ``latest``: a symbolic link, or a file that contains the path."""
    link = results / LATEST
    if link.is_symlink():
        return link.resolve()
    if link.is_file():
        return (results / link.read_text(encoding="utf-8").strip()).resolve()
    return None
