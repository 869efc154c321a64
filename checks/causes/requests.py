"""Explains what producers and leaders sent each other: sends, answers, lost answers, retries."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, Final, TypeVar

from harrow.checks.causes import links
from harrow.checks.causes.background import (
    NO_ANSWER,
    tell_failure,
    tell_forgotten_change,
    tell_late_updates,
    tell_lost_message,
    tell_written,
    written_isr,
)
from harrow.checks.causes.copies import newer_election
from harrow.checks.causes.story import AFTER, Story, deferred
from harrow.checks.history.records import SendRecord, Value
from harrow.checks.link import Link
from harrow.checks.replay.partition_state import COMPACTION, RETENTION, Ack, LogEntry
from harrow.cluster_model import events
from harrow.cluster_model.trace import TraceLine

_Attempt = TypeVar("_Attempt", events.SendFailed, events.SentAgain)

_ACKS_ALL: Final = -1


@deferred
def tell_sent(story: Story, send: SendRecord, client: str, before: SendRecord | None = None) -> None:
    """Tell that a producer sent a record.

    *before* is the application's earlier send of the same record.
    """
    place, in_session = story.start(send.invoked_us), False
    if before is not None:
        stops = [
            number
            for number, stop in story.events(events.ClientStopped)
            if stop.client == client and before.invoked_us <= stop.at_us <= send.invoked_us
        ]
        in_session = not stops
        # An application that restarts in the instant of its end sends after the restart.
        place = max([place, *(number + AFTER for number in stops)])
    again = before is not None
    story.tell(
        place, links.sent(send.invoked_us, client, value=send.value, again=again, in_session=in_session)
    )


@deferred
def tell_ack(story: Story, send: SendRecord, ack: Ack | None, group: Sequence[LogEntry]) -> None:
    """Tell which broker acked a record, and which members of the ISR had the record then."""
    if ack is None:
        at_us = send.completed_us or 0
        stored = max((copy.number + AFTER for copy in group if not copy.is_copy), default=0.0)
        heard = links.answer_heard(at_us, None, value=send.value, offset=send.offset)
        story.tell(max(story.start(at_us), stored), heard)
        return
    isr = story.isr_at(ack.broker, ack.number)
    is_deposed = any(copy.broker == ack.broker and newer_election(story, copy, ack.number) for copy in group)
    has_shrunk = isr is not None and len(isr) < 2 <= len(story.settings.replicas)
    operands: dict[str, Any] = {
        "value": send.value,
        "offset": next((copy.offset for copy in group if copy.broker == ack.broker), send.offset),
        "acks": ack.acks,
    }
    if ack.acks == _ACKS_ALL:
        having = {copy.broker for copy in group if _had_copy_until_removed(copy, ack.number)}
        minimum = story.settings.during(ack.at_us)[0].min_insync_replicas
        written = None if is_deposed else _written_beyond(story, ack, isr, having if group else ())
        counted, isr = (None, isr) if written is None else (isr, written)
        has_shrunk = has_shrunk and written is None
        operands |= {
            "isr": isr,
            "counted": counted,
            "having": tuple(member for member in isr or () if member in having),
            "missing": tuple(member for member in isr or () if member not in having) if group else (),
            "is_deposed": is_deposed,
            "has_shrunk": has_shrunk,
            "min_isr": minimum if minimum < 2 else None,
        }
    else:
        others = [copy for copy in group if copy.broker != ack.broker]
        operands["alone"] = not any(copy.is_there(ack.number) for copy in others)
    story.tell(ack.number, links.acked(ack.at_us, ack.broker, **operands))
    if isr is not None and has_shrunk and not is_deposed:
        _tell_shrink(story, ack, isr)


def _had_copy_until_removed(copy: LogEntry, line: int) -> bool:
    """Return whether a broker had a record at a line, or had it until a policy removed it."""
    if copy.is_there(line):
        return True
    return copy.number < line and copy.removed is not None and copy.removed.cause in (RETENTION, COMPACTION)


def _written_beyond(
    story: Story, ack: Ack, isr: tuple[int, ...] | None, having: Collection[int]
) -> tuple[int, ...] | None:
    """Return the control plane's ISR at an ack, if the leader ignored a member without the record.

    None otherwise. If a leader ignores a member, it had requested a larger ISR and forgot the
    request when it received an older ISR. This function tells these events too.
    """
    written = written_isr(story, ack.number)
    if isr is None or written is None or not having or set(written) - set(isr) <= set(having):
        return None
    change = story.last(events.IsrWritten, before=ack.number)
    if change is not None and set(change.event.isr) == set(written):
        tell_written(story, *change)
        tell_forgotten_change(story, ack.broker, ack.offset, ack.number)
        tell_late_updates(story, ack.broker, ack.number)
    return written


def _tell_shrink(story: Story, ack: Ack, isr: tuple[int, ...]) -> None:
    """Tell when and why the ISR shrank to the leader alone."""
    before: tuple[int, ...] = ()
    shrink: tuple[int, Link] | None = None
    changes: Sequence[TraceLine[events.BecameLeader | events.IsrChanged]] = story.events(
        events.BecameLeader, events.IsrChanged
    )
    for number, event in changes:
        if event.broker != ack.broker or number >= ack.number:
            continue
        if event.isr == isr and len(before) > len(isr):
            died = isinstance(event, events.BecameLeader)
            shrink = (
                number,
                links.isr_shrank(
                    event.at_us,
                    ack.broker,
                    before=before,
                    isr=isr,
                    left=tuple(sorted(set(before) - set(isr))),
                    died=died,
                ),
            )
        before = event.isr
    if shrink is not None:
        story.tell(*shrink)


@deferred
def tell_retry(story: Story, client: str, value: Value, begin: float, end: float) -> None:
    """Tell which request failed between two lines, why, and when the record was sent again."""
    for failure in _attempts(story, events.SendFailed, client, value, begin, end)[:1]:
        if failure.event.error == NO_ANSWER:
            for ack in story.acks(value):
                if begin < ack.number < failure.number and ack.broker == failure.event.leader:
                    answer = links.answered(ack.at_us, ack.broker, value=value, stands_at=ack.offset)
                    story.tell(ack.number, answer)
        tell_failure(story, failure, value)
    for retry in _attempts(story, events.SentAgain, client, value, begin, end)[-1:]:
        story.tell_event(retry, links.retried, decides=True, value=value)


def _attempts(
    story: Story, kind: type[_Attempt], client: str, value: Value, begin: float, end: float
) -> list[TraceLine[_Attempt]]:
    lines = story.events(kind)
    first, after = bisect_right(lines, begin, key=itemgetter(0)), bisect_left(lines, end, key=itemgetter(0))
    return [line for line in lines[first:after] if line.event.client == client and value in line.event.values]


@deferred
def tell_disturbance(story: Story, client: str, leader: int, begin: float, end: float) -> None:
    """Tell what faults did, between two lines, to Produce requests to a leader and its answers."""
    server = f"broker-{leader}"
    for number, event in story.events(events.MessageRuleApplied):
        between = {event.sender, event.receiver} == {client, server}
        if begin < number < end and event.api == "Produce" and between:
            tell_lost_message(story, number, event, leader, decides=True)


@deferred
def tell_client_stop(story: Story, client: str, begin: float, end: float) -> None:
    """Tell that a producer's application died, and what faults did to its requests in flight."""
    for stop in story.events(events.ClientStopped):
        if begin < stop.number < end and stop.event.client == client:
            for broker in dict.fromkeys(story.settings.replicas):
                tell_disturbance(story, client, broker, begin, stop.number)
            story.tell_event(stop, links.client_stopped, decides=True)
