"""The narration of an event: its lane, topic and text, and the context that the text needs."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from harrow.campaigns.story.topics import StoryTopic
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import node_text

FAULTS: Final = "faults"
"""The lane of faults and of message rules."""


@dataclass(frozen=True, slots=True)
class Narration:
    """The words for an event, and the lane of the process on which it happens.

    ``to`` is the lane of a second process that the event concerns, if any. A story that does not
    show every event folds those that are ``routine``.
    """

    lane: str
    topic: StoryTopic
    text: str
    to: str | None = None
    routine: bool = False


@dataclass(frozen=True, slots=True)
class EventContext:
    """The context of an event: facts that its fields lack.

    ``partition`` is empty if the run has only one. ``sender`` is the client that sent the event's
    records. The other attributes are about the replica on which the event happens: ``leader`` is
    the lane of the leader that it follows, ``hw_before`` is its high watermark before the event,
    and ``removed`` are the values of the records that the event removed from its log.
    """

    partition: str = ""
    sender: str | None = None
    leader: str | None = None
    hw_before: int | None = None
    removed: Sequence[str] = ()

    @property
    def which(self) -> str:
        """The partition as the object of a verb: `` t-0``."""
        return f" {self.partition}" if self.partition else ""

    @property
    def of(self) -> str:
        """The partition as the owner of something: `` of t-0``."""
        return f" of {self.partition}" if self.partition else ""

    @property
    def to(self) -> str:
        """The partition as a destination: `` to t-0``."""
        return f" to {self.partition}" if self.partition else ""

    @property
    def on(self) -> str:
        """The partition as a place: `` on t-0``."""
        return f" on {self.partition}" if self.partition else ""


@cache
def broker_lane(broker: int) -> str:
    """Return the lane of a broker, or of a server of the control plane."""
    return node_text(broker)


def lane_of(process: str) -> str:
    """Return the lane of a process with this name in traces: ``broker-1`` has ``broker 1``."""
    kind, _, number = process.rpartition("-")
    return broker_lane(int(number)) if kind == "broker" and number.isdecimal() else process


def broker_of_lane(lane: str) -> int | None:
    """Return the broker that has a lane, None for any other lane."""
    kind, _, number = lane.partition(" ")
    return int(number) if kind == "broker" and number.isdecimal() else None
