"""An environment without variables that affect output."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PYTHONPATH: Final = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
"""Lets processes of tests import this checkout and its tests, whatever is installed."""

_OUTPUT_VARIABLES: Final = (
    *("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("HARROW_DEBUG", "PYTHONWARNINGS"),
)


def plain_environment() -> dict[str, str]:
    """Return the environment of the tests without variables that affect output."""
    return {name: value for name, value in os.environ.items() if name not in _OUTPUT_VARIABLES}
