"""`harrow heal`: what was left in force on users' clusters is undone."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from harrow.campaigns.language.problem import FileError
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.cli import exit_code
from harrow.cli.console import message_console, say
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.requests.heal import HealRequest
from harrow.cli.session import Refusal

if TYPE_CHECKING:
    from harrow.live_cluster.users.cluster_file import ClusterFile


def session(request: HealRequest) -> int:
    """Heal what is asked for, and return the exit code."""
    need("live")
    from harrow.live_cluster.users.journal import journals, state_folder

    messages = message_console(no_color=request.no_color)
    wanted = None if request.file is None else request.file.resolve()
    codes = []
    with Interrupts():
        for path in list(journals(state_folder())):
            code = _heal(path, wanted, messages, quiet=request.quiet)
            if code is not None:
                codes.append(code)
    if not codes and request.file is not None and not request.file.exists():
        raise Refusal(f"{request.file}: no such file, and nothing is in force by this name")
    if not codes and not request.quiet:
        say(messages, "nothing is in force")
    return max(codes, default=exit_code.OK)


def _heal(path: Path, wanted: Path | None, messages: Console, *, quiet: bool) -> int | None:
    """Heal what a journal has, and return an exit code; None for the journal of another cluster."""
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.healing import Healing
    from harrow.live_cluster.users.journal import Journal

    try:
        with Journal(path, Path(), Path()) as journal:
            # However the path was written when the run began.
            if wanted not in (None, journal.cluster_file.resolve()):
                return None
            file = _file(journal.cluster_file, messages)
            with temporary_folder() as folder:

                def tell(line: str) -> None:
                    if not quiet:
                        say(messages, line)

                Healing(journal, file, folder / "commands.log", tell).heal()
            tell(f"{journal.cluster_file}: nothing is in force any more")
    except LiveError as error:
        say(messages, str(error), style="red")
        return exit_code.BROKEN
    return exit_code.OK


def _file(path: Path, messages: Console) -> "ClusterFile | None":
    """Return the file of a cluster, None where it cannot be read any more: what undoes a fault stands in the journal."""
    from harrow.live_cluster.users.cluster_file import load_cluster_file

    try:
        return load_cluster_file(path)
    except FileError as error:
        say(messages, f"{error}; going on without it", style="yellow")
        return None
