"""Writes the files of a run to ``results/``, where every visible file is complete."""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, Final

from harrow.campaigns.record.json_text import json_line
from harrow.campaigns.record.markdown_report import markdown_report
from harrow.campaigns.record.report import run_id
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.storage.location import LocalLocation, Location
from harrow.campaigns.storage.whole_file import open_text, unfinished, whole_folder
from harrow.cluster_model.events import event_fields
from harrow.cluster_model.trace import TraceEvent

LATEST: Final = "latest"
RUN: Final = "run.json"
CLUSTER: Final = "cluster"
"""The folder with the logs, the output and the settings of real brokers and clients."""
REQUESTS: Final = "requests.bin"
"""The recording of what real clients sent to a served cluster."""
FILES: Final = frozenset(
    {RUN, "history.jsonl", "trace.jsonl", "campaign.yaml", "report.md", REQUESTS, CLUSTER}
)
"""The files and folders in the folder of a run."""

_encode_name: Final = lru_cache(maxsize=4096)(json_line)


def write_run(
    results: Path,
    result: RunResult,
    run: Mapping[str, Any],
    campaign_text: str,
    requests: BinaryIO | None = None,
) -> Path:
    """Write a run below *results* and return its folder.

    *run* is the run as a mapping, and *campaign_text* is the campaign file that runs it again.
    *requests* is the recording of real clients. The files of an earlier run with the same id are
    replaced, because the two runs are the same.
    """
    folder = results / result.plan.campaign / run_id(result)
    with whole_folder(folder, last=RUN) as temporary:
        _fill(temporary, result, run, campaign_text, requests)
    _point_latest_to(results, folder)
    return folder


def write_run_to(
    results: Location,
    result: RunResult,
    run: Mapping[str, Any],
    campaign_text: str,
    requests: BinaryIO | None = None,
) -> Location:
    """Write a run below a path or a URI, as `write_run` does, and return its folder.

    In shared storage, ``latest`` is a file that contains the path.
    """
    if isinstance(results, LocalLocation):
        return LocalLocation(write_run(results.path, result, run, campaign_text, requests))
    from harrow.campaigns.temporary_folder import temporary_folder  # noqa: PLC0415 - paths need only Python

    path = f"{result.plan.campaign}/{run_id(result)}"
    with temporary_folder() as temporary:
        _fill(temporary, result, run, campaign_text, requests)
        written = {file.name for file in temporary.iterdir()}
        for name in sorted(written, key=lambda name: (name == RUN, name)):
            (results / path / name).write((temporary / name).read_bytes())
    (results / LATEST).write_text(f"{path}\n")
    return results / path


def trace_line(event: TraceEvent) -> str:
    """Return the line of an event in ``trace.jsonl``.

    A run has thousands of events, so the names of fields are encoded only once.
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


def _fill(
    folder: Path,
    result: RunResult,
    run: Mapping[str, Any],
    campaign_text: str,
    requests: BinaryIO | None,
) -> None:
    _write_lines(folder / RUN, (run,))
    _write_lines(
        folder / "history.jsonl", (operation.as_mapping() for operation in result.evidence.operations)
    )
    _write(folder / "trace.jsonl", map(trace_line, result.evidence.trace))
    _write(folder / "campaign.yaml", (campaign_text,))
    _write(folder / "report.md", (markdown_report(result, run["reproduce"]),))
    if requests is not None:
        requests.seek(0)
        with (folder / REQUESTS).open("wb") as stream:
            copyfileobj(requests, stream)


def _write_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    _write(path, (json_line(value) + "\n" for value in values))


def _write(path: Path, texts: Iterable[str]) -> None:
    with open_text(path) as stream:
        stream.writelines(texts)


def _point_latest_to(results: Path, folder: Path) -> None:
    target = folder.relative_to(results)
    link = results / LATEST
    temporary = unfinished(link)
    temporary.unlink(missing_ok=True)
    try:
        temporary.symlink_to(target, target_is_directory=True)
    except OSError:
        # Some systems do not let users make symbolic links. There, a file that contains the path
        # takes the place of the link.
        temporary.write_text(f"{target.as_posix()}\n", encoding="utf-8")
    temporary.replace(link)
