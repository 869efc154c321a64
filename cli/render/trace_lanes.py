"""How the actors of a story are at a moment of it: up, paused, leading."""

from harrow.campaigns.story.narration import broker_of_lane
from harrow.campaigns.story.run_state import before
from harrow.campaigns.story.trace_story import TraceStory
from harrow.checks.replay.cluster_state import BrokerState
from harrow.checks.replay.partition_state import LEADER
from harrow.cluster_model.events import ClientSent, ClientStopped


class LaneStates:
    """The actors at a moment, which only moves forward."""

    def __init__(self, story: TraceStory) -> None:
        self._story = story
        self._state = before(story.run)
        self._next = 0
        self._stopped_clients: set[str] = set()

    def go_to(self, position: int) -> None:
        """Go forward until an event has happened."""
        happened = self._story.run
        while self._next <= position:
            self._state.advance(happened.events[self._next], happened.numbers[self._next])
            event = self._story.events[self._next].source
            if isinstance(event, ClientStopped):
                self._stopped_clients.add(event.client)
            elif isinstance(event, ClientSent):
                # A client that comes back is told of only by what it does.
                self._stopped_clients.discard(event.client)
            self._next += 1

    def is_down(self, lane: str) -> bool:
        broker = self._broker(lane)
        return lane in self._stopped_clients if broker is None else not broker.is_live

    def is_paused(self, lane: str) -> bool:
        broker = self._broker(lane)
        return broker is not None and broker.is_paused

    def leads(self, lane: str) -> bool:
        """Return whether a broker takes itself for a leader of some partition."""
        broker = self._broker(lane)
        return broker is not None and any(
            partition.replicas[broker.broker].role == LEADER
            for partition in self._state.partitions.values()
            if broker.broker in partition.replicas
        )

    def _broker(self, lane: str) -> BrokerState | None:
        number = broker_of_lane(lane)
        return None if number is None else self._state.brokers.get(number)
