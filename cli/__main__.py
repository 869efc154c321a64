"""What ``harrow`` starts; ``python -m harrow`` is the same."""

import gc
import os
import sys
from typing import Final

from harrow.campaigns.version import version
from harrow.compilation import compilation

_STDOUT: Final = 1
_STDERR: Final = 2
_USAGE: Final = 2
"""`exit_code.USAGE`. This module imports as little as it can before it has looked at the streams."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if _STDOUT in _fill_closed_streams():
        os.write(_STDERR, b"harrow: standard output is closed: send it to a file, or to /dev/null\n")
        sys.exit(_USAGE)
    if sys.argv[1:] == ["--version"] and _has_printed_version():
        return
    from harrow.cli.interrupts import end_at_once_when_interrupted

    # What it imports takes most of a second in which somebody may press Ctrl-C.
    end_at_once_when_interrupted()
    # Nothing of what is imported is garbage to look for. A session turns the collector on (`exit_code_of`).
    gc.disable()
    from harrow.cli.main import main as run

    run()


def _fill_closed_streams() -> list[int]:
    """Open the null device in place of standard streams that are closed, and return their numbers.

    The next file that is opened would take the place: a result would get what is printed.
    """
    closed = []
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            closed.append(number)
            # The lowest number that is free, and all lower ones are taken by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: PTH123, SIM115 - for as long as the process lives
    return closed


def _has_printed_version() -> bool:
    """Print the version without loading what reads a command line; scripts ask for it again and again.

    Where it cannot be printed the whole command line has the message and the exit code for that.
    """
    try:
        sys.stdout.write(f"harrow {version()} ({compilation()[0]})\n")
        sys.stdout.flush()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
