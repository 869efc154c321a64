"""The lives of a record's copies: stored where, and which crash, election or truncation took them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harrow.checks.causes import facts, links
from harrow.checks.causes.background import former_controller, is_shared_epoch, producer_epoch, tell_election
from harrow.checks.causes.compaction import later_in_log
from harrow.checks.causes.story import END, Story, source
from harrow.checks.history.records import Value
from harrow.checks.link import Gap, Link, LinkKind
from harrow.checks.replay.partition_state import (
    COMPACTION,
    RETENTION,
    TRUNCATED,
    LogEntry,
    RemovedEntry,
    has_copy,
)
from harrow.cluster_model import events
from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from harrow.cluster_model.trace import TraceLine, decode

_NO_LEADER: Final = -1
_STOPPED_BY_POWER_LOSS: Final = "power_loss"
_LINES_OF_A_FETCH: Final = 4
"""How soon after a fetch the trace has what it commits."""
_EXPAND: Final = "expand"
_DISK_LINKS: Final[Mapping[type[events.Event], LinkKind[...]]] = {
    events.UnflushedLost: links.unflushed_lost,
    events.LogLost: links.disk_lost,
    events.CorruptionCut: links.corruption_cut,
    events.LogDeleted: links.log_deleted,
}
"""What takes copies with a disk, its power, or a whole log."""


def disk_link(event: events.Event) -> LinkKind[...] | None:
    """Return the kind of link for what takes the end of a log with a disk or its power, or the whole log; None for anything else."""
    if isinstance(event, events.CorruptionCut) and event.torn:
        return links.torn
    return _DISK_LINKS.get(type(event))


def tell_lives(story: Story, group: Sequence[LogEntry]) -> None:
    """Tell how the copies of one record came, who led in the meantime, and how each went."""
    if not group:
        tell_given_up(story, 0, END)
        story.tell(END, links.not_appended.conclude())
        return
    removed = [copy.removed for copy in group if copy.removed is not None]
    end = max(entry.number for entry in removed) if len(removed) == len(group) else END
    _tell_deposed_leader(story, group[0])
    tell_copies(story, group)
    tell_elections(story, group, group[0].number, end)
    tell_misjudged_replicas(story, group, end)
    tell_stops(story, group)
    for number, event in story.events(events.LogOpened):
        if has_copy(group, event.broker, number):
            back = links.recovered(
                event.at_us, event.broker, value=group[0].value, leo=event.leo, hw=event.hw
            )
            story.tell(number, back)
    for copy in group:
        if copy.removed is None and copy.damaged is None:
            _tell_kept(story, copy, group)


def tell_given_up(story: Story, begin: float, end: float, client: str | None = None) -> None:
    """Tell that a producer gave up a batch that may be in the log, and with it decided about the sequence numbers of the next ones."""
    for number, event in story.events(events.AppendedBatchGivenUp):
        if begin < number < end and client in (None, event.client):
            told = links.gave_up(event.at_us, event.client, values=event.values, error=event.error)
            story.tell(number, told, decides=True)


def tell_copies(story: Story, group: Sequence[LogEntry]) -> None:
    """Tell how the copies of one record came, and how each went."""
    seen: set[int] = set()
    for copy in group:
        tell_stored(story, copy, again=copy.broker in seen)
        seen.add(copy.broker)
        if copy.removed is not None:
            _tell_removal(story, copy, copy.removed)
        if copy.damaged is not None:
            at_us = story.evidence.trace[copy.damaged - 1][0]
            rot = links.damaged(at_us, copy.broker, value=copy.value, offset=copy.offset)
            story.tell(copy.damaged, rot, decides=True)


def tell_stored(story: Story, copy: LogEntry, *, again: bool = False, with_producer: bool = False) -> None:
    """Tell that a replica appended or copied a record."""
    value, offset = copy.value, copy.offset
    event = decode(story.evidence.trace[copy.number - 1])
    if isinstance(event, events.LogStartReverted):
        stored = links.begun_earlier(
            copy.at_us, copy.broker, log_start=event.to_offset, offset=offset, value=value
        )
    elif copy.is_copy:
        stored = links.copied(copy.at_us, copy.broker, value=value, offset=offset, again=again)
    else:
        stored = links.appended(
            copy.at_us,
            copy.broker,
            value=value,
            offset=offset,
            leader_epoch=copy.leader_epoch,
            again=again,
            is_deposed=newer_election(story, copy) is not None,
            is_shared=is_shared_epoch(story, copy.broker, copy.leader_epoch),
            producer_id=copy.producer_id if with_producer else None,
            producer_epoch=producer_epoch(story, copy) if with_producer else None,
            sequence=copy.sequence if with_producer else None,
        )
    story.tell(copy.number, stored)


def _tell_removal(story: Story, copy: LogEntry, removed: RemovedEntry) -> None:
    """Tell how a record went, and before that of an answer that its follower should not have taken."""
    outdated = story.last(events.OutdatedFetchAnswered, before=removed.number, broker=copy.broker, taken=True)
    if outdated is not None and outdated.event.at_us == removed.at_us:
        event = outdated.event
        told = links.took_outdated(
            event.at_us,
            event.broker,
            asked=event.leader,
            fetch_epoch=event.fetch_epoch,
            leader_epoch=event.leader_epoch,
        )
        story.tell(outdated.number, told, decides=True)
    story.tell(removed.number, _removal(story, copy, removed), decides=True)


@source(facts.STORED)
def _tell_append(story: Story, line: float, gap: Gap) -> None:
    """Tell the first append of a record that a replica has."""
    (value,) = gap.need.subject
    for copy in story.copies(value):
        if not copy.is_copy and copy.number < line:
            tell_stored(story, copy)
            return


@source(facts.COPY)
def _tell_copy(story: Story, line: float, gap: Gap) -> None:
    """Tell how a broker had got a record before a line, or how it had lost it."""
    value, broker = gap.need.subject
    copies = [copy for copy in story.copies(value) if copy.broker == broker and copy.number < line]
    for copy in copies[-1:]:
        if gap.need.value:
            tell_stored(story, copy, again=len(copies) > 1)
        elif copy.removed is not None and copy.removed.number < line:
            _tell_removal(story, copy, copy.removed)


@source(facts.DELETED)
def _tell_deletion(story: Story, line: float, gap: Gap) -> None:
    """Tell how a record was deleted from the first log that let it go by retention or compaction."""
    (value,) = gap.need.subject
    removals = (copy.removed for copy in story.copies(value))
    deletions = [each for each in removals if each is not None and each.cause in (RETENTION, COMPACTION)]
    first = min((each.number for each in deletions if each.number < line), default=None)
    for copy in story.copies(value):
        if copy.removed is not None and copy.removed.number == first:
            story.tell(copy.removed.number, _removal(story, copy, copy.removed))


def _removal(story: Story, copy: LogEntry, removed: RemovedEntry) -> Link:
    at_us, broker, value, offset = removed.at_us, copy.broker, copy.value, copy.offset
    event = decode(story.evidence.trace[removed.number - 1])
    kind = disk_link(event)
    if kind is not None:
        return kind(at_us, broker, leo=removed.to_offset, offset=offset, value=value)
    if isinstance(event, (events.LogStartRaised, events.LogStartedAnew)):
        return links.retention_deleted(
            at_us, broker, log_start=event.offset, reason=removed.reason, offset=offset, value=value
        )
    if isinstance(event, events.LogCleaned):
        later = later_in_log(story.index.partition(story.partition), copy)
        if later is None:
            return links.compacted(at_us, broker, offset=offset, value=value)
        return links.compacted(
            at_us, broker, offset=offset, value=value, later=later.value, later_offset=later.offset
        )
    if isinstance(event, events.LogTruncated):
        return _truncation(story, copy, removed)
    if isinstance(event, events.BatchAppended):
        return links.overwritten(
            at_us, broker, values=event.values, base_offset=event.base_offset, value=value, offset=offset
        )
    return links.gone(at_us, broker, value=value, offset=offset)


def _truncation(story: Story, copy: LogEntry, removed: RemovedEntry) -> Link:
    """Return how a follower came to truncate a record."""
    operands: dict[str, Any] = {}
    if removed.reason == LEADER_EPOCH_TRUNCATION:
        # The answer that it acts on is of the leader it follows, which need not have answered last.
        follows = story.last(events.BecameFollower, before=removed.number, broker=copy.broker)
        leader = {} if follows is None else {"broker": follows.event.leader}
        answer = story.last(events.EpochEndAnswered, before=removed.number, replica=copy.broker, **leader)
        if answer is not None:
            operands = {
                "asked": answer.event.broker,
                "asked_epoch": answer.event.leader_epoch,
                "answer": answer.event.end_offset,
            }
    return links.truncated(
        removed.at_us,
        copy.broker,
        leo=removed.to_offset,
        reason=removed.reason,
        offset=copy.offset,
        value=copy.value,
        **operands,
    )


def tell_elections(story: Story, group: Sequence[LogEntry], begin: float, end: float) -> None:
    """Tell who was elected between two lines, and whether the new leader had the record, appended whenever."""
    same_value = story.copies(group[0].value)
    for number, event in story.elections:
        if not begin < number < end or event.leader == _NO_LEADER:
            continue
        before: (
            TraceLine[events.BecameLeader | events.IsrChanged | events.LeaderElected | events.IsrReduced]
            | None
        )
        before = story.last(
            events.BecameLeader, events.IsrChanged, events.LeaderElected, events.IsrReduced, before=number
        )
        isr = None if before is None else before.event.isr
        # An unclean leader from within the ISR, and a clean one from outside of it, need no ISR to be understood.
        is_plain = isr is None or event.unclean != (event.leader not in isr)
        has_it = has_copy(same_value, event.leader, number)
        tell_election(
            story,
            TraceLine(number, event),
            decides=not has_it,
            isr=None if is_plain else isr,
            value=group[0].value,
            has_it=has_it,
        )


def tell_misjudged_replicas(story: Story, group: Sequence[LogEntry], end: float) -> None:
    """Tell which replicas a leader took for equal although only one of the two had a record."""
    begin, does = group[0].number, story.evidence.does().replication
    if not does.isr_expansion_checks_epoch_start:
        for number, event in story.events(events.IsrChanged):
            if begin < number < end and event.change == _EXPAND and has_copy(group, event.broker, number):
                _tell_early_join(story, group, number, event)
    if not does.fetch_leader_epoch_fencing:
        told: set[tuple[int, int]] = set()
        for number, fetch in story.events(events.FollowerFetched):
            pair = fetch.broker, fetch.replica
            if begin < number < end and fetch.offset > group[0].offset and pair not in told:
                leader_has_it, follower_has_it = (has_copy(group, broker, number) for broker in pair)
                is_counted = leader_has_it and _commits(story, number, group[0].offset)
                if leader_has_it != follower_has_it and (is_counted or follower_has_it):
                    told |= {pair} if _tell_unfenced_fetch(story, group, number, fetch) else set()


def _commits(story: Story, number: int, offset: int) -> bool:
    """Return whether a leader's high watermark passed an offset with the fetch at a line."""
    fetch, *after = map(decode, story.evidence.trace[number - 1 : number + _LINES_OF_A_FETCH])
    return any(
        isinstance(event, events.HighWatermarkSet)
        and (event.at_us, event.partition) == (fetch.at_us, story.partition)
        and event.hw > offset
        for event in after
    )


