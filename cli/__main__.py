"""What ``harrow`` starts; ``python -m harrow`` is the same."""

import gc

from harrow.cli.interrupts import end_at_once_when_interrupted


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # What it imports takes most of a second in which somebody may press Ctrl-C.
    end_at_once_when_interrupted()
    # Nothing of what is imported is garbage to look for. A session turns the collector on (`exit_code_of`).
    gc.disable()
    from harrow.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
