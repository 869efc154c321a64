"""``harrow replay``: run a recorded run again."""

from typing import Annotated

import typer

from cli import completion
from cli.options import DEFAULT_RESULTS, NoColor, Output, Quiet, ReportFormat, RunsFolder


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay", short_help="Run a recorded run again and compare.")(replay)


def replay(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            autocompletion=completion.runs,
            help="A folder of results, as results/latest, or the id of a run.",
        ),
    ],
    results: RunsFolder = DEFAULT_RESULTS,
    output_format: Annotated[
        ReportFormat, typer.Option("--format", help="How to print.")
    ] = ReportFormat.TABLE,
    output: Output = None,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Run a recorded run again and compare it, event by event.

    Ends with 0 when the traces are the same, with 1 when they are not, and with 2 when the
    recorded run is damaged. Where they part, both sides are shown.
    """
    from cli.interrupts import Interrupts
    from cli.replay_session import replay_session

    with Interrupts():
        code = replay_session(
            run, results, output_format=output_format, output=output, quiet=quiet, no_color=no_color
        )
    raise typer.Exit(code)
