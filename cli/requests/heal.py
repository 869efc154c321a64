"""What `harrow heal` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from harrow.cli import options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class HealRequest(CommandRequest):
    """Undo what a killed run has left on your clusters.

    Before harrow does something to a cluster of yours it writes down what undoes it, below HARROW_STATE or where the system keeps
    the state of programs. What is written there is undone: links are restored, brokers resumed and started, topics deleted.
    """

    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="The file of a cluster; by default all clusters.", dir_okay=False
        ),
    ] = None
    quiet: options.NoMessages = False
    no_color: options.NoColor = False
