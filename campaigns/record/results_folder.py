"""``results/``: what a run leaves on disk.

Everything is written under a temporary name and renamed, so that a file that can be
seen is whole, also after a crash or with two processes at work.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.record.json_text import json_line
from harrow.campaigns.record.markdown_report import markdown_report
from harrow.campaigns.record.report import run_id
from harrow.campaigns.run.run_result import RunResult
from harrow.cluster_model.events import event_fields
from harrow.cluster_model.trace import TraceEvent

LATEST: Final = "latest"
RUN: Final = "run.json"
CLUSTER: Final = "cluster"
"""What real brokers and clients have left of a run: their logs, what they said, their settings."""
FILES: Final = frozenset({RUN, "history.jsonl", "trace.jsonl", "campaign.yaml", "report.md", CLUSTER})
"""What the folder of a run has."""

_encode_name: Final = lru_cache(maxsize=4096)(json_line)


def write_run(results: Path, result: RunResult, run: Mapping[str, Any], campaign_text: str) -> Path:
    """Write a run below *results* and return its folder.

    *run* is the run as a mapping, *campaign_text* the campaign file that runs it again.
    An earlier run with the same id is replaced, file by file: it was the same run.
    """
    folder = results / result.plan.campaign / run_id(result)
    temporary = unfinished(folder)
    shutil.rmtree(temporary, ignore_errors=True)  # of a process with this number that was killed
    temporary.mkdir(parents=True)
    try:
        _fill(temporary, result, run, campaign_text)
        _put_in_place(temporary, folder)
    except OSError as error:
        # A full disk names no file.
        raise OSError(error.errno, error.strerror, error.filename or str(folder)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _point_latest_to(results, folder)
    return folder


def trace_line(event: TraceEvent) -> str:
    """Return an event as ``trace.jsonl`` has it.

    A run has thousands of them, so the names of the fields are not encoded each time.
    """
    values = [
        value if type(value) is int else _encode_name(value) if type(value) is str else json_line(value)
        for value in event[2:]
    ]
    return _trace_line_format(event[1]) % (event[0], *values)


@cache
def _trace_line_format(name: str) -> str:
    fields = "".join(f',"{field}":%s' for field in event_fields(name))
    return f'{{"at_us":%d,"event":"{name}"{fields}}}\n'


_UNFINISHED: Final = re.compile(r"\.(.+)\.([0-9]{1,9})")


def unfinished(folder: Path) -> Path:
    """Return what the folder of a run is called while it is written or removed by this process."""
    return folder.with_name(f".{folder.name}.{os.getpid()}")


def is_left_over(folder: Path) -> bool:
    """Return whether a folder is an `unfinished` one of a process that is gone."""
    found = _UNFINISHED.fullmatch(folder.name)
    if found is None or sys.platform == "win32":  # To ask there is to send a signal.
        return False
    try:
        os.kill(int(found[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # It belongs to somebody else, or the system cannot say.
        return False
    return False


def _fill(folder: Path, result: RunResult, run: Mapping[str, Any], campaign_text: str) -> None:
    _write_lines(folder / RUN, (run,))
    _write_lines(
        folder / "history.jsonl", (operation.as_mapping() for operation in result.evidence.operations)
    )
    with (folder / "trace.jsonl").open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(map(trace_line, result.evidence.trace))
    (folder / "campaign.yaml").write_text(campaign_text, encoding="utf-8")
    (folder / "report.md").write_text(markdown_report(result, run["reproduce"]), encoding="utf-8")


def _write_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(json_line(value) + "\n" for value in values)


def _put_in_place(temporary: Path, folder: Path) -> None:
    if not folder.exists():
        try:
            temporary.rename(folder)
        except OSError:
            # Another process may have put the same run there in the meantime.
            if not folder.is_dir():
                raise
        else:
            return
    for file in sorted(temporary.iterdir()):
        file.replace(folder / file.name)


def _point_latest_to(results: Path, folder: Path) -> None:
    target = folder.relative_to(results)
    link = results / LATEST
    temporary = results / f".{LATEST}.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    try:
        temporary.symlink_to(target, target_is_directory=True)
    except OSError:
        # Not every system lets everyone make symbolic links: a file with the path does as well.
        temporary.write_text(f"{target.as_posix()}\n", encoding="utf-8")
    temporary.replace(link)
