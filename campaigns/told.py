"""What an event of a run says: in whose lane, of which kind, in a few words, and what it takes to say so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from campaigns.spelling import printable

Fields = Mapping[str, Any]
"""The fields of an event by their names."""

FAULTS: Final = "faults"
"""The lane of faults and of the rules for single messages."""

KINDS: Final = {
    "fault": "faults, and messages that they touch",
    "process": "processes start, stop, are paused and wake up",
    "session": "sessions and registrations of brokers",
    "controller": "controllers come and go",
    "election": "leaders are elected, replicas are taken out of the ISR by the controller",
    "epoch": "replicas begin to lead or to follow in a leader epoch, and ask where one ends",
    "isr": "leaders change their ISR",
    "truncation": "logs are opened, truncated, or lose what was not flushed",
    "hw": "high watermarks move",
    "log": "records are appended and copied",
    "ack": "brokers acknowledge records",
    "send": "clients send, and hear what became of it",
    "read": "consumers read",
    "request": "fetches, answers, refusals",
    "disk": "flushes and checkpoints",
    "invariant": "invariants break",
}
"""The kinds of events, and what each tells."""

NOBODY: Final = -1
"""In the place of a broker."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an event says. ``to`` is the lane of whom it concerns besides, None for nobody.

    ``moved`` are a high watermark before and now, where one moves.
    """

    lane: str
    kind: str
    text: str
    to: str | None = None
    routine: bool = False
    moved: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known when an event happens, and its own fields do not say.

    ``partition`` is named where there are several, else it is empty. ``sender`` is the client
    that sent the event's records, ``leader`` whom its replica follows, ``hw_before`` the replica's high
    watermark until now; ``gone`` are the values that the event removed from its log.
    """

    partition: str = ""
    sender: str | None = None
    leader: int | None = None
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


def broker_lane(broker: int) -> str:
    """Return the name of a broker's lane."""
    return f"broker {broker}"


def lane_of(process: str) -> str:
    """Return the lane of a process by the name that traces give it: ``broker-1`` is broker 1."""
    kind, _, number = process.rpartition("-")
    return broker_lane(int(number)) if kind == "broker" and number.isdecimal() else process


def is_broker(lane: str) -> bool:
    """Return whether a lane is a broker's."""
    kind, _, number = lane.partition(" ")
    return kind == "broker" and number.isdecimal()


def records(values: Sequence[str]) -> str:
    """Return values for a sentence."""
    return ", ".join(printable(str(value)) for value in values)


def between(first: int, end: int) -> str:
    """Return the offsets from *first* to before *end*."""
    return f"offset {first}" if end == first + 1 else f"offsets {first}-{end - 1}"


def offsets(fields: Fields) -> str:
    """Return the offsets of the records that an event names."""
    return between(fields["base_offset"], fields["base_offset"] + len(fields["values"]))
