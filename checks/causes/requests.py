"""What passed between producers and leaders: sends, answers, answers that got lost, retries."""

from collections.abc import Collection, Sequence
from typing import Any, Final, TypeVar

from harrow.checks.causes import links
from harrow.checks.causes.background import (
    NO_ANSWER,
    tell_failure,
    tell_forgotten_change,
    tell_held_news,
    tell_lost_message,
    tell_written,
    written_isr,
)
from harrow.checks.causes.lives import newer_election
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.history.records import SendRecord, Value
from harrow.checks.link import Link
from harrow.checks.replay.partition_state import COMPACTION, RETENTION, Ack, LogEntry
from harrow.cluster_model import events
from harrow.cluster_model.trace import TraceLine

_Attempt = TypeVar("_Attempt", events.SendFailed, events.SentAgain)

_ACKS_ALL: Final = -1


def tell_sent(story: Story, send: SendRecord, client: str, before: SendRecord | None = None) -> None:
    """Tell that a producer was given a record, or by an application that had given it *before*."""
    place, in_session = story.start(send.invoked_us), False
    if before is not None:
        stops = [
            number
            for number, stop in story.events(events.ClientStopped)
            if stop.client == client and before.invoked_us <= stop.at_us <= send.invoked_us
        ]
        in_session = not stops
        # An application that starts again in the instant of its end sends after that.
        place = max([place, *(number + AFTER for number in stops)])
    again = before is not None
    story.tell(
        place, links.sent(send.invoked_us, client, value=send.value, again=again, in_session=in_session)
    )


def tell_ack(story: Story, send: SendRecord, ack: Ack | None, group: Sequence[LogEntry]) -> None:
    """Tell which broker acked the record, and which of the ISR had it by then."""
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
        having = {copy.broker for copy in group if _is_had(copy, ack.number)}
        minimum = story.settings.min_insync_replicas
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


def _is_had(copy: LogEntry, line: int) -> bool:
    """Return whether a broker had a record at a line, or had it until retention or compaction took it."""
    if copy.is_there(line):
        return True
    return copy.number < line and copy.removed is not None and copy.removed.cause in (RETENTION, COMPACTION)


def _written_beyond(
    story: Story, ack: Ack, isr: tuple[int, ...] | None, having: Collection[int]
) -> tuple[int, ...] | None:
    """Return the ISR that the control plane had at an acknowledgement, where a member of it that the leader did not count lacked the record.

    How that came about is told: a leader asks for an ISR, and forgets that it has when it hears of an older one.
    """
    written = written_isr(story, ack.number)
    if isr is None or written is None or not having or set(written) - set(isr) <= set(having):
        return None
    known = story.last(events.IsrWritten, before=ack.number)
    if known is not None and set(known.event.isr) == set(written):
        tell_written(story, *known)
        tell_forgotten_change(story, ack.broker, ack.offset, ack.number)
        tell_held_news(story, ack.broker, ack.number)
    return written


def _tell_shrink(story: Story, ack: Ack, isr: tuple[int, ...]) -> None:
    """Tell when and why the ISR had shrunk to a leader alone."""
    before: tuple[int, ...] = ()
    shrink: tuple[int, Link] | None = None
    known: Sequence[TraceLine[events.BecameLeader | events.IsrChanged]] = story.events(
        events.BecameLeader, events.IsrChanged
    )
    for number, event in known:
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


def tell_retry(story: Story, client: str, value: Value, begin: float, end: float) -> None:
    """Tell which request failed between two lines, why, and when the record was sent again."""
    for number, failure in _attempts(story, events.SendFailed, client, value, begin, end)[:1]:
        leader = failure.leader
        if failure.error == NO_ANSWER:
            for ack in story.acks(value):
                if begin < ack.number < number and ack.broker == leader:
                    story.tell(
                        ack.number, links.answered(ack.at_us, leader, value=value, stands_at=ack.offset)
                    )
        tell_failure(story, number, failure, value)
    for number, again in _attempts(story, events.SentAgain, client, value, begin, end)[-1:]:
        retry = links.retried(again.at_us, client, value=value, leader=again.leader, attempt=again.attempt)
        story.tell(number, retry, decides=True)


def _attempts(
    story: Story, kind: type[_Attempt], client: str, value: Value, begin: float, end: float
) -> list[TraceLine[_Attempt]]:
    return [
        line
        for line in story.events(kind)
        if begin < line.number < end and line.event.client == client and value in line.event.values
    ]


def tell_disturbance(story: Story, client: str, leader: int, begin: float, end: float) -> None:
    """Tell what a fault did to a Produce request or its answer between two lines."""
    server = f"broker-{leader}"
    for number, event in story.events(events.MessageRuleApplied):
        between = {event.sender, event.receiver} == {client, server}
        if begin < number < end and event.api == "Produce" and between:
            tell_lost_message(story, number, event, leader, decides=True)


def tell_client_stop(story: Story, client: str, begin: float, end: float) -> None:
    """Tell that a producer's application died between two lines, with what it had in flight."""
    for number, event in story.events(events.ClientStopped):
        if begin < number < end and event.client == client:
            for broker in dict.fromkeys(story.settings.replicas):
                tell_disturbance(story, client, broker, begin, number)
            story.tell(number, links.client_stopped(event.at_us, client), decides=True)
