"""``harrow list`` and ``harrow explain``: the catalogues."""

import json
from typing import Annotated

import typer

from cli import completion, exit_code
from cli.catalogue import Kind
from cli.options import ListFormat, NoColor


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("list", short_help="List faults, rules, settings, campaigns ...")(list_)
    app.command("explain", short_help="Explain anything that `list` shows.")(explain)


def list_(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="Which catalogue.")],
    output_format: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.TABLE,
    names_only: Annotated[bool, typer.Option("--quiet", "-q", help="Only the names, one a line.")] = False,
    no_color: NoColor = False,
) -> None:
    """List faults, rules, campaigns, probes, releases, behaviours, mutants or settings."""
    from cli.catalogue import entries

    found = entries(kind)
    if output_format is ListFormat.JSON:
        lines = [entry.as_mapping() for entry in found]
        document = {"schema": "harrow.list/1", "list": str(kind), "entries": lines}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    elif names_only:
        typer.echo("".join(f"{entry.name}\n" for entry in found), nl=False)
    else:
        from cli.console import data_console, show
        from cli.render_catalogue import listing

        console = data_console(no_color=no_color)
        show(console, *listing(found, console.width))


def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", autocompletion=completion.names, help="Anything that `harrow list` shows."
        ),
    ],
    output_format: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.TABLE,
    no_color: NoColor = False,
) -> None:
    """Explain a fault, rule, setting, release, behaviour, mutant, probe or campaign."""
    from campaigns.spelling import suggestion
    from cli import catalogue
    from cli.console import data_console, message_console, say, show
    from cli.render_catalogue import explanation

    found = catalogue.explain(name)
    if not found:
        hint = (
            suggestion(name, catalogue.all_names())
            or "; `harrow list faults` shows the faults, `harrow list --help` says what else there is"
        )
        say(message_console(no_color=no_color), f"nothing here is called `{name}`{hint}", style="red")
        raise typer.Exit(exit_code.USAGE)
    if output_format is ListFormat.JSON:
        document = {"schema": "harrow.explain/1", "entries": [entry.as_mapping() for entry in found]}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        console = data_console(no_color=no_color)
        for entry in found:
            show(console, *explanation(entry))
