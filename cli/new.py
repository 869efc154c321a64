"""``harrow new``: a campaign to start from."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cli import exit_code

_SUFFIXES = (".yaml", ".yml")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("new")(new)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The campaign's name, or the file to write.")],
) -> None:
    """Write a commented campaign to start from.

    NAME becomes NAME.yaml in this folder; a file that exists is left alone.
    """
    from campaigns.template import new_campaign
    from cli.console import message_console, say

    if not Path(name).name:
        raise typer.BadParameter("a campaign needs a name", param_hint="NAME")
    path = Path(name) if name.endswith(_SUFFIXES) else Path(f"{name}.yaml")
    messages = message_console()
    text = new_campaign(path.stem)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError as error:
        say(messages, f"{path} exists already and is left as it is", style="red")
        raise typer.Exit(exit_code.USAGE) from error
    except OSError as error:
        say(messages, f"cannot write {path}: {error.strerror or error}", style="red")
        raise typer.Exit(exit_code.USAGE) from error
    typer.echo(path)
    say(messages, f"now edit it, and try: harrow run {shlex.quote(str(path))}")
