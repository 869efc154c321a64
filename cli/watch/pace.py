"""The pace of a playback: bursts play slowly enough to be seen, and idle time is cut short.

The decisive events of a run often happen within milliseconds, between idle seconds. So each turning
point stays on screen for a while, and so does each event that moves a record along. For the whole
run, the time on screen has a limit for each of these two kinds. The time between two events has a
limit too. Times are microseconds at speed 1. Divided by the speed, they are wall-clock times.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from harrow.campaigns.story.playback import Playback
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_TURNING_POINT_US: Final = 3 * US_PER_SECOND
"""How long one turning point stays on screen."""

_TURNING_POINTS_MAX_US: Final = 100 * US_PER_SECOND
"""How long all turning points of a run stay on screen, at most."""

_MOVE_US: Final = US_PER_SECOND
"""How long one event that moves a record along stays on screen (`Playback.is_move`)."""

_MOVES_MAX_US: Final = 40 * US_PER_SECOND
"""How long all such events of a run stay on screen, at most."""

_IDLE_MAX_US: Final = 5 * US_PER_SECOND
"""How long an idle time between two events is shown, at most."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The state after the event at *position*.

    It is on screen for *shown_us*. In this time, the displayed clock advances by *advance_us*.
    """

    position: int
    shown_us: int
    advance_us: int


def pace(playback: Playback) -> Iterator[Frame]:
    """Yield the frames of a run, from time zero to its end."""
    events = playback.events
    positions = [
        position
        for position, event in enumerate(events)
        if event.at_us >= 0 and (playback.is_turning_point(position) or playback.is_move(position))
    ]
    turning_points = sum(map(playback.is_turning_point, positions))
    turning_point_us = min(_TURNING_POINT_US, _TURNING_POINTS_MAX_US // max(1, turning_points))
    move_us = min(_MOVE_US, _MOVES_MAX_US // max(1, len(positions) - turning_points))
    start = next((position for position, event in enumerate(events) if event.at_us >= 0), len(events)) - 1
    for position, next_position in pairwise([start, *positions, None]):
        assert position is not None, "only the last position has no next one"
        at_us = max(0, events[position].at_us) if position >= 0 else 0
        advance_us = (playback.end_us if next_position is None else events[next_position].at_us) - at_us
        if position == start:
            shown_min_us = 0
        else:
            shown_min_us = turning_point_us if playback.is_turning_point(position) else move_us
        yield Frame(position, max(shown_min_us, min(advance_us, _IDLE_MAX_US)), advance_us)
    if events:
        yield Frame(len(events) - 1, 0, 0)