def _tell_early_join(story: Story, group: Sequence[LogEntry], number: int, event: events.IsrChanged) -> None:
    """Tell that a follower without the record joined the ISR below the start of its leader's epoch (KAFKA-7128)."""
    leading = story.last(events.BecameLeader, before=number, broker=event.broker)
    before = story.isr_at(event.broker, number) or ()
    for follower in sorted(set(event.isr) - set(before)):
        fetch = story.last(events.FollowerFetched, before=number, broker=event.broker, replica=follower)
        if leading is None or fetch is None or has_copy(group, follower, number):
            continue
        start_offset = leading.event.start_offset
        if fetch.event.offset < start_offset and has_copy(group, event.broker, number):
            joined = links.joined_early(
                event.at_us,
                event.broker,
                follower=follower,
                leo=fetch.event.offset,
                leader_epoch=event.leader_epoch,
                start_offset=start_offset,
            )
            story.tell(number, joined, decides=True)


def _tell_unfenced_fetch(
    story: Story, group: Sequence[LogEntry], number: int, fetch: events.FollowerFetched
) -> bool:
    """Tell that a leader took a fetch of another epoch (KIP-320); return whether it was of another."""
    leading = story.last(events.BecameLeader, before=number, broker=fetch.broker)
    following = story.last(events.BecameFollower, before=number, broker=fetch.replica)
    led_itself = story.last(events.BecameLeader, before=number, broker=fetch.replica)
    known = max((line.event.leader_epoch for line in (following, led_itself) if line is not None), default=-1)
    if leading is None or known in (-1, leading.event.leader_epoch):
        return False
    unfenced = links.unfenced_fetch(
        fetch.at_us,
        fetch.broker,
        follower=fetch.replica,
        offset=fetch.offset,
        value=group[0].value,
        leader_epoch=leading.event.leader_epoch,
        fetch_epoch=known,
        has_it=has_copy(group, fetch.replica, number),
    )
    story.tell(number, unfenced, decides=True)
    return True


