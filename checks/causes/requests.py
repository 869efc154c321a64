"""What passed between producers and leaders: sends, answers, answers that got lost, retries."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from harrow.checks.causes import links
from harrow.checks.causes.lives import newer_election
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.history.records import SendRecord, Value
from harrow.checks.link import Link
from harrow.checks.replay.partition_state import Ack, LogEntry
from harrow.cluster_model import events
from harrow.cluster_model.trace import TraceLine

_Attempt = TypeVar("_Attempt", events.SendFailed, events.SentAgain)

_ACKS_ALL: Final = -1
_NO_ANSWER: Final = "NETWORK_EXCEPTION"
_ISR_TOO_SMALL: Final = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")


def tell_sent(story: Story, send: SendRecord, client: str, *, again: bool = False) -> None:
    """Tell that a producer was given a record; *again* by an application that has given it once."""
    place = story.start(send.invoked_us)
    if again:
        # An application that starts again in the instant of its end sends after that.
        stops = [
            stop.number + AFTER
            for stop in story.events(events.ClientStopped)
            if stop.event.client == client and stop.event.at_us == send.invoked_us
        ]
        place = max([place, *stops])
    story.tell(place, links.sent(send.invoked_us, client, value=send.value, again=again))


def tell_ack(story: Story, send: SendRecord, ack: Ack | None, group: Sequence[LogEntry]) -> None:
    """Tell which broker acked the record, and which of the ISR had it by then."""
    if ack is None:
        at_us = send.completed_us or 0
        stored = max((copy.number + AFTER for copy in group if not copy.is_copy), default=0.0)
        heard = links.answer_heard(at_us, None, value=send.value, offset=send.offset)
        story.tell(max(story.start(at_us), stored), heard)
        return
    isr = story.isr_at(ack.broker, ack.number)
    is_deposed = any(copy.broker == ack.broker and newer_election(story, copy) for copy in group)
    has_shrunk = isr is not None and len(isr) < 2 <= len(story.settings.replicas)
    operands: dict[str, Any] = {
        "value": send.value,
        "offset": next((copy.offset for copy in group if copy.broker == ack.broker), send.offset),
        "acks": ack.acks,
    }
    if ack.acks == _ACKS_ALL:
        having = {copy.broker for copy in group if copy.number < ack.number}
        minimum = story.settings.min_insync_replicas
        operands |= {
            "isr": isr,
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
            shrink = number, links.isr_shrank(event.at_us, ack.broker, before=before, isr=isr, died=died)
        before = event.isr
    if shrink is not None:
        story.tell(*shrink)


def tell_retry(story: Story, client: str, value: Value, begin: float, end: float) -> None:
    """Tell which request failed between two lines, why, and when the record was sent again."""
    for number, failure in _attempts(story, events.SendFailed, client, value, begin, end)[:1]:
        leader, error = failure.leader, failure.error
        if error == _NO_ANSWER:
            for ack in story.acks(value):
                if begin < ack.number < number and ack.broker == leader:
                    story.tell(
                        ack.number, links.answered(ack.at_us, leader, value=value, stands_at=ack.offset)
                    )
            tell_disturbance(story, client, leader, begin, number)
            failed = links.no_answer(failure.at_us, client, leader=leader, error=error)
        else:
            isr = story.isr_at(leader, number) if error in _ISR_TOO_SMALL else None
            failed = links.refused(failure.at_us, leader, value=value, error=error, isr=isr or ())
        story.tell(number, failed)
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
            kind = links.ack_lost if event.kind == "response" else links.request_lost
            loss = kind(event.at_us, leader, fault=event.rule, action=event.action, leader=leader)
            story.tell(number, loss)


def tell_client_stop(story: Story, client: str, begin: float, end: float) -> None:
    """Tell that a producer's application died between two lines, with what it had in flight."""
    for number, event in story.events(events.ClientStopped):
        if begin < number < end and event.client == client:
            for broker in dict.fromkeys(story.settings.replicas):
                tell_disturbance(story, client, broker, begin, number)
            story.tell(number, links.client_stopped(event.at_us, client))
