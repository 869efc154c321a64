"""Prints runs in the format of a request."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from harrow.campaigns.record.json_text import json_line
from harrow.campaigns.record.report import document
from harrow.cli.commands.run_tally import FinishedRun, RunPrinter, Tally
from harrow.cli.render.run import RunTable
from harrow.cli.requests.request import CommandRequest
from harrow.cli.session import CI_FORMATS, write_json, write_suites


def printer_of(
    request: CommandRequest, console: Console, *, several_seeds: bool, with_service: bool = False
) -> RunPrinter:
    if request.output_format in CI_FORMATS:
        from harrow.cli.ci.run_suites import RunSuites

        return RunSuites(lambda suites, total: write_suites(console, request, suites, "campaign", total))
    if request.output_format == "json":
        return _JsonDocument(console)
    if request.output_format == "ndjson":
        return _NdjsonStream(console)
    return RunTable(
        console,
        several_seeds=several_seeds,
        quiet=request.quiet,
        verbose=request.verbose,
        with_service=with_service,
    )


class _JsonDocument(RunPrinter):
    """Writes one document of all runs at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._runs: list[Mapping[str, Any]] = []

    def add(self, run: FinishedRun) -> None:
        self._runs.append(run.as_mapping())

    def finish(self, tally: Tally) -> None:
        write_json(self._console, document(self._runs, tally.required.unreached()))


class _NdjsonStream(RunPrinter):
    """Writes a line for each run as soon as it has finished."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def add(self, run: FinishedRun) -> None:
        self._console.file.write(json_line(run.as_mapping()) + "\n")
        self._console.file.flush()
