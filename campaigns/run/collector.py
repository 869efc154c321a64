"""Keeps Python's garbage collector from scanning objects that stay alive."""

import gc
from typing import Final

YOUNG_OBJECTS_MAX: Final = 100_000
"""How many more objects may be created than freed before the collector looks for garbage.

With Python's default of 700, it would scan the whole result of each run as soon as the run has
ended, which takes a tenth of the time of `standard`. A finished cluster leaves only a few thousand
objects in cycles.
"""


def collect_rarely() -> None:
    """Exempt all present objects from collections, and let the collector scan others rarely.

    A command calls this after its imports.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, *gc.get_threshold()[1:])
