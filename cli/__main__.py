"""The entry point of ``harrow`` and of ``python -m harrow``."""

import gc
import os
import sys
from typing import Final

from harrow.campaigns.version import version
from harrow.compilation import compilation

_STDOUT: Final = 1
_STDERR: Final = 2
_USAGE: Final = 2
"""The same as `exit_code.USAGE`. This module imports little before it checks the streams."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if _STDOUT in _fill_closed_streams():
        os.write(_STDERR, b"harrow: standard output is closed: send it to a file, or to /dev/null\n")
        sys.exit(_USAGE)
    if sys.argv[1:] == ["--version"] and _has_printed_version():
        return
    from harrow.cli.interrupts import end_at_once_when_interrupted

    # The imports take most of a second. The user may press Ctrl-C during that time.
    end_at_once_when_interrupted()
    # Imported modules are never garbage. `exit_code_of` turns the collector on again.
    gc.disable()
    from harrow.cli.main import main as run

    run()


def _fill_closed_streams() -> list[int]:
    """Open the null device for each closed standard stream, and return their numbers.

    Otherwise the next file to be opened would get the number of the closed stream, and output would
    end up in that file.
    """
    closed = []
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            closed.append(number)
            # `open` returns the lowest free number, and all lower ones are taken by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: PTH123, SIM115 - stays open as long as the process lives
    return closed


def _has_printed_version() -> bool:
    """Print the version without loading the command line, because scripts ask for it often.

    If that fails, return False: the whole command line has the message and the exit code for it.
    """
    try:
        sys.stdout.write(f"harrow {version()} ({compilation()[0]})\n")
        sys.stdout.flush()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
