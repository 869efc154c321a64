"""``harrow trace``: the story of a recorded run."""

from enum import StrEnum
from typing import Annotated

import typer

from cli import completion
from cli.options import DEFAULT_RESULTS, NoColor, Output, Quiet, RunsFolder


class TraceFormat(StrEnum):
    """How a story is told."""

    TABLE = "table"
    JSON = "json"
    MERMAID = "mermaid"
    HTML = "html"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("trace", short_help="The story of a recorded run.")(trace)


def trace(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A folder of results, as results/latest, or the id of a run.",
            autocompletion=completion.runs,
        ),
    ],
    record: Annotated[
        str | None, typer.Option(metavar="VALUE", help="Follow one record from its send to its end.")
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(metavar="FINDING", help="What led to a finding: its rule, its number, or RULE:VALUE."),
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From this time on, as 12.5s.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Up to this time.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every event: fetches, flushes and checkpoints too.")
    ] = False,
    results: RunsFolder = DEFAULT_RESULTS,
    output_format: Annotated[TraceFormat, typer.Option("--format", help="How to print.")] = TraceFormat.TABLE,
    output: Output = None,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Tell the story of a recorded run: what brokers and clients did, in lanes, in the order of time.

    What is routine is folded and counted. With `--format html` it is a page to look through, which
    needs no network; with `--format mermaid` a sequence diagram.
    """
    from cli.interrupts import Interrupts
    from cli.trace_session import TraceRequest, trace_session

    request = TraceRequest(
        run=run,
        results=results,
        record=record,
        around=around,
        begin=begin,
        end=end,
        everything=everything,
        output_format=output_format,
        output=output,
        quiet=quiet,
        no_color=no_color,
    )
    with Interrupts():
        code = trace_session(request)
    raise typer.Exit(code)
