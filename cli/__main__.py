"""What ``harrow`` starts; ``python -m harrow`` is the same."""

import gc
import sys

from harrow.campaigns.version import version
from harrow.compilation import compilation


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if sys.argv[1:] == ["--version"] and _has_printed_version():
        return
    from harrow.cli.interrupts import end_at_once_when_interrupted

    # What it imports takes most of a second in which somebody may press Ctrl-C.
    end_at_once_when_interrupted()
    # Nothing of what is imported is garbage to look for. A session turns the collector on (`exit_code_of`).
    gc.disable()
    from harrow.cli.main import main as run

    run()


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
