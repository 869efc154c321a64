"""What an event of a run says: its lane, its topic and a few words; and the context that the words need."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from harrow.campaigns.story.topics import Topic
from harrow.cluster_model.topology import node_text

FAULTS: Final = "faults"
"""The lane of faults and of the rules for single messages."""


@dataclass(frozen=True, slots=True)
class Narration:
    """What an event says. ``to`` is the lane of the other process that it concerns, None without one."""

    lane: str
    topic: Topic
    text: str
    to: str | None = None
    routine: bool = False


@dataclass(frozen=True, slots=True)
class EventContext:
    """What is known when an event happens, and its own fields do not say.

    ``partition`` is named where there are several, else it is empty. ``sender`` is the client
    that sent the event's records, ``leader`` the lane of the leader that its replica follows, ``hw_before`` the
    replica's high watermark until now; ``gone`` are the values that the event removed from its log.
    """

    partition: str = ""
    sender: str | None = None
    leader: str | None = None
    hw_before: int | None = None
    gone: Sequence[str] = ()

    @property
    def which(self) -> str:
        """The partition as an object: `` t-0``."""
        return f" {self.partition}" if self.partition else ""

    @property
    def of(self) -> str:
        """The partition as an attribute: `` of t-0``."""
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
    """Return the lane of a broker, or of a server of the control plane that is none."""
    return node_text(broker)


def lane_of(process: str) -> str:
    """Return the lane of a process by the name that traces give it: ``broker-1`` is broker 1."""
    kind, _, number = process.rpartition("-")
    return broker_lane(int(number)) if kind == "broker" and number.isdecimal() else process


def broker_of_lane(lane: str) -> int | None:
    """Return the broker whose lane it is, None for any other lane."""
    kind, _, number = lane.partition(" ")
    return int(number) if kind == "broker" and number.isdecimal() else None
