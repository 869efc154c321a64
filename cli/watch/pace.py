"""How fast a run is played: bursts slow enough to be seen, idle stretches cut short.

What decides a run often happens within milliseconds, between seconds in which nothing does. So each turning
point stays for a while, moves of records share a while, and the next is never long in coming. Times are
microseconds of the cluster's clock as it is shown: divided by the speed they are the time that it takes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harrow.campaigns.story.playback import Playback
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_TURN_US: Final = 3 * US_PER_SECOND
_TURNS_US: Final = 100 * US_PER_SECOND
"""What a turning point stays, and what all of a run stay together at most."""

_MOVE_US: Final = US_PER_SECOND
_MOVES_US: Final = 40 * US_PER_SECOND
"""The same of records' moves."""

_IDLE_US: Final = 5 * US_PER_SECOND
"""No longer than this nothing happens."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Show what is after the event at *position* for *lasts_us*, while the clock goes on by *passes_us*."""

    position: int
    lasts_us: int
    passes_us: int


def pace(playback: Playback) -> Iterator[Frame]:
    """Yield the steps in which a run is played, from time zero to its end."""
    told = playback.events
    seen = [
        position
        for position, event in enumerate(told)
        if event.at_us >= 0 and (playback.is_turning_point(position) or playback.is_move(position))
    ]
    turns = sum(map(playback.is_turning_point, seen))
    turn_us = min(_TURN_US, _TURNS_US // max(1, turns))
    move_us = min(_MOVE_US, _MOVES_US // max(1, len(seen) - turns))
    begin = next((position for position, event in enumerate(told) if event.at_us >= 0), len(told)) - 1
    places = [begin, *seen]
    for here, following in zip(places, [*seen, None], strict=True):
        at_us = max(0, told[here].at_us) if here >= 0 else 0
        passes_us = (playback.end_us if following is None else told[following].at_us) - at_us
        stays_us = 0 if here == begin else turn_us if playback.is_turning_point(here) else move_us
        yield Frame(here, max(stays_us, min(passes_us, _IDLE_US)), passes_us)
    if told:
        yield Frame(len(told) - 1, 0, 0)
