"""`harrow new`: a campaign to start from."""

import shlex
from pathlib import Path

import typer

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.template import new_campaign
from harrow.cli import exit_code
from harrow.cli.completion import SUFFIXES
from harrow.cli.console import message_console, say
from harrow.cli.requests.new import NewRequest
from harrow.cli.session import write_new


def session(request: NewRequest) -> int:
    """Write the file, say what to do with it, and return the exit code."""
    name = request.name
    if not Path(name).name:
        raise typer.BadParameter("a campaign needs a name", param_hint="NAME")
    path = Path(name if name.endswith(SUFFIXES) else f"{name}.yaml")
    write_new(path, new_campaign(path.stem))
    typer.echo(printable(str(path)))
    say(message_console(), f"now edit it, and try: harrow run {shlex.quote(str(path))}")
    return exit_code.OK
