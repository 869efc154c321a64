"""Whether harrow's own packages can be imported here.

They have everyday names. A project that has a package of the same name, and puts its
root before the installed packages, hides harrow's; that is said, not shown as a traceback.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

_ROOMS: Final = ("cluster_model", "faults", "checks", "campaigns", "cli")
_HOME: Final = Path(__file__).resolve().parents[1]


class RoomHidden(Exception):
    """A package of harrow's is hidden by another."""


def check_rooms() -> None:
    """Do nothing if harrow can be imported.

    Raises:
        RoomHidden: it cannot.

    """
    for room in _ROOMS:
        spec = find_spec(room)
        origin = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
        if origin is None or origin.parent != _HOME / room:
            raise RoomHidden(
                f"harrow cannot run here: its package `{room}` is hidden by {origin or f'another {room}'}. "
                "Start `pytest` rather than `python -m pytest`, with --import-mode=importlib, "
                "to keep the project's folders out of the way of installed packages."
            )
