"""The report of an error in harrow itself, with what a bug report needs and without secrets."""

import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path

from harrow.campaigns.record.redaction import without_secrets
from harrow.campaigns.version import version
from harrow.cli.console import message_console, say
from harrow.cli.text import Text
from harrow.compilation import compilation


def report(error: Exception, begun_ns: int) -> None:
    """Print that there is a bug (or an upgrade), where its traceback is, and how to report it."""
    console = message_console()
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    say(console, without_secrets(f"internal error: {type(error).__name__}: {error}{where}"), style="bold red")
    for note in getattr(error, "__notes__", ()):
        say(console, without_secrets(note))
    if _has_changed_since(begun_ns):
        say(
            console,
            "harrow changed on disk while it ran, perhaps by an upgrade: this may be the cause; run the command again",
        )
    details = without_secrets("".join(traceback.format_exception(error)))
    if os.environ.get("HARROW_DEBUG"):
        for line in details.splitlines():
            console.print(Text(line), soft_wrap=True)
        say(console, "this is a bug in harrow; please report it with the traceback above")
    else:
        say(console, f"this is a bug in harrow; please report it with {_write_down(details)}")
        say(
            console,
            "(it has the command, the versions and the traceback; HARROW_DEBUG=1 prints the traceback here)",
        )


def _has_changed_since(begun_ns: int) -> bool:
    """Return whether a source file changed after its import; later imports may not match."""
    names = [module for module in sys.modules if module.partition(".")[0] == "harrow"]
    for file in (getattr(sys.modules[name], "__file__", None) for name in names):
        try:
            if file is not None and Path(file).stat().st_ctime_ns > begun_ns:
                return True
        except OSError:  # The file was deleted, or it is in an archive.
            continue
    return False


def _write_down(details: str) -> str:
    with tempfile.NamedTemporaryFile(
        "w", prefix="harrow-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as stream:
        stream.write(_circumstances() + details)
    return stream.name


def _circumstances() -> str:
    import shlex

    command = without_secrets(shlex.join(["harrow", *sys.argv[1:]]))
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    return f"{command}\nharrow {version()} ({compilation()[0]}), {python}\n\n"
