"""One `harrow clean`: find what is old, remove it, say what was removed."""

import json
from pathlib import Path
from typing import Final

import typer
from rich.console import Console

from campaigns.old_results import Found, Result, old_results, remove
from campaigns.spelling import counted
from cli import exit_code
from cli.console import message_console, say
from cli.interrupts import Interrupts
from cli.options import ListFormat

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_STEP: Final = 1_000


def clean_session(
    results: Path,
    keep: int,
    *,
    with_sweeps: bool,
    dry_run: bool,
    output_format: ListFormat,
    quiet: bool,
    no_color: bool,
) -> int:
    """Remove what is old, or only say what it is, and return the exit code."""
    messages = message_console(no_color=no_color)
    removed: list[Result] = []
    if not results.exists():
        say(messages, f"nothing to remove: there is no folder {results}")
        return exit_code.OK
    try:
        with Interrupts() as interrupts:
            found = old_results(results, keep, with_sweeps=with_sweeps)
            for result in found.old:
                with interrupts.shielded():
                    if not dry_run:
                        remove(results, result)
                    removed.append(result)
    except OSError as error:
        say(messages, f"cannot go on: {error.strerror or error}: {error.filename}", style="red")
        say(messages, f"{counted(len(removed), 'result')} removed before that")
        return exit_code.USAGE
    except KeyboardInterrupt:
        say(messages, f"interrupted: {counted(len(removed), 'result')} removed")
        return exit_code.INTERRUPTED
    if output_format is ListFormat.JSON:
        typer.echo(json.dumps(_document(found, dry_run=dry_run), ensure_ascii=False, indent=2))
        return exit_code.OK
    if dry_run:
        typer.echo("".join(f"{result.path}\n" for result in removed), nl=False)
    if not quiet:
        _say(messages, found, with_sweeps=with_sweeps, dry_run=dry_run)
    return exit_code.OK


def _document(found: Found, *, dry_run: bool) -> dict[str, object]:
    return {
        "schema": "harrow.clean/1",
        "dry_run": dry_run,
        "removed": [str(result.path) for result in found.old],
        "bytes": sum(result.size_bytes for result in found.old),
        "kept": found.kept,
        "left": [{"path": str(path), "reason": reason} for path, reason in found.left],
    }


def _say(messages: Console, found: Found, *, with_sweeps: bool, dry_run: bool) -> None:
    for path, reason in found.left:
        say(messages, f"left alone: {path}: {reason}")
    count = counted(sum(not result.is_sweep for result in found.old), "run")
    if with_sweeps:
        count += f" and {counted(sum(result.is_sweep for result in found.old), 'sweep')}"
    verb = "would be removed" if dry_run else "removed"
    size = _size_text(sum(result.size_bytes for result in found.old))
    say(messages, f"{count} {verb} ({size}), {found.kept} kept")


def _size_text(size_bytes: int) -> str:
    size, unit = float(size_bytes), 0
    while size >= _STEP and unit + 1 < len(_UNITS):
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else counted(size_bytes, "byte")
