"""``harrow check``: judge a recorded history."""

from typing import Annotated

import typer

from cli import completion
from cli.options import NoColor, Output, Quiet, ReportFormat, Verbose


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", short_help="Judge a recorded history, of any cluster.")(check)


def check(
    history: Annotated[
        str,
        typer.Argument(
            metavar="HISTORY",
            help="A file of JSON lines, plain or gzipped, a folder of results, or - for standard input.",
        ),
    ],
    allowed: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="NAME",
            autocompletion=completion.anomalies,
            help="Permit an anomaly; may be repeated.",
        ),
    ] = None,
    demanded: Annotated[
        list[str] | None,
        typer.Option(
            "--demand",
            metavar="NAME",
            autocompletion=completion.anomalies,
            help="Permit an anomaly to nobody, whatever Kafka promises.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="State a Kafka setting of the clients or the cluster, as acks=1; may be repeated.",
        ),
    ] = None,
    output_format: Annotated[
        ReportFormat, typer.Option("--format", help="How to print.")
    ] = ReportFormat.TABLE,
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Judge a recorded history: what clients invoked, and what came back.

    The history may come from any cluster: harrow's model, a Jepsen test, or your own. It has one
    operation a line, as docs/history.md says. Whatever is not stated with --set counts as promised:
    acks=all, idempotence, transactions, read_committed, no unclean election, nothing unflushed.
    """
    from cli.check_session import CheckRequest, check_session
    from cli.interrupts import Interrupts

    request = CheckRequest(
        history=history,
        allowed=tuple(allowed or ()),
        demanded=tuple(demanded or ()),
        settings=tuple(settings or ()),
    )
    with Interrupts():
        code = check_session(
            request,
            output_format=output_format,
            output=output,
            quiet=quiet,
            verbose=verbose,
            no_color=no_color,
        )
    raise typer.Exit(code)
