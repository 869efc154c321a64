"""How long a test waits for a process before it calls it stuck. No speed is asserted: a slow machine takes ten times as long."""

from typing import Final

PATIENCE_S: Final = 1_200
