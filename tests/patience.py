"""How long a test waits for a process before the process counts as stuck.

Tests assert no speed: a slow machine may take ten times as long.
"""

from typing import Final

PATIENCE_S: Final = 1_200
