"""One record, followed from its send to its end: which events are about it, and what became of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from campaigns.problem import Problem
from campaigns.recorded_run import RecordError
from campaigns.spelling import counted, listed, nearest, printable, quoted
from campaigns.trace_story import StoryEvent, TraceStory
from checks.copies import END, Copy
from checks.story import brokers, seconds, words

_PROCESS = frozenset({"broker_stopped", "broker_started", "broker_paused", "broker_resumed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStory:
    """A record's way. ``positions`` are its events in the story, ``lines`` what became of it."""

    value: str
    positions: frozenset[int]
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
    lines = [*_sends(story, its_own, value), *_logs(groups, several=len(story.partitions) > 1)]
    return RecordStory(value=value, positions=frozenset(positions), lines=tuple(lines))


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
    committed: set[tuple[int, int]] = set()
    flushed: set[tuple[int, int]] = set()
    for event in story.events:
        if event.of_client or not begin <= event.line <= end:
            continue
        if event.event == "election" and event.partition == partition:
            yield event.position
        broker = event.fields.get("broker")
        here = [copy for copy in group if copy.broker == broker and _is_there(copy, event.line)]
        if not here:
            if event.event == "leader" and event.partition == partition:
                yield event.position
            continue
        copy, key = here[0], (here[0].broker, here[0].stored[0])
        if event.event in _PROCESS:
            yield event.position
        elif event.partition != partition:
            continue
        elif event.event == "hw" and event.fields["hw"] > copy.offset and key not in committed:
            committed.add(key)
            yield event.position
        elif event.event == "flush" and event.fields["offset"] > copy.offset and key not in flushed:
            flushed.add(key)
            yield event.position
        elif event.event == "served" and event.fields["offset"] <= copy.offset < event.fields["end_offset"]:
            yield event.position
        elif event.event in ("leader", "recover", "duplicate_batch", "invariant_broken"):
            if event.event in ("leader", "recover") or event.fields.get("base_offset") == copy.offset:
                yield event.position
    yield from _asked(story, partition, group)


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


def _is_there(copy: Copy, line: int) -> bool:
    return copy.stored[0] <= line and (copy.gone is None or copy.gone[0] >= line)


def _sends(story: TraceStory, events: Sequence[StoryEvent], value: str) -> Iterator[str]:
    name = printable(value)
    for event in events:
        if event.event == "send":
            where = "" if event.partition is None else f" to {event.partition}"
            yield f"{event.told.lane} sent {name}{where} at {seconds(event.at_us)}"
    again = sum(1 for event in events if event.event == "sent_again")
    if again:
        yield f"it was sent again {counted(again, 'time')}"
    acks = [event for event in events if event.event == "acknowledged"]
    for event in acks:
        yield f"{event.told.lane} acknowledged it at {seconds(event.at_us)}"
    ends = [event for event in events if event.event in ("ok", "fail", "info")]
    for event in ends:
        said = {"ok": "heard that it is stored", "fail": "heard that it is not stored"}
        yield f"{event.told.lane} {said.get(event.event, 'never heard of it')} ({seconds(event.at_us)})"
    readers = dict.fromkeys(event.told.lane for event in events if event.event == "read")
    yield f"read by {listed(list(readers))}" if readers else "read by nobody"


def _logs(groups: dict[str, list[Copy]], *, several: bool) -> Iterator[str]:
    if not groups:
        yield "no broker appended it"
    for partition, group in groups.items():
        of = f" of {partition}" if several else ""
        for copy in group:
            verb = "appended" if copy.appended else "copied"
            at = seconds(copy.stored[1][0])
            known = "below its HW" if copy.committed else "never below its HW"
            yield f"broker {copy.broker} {verb} it at {at}, offset {copy.offset}{of}, {known}, {_end(copy)}"
        kept = sorted({copy.broker for copy in group if copy.gone is None})
        yield f"at the end: in the log{of} of {brokers(kept)}" if kept else f"at the end: IN NO LOG{of}"


def _end(copy: Copy) -> str:
    if copy.gone is None:
        return "kept"
    event = copy.gone[1]
    if event[1] == "truncate":
        return f"TRUNCATED at {seconds(event[0])} ({words(event[6])})"
    how = "LOST with the power, as it was not flushed" if copy.lost_with_power else "gone"
    return f"{how} at {seconds(event[0])}"
