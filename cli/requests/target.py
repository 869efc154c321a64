"""What `harrow target` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from harrow.cli import options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRequest(CommandRequest):
    """Look at a cluster of yours, and see what can run there.

    `check` connects and asks, and changes nothing: which brokers there are, whether each answers, which faults there are commands for,
    which campaigns can run there, and what keeps others from it (`-v`: each of them). `schema` prints the JSON Schema of such files.
    """

    action: Annotated[Literal["check", "schema"], typer.Argument(metavar="ACTION", help="check or schema.")]
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The file of the cluster.", dir_okay=False)
    ] = None
    campaigns: Annotated[
        list[str] | None, typer.Argument(metavar="[CAMPAIGN]...", help="By default those of the library.")
    ] = None
    overrides: options.Overrides = None
    verbose: options.Verbose = False
    no_color: options.NoColor = False
