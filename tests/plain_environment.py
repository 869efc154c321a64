"""An environment in which nothing says how output should look."""

import os
from typing import Final

_SHAPING: Final = (
    *("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("HARROW_DEBUG", "PYTHONWARNINGS"),
)


def plain_environment() -> dict[str, str]:
    """Return the environment of the tests without what shapes output."""
    return {name: value for name, value in os.environ.items() if name not in _SHAPING}