def newer_election(
    story: Story, copy: LogEntry, before: int | None = None
) -> TraceLine[events.LeaderElected] | None:
    """Return the election that had deposed a leader before it appended a record, or *before* a line; None if none had."""
    end = copy.number if before is None else before
    newer = [
        line
        for line in story.elections
        if line.number < end
        and line.event.leader_epoch > copy.leader_epoch
        and line.event.leader != _NO_LEADER
    ]
    return newer[-1] if newer and not copy.is_copy and newer[-1].event.leader != copy.broker else None


def _tell_deposed_leader(story: Story, copy: LogEntry) -> None:
    """Tell how a leader came to append in an epoch that had ended already."""
    newer = newer_election(story, copy)
    if newer is None:
        return
    elected = newer.event
    tell_election(story, newer, decides=True)
    for number, led in story.events(events.BecameLeader):
        is_between = newer.number < number < copy.number
        if is_between and led.broker == copy.broker and led.leader_epoch <= copy.leader_epoch:
            _tell_late_order(story, number, led)
            deposed = links.deposed_leader(
                led.at_us, led.broker, leader_epoch=led.leader_epoch, newer_epoch=elected.leader_epoch
            )
            story.tell(number, deposed, decides=True)


def _tell_late_order(story: Story, number: int, led: events.BecameLeader) -> None:
    """Tell which controller told a leader so late that it leads.

    ZooKeeper had the election long before; what was late are the requests that tell of it.
    """
    order = story.last(events.LeaderElected, before=number, leader_epoch=led.leader_epoch)
    if order is None:
        return
    election = order.event
    successor = _tell_deposed_controller(story, election.controller, number)
    deposed = links.deposed_controller(
        led.at_us,
        election.controller,
        leader=election.leader,
        leader_epoch=election.leader_epoch,
        successor=successor,
    )
    story.tell(number, deposed, decides=True)


