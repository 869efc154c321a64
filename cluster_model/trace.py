"""Records the trace of a run: its events, in order. Subscribers receive each event at once.

An event is stored as ``(at_us, name, *fields)``. It has only ints, strings, booleans, None and
tuples of these, so that the digest of a trace is the same in every process.
`harrow.cluster_model.events` declares the kinds of events.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.events import EVENTS, HISTORY_EVENTS, Event, event_fields
from harrow.cluster_model.packed_log import PackedLog

TraceEvent = tuple[Any, ...]

P = ParamSpec("P")
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
    """The type of ``emit`` and ``publish``: ``emit(HighWatermarkSet, broker, partition, hw)``."""

    def __call__(
        self, kind: Callable[Concatenate[int, P], Event], /, *fields: P.args, **named: P.kwargs
    ) -> None:
        """Emit or publish an event of the current time, given the event's *fields* in order."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """The virtual clock.

    It is a class, not a protocol, because compiled code accesses attributes of a protocol slowly.
    """

    __slots__ = ("now_us",)

    now_us: int


class _Kinds(dict[type[Event], tuple[str, list[Callable[..., None]]]]):
    """The name and the subscribers of each kind of event."""

    def __missing__(self, kind: type[Event]) -> tuple[str, list[Callable[..., None]]]:
        entry = self[kind] = (kind.name, [])
        return entry


class Trace:
    """The events of a run, in order.

    ``emit`` adds an event to the trace and calls its subscribers. ``publish`` only calls
    subscribers, and adds nothing to the trace. Both are functions, not methods, because a run calls
    them thousands of times. In a long run, regular calls of ``pack`` save memory.
    """

    __slots__ = ("_kinds", "emit", "events", "pack", "publish")

    def __init__(self, clock: Clock) -> None:
        events: PackedLog[TraceEvent] = PackedLog()
        append = events.newest.append
        kinds = _Kinds()

        def emit(kind: type[Event], *fields: Any) -> None:
            name, handlers = kinds[kind]
            now_us = clock.now_us
            append((now_us, name) + fields)  # noqa: RUF005 - unpacking makes a list first, for each event
            if handlers:
                arguments = (now_us,) + fields  # noqa: RUF005 - unpacking makes a list first here, too
                for handler in handlers:
                    handler(*arguments)

        def publish(kind: type[Event], *fields: Any) -> None:
            for handler in kinds[kind][1]:
                handler(clock.now_us, *fields)

        self.events = events
        self.pack = events.pack
        self._kinds = kinds
        self.emit = cast("Emit", emit)
        self.publish = cast("Emit", publish)

    def subscribe(
        self, kind: Callable[Concatenate[int, P], E], handler: Callable[Concatenate[int, P], None]
    ) -> None:
        """Call ``handler(at_us, *fields)`` right after each event of a kind.

        Handlers run in the order of subscription.
        """
        self._kinds[cast("type[Event]", kind)][1].append(handler)

    def events_since(self, position: int) -> Sequence[TraceEvent]:
        return self.events[position:]

    def digest(self) -> str:
        """Return the digest of the whole trace: 16 hex digits of its SHA-256."""
        return self.events.digest()


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
