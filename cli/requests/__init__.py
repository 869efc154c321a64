"""The arguments and options of each command, as the fields of its request.

The docstring of a request is the help of its command. A command line names one command, so only
the module with its request is imported; `harrow.cli.commands` has the module that executes it.
"""

from importlib import import_module
from typing import Final

from harrow.cli.requests.request import CommandRequest

GROUPS: Final = {
    "Judge a cluster": ("assess", "advise"),
    "Run campaigns": ("run", "serve", "sweep", "regress", "replay"),
    "Understand results": ("diff", "trace", "shrink", "check"),
    "Write campaigns": ("new", "import", "validate", "schema"),
    "Look up": ("list", "explain"),
    "Real brokers": ("conform", "target", "heal", "kafka"),
    "Tidy up": ("clean",),
}
"""The commands by purpose, in the order of the help."""
COMMANDS: Final = tuple(command for commands in GROUPS.values() for command in commands)
_MODULES: Final = {
    **dict.fromkeys(("regress", "shrink"), "failures"),
    **dict.fromkeys(("replay", "diff", "trace", "check", "clean"), "results"),
    **dict.fromkeys(("new", "import", "validate", "schema", "list", "explain"), "authoring"),
    **dict.fromkeys(("conform", "target", "heal", "kafka"), "real_brokers"),
}
"""The module with the request of a command, unless the two have the same name."""


def request_of(command: str) -> type[CommandRequest]:
    module = import_module(f"harrow.cli.requests.{_MODULES.get(command, command)}")
    request: type[CommandRequest] = getattr(module, f"{command.capitalize()}Request")
    return request
