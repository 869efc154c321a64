"""The commands as they are typed: the arguments and options of each, which are the fields of its request.

A command's docstring is its help, `harrow.cli.commands` has a module of its name that does what is asked
for, and `harrow.cli.requests` one that has its request: a command line names one command, and making the
requests and the parsers of all of them takes longer than running many a campaign.
"""

from importlib import import_module
from typing import Final

from harrow.cli.requests.request import CommandRequest

COMMANDS: Final = (
    *("run", "sweep", "shrink", "replay", "diff", "trace", "regress", "check"),
    *("validate", "list", "explain", "new", "schema", "conform", "target", "heal", "kafka", "clean"),
)


def request_of(command: str) -> type[CommandRequest]:
    """Return what a command is asked."""
    request: type[CommandRequest] = getattr(
        import_module(f"harrow.cli.requests.{command}"), f"{command.capitalize()}Request"
    )
    return request