def _tell_deposed_controller(story: Story, controller: int, end: int) -> int:
    """Tell how a broker came to act as controller when another was, and return that one; -1 where the trace has none."""
    others = [
        line
        for line in story.events(events.ControllerElected)
        if line.number < end and line.event.broker != controller
    ]
    if not others:
        return -1
    number, event = others[-1]
    successor = links.controller_elected(
        event.at_us,
        event.broker,
        controller_epoch=event.controller_epoch,
        former=former_controller(story, number),
    )
    story.tell(number, successor)
    paused = story.last(events.BrokerPaused, before=end, broker=controller)
    if paused is not None:
        story.tell(paused.number, links.controller_paused(paused.event.at_us, controller))
    resumed = story.last(events.BrokerResumed, before=end, broker=controller)
    if resumed is not None:
        woken = links.controller_resumed(resumed.event.at_us, controller)
        story.tell(resumed.number, woken, decides=True)
    return event.broker


def tell_stops(story: Story, group: Sequence[LogEntry], end: int = END) -> None:
    """Tell which brokers stopped that had the record when no other had it, up to a line."""
    for number, event in story.events(events.BrokerStopped):
        here = [copy for copy in group if copy.broker == event.broker and copy.is_there(number)]
        # Power loss that took the copy stands in the story of the copy.
        is_of_copy = event.cause == _STOPPED_BY_POWER_LOSS and bool(here) and here[0].lost_with_power
        if here and number < end and not is_of_copy:
            stop = _stop(story, group, number, event)
            if stop is not None:
                story.tell(number, stop, decides=True)


