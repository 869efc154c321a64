"""Explains where the copies of a record were stored, who led meanwhile, and what removed them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harrow.checks.causes import facts, links
from harrow.checks.causes.background import former_controller, is_shared_epoch, producer_epoch, tell_election
from harrow.checks.causes.compaction import later_in_log
from harrow.checks.causes.story import END, Story, deferred, source
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
"""If a fetch causes a commit, the trace shows the commit within this many lines after the fetch."""
_EXPAND: Final = "expand"
_DISK_LINKS: Final[Mapping[type[events.Event], LinkKind[...]]] = {
    events.UnflushedLost: links.unflushed_lost,
    events.LogLost: links.disk_lost,
    events.CorruptionCut: links.corruption_cut,
    events.LogDeleted: links.log_deleted,
}
"""The links of events that remove records from a log: unflushed records, damaged ones, or all."""


def disk_link(event: events.Event) -> LinkKind[...] | None:
    """Return the kind of link for an event of `_DISK_LINKS`, None for any other event."""
    if isinstance(event, events.CorruptionCut) and event.torn:
        return links.torn
    return _DISK_LINKS.get(type(event))


@deferred
def tell_copies_and_leaders(story: Story, group: Sequence[LogEntry]) -> None:
    """Tell how the copies of a record came about, who led meanwhile, and how each was removed."""
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
    for opened in story.events(events.LogOpened):
        if has_copy(group, opened.event.broker, opened.number):
            story.tell_event(opened, links.recovered, value=group[0].value)
    for copy in group:
        if copy.removed is None and copy.damaged is None:
            _tell_copy_kept(story, copy, group)


@deferred
def tell_given_up(story: Story, begin: float, end: float, client: str | None = None) -> None:
    """Tell that a producer gave up on a batch that may be in the log, leaving a sequence gap."""
    for line in story.events(events.AppendedBatchGivenUp):
        if begin < line.number < end and client in (None, line.event.client):
            story.tell_event(line, links.gave_up, decides=True)


@deferred
def tell_copies(story: Story, group: Sequence[LogEntry]) -> None:
    """Tell how the copies of one record came about, and how each was removed or damaged."""
    earlier: set[int] = set()
    for copy in group:
        tell_stored(story, copy, again=copy.broker in earlier)
        earlier.add(copy.broker)
        if copy.removed is not None:
            _tell_removal(story, copy, copy.removed)
        if copy.damaged is not None:
            at_us = story.evidence.trace[copy.damaged - 1][0]
            damage = links.damaged(at_us, copy.broker, value=copy.value, offset=copy.offset)
            story.tell(copy.damaged, damage, decides=True)


@deferred
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
    """Tell how a copy was removed.

    If the follower removed it because it used an outdated answer, also tell this answer.
    """
    outdated = story.last(events.OutdatedFetchAnswered, before=removed.number, broker=copy.broker, taken=True)
    if outdated is not None and outdated.event.at_us == removed.at_us:
        story.tell_event(outdated, links.took_outdated, decides=True, asked=outdated.event.leader)
    story.tell(removed.number, _removal(story, copy, removed), decides=True)


@source(facts.STORED)
def _tell_append(story: Story, line: float, gap: Gap) -> None:
    (value,) = gap.need.subject
    for copy in story.copies(value):
        if not copy.is_copy and copy.number < line:
            tell_stored(story, copy)
            return


@source(facts.COPY)
def _tell_copy(story: Story, line: float, gap: Gap) -> None:
    """Tell how a broker got its copy of a record before a line, or how it lost the copy."""
    value, broker = gap.need.subject
    copies = [copy for copy in story.copies(value) if copy.broker == broker and copy.number < line]
    for copy in copies[-1:]:
        if gap.need.value:
            tell_stored(story, copy, again=len(copies) > 1)
        elif copy.removed is not None and copy.removed.number < line:
            _tell_removal(story, copy, copy.removed)


@source(facts.DELETED)
def _tell_deletion(story: Story, line: float, gap: Gap) -> None:
    """Tell how retention or compaction first deleted a record from a log."""
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
        later = later_in_log(story.index, story.partition, copy)
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
    """Return the link of a truncation, with the answer that the follower acted on."""
    operands: dict[str, Any] = {}
    if removed.reason == LEADER_EPOCH_TRUNCATION:
        # The follower acts on the answer of its current leader, which need not be the last answer.
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


@deferred
def tell_elections(story: Story, group: Sequence[LogEntry], begin: float, end: float) -> None:
    """Tell the elections between two lines, and whether each new leader had the record."""
    same_value = story.copies(group[0].value)
    for number, event in story.elections:
        if not begin < number < end or event.leader == _NO_LEADER:
            continue
        change: (
            TraceLine[events.BecameLeader | events.IsrChanged | events.LeaderElected | events.IsrReduced]
            | None
        )
        change = story.last(
            events.BecameLeader, events.IsrChanged, events.LeaderElected, events.IsrReduced, before=number
        )
        isr = None if change is None else change.event.isr
        # Show the ISR if it is known, and is the one from or against which the leader was elected.
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
    """Tell where a leader took a follower's log to equal its own, but only one had the record."""
    begin, does = group[0].number, story.index.behaviours.replication
    if not does.isr_expansion_checks_epoch_start:
        for number, event in story.events(events.IsrChanged):
            if begin < number < end and event.change == _EXPAND and has_copy(group, event.broker, number):
                _tell_early_join(story, group, number, event)
    if not does.fetch_leader_epoch_fencing:
        pairs_told: set[tuple[int, int]] = set()
        for number, fetch in story.events(events.FollowerFetched):
            pair = fetch.broker, fetch.replica
            if begin < number < end and fetch.offset > group[0].offset and pair not in pairs_told:
                leader_has_it, follower_has_it = (has_copy(group, broker, number) for broker in pair)
                is_counted = leader_has_it and _commits_offset(story, number, group[0].offset)
                if leader_has_it != follower_has_it and (is_counted or follower_has_it):
                    pairs_told |= {pair} if _tell_unfenced_fetch(story, group, number, fetch) else set()


