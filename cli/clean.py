"""``harrow clean``: keep results/ small."""

from pathlib import Path
from typing import Annotated

import typer

from cli.options import DEFAULT_RESULTS, ListFormat, NoColor, Quiet

_KEEP = 20


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("clean")(clean)


def clean(
    keep: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many runs of each campaign stay, the newest.")
    ] = _KEEP,
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the files of runs are.", file_okay=False)
    ] = DEFAULT_RESULTS,
    sweeps: Annotated[
        bool, typer.Option("--sweeps", help="Sweeps too: the newest N of those that are complete stay.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Remove nothing, say what would be removed.")
    ] = False,
    output_format: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.TABLE,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Remove old runs from results/: the newest of each campaign stay.

    The newest are those that were written last. Only folders of runs are removed, with a run.json of
    theirs and nothing that harrow did not write; symbolic links are not followed. What results/latest
    points to stays, unless nothing does.
    """
    from cli.clean_session import clean_session

    raise typer.Exit(
        clean_session(
            results,
            keep,
            with_sweeps=sweeps,
            dry_run=dry_run,
            output_format=output_format,
            quiet=quiet,
            no_color=no_color,
        )
    )
