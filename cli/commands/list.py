"""`harrow list`: a catalogue."""

import typer

from harrow.cli import exit_code
from harrow.cli.console import data_console, show
from harrow.cli.render.catalogue import entries, with_targets
from harrow.cli.render.catalogue_tables import listing
from harrow.cli.requests.list import ListRequest
from harrow.cli.session import write_json


def session(request: ListRequest) -> int:
    """Print a catalogue, and return the exit code."""
    console, found = data_console(no_color=request.no_color), with_targets(entries(request.kind))
    if request.output_format == "json":
        lines = [entry.as_mapping() for entry in found]
        write_json(console, {"schema": "harrow.list/1", "list": request.kind, "entries": lines})
    elif request.quiet:
        typer.echo("".join(f"{entry.name}\n" for entry in found), nl=False)
    else:
        show(console, *listing(found, console.width))
    return exit_code.OK
