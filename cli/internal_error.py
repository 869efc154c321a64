"""Reports an error in harrow itself: writes a file for a bug report, without secrets."""

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


def report(error: Exception, start_ns: int) -> None:
    """Print that harrow has a bug or was upgraded, and where the file for the bug report is."""
    console = message_console()
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    say(console, without_secrets(f"internal error: {type(error).__name__}: {error}{where}"), style="bold red")
    for note in getattr(error, "__notes__", ()):
        say(console, without_secrets(note))
    if _has_changed_since(start_ns):
        say(
            console,
            "harrow's files changed while it ran, perhaps in an upgrade. This may be the cause: run the command again",
        )
    details = without_secrets("".join(traceback.format_exception(error)))
    if os.environ.get("HARROW_DEBUG"):
        for line in details.splitlines():
            console.print(Text(line), soft_wrap=True)
        say(console, "this is a bug in harrow; please report it with the traceback above")
    else:
        say(console, f"this is a bug in harrow; please report it with {_write_report(details)}")
        say(
            console,
            "(the file has the command, the versions and the traceback; HARROW_DEBUG=1 prints the traceback here)",
        )


def _has_changed_since(start_ns: int) -> bool:
    """Return whether a source file changed after harrow started, so that modules may not match."""
    names = [module for module in sys.modules if module.partition(".")[0] == "harrow"]
    for file in (getattr(sys.modules[name], "__file__", None) for name in names):
        try:
            if file is not None and Path(file).stat().st_ctime_ns > start_ns:
                return True
        except OSError:  # The file was deleted, or it is in an archive.
            continue
    return False


def _write_report(details: str) -> str:
    with tempfile.NamedTemporaryFile(
        "w", prefix="harrow-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as stream:
        stream.write(_report_heading() + details)
    return stream.name


def _report_heading() -> str:
    import shlex

    command = without_secrets(shlex.join(["harrow", *sys.argv[1:]]))
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    return f"{command}\nharrow {version()} ({compilation()[0]}), {python}\n\n"
