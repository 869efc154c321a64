"""How the actors of a story are at a moment of it: up, paused, leading."""

from collections.abc import Sequence

from campaigns.trace_story import StoryEvent


class LaneStates:
    """The actors at a moment, which only moves forward."""

    def __init__(self, events: Sequence[StoryEvent]) -> None:
        self._events = events
        self._next = 0
        self._down: set[str] = {
            event.told.lane for event in events if event.event in ("broker_started", "broker_registered")
        }
        self._paused: set[str] = set()
        self._led: dict[str, set[str]] = {}

    def go_to(self, position: int) -> None:
        """Go forward until an event has happened."""
        while self._next <= position:
            self._apply(self._events[self._next])
            self._next += 1

    def is_down(self, lane: str) -> bool:
        """Return whether an actor is not running."""
        return lane in self._down

    def is_paused(self, lane: str) -> bool:
        """Return whether a broker is paused."""
        return lane in self._paused

    def leads(self, lane: str) -> bool:
        """Return whether a broker takes itself for a leader of some partition."""
        return bool(self._led.get(lane))

    def _apply(self, event: StoryEvent) -> None:
        lane = event.told.lane
        if event.event in ("broker_stopped", "client_stopped"):
            self._down.add(lane)
            self._paused.discard(lane)
            self._led.pop(lane, None)
        elif event.event == "broker_started":
            self._down.discard(lane)
        elif event.event == "broker_paused":
            self._paused.add(lane)
        elif event.event == "broker_resumed":
            self._paused.discard(lane)
        elif event.event == "leader" and event.partition is not None:
            self._led.setdefault(lane, set()).add(event.partition)
        elif event.event == "follower" and event.partition is not None:
            self._led.setdefault(lane, set()).discard(event.partition)
        elif event.event == "client_sent":
            # A client that comes back is told of only by what it does.
            self._down.discard(lane)
