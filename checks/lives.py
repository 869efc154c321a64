"""The lives of a record's copies, told: stored where, which crash, election or truncation took them."""

from collections.abc import Sequence
from typing import Final

from checks.copies import END, Copy, Placed
from checks.story import Story, brokers, words

_NO_LEADER: Final = -1
_POWER_LOSS: Final = "power_loss"


def tell_lives(story: Story, group: Sequence[Copy]) -> None:
    """Tell how the copies of one record came, who led in the meantime, and how each went."""
    if not group:
        story.tell(END, "not-appended", "no broker appended it")
        return
    begin = group[0].stored[0]
    kept = [copy for copy in group if copy.gone is None]
    end = END if kept else max(copy.gone[0] for copy in group if copy.gone is not None)
    _tell_deposed_leader(story, group[0])
    seen: set[int] = set()
    for copy in group:
        tell_stored(story, copy, again=copy.broker in seen)
        seen.add(copy.broker)
        if copy.gone is not None:
            _tell_gone(story, copy, copy.gone)
    tell_elections(story, group, begin, end)
    tell_stops(story, group)
    _tell_returns(story, group)
    for copy in kept:
        _tell_kept(story, copy, group)


def tell_stored(story: Story, copy: Copy, *, again: bool = False, with_producer: bool = False) -> None:
    """Tell that a replica appended or copied a record."""
    position, event = copy.stored
    once_more = " again" if again else ""
    if copy.appended:
        producer = f", producer id {event[6]}, sequence {event[7]}" if with_producer else ""
        ended = ", which had ended" if newer_election(story, copy) is not None else ""
        where = f"at offset {copy.offset} (epoch {copy.leader_epoch}{ended}{producer})"
        text, kind = f"broker {copy.broker} appended {copy.value}{once_more} {where}", "appended"
    else:
        text, kind = f"broker {copy.broker} copied {copy.value}{once_more}", "copied"
    story.tell(position, kind, text, event[0], copy.broker, copy.offset)


def _tell_gone(story: Story, copy: Copy, gone: Placed) -> None:
    position, event = gone
    broker, value = copy.broker, copy.value
    kind, text = "gone", f"broker {broker} no longer had {value}"
    if copy.lost_with_power:
        leo = min(event[4], event[5])
        kind = "unflushed-lost"
        text = (
            f"broker {broker} lost power, and all that it had not flushed, from offset {leo} on, with {value}"
        )
    elif event[1] == "truncate":
        kind, text = "truncated", f"broker {broker} {_truncation(story, gone)}, and cut off {value}"
    elif event[1] == "append":
        text = f"broker {broker} appended {', '.join(event[8])} at offset {event[4]}, in the place of {value}"
    story.tell(position, kind, text, event[0], broker, copy.offset)


def _truncation(story: Story, gone: Placed) -> str:
    """Return how a follower came to truncate, without who did: ``truncated to its own high watermark, 1``."""
    position, event = gone
    broker, leo, reason = event[2], min(event[4], event[5]), words(event[6])
    if reason == "high watermark":
        return f"truncated to its own high watermark, {leo}"
    asked = [
        asked
        for placed, asked in story.copies.events("epoch_asked")
        if placed < position and asked[4] == broker
    ]
    if reason == "leader epoch" and asked:
        leader, epoch, end = asked[-1][2], asked[-1][5], asked[-1][7]
        told = f"was told {end}" if end == leo else f"was told {end}, truncated to {leo}"
        return f"asked broker {leader} where epoch {epoch} ends, {told}"
    if reason == "out of range":
        return f"truncated to {leo}, where its leader's log ends"
    return f"truncated to {leo} ({reason})"


def tell_elections(story: Story, group: Sequence[Copy], begin: float, end: float) -> None:
    """Tell who was elected between two positions, and whether the new leader had the record."""
    for placed in story.copies.elections:
        if begin < placed[0] < end and placed[1][4] != _NO_LEADER:
            _tell_election(story, placed, group)


def _tell_election(story: Story, placed: Placed, group: Sequence[Copy]) -> None:
    position, event = placed
    at_us, leader, epoch, unclean = event[0], event[4], event[5], event[7]
    isr = story.copies.isr_before(position)
    value = group[0].value
    has_it = any(copy.broker == leader and copy.is_there(position) for copy in group)
    having = f"with {value}" if has_it else f"without {value}"
    if unclean:
        outside = f", from outside the ISR {list(isr)}" if isr is not None and leader not in isr else ""
        text = f"broker {leader} was elected uncleanly{outside}, {having} (epoch {epoch})"
    else:
        among = f" from the ISR {list(isr)}" if isr is not None and leader in isr else ""
        text = f"broker {leader} was elected{among}, {having} (epoch {epoch})"
    story.tell(position, "elected-uncleanly" if unclean else "elected", text, at_us, leader)


def newer_election(story: Story, copy: Copy) -> Placed | None:
    """Return the election that had deposed a leader before it appended a record, None if none had."""
    position, epoch = copy.stored[0], copy.leader_epoch
    newer = [
        placed
        for placed in story.copies.elections
        if placed[0] < position and placed[1][5] > epoch and placed[1][4] != _NO_LEADER
    ]
    return newer[-1] if copy.appended and newer and newer[-1][1][4] != copy.broker else None


