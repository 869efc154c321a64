"""What passed between producers and leaders, told: sends, answers, answers that got lost, retries."""

from collections.abc import Sequence
from typing import Final

from checks.copies import Copy, Placed
from checks.history.records import Send
from checks.lives import newer_election
from checks.story import AFTER, Story, brokers

_ACKS_ALL: Final = -1
_NO_ANSWER: Final = "NETWORK_EXCEPTION"
_ISR_TOO_SMALL: Final = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
_DEEDS: Final = {
    "reset": "cut the connection under",
    "drop": "dropped",
    "hold": "held up",
    "delay": "delayed",
    "duplicate": "doubled",
}


def tell_sent(story: Story, send: Send, client: str, *, again: bool = False) -> None:
    """Tell that a producer was given a record; *again* by an application that has given it once."""
    position = story.position(send.invoked_us)
    if again:
        stops = story.copies.events("client_stopped")
        # Who starts again in the instant of its end sends after that.
        position = max(
            [position, *(p + AFTER for p, e in stops if e[2] == client and e[0] == send.invoked_us)]
        )
    text = f"{client} sent {send.value}{' again, in a new session' if again else ''}"
    story.tell(position, "sent", text, send.invoked_us)


def tell_ack(story: Story, send: Send, acked: Placed | None, group: Sequence[Copy]) -> None:
    """Tell who acked the record, and who of the ISR had it by then."""
    if acked is None:
        at_us = send.completed_us or 0
        where = "" if send.offset is None else f" at offset {send.offset}"
        stored = max((copy.stored[0] + AFTER for copy in group if copy.appended), default=0.0)
        before = max(story.position(at_us), stored)
        text = (
            f"{send.value} was acked{where}" if send.offset is not None else f"{send.value} counted as sent"
        )
        story.tell(before, "acked", text, at_us, offset=send.offset)
        return
    position, event = acked
    broker = event[2]
    isr = story.copies.isr_at(broker, position)
    offset = next((copy.offset for copy in group if copy.broker == broker), send.offset)
    text = f"broker {broker} acked {send.value}{_agreement(story, acked, group, isr)}"
    story.tell(position, "acked", text, event[0], broker, offset)
    if (
        isr is not None
        and len(isr) < 2 <= len(story.settings.replicas)
        and not _deposed(story, group, broker)
    ):
        _tell_shrink(story, broker, isr, position)


def _agreement(story: Story, acked: Placed, group: Sequence[Copy], isr: tuple[int, ...] | None) -> str:
    position, event = acked
    settings = story.settings
    if event[5] != _ACKS_ALL:
        alone = not any(copy.broker != event[2] and copy.is_there(position) for copy in group)
        return f" (acks={event[5]}){' before any follower had it' if alone else ''}"
    if isr is None:
        return ""
    missing = [b for b in isr if not any(copy.broker == b and copy.stored[0] < position for copy in group)]
    if missing and group:
        return f", although {brokers(missing)} of the ISR {list(isr)} did not have it"
    if _deposed(story, group, event[2]):
        return f", for all that it knew alone in the ISR {list(isr)}" if len(isr) < 2 else ""
    if len(isr) < 2 <= len(settings.replicas):
        weak = settings.min_insync_replicas < 2
        minimum = f" (min.insync.replicas={settings.min_insync_replicas})" if weak else ""
        return f" when the ISR had shrunk to {list(isr)}{minimum}"
    return f": all of the ISR {list(isr)} had it"


def _deposed(story: Story, group: Sequence[Copy], broker: int) -> bool:
    """Return whether the leader that acked a record had been succeeded when it appended it."""
    return any(copy.broker == broker and newer_election(story, copy) is not None for copy in group)


def _tell_shrink(story: Story, leader: int, isr: tuple[int, ...], position: int) -> None:
    """Tell when and why the ISR had shrunk to a leader alone."""
    before: tuple[int, ...] = ()
    shrink: tuple[Placed, tuple[int, ...]] | None = None
    for placed, known in story.copies.isr_history(leader, position):
        if known == isr and len(before) > len(known):
            shrink = placed, before
        before = known
    if shrink is None:
        return
    (placed_at, event), old = shrink
    left = brokers(set(old) - set(isr))
    why = "fallen behind" if event[1] == "isr" else "died"
    text = f"the ISR shrank from {list(old)} to {list(isr)}: {left} had {why}"
    story.tell(placed_at, "isr-shrank", text, event[0], leader)


def tell_retry(story: Story, client: str, value: str | int, begin: float, end: float) -> None:
    """Tell which request failed between two positions, why, and when the record was sent again."""
    failed = _attempts(story, "send_failed", client, value, begin, end)
    again = _attempts(story, "sent_again", client, value, begin, end)
    if failed:
        position, event = failed[0]
        at_us, leader, error = event[0], event[4], event[6]
        if error == _NO_ANSWER:
            _tell_answer(story, value, client, leader, begin, position)
            text = f"{client} got no answer from broker {leader} ({error})"
        else:
            isr = story.copies.isr_at(leader, position) if error in _ISR_TOO_SMALL else None
            text = f"broker {leader} refused {value}: {error}{f', its ISR was {list(isr)}' if isr else ''}"
        story.tell(position, "request-failed", text, at_us, leader)
    if again:
        position, event = again[-1]
        text = f"{client} sent {value} again, to broker {event[4]} (attempt {event[5]})"
        story.tell(position, "retried", text, event[0], event[4])


def _attempts(
    story: Story, name: str, client: str, value: str | int, begin: float, end: float
) -> list[Placed]:
    return [
        placed
        for placed in story.copies.events(name)
        if begin < placed[0] < end and placed[1][2] == client and value in placed[1][-1]
    ]


def _tell_answer(story: Story, value: str | int, client: str, leader: int, begin: float, end: float) -> None:
    for position, event in story.copies.acks_of(value):
        if begin < position < end and event[2] == leader:
            text = f"broker {leader} answered that {value} is at offset {event[4] + event[6].index(value)}"
            story.tell(position, "answered", text, event[0], leader)
    tell_disturbance(story, client, f"broker-{leader}", begin, end)


def tell_disturbance(story: Story, client: str, server: str, begin: float, end: float) -> None:
    """Tell what a fault did to a Produce request or its answer between two positions."""
    leader = int(server.removeprefix("broker-")) if server.startswith("broker-") else None
    for position, event in story.copies.events("message_rule"):
        at_us, _, rule, action, api, kind, sender, receiver, _ = event
        if not begin < position < end or api != "Produce" or {sender, receiver} != {client, server}:
            continue
        deed = _DEEDS.get(action, f"struck ({action})")
        is_answer = kind == "response"
        what = f"the answer of {words_of(server)}" if is_answer else f"the request to {words_of(server)}"
        text = f"the fault {rule} {deed} {what}"
        story.tell(position, "ack-lost" if is_answer else "request-lost", text, at_us, leader)


def tell_client_stop(story: Story, client: str, begin: float, end: float) -> None:
    """Tell that a producer's application died between two positions, with what it had in flight."""
    for position, event in story.copies.events("client_stopped"):
        if begin < position < end and event[2] == client:
            for server in {f"broker-{broker}": None for broker in story.settings.replicas}:
                tell_disturbance(story, client, server, begin, position)
            story.tell(position, "client-stopped", f"{client} died before it had an answer", event[0])


def words_of(process: str) -> str:
    """Return a process as people call it: ``broker-0`` is broker 0."""
    return process.replace("broker-", "broker ")
