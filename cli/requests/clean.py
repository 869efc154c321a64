"""What `harrow clean` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from harrow.cli import options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest(CommandRequest):
    """Remove old runs; the newest of each campaign stay.

    The newest are the last ones written. harrow removes only folders of runs, which have a run.json and
    nothing that harrow did not write; it does not follow symbolic links. The run that results/latest
    points to stays, unless --keep is 0.
    """

    keep: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many runs of each campaign stay, the newest.")
    ] = 20
    results: Annotated[Path, options.folder("Where the files of runs are.")] = options.DEFAULT_RESULTS
    sweeps: Annotated[bool, typer.Option("--sweeps", help="Sweeps too: the newest N complete ones stay.")] = (
        False
    )
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; print what would go.")] = False
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: options.NoMessages = False
    no_color: options.NoColor = False
