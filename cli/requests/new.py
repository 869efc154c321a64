"""What `harrow new` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest(CommandRequest):
    """Write a commented campaign to start from.

    NAME becomes NAME.yaml in this folder; an existing file stays as it is. With --from it is about a cluster of yours: its brokers,
    racks, topics, replicas and settings.
    """

    name: Annotated[str, typer.Argument(metavar="NAME", help="The campaign's name, or the file to write.")]
    cluster: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", dir_okay=False, help="The file of a cluster of yours."),
    ] = None