def _tell_deposed_leader(story: Story, copy: Copy) -> None:
    """Tell how a leader came to append in an epoch that had ended already."""
    newer = newer_election(story, copy)
    if newer is None:
        return
    position, event = newer
    begin, epoch = copy.stored[0], copy.leader_epoch
    story.tell(position, "elected", f"broker {event[4]} was elected (epoch {event[5]})", event[0], event[4])
    for placed, led in story.copies.events("leader"):
        if position < placed < begin and led[2] == copy.broker and led[4] <= epoch:
            for _, order in [p for p in story.copies.elections if p[0] < placed and p[1][5] == led[4]][-1:]:
                # ZooKeeper had the election long before; what was late are the requests that tell of it.
                _tell_deposed_controller(story, order[2], placed)
                text = f"broker {order[2]} told of its election of broker {order[4]} (epoch {order[5]})"
                story.tell(placed, "deposed-controller", text, led[0], order[2])
            text = f"broker {led[2]} led again, in epoch {led[4]}, although epoch {event[5]} had begun"
            story.tell(placed, "deposed-leader", text, led[0], led[2])


def _tell_deposed_controller(story: Story, controller: int, end: int) -> None:
    """Tell how a broker came to act as controller when another was."""
    elected = [p for p in story.copies.events("controller_elected") if p[0] < end and p[1][2] != controller]
    if not elected:
        return
    position, event = elected[-1]
    text = f"broker {event[2]} was elected controller (controller epoch {event[3]})"
    story.tell(position, "controller-elected", text, event[0], event[2])
    for name, kind, text in (
        ("broker_paused", "paused", f"broker {controller}, the controller, was paused"),
        ("broker_resumed", "resumed", f"broker {controller} woke up, still controller for all that it knew"),
    ):
        told = [p for p in story.copies.events(name) if p[0] < end and p[1][2] == controller]
        if told:
            story.tell(told[-1][0], kind, text, told[-1][1][0], controller)


def tell_stops(story: Story, group: Sequence[Copy], end: int = END) -> None:
    """Tell which brokers stopped that had the record, up to a position."""
    for position, event in story.copies.events("broker_stopped"):
        if position >= end:
            break
        at_us, broker, cause = event[0], event[2], event[3]
        here = [copy for copy in group if copy.broker == broker and copy.is_there(position)]
        # Of a copy that goes with the power, that is told.
        if not here or (here[0].lost_with_power and cause == _POWER_LOSS):
            continue
        text = f"broker {broker} {'lost power' if cause == _POWER_LOSS else 'crashed'}"
        story.tell(position, "stopped", text + _alone(story, group, broker, position), at_us, broker)


def _alone(story: Story, group: Sequence[Copy], broker: int, position: int) -> str:
    """Return what makes a stop matter: that nobody else has the record, or not yet again."""
    others = [copy for copy in group if copy.broker != broker and copy.stored[0] < position]
    if any(copy.is_there(position) for copy in others):
        return ""
    value = group[0].value
    starts = story.copies.events("broker_started")
    back = {
        copy.broker
        for copy in others
        if copy.gone is not None
        and (
            copy.gone[1][1] == "truncate"
            or any(copy.gone[0] < placed < position and event[2] == copy.broker for placed, event in starts)
        )
    }
    if back:
        return f" before {brokers(back)} had fetched {value} again"
    return f", the only one with {value}" if not others else f", the last one with {value}"


def _tell_returns(story: Story, group: Sequence[Copy]) -> None:
    for position, event in story.copies.events("recover"):
        at_us, broker, leo, high_watermark = event[0], event[2], event[4], event[5]
        here = [copy for copy in group if copy.broker == broker and copy.is_there(position)]
        if here:
            text = (
                f"broker {broker} came back with {here[0].value}: LEO {leo}, high watermark {high_watermark}"
            )
            story.tell(position, "recovered", text, at_us, broker)


def _tell_kept(story: Story, copy: Copy, group: Sequence[Copy]) -> None:
    """Tell why a replica still has what its leader does not have."""
    followed = [
        placed
        for placed in story.copies.events("follower")
        if placed[1][2] == copy.broker and placed[1][4] > copy.leader_epoch and copy.is_there(placed[0])
    ]
    if not followed:
        story.tell(END, "kept", f"broker {copy.broker} still has {copy.value}, the leader does not")
        return
    position, event = followed[-1]
    recovered = [
        found[5]
        for placed, found in story.copies.events("recover")
        if placed < position and found[2] == copy.broker
    ]
    above = f"with a high watermark of {recovered[-1]} " if recovered and recovered[-1] > copy.offset else ""
    text = f"broker {copy.broker} followed broker {event[5]} and {above}truncated nothing: it still has {copy.value}"
    story.tell(position, "not-truncated", text, event[0], copy.broker, group[0].offset)


def tell_place(story: Story, offset: int, value: str | int, epoch: int | None = None) -> None:
    """Tell how a value came to stand at an offset, in each log that had it there (in an epoch)."""
    group = [
        copy
        for copy in story.copies.of_value(value)
        if copy.offset == offset and epoch in (None, copy.leader_epoch)
    ]
    if not group:
        return
    if any(copy.gone is None for copy in group) and not _was_deposed(story, group):
        # Of what the last leader has only its beginning matters.
        for copy in group:
            if copy.appended:
                tell_stored(story, copy)
        return
    tell_lives(story, group)


def _was_deposed(story: Story, group: Sequence[Copy]) -> bool:
    """Return whether a leader was elected, later than the record's own, that did not have it."""
    epoch = max(copy.leader_epoch for copy in group)
    return any(
        event[5] > epoch
        and event[4] != _NO_LEADER
        and not any(copy.broker == event[4] and copy.is_there(position) for copy in group)
        for position, event in story.copies.elections
    )
