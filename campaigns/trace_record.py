"""One record, followed from its send to its end: which events are about it, and what became of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from campaigns.problem import Problem
from campaigns.recorded_run import RecordError
from campaigns.replica_states import ACKED, FAILED
from campaigns.spelling import counted, listed, nearest, printable, quoted
from campaigns.told import NOBODY
from campaigns.trace_story import StoryEvent, TraceStory
from checks.copies import END, Copy
from checks.story import brokers, seconds, words

_PROCESS = frozenset({"broker_stopped", "broker_started", "broker_paused", "broker_resumed"})
_WITH_OR_WITHOUT = frozenset(
    {"election", "leader", "follower", "recover", "broker_stopped", "broker_started"}
)
_DECISIONS = frozenset({"election", "leader", "isr", "isr_reduced"})
_PASSING = {"hw": "hw", "flush": "offset"}
"""Events that pass a record, and the field that says how far they go."""
_SAID = {ACKED: "heard that it is stored", FAILED: "heard that it is not stored"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStory:
    """A record's way.

    ``texts`` are what its events say, by their positions in the story; ``lines`` are what became of it.
    """

    value: str
    texts: Mapping[int, str]
    lines: tuple[str, ...]


def follow(story: TraceStory, value: str) -> RecordStory:
    """Return the way of the record with a value.

    Raises:
        RecordError: no record of the run has this value.

    """
    its_own = [event for event in story.events if value in event.values]
    groups = {
        partition: copies.by_value[value]
        for partition, copies in story.copies.items()
        if value in copies.by_value
    }
    if not its_own:
        raise RecordError(_unknown(story, value))
    positions = {event.position for event in its_own}
    for partition, group in groups.items():
        positions.update(_around_copies(story, partition, group))
    lines = [*_sends(its_own, value), *_logs(story, groups, several=len(story.partitions) > 1)]
    texts = {
        position: story.events[position].told.text + _note(story.events[position], groups, value)
        for position in sorted(positions)
    }
    return RecordStory(value=value, texts=texts, lines=tuple(lines))


def _note(event: StoryEvent, groups: Mapping[str, Sequence[Copy]], value: str) -> str:
    """Return what an event that does not name the record has to do with it."""
    name, group = printable(value), groups.get(event.partition or "", ())
    broker = event.fields.get("leader" if event.event == "election" else "broker")
    if event.event == "hw":
        return f", past {name}"
    if event.event not in _WITH_OR_WITHOUT or broker == NOBODY:
        return ""
    if all(event.line < copy.stored[0] for copies in groups.values() for copy in copies):
        # Before the record was there, nobody lacked it.
        return ""
    if event.partition is None:
        group = [copy for copies in groups.values() for copy in copies]
    has_it = any(copy.broker == broker and _is_there(copy, event.line) for copy in group)
    return f", with {name}" if has_it else f", WITHOUT {name}"


def _unknown(story: TraceStory, value: str) -> Problem:
    values = list(dict.fromkeys(value for event in story.events for value in event.values))
    close = nearest(value, values[:400])
    if not values:
        ending = "; no record was sent in it"
    else:
        ending = f"; did you mean `{close}`?" if close else f"; its records are {listed(values)}"
    return Problem(str(story.recorded.folder), 0, 0, f"no record {quoted(value)} in this run{ending}")


def _around_copies(story: TraceStory, partition: str, group: Sequence[Copy]) -> Iterator[int]:
    """Yield the positions of the events that decide on copies of a record."""
    begin = min(copy.stored[0] for copy in group)
    end = max(END if copy.gone is None else copy.gone[0] for copy in group)
    passed: set[tuple[int, int, str]] = set()
    for event in story.events:
        if event.of_client or not begin <= event.line <= end:
            continue
        copy = next((copy for copy in group if _has_it(copy, event)), None)
        if event.event in _DECISIONS and event.partition == partition:
            yield event.position
        elif copy is None:
            continue
        elif event.event in _PROCESS or (event.partition == partition and _touches(event, copy)):
            yield event.position
        elif (
            event.partition == partition and event.fields.get(_PASSING.get(event.event, ""), -1) > copy.offset
        ):
            # Of the high watermarks and flushes above it, only the first has made a difference.
            first = (copy.broker, copy.stored[0], event.event)
            if first not in passed:
                passed.add(first)
                yield event.position
    yield from _asked(story, partition, group)
    yield from _before(story, partition, group)


def _before(story: TraceStory, partition: str, group: Sequence[Copy]) -> Iterator[int]:
    """Yield who had been elected when the record was appended, and how its leader had come to lead."""
    for copy in group:
        if copy.appended:
            earlier = [
                event
                for event in story.events
                if event.partition == partition and not event.of_client and event.line < copy.stored[0]
            ]
            elected = [event for event in earlier if event.event == "election"]
            led = [
                event
                for event in earlier
                if event.event == "leader" and event.fields["broker"] == copy.broker
            ]
            yield from (event.position for event in (*elected[-1:], *led[-1:]))


def _touches(event: StoryEvent, copy: Copy) -> bool:
    fields = event.fields
    if event.event == "served":
        return bool(fields["offset"] <= copy.offset < fields["end_offset"])
    return event.event in ("recover", "follower") or (
        event.event == "duplicate_batch" and bool(fields["base_offset"] == copy.offset)
    )


def _asked(story: TraceStory, partition: str, group: Sequence[Copy]) -> Iterator[int]:
    """Yield the answers about ends of epochs after which a replica cut the record off."""
    for copy in group:
        if copy.gone is not None and copy.gone[1][1] == "truncate":
            asked = [
                event
                for event in story.events
                if event.event == "epoch_asked"
                and event.partition == partition
                and event.fields["replica"] == copy.broker
                and copy.stored[0] < event.line < copy.gone[0]
            ]
            yield from (event.position for event in asked[-1:])


def _has_it(copy: Copy, event: StoryEvent) -> bool:
    """Return whether an event happens on the broker of a copy while it is there."""
    return copy.broker == event.fields.get("broker") and _is_there(copy, event.line)


def _is_there(copy: Copy, line: int) -> bool:
    """Return whether a copy is there at an event, that of its beginning and that of its end included."""
    return copy.stored[0] <= line and (copy.gone is None or copy.gone[0] >= line)


def _sends(events: Sequence[StoryEvent], value: str) -> Iterator[str]:
    name = printable(value)
    for event in events:
        if event.event == "client_sent":
            where = "" if event.partition is None else f" to {event.partition}"
            yield f"{event.told.lane} sent {name}{where} at {seconds(event.at_us)}"
    again = sum(1 for event in events if event.event == "sent_again")
    if again:
        yield f"it was sent again {counted(again, 'time')}"
    acks = [event for event in events if event.event == "acknowledged"]
    for event in acks:
        yield f"{event.told.lane} acknowledged it at {seconds(event.at_us)}"
    for event in events:
        if event.event == "client_ended":
            said = _SAID.get(event.fields["status"], "never learned what became of it")
            yield f"{event.told.lane} {said} ({seconds(event.at_us)})"
    readers = dict.fromkeys(event.told.lane for event in events if event.event == "client_polled")
    yield f"read by {listed(list(readers))}" if readers else "read by nobody"


def _logs(story: TraceStory, groups: dict[str, list[Copy]], *, several: bool) -> Iterator[str]:
    if not groups:
        yield "no broker appended it"
    for partition, group in groups.items():
        of = f" of {partition}" if several else ""
        for copy in group:
            verb = "appended" if copy.appended else "copied"
            at = seconds(copy.stored[1][0])
            known = "below its HW" if copy.committed else "never below its HW"
            yield f"broker {copy.broker} {verb} it at {at}, offset {copy.offset}{of}, {known}, {_end(copy)}"
        yield _at_end(story, partition, group, of)


def _at_end(story: TraceStory, partition: str, group: Sequence[Copy], of: str) -> str:
    """Return who has the record at the end, and whether the leader is one of them."""
    kept = sorted({copy.broker for copy in group if copy.gone is None})
    if not kept:
        return f"at the end: IN NO LOG{of}"
    elections = [event for _, event in story.copies[partition].elections if event[4] != NOBODY]
    leader = elections[-1][4] if elections else NOBODY
    found = f"at the end: in the log{of} of {brokers(kept)}"
    if leader in kept or leader == NOBODY:
        return found
    offsets = {copy.offset for copy in group if copy.gone is None}
    instead = [
        f"{printable(copy.value)} at offset {copy.offset}"
        for copies in story.copies[partition].by_value.values()
        for copy in copies
        if copy.gone is None and copy.broker == leader and copy.offset in offsets
    ]
    has = f", which has {listed(instead)} instead" if instead else ""
    return f"{found}, but NOT OF ITS LEADER, broker {leader}{has}"


def _end(copy: Copy) -> str:
    if copy.gone is None:
        return "kept"
    event = copy.gone[1]
    if event[1] == "truncate":
        return f"TRUNCATED at {seconds(event[0])} ({words(event[6])})"
    how = "LOST with the power, as it was not flushed" if copy.lost_with_power else "gone"
    return f"{how} at {seconds(event[0])}"