def _stop(story: Story, group: Sequence[LogEntry], number: int, event: events.BrokerStopped) -> Link | None:
    """Return a stop with what makes it matter: that no other broker has the record, or not yet again; None if another has it."""
    others = [copy for copy in group if copy.broker != event.broker and copy.number < number]
    if any(copy.is_there(number) for copy in others):
        return None
    back = set()
    for copy in others:
        if copy.removed is not None:
            start = story.last(events.BrokerStarted, before=number, broker=copy.broker)
            is_back = start is not None and start.number > copy.removed.number
            if is_back or copy.removed.cause == TRUNCATED:
                back.add(copy.broker)
    return links.stopped(
        event.at_us,
        event.broker,
        cause=event.cause,
        value=group[0].value,
        before_fetching=tuple(sorted(back)),
        is_only=not others,
        is_last=bool(others),
    )


def _tell_kept(story: Story, copy: LogEntry, group: Sequence[LogEntry]) -> None:
    """Tell why a replica still has what its leader does not have."""
    followed = [
        line
        for line in story.events(events.BecameFollower)
        if line.event.broker == copy.broker
        and line.event.leader_epoch > copy.leader_epoch
        and copy.is_there(line.number)
    ]
    if not followed:
        story.tell(END, links.kept(None, copy.broker, value=copy.value))
        return
    number, event = followed[-1]
    opened = story.last(events.LogOpened, before=number, broker=copy.broker)
    not_truncated = links.not_truncated(
        event.at_us,
        copy.broker,
        leader=event.leader,
        value=copy.value,
        offset=group[0].offset,
        hw=opened.event.hw if opened is not None and opened.event.hw > copy.offset else None,
    )
    story.tell(number, not_truncated)


def tell_place(story: Story, offset: int, value: Value, epoch: int | None = None) -> None:
    """Tell how a value came to stand at an offset, in each log that had it there (in an epoch)."""
    group = [copy for copy in story.copies(value, offset) if epoch in (None, copy.leader_epoch)]
    if not group:
        return
    if all(copy.removed is not None for copy in group) or _was_deposed(story, group):
        tell_lives(story, group)
        return
    # Of what the last leader has only its beginning matters.
    for copy in group:
        if not copy.is_copy:
            tell_stored(story, copy)


def _was_deposed(story: Story, group: Sequence[LogEntry]) -> bool:
    """Return whether a leader was elected, later than the record's own, that did not have it."""
    epoch = max(copy.leader_epoch for copy in group)
    return any(
        event.leader_epoch > epoch
        and event.leader != _NO_LEADER
        and not has_copy(group, event.leader, number)
        for number, event in story.elections
    )