def _commits_offset(story: Story, number: int, offset: int) -> bool:
    """Return whether the fetch at a line moved the leader's high watermark past an offset."""
    fetch, *after = map(decode, story.evidence.trace[number - 1 : number + _LINES_OF_A_FETCH])
    return any(
        isinstance(event, events.HighWatermarkSet)
        and (event.at_us, event.partition) == (fetch.at_us, story.partition)
        and event.hw > offset
        for event in after
    )


def _tell_early_join(story: Story, group: Sequence[LogEntry], number: int, event: events.IsrChanged) -> None:
    """Tell that a follower without the record joined the ISR below the epoch start (KAFKA-7128)."""
    leading = story.last(events.BecameLeader, before=number, broker=event.broker)
    before = story.isr_at(event.broker, number) or ()
    for follower in sorted(set(event.isr) - set(before)):
        fetch = story.last(events.FollowerFetched, before=number, broker=event.broker, replica=follower)
        if leading is None or fetch is None or has_copy(group, follower, number):
            continue
        start_offset = leading.event.start_offset
        if fetch.event.offset < start_offset and has_copy(group, event.broker, number):
            story.tell_event(
                TraceLine(number, event),
                links.joined_early,
                decides=True,
                follower=follower,
                leo=fetch.event.offset,
                start_offset=start_offset,
            )


def _tell_unfenced_fetch(
    story: Story, group: Sequence[LogEntry], number: int, fetch: events.FollowerFetched
) -> bool:
    """Tell that a leader accepted a fetch of another epoch (KIP-320).

    Return whether the fetch was of another epoch.
    """
    leading = story.last(events.BecameLeader, before=number, broker=fetch.broker)
    following = story.last(events.BecameFollower, before=number, broker=fetch.replica)
    led_itself = story.last(events.BecameLeader, before=number, broker=fetch.replica)
    fetch_epoch = max(
        (line.event.leader_epoch for line in (following, led_itself) if line is not None), default=-1
    )
    if leading is None or fetch_epoch in (-1, leading.event.leader_epoch):
        return False
    unfenced = links.unfenced_fetch(
        fetch.at_us,
        fetch.broker,
        follower=fetch.replica,
        offset=fetch.offset,
        value=group[0].value,
        leader_epoch=leading.event.leader_epoch,
        fetch_epoch=fetch_epoch,
        has_it=has_copy(group, fetch.replica, number),
    )
    story.tell(number, unfenced, decides=True)
    return True


