"""`harrow clean`: removes old results."""

from typing import Final

import typer

from harrow.campaigns.language.spelling import counted, printable
from harrow.campaigns.record.old_results import OldResults, Result, old_results, remove
from harrow.cli import exit_code
from harrow.cli.console import data_console, message_console, say
from harrow.cli.interrupts import Interrupts
from harrow.cli.requests.results import CleanRequest
from harrow.cli.session import note, reason_of, write_json

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_STEP: Final = 1_000


def session(request: CleanRequest) -> int:
    messages = message_console(no_color=request.no_color)
    folder = request.results
    if not folder.exists():
        say(messages, f"nothing to remove: the folder {folder} does not exist")
        return exit_code.OK
    removed: list[Result] = []
    try:
        with Interrupts() as interrupts:
            results = old_results(folder, request.keep, with_sweeps=request.sweeps)
            for result in results.old:
                with interrupts.shielded():
                    if not request.dry_run:
                        remove(folder, result)
                    removed.append(result)
    except OSError as error:
        say(messages, f"stopped: {reason_of(error)}", style="red")
        say(messages, f"{counted(len(removed), 'result')} removed before that")
        return exit_code.USAGE
    except KeyboardInterrupt:
        say(messages, f"interrupted: {counted(len(removed), 'result')} removed")
        return exit_code.INTERRUPTED
    if request.output_format == "json":
        write_json(data_console(), _document(results, dry_run=request.dry_run))
        return exit_code.OK
    if request.dry_run:
        typer.echo("".join(f"{printable(str(result.path))}\n" for result in removed), nl=False)
    for path, reason in results.skipped:
        note(request, f"not removed: {path}: {reason}")
    note(request, _summary(results, request))
    return exit_code.OK


def _document(results: OldResults, *, dry_run: bool) -> dict[str, object]:
    return {
        "schema": "harrow.clean/1",
        "dry_run": dry_run,
        "removed": [str(result.path) for result in results.old],
        "bytes": _size_bytes(results),
        "kept": results.recent,
        "left": [{"path": str(path), "reason": reason} for path, reason in results.skipped],
    }


def _summary(results: OldResults, request: CleanRequest) -> str:
    sweeps = sum(result.is_sweep for result in results.old)
    count = counted(len(results.old) - sweeps, "run")
    if request.sweeps:
        count += f" and {counted(sweeps, 'sweep')}"
    verb = "would be removed" if request.dry_run else "removed"
    return f"{count} {verb} ({_size_text(_size_bytes(results))}), {results.recent} kept"


def _size_bytes(results: OldResults) -> int:
    return sum(result.size_bytes for result in results.old)


def _size_text(size_bytes: int) -> str:
    size, unit = float(size_bytes), 0
    while size >= _STEP and unit + 1 < len(_UNITS):
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else counted(size_bytes, "byte")
