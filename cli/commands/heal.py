"""`harrow heal`: undoes the faults that are still in force on users' clusters."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from harrow.campaigns.language.problem import FileError
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.cli import exit_code
from harrow.cli.console import message_console, say
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.requests.real_brokers import HealRequest
from harrow.cli.session import Refusal, note

if TYPE_CHECKING:
    from harrow.live_cluster.users.target_file import TargetFile


def session(request: HealRequest) -> int:
    need("live")
    from harrow.live_cluster.users.journal import journals, state_folder

    with Interrupts():
        codes = [
            code for path in list(journals(state_folder())) if (code := _heal(path, request)) is not None
        ]
    if not codes and request.file is not None and not request.file.exists():
        raise Refusal(f"{request.file}: no such file, and no fault is in force under this name")
    if not codes:
        note(request, "no fault is in force")
    return max(codes, default=exit_code.OK)


def _heal(path: Path, request: HealRequest) -> int | None:
    """Heal the cluster of a journal and return an exit code; None for a cluster not requested."""
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.healing import Healing
    from harrow.live_cluster.users.journal import Journal

    messages = message_console(no_color=request.no_color)
    try:
        with Journal(path, Path(), Path()) as journal:
            # The run and the user may have written the path in different ways.
            if request.file is not None and os.path.realpath(request.file) != os.path.realpath(
                journal.cluster_file
            ):
                return None
            file = _file(journal.cluster_file, messages)
            with temporary_folder() as folder:
                Healing(journal, file, folder / "commands.log", partial(note, request)).heal()
            note(request, f"{journal.cluster_file}: no fault is in force any more")
    except LiveError as error:
        say(messages, str(error), style="red")
        return exit_code.BROKEN
    return exit_code.OK


def _file(path: Path, messages: Console) -> "TargetFile | None":
    """Return the target file. If it is unreadable, return None, because the journal suffices."""
    from harrow.live_cluster.users.target_file import load_target_file

    try:
        return load_target_file(path)
    except FileError as error:
        say(messages, f"{error}; continuing without it", style="yellow")
        return None
