"""`harrow list`: prints one catalogue."""

import typer

from harrow.cli import exit_code
from harrow.cli.console import data_console, show
from harrow.cli.render.catalogue import entries, with_targets
from harrow.cli.render.catalogue_tables import listing
from harrow.cli.requests.authoring import ListRequest
from harrow.cli.session import write_json


def session(request: ListRequest) -> int:
    console, catalogue = data_console(no_color=request.no_color), with_targets(entries(request.kind))
    if request.output_format == "json":
        mappings = [entry.as_mapping() for entry in catalogue]
        write_json(console, {"schema": "harrow.list/1", "list": request.kind, "entries": mappings})
    elif request.quiet:
        typer.echo("".join(f"{entry.name}\n" for entry in catalogue), nl=False)
    else:
        show(console, *listing(catalogue, console.width))
    return exit_code.OK
