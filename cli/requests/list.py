"""What `harrow list` can be asked."""

from dataclasses import dataclass
from typing import Annotated

import typer

from harrow.cli import options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest(CommandRequest):
    """List faults, rules, settings, campaigns and more."""

    kind: Annotated[options.Kind, typer.Argument(metavar="KIND", help="Which catalogue.")]
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the names, one a line.")] = False
    no_color: options.NoColor = False
