"""What `harrow diff` can be asked."""

from dataclasses import dataclass
from typing import Annotated

import typer

from harrow.cli import completion, options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest(CommandRequest):
    """Show replica logs, or compare two runs or two releases.

    For one run: what the judge found of its records, and how that came about; a row for each offset, a column for each broker, whether
    the record was acked and who read it; below, the moments that decided it.

    For two runs: how their plans differ, the first event that differs, and what became of the logs.

    For two releases, such as 3.9 4.0: which behaviours and defaults are others.

    Ends with 0, or with 2 if there is no such run, moment or partition.
    """

    runs: Annotated[
        list[str],
        options.named(
            "RUN",
            completion.runs,
            "A folder of results, such as results/latest, or the id of a run; or two, or two releases.",
        ),
    ]
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME|EVENT",
            help="Which moment: 12.5s, 12.5 or -1s, the number of an event of trace.jsonl, or end.",
        ),
    ] = "end"
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            "--partition",
            metavar="PARTITION",
            help="Only this one; may be repeated. By default those with a finding, else all.",
        ),
    ] = None
    only_different: Annotated[
        bool, typer.Option("--only-different", help="Fold the rows in which all replicas agree.")
    ] = False
    stages: Annotated[
        bool,
        typer.Option(
            "--stages",
            help="A table for each moment, up to that of --at, in which a LEO, a remote LEO or a high watermark changed.",
        ),
    ] = False
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    output: options.Output = None
    no_color: options.NoColor = False