def newer_election(
    story: Story, copy: LogEntry, before: int | None = None
) -> TraceLine[events.LeaderElected] | None:
    """Return the last election that deposed a leader before it appended a record.

    With *before*, the election has to precede that line instead. None if there is no such election.
    """
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
    """Tell how a leader came to append records in an epoch that had already ended."""
    newer = newer_election(story, copy)
    if newer is None:
        return
    elected = newer.event
    tell_election(story, newer, decides=True)
    for number, led in story.events(events.BecameLeader):
        is_between = newer.number < number < copy.number
        if is_between and led.broker == copy.broker and led.leader_epoch <= copy.leader_epoch:
            _tell_late_election(story, number, led)
            deposed = links.deposed_leader(
                led.at_us, led.broker, leader_epoch=led.leader_epoch, newer_epoch=elected.leader_epoch
            )
            story.tell(number, deposed, decides=True)


def _tell_late_election(story: Story, number: int, led: events.BecameLeader) -> None:
    """Tell which controller announced an election too late.

    ZooKeeper had recorded the election long before. Only the requests that announce it were late.
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
    """Tell how a broker acted as controller after its successor's election.

    Return the successor, or -1 if no other broker was elected controller.
    """
    others = [
        line
        for line in story.events(events.ControllerElected)
        if line.number < end and line.event.broker != controller
    ]
    if not others:
        return -1
    story.tell_event(others[-1], links.controller_elected, former=former_controller(story, others[-1].number))
    paused = story.last(events.BrokerPaused, before=end, broker=controller)
    if paused is not None:
        story.tell_event(paused, links.controller_paused)
    resumed = story.last(events.BrokerResumed, before=end, broker=controller)
    if resumed is not None:
        story.tell_event(resumed, links.controller_resumed, decides=True)
    return others[-1].event.broker


@deferred
def tell_stops(story: Story, group: Sequence[LogEntry], end: int = END) -> None:
    """Tell which brokers stopped before a line while they had the only copy of the record."""
    for number, event in story.events(events.BrokerStopped):
        copies = [copy for copy in group if copy.broker == event.broker and copy.is_there(number)]
        # If a power loss removed the copy, `tell_copies` tells the power loss.
        removed_copy = event.cause == _STOPPED_BY_POWER_LOSS and bool(copies) and copies[0].lost_with_power
        if copies and number < end and not removed_copy:
            stop = _stop_link_of_copy(story, group, number, event)
            if stop is not None:
                story.tell(number, stop, decides=True)


def _stop_link_of_copy(
    story: Story, group: Sequence[LogEntry], number: int, event: events.BrokerStopped
) -> Link | None:
    """Return the link for a stop after which no running broker had the record, else None."""
    others = [copy for copy in group if copy.broker != event.broker and copy.number < number]
    if any(copy.is_there(number) for copy in others):
        return None
    without_copy = set()
    for copy in others:
        if copy.removed is not None:
            start = story.last(events.BrokerStarted, before=number, broker=copy.broker)
            is_back = start is not None and start.number > copy.removed.number
            if is_back or copy.removed.cause == TRUNCATED:
                without_copy.add(copy.broker)
    return links.stopped(
        event.at_us,
        event.broker,
        cause=event.cause,
        value=group[0].value,
        before_fetching=tuple(sorted(without_copy)),
        is_only=not others,
        is_last=bool(others),
    )


def _tell_copy_kept(story: Story, copy: LogEntry, group: Sequence[LogEntry]) -> None:
    """Tell why a replica still has a record that its leader lacks."""
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


@deferred
def tell_place(story: Story, offset: int, value: Value, epoch: int | None = None) -> None:
    """Tell how a value got to an offset, for each log that had the value there.

    With *epoch*, only copies that were appended in that leader epoch count.
    """
    group = [copy for copy in story.copies(value, offset) if epoch in (None, copy.leader_epoch)]
    if not group:
        return
    if all(copy.removed is not None for copy in group) or _was_deposed(story, group):
        tell_copies_and_leaders(story, group)
        return
    # For a record that the last leader still has, only its append matters.
    for copy in group:
        if not copy.is_copy:
            tell_stored(story, copy)


def _was_deposed(story: Story, group: Sequence[LogEntry]) -> bool:
    """Return whether a later leader was elected that did not have the record."""
    epoch = max(copy.leader_epoch for copy in group)
    return any(
        event.leader_epoch > epoch
        and event.leader != _NO_LEADER
        and not has_copy(group, event.leader, number)
        for number, event in story.elections
    )
