"""The pace of a playback: bursts are slow enough to see, and idle stretches are cut short.

The decisive events of a run often happen within milliseconds, between idle seconds. So each turning
point stays for a while, moves of records share a while, and waits are limited. Times are
microseconds of the displayed cluster clock; divided by the speed, they are wall-clock times.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from harrow.campaigns.story.playback import Playback
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_TURN_US: Final = 3 * US_PER_SECOND
_TURNS_US: Final = 100 * US_PER_SECOND
"""How long a turning point stays, and at most all turning points of a run together."""

_MOVE_US: Final = US_PER_SECOND
_MOVES_US: Final = 40 * US_PER_SECOND
"""The same for moves of records."""

_IDLE_US: Final = 5 * US_PER_SECOND
"""The longest idle time."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Show the state after *position* for *lasts_us*, while the clock advances by *passes_us*."""

    position: int
    lasts_us: int
    passes_us: int


def pace(playback: Playback) -> Iterator[Frame]:
    """Yield the frames of a run, from time zero to its end."""
    events = playback.events
    positions = [
        position
        for position, event in enumerate(events)
        if event.at_us >= 0 and (playback.is_turning_point(position) or playback.is_move(position))
    ]
    turns = sum(map(playback.is_turning_point, positions))
    turn_us = min(_TURN_US, _TURNS_US // max(1, turns))
    move_us = min(_MOVE_US, _MOVES_US // max(1, len(positions) - turns))
    begin = next((position for position, event in enumerate(events) if event.at_us >= 0), len(events)) - 1
    for here, following in pairwise([begin, *positions, None]):
        assert here is not None, "only the last position is followed by none"
        at_us = max(0, events[here].at_us) if here >= 0 else 0
        passes_us = (playback.end_us if following is None else events[following].at_us) - at_us
        stays_us = 0 if here == begin else turn_us if playback.is_turning_point(here) else move_us
        yield Frame(here, max(stays_us, min(passes_us, _IDLE_US)), passes_us)
    if events:
        yield Frame(len(events) - 1, 0, 0)
