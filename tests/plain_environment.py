"""An environment in which nothing says how output should look."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PYTHONPATH: Final = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
"""Where a process that a test starts finds harrow and the tests, whatever is installed."""

_SHAPING: Final = (
    *("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("HARROW_DEBUG", "PYTHONWARNINGS"),
)


def plain_environment() -> dict[str, str]:
    """Return the environment of the tests without what shapes output."""
    return {name: value for name, value in os.environ.items() if name not in _SHAPING}
