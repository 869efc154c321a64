"""Records the trace of a run: its events, in order. Subscribers receive each event at once.

An event is stored as ``(at_us, name, *fields)``. It has only ints, strings, booleans, None and
tuples of these, so that the digest of a trace is the same in every process.
`harrow.cluster_model.events` declares the kinds of events.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    TypeVarTuple,
    cast,
    final,
    overload,
)

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.events import EVENTS, HISTORY_EVENTS, Event, event_fields
from harrow.cluster_model.packed_log import PackedLog

TraceEvent = tuple[Any, ...]

KIND_AT: Final = 1
"""The place of the kind's name in a `TraceEvent`."""

P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
E = TypeVar("E", bound=Event)
F = TypeVar("F", bound=Event)
G = TypeVar("G", bound=Event)
E_co = TypeVar("E_co", bound=Event, covariant=True)


class TraceLine(NamedTuple, Generic[E_co]):
    """An event, and the number of its line in ``trace.jsonl``.

    The number orders simultaneous events.
    """

    number: int
    event: E_co


class Emit(Protocol):
    """The type of `Trace.emit`, for code that gets nothing else of the trace."""

    def __call__(self, kind: Callable[[int, *Ts], Event], /, *fields: *Ts) -> None:
        """Emit an event of the current time, given the event's *fields* in order."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """The virtual clock.

    It is a class, not a protocol, because compiled code accesses attributes of a protocol slowly.
    """

    __slots__ = ("now_us",)

    now_us: int


@final
class Trace:
    """The events of a run, in order.

    In a long run, regular calls of ``pack`` save memory.
    """

    __slots__ = ("_newest", "_subscribers", "clock", "events", "pack")

    def __init__(self, clock: Clock) -> None:
        self.events: PackedLog[TraceEvent] = PackedLog(kind_at=KIND_AT)
        self._newest = self.events.newest
        self.pack = self.events.pack
        self.clock = clock
        # By the numbers of the kinds of events.
        self._subscribers: list[list[Callable[[TraceEvent], None]]] = []

    def emit(self, kind: Callable[[int, *Ts], Event], /, *fields: *Ts) -> None:
        """Add an event of the current time to the trace, and call its subscribers.

        The type of *kind* makes mypy check the event's *fields*, which must be in order.
        """
        self.record(kind, fields)

    def record(self, kind: Any, fields: tuple[Any, ...]) -> None:
        """Emit an event of the fields in a tuple.

        Compiled code passes a tuple on faster than a variable number of arguments.
        """
        self.add(kind.number, (self.clock.now_us, kind.name) + fields)  # noqa: RUF005 - unpacking makes a list first

    def add(self, number: int, row: TraceEvent) -> None:
        """Add an event to the trace, and call the subscribers of its kind, which has a *number*."""
        self._newest.append(row)
        if number < len(self._subscribers):
            for handler in self._subscribers[number]:
                handler(row)

    def publish(self, kind: Callable[[int, *Ts], Event], /, *fields: *Ts) -> None:
        """Call the subscribers of an event of the current time. Add nothing to the trace."""
        self.announce(kind, fields)

    def announce(self, kind: Any, fields: tuple[Any, ...]) -> None:
        """Publish an event of the fields in a tuple (see `record`)."""
        number: int = kind.number
        if number < len(self._subscribers) and self._subscribers[number]:
            row = (self.clock.now_us, kind.name) + fields  # noqa: RUF005 - see `record`
            for handler in self._subscribers[number]:
                handler(row)

    def subscribe(self, kind: Callable[Concatenate[int, P], E], handler: Callable[P, None]) -> None:
        """Call ``handler(*fields)`` right after each event of a kind.

        Handlers run in the order of subscription.
        """
        handle: Callable[..., None] = handler
        self.follow(kind, lambda row: handle(*row[2:]))

    def follow(self, kind: Callable[Concatenate[int, P], E], handler: Callable[[TraceEvent], None]) -> None:
        """Call ``handler(row)`` right after each event of a kind, with the stored tuple.

        This is for frequent events: unpacking the fields would cost more than most handlers.
        """
        number = cast("type[Event]", kind).number
        while len(self._subscribers) <= number:
            self._subscribers.append([])
        self._subscribers[number].append(handler)

    def dismantle(self) -> None:
        """Drop all subscribers (`Cluster.dismantle`)."""
        self._subscribers.clear()

    def events_since(self, position: int) -> Sequence[TraceEvent]:
        return self.events[position:]


def as_mapping(event: TraceEvent) -> dict[str, Any]:
    """Return an event in the format of ``trace.jsonl``."""
    name = event[1]
    return {"at_us": event[0], "event": name, **dict(zip(event_fields(name), event[2:], strict=True))}


def decode(event: TraceEvent) -> Event:
    """Return an `Event` object for an event that is stored as a tuple."""
    name = event[1]
    kind: Callable[..., Event] = EVENTS.get(name) or HISTORY_EVENTS[name]
    fields = event[:1] + event[2:]
    return kind(*fields)


@overload
def select(events: Iterable[TraceEvent], kind: type[E], /) -> Iterator[E]: ...


@overload
def select(events: Iterable[TraceEvent], kind: type[E], other: type[F], /) -> Iterator[E | F]: ...


@overload
def select(
    events: Iterable[TraceEvent], kind: type[E], other: type[F], third: type[G], /
) -> Iterator[E | F | G]: ...


@overload
def select(events: Iterable[TraceEvent], /, *kinds: type[Event]) -> Iterator[Event]: ...


def select(events: Iterable[TraceEvent], /, *kinds: type[Event]) -> Iterator[Event]:
    """Yield the events of these *kinds* as `Event` objects, in order."""
    by_name: dict[str, Callable[..., Event]] = {kind.name: kind for kind in kinds}
    for event in events:
        kind = by_name.get(event[1])
        if kind is not None:
            fields = event[:1] + event[2:]
            yield kind(*fields)
