"""``harrow diff``: the replica logs of a run side by side, or two runs."""

from typing import Annotated

import typer

from cli import completion
from cli.options import DEFAULT_RESULTS, ListFormat, NoColor, Output, RunsFolder


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff", short_help="Replica logs side by side at any moment; two runs side by side.")(diff)


def diff(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="A folder of results, as results/latest, or the id of a run; or two.",
            autocompletion=completion.runs,
        ),
    ],
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME|EVENT",
            help="Which moment: 12.5s or -1s, the number of an event of trace.jsonl, or end.",
        ),
    ] = "end",
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARTITION", help="Which one; may be repeated. By default those with a finding, else all."
        ),
    ] = None,
    only_different: Annotated[
        bool, typer.Option("--only-different", help="Fold everything that all replicas have.")
    ] = False,
    results: RunsFolder = DEFAULT_RESULTS,
    output_format: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.TABLE,
    output: Output = None,
    no_color: NoColor = False,
) -> None:
    """Show the replica logs of a run side by side, as they were at any moment.

    A row for each offset, a column for each broker, with who was acked and who has read what; below, what became of
    the records that were lost, and the moments at which that was decided.

    With two runs: what differs in their plans, the first event at which they part, and what became of the logs.

    Ends with 0, or with 2 when there is no such run, moment or partition.

    """
    from cli.diff_session import diff_session
    from cli.interrupts import Interrupts

    with Interrupts():
        code = diff_session(
            runs,
            results,
            at=at,
            partitions=partition or [],
            only_different=only_different,
            output_format=output_format,
            output=output,
            no_color=no_color,
        )
    raise typer.Exit(code)
