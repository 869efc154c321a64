"""`harrow diff`: shows the replica logs of a run, or compares two runs or two releases."""

import re
import shlex
from pathlib import Path
from typing import Final

from harrow.campaigns.language.literals import LATEST_RELEASE
from harrow.campaigns.record.recorded_run import find_run, read_run
from harrow.campaigns.story.run_diff import DiffError, RunDiff, diff_document, diff_run, parse_at
from harrow.campaigns.story.runs_diff import diff_runs, runs_document
from harrow.cli import exit_code
from harrow.cli.console import show
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import DEFAULT_RESULTS
from harrow.cli.render.diff import show_run_diff
from harrow.cli.render.releases_diff import releases_diff, releases_document
from harrow.cli.render.runs_diff import show_runs_diff
from harrow.cli.requests.results import DiffRequest
from harrow.cli.session import Refusal, data, write_json
from harrow.cluster_model.release.profiles import NEWEST_RELEASE, RELEASES, ReleaseProfile

_RUNS_MAX: Final = 2
_RELEASE: Final = re.compile(r"[0-9]+(\.[0-9]+)+")


def session(request: DiffRequest) -> int:
    if len(request.runs) > _RUNS_MAX:
        raise Refusal(f"{len(request.runs)} runs are too many: give one or two")
    with Interrupts():
        try:
            _show(request)
        except DiffError as error:
            raise Refusal(str(error)) from None
    return exit_code.OK


def _show(request: DiffRequest) -> None:
    releases = _releases(request)
    if releases is not None:
        with data(request) as console:
            if request.output_format == "json":
                write_json(console, releases_document(*releases))
            else:
                show(console, *releases_diff(*releases))
        return
    moment, partitions = parse_at(request.at), request.partitions or []
    is_json = request.output_format == "json"
    first, *others = [read_run(find_run(argument, request.results)) for argument in request.runs]
    if others and request.stages:
        raise Refusal("--stages shows a single run: give only one")
    with data(request) as console:
        if others:
            runs = diff_runs(first, others[0], moment, partitions)
            if is_json:
                write_json(console, runs_document(runs))
            else:
                show_runs_diff(console, runs, only_different=request.only_different)
            return
        run = diff_run(first, moment, partitions, with_stages=request.stages)
        if is_json:
            write_json(console, diff_document(run))
        else:
            show_run_diff(console, run, _argument(request, run), only_different=request.only_different)


def _releases(request: DiffRequest) -> tuple[ReleaseProfile, ReleaseProfile] | None:
    """Return the two releases that the arguments name; None if they name runs or folders."""
    if len(request.runs) != _RUNS_MAX or any(Path(each).exists() for each in request.runs):
        return None
    newest = {LATEST_RELEASE: RELEASES[NEWEST_RELEASE]}
    releases = [(RELEASES | newest).get(each) for each in request.runs]
    earlier, later = releases
    if earlier is not None and later is not None:
        return earlier, later
    unknown = request.runs[releases.index(None)]
    # If only one argument is a known release, the other one should be a release too, because a run
    # cannot be compared with a release.
    if releases == [None, None] or not _RELEASE.fullmatch(unknown):
        return None
    raise Refusal(
        f"release `{unknown}` is not modelled; there are {', '.join(RELEASES)} and {LATEST_RELEASE}"
    )


def _argument(request: DiffRequest, run: RunDiff) -> str:
    """Return an argument that names the run in further commands, even without ``--results``."""
    argument = request.runs[0]
    is_unambiguous = request.results == DEFAULT_RESULTS or Path(argument).exists()
    return shlex.quote(argument if is_unambiguous else str(run.recorded.folder))
