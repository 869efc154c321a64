"""How long a test waits for a process before the process counts as stuck.

Tests assert no speed: a slow machine may take ten times as long.
"""

import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 1_200


def act_until(condition: Callable[[], object], act: Callable[[], object] = lambda: None) -> None:
    """Repeat *act* until a condition holds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "the condition never held"
        act()
