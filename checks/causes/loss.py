"""Explains why a record is no longer where it was stored, and which setting permits the loss.

A loss is judged by its actual cause, not by what the settings would have permitted. If a truncation
removed a record below the high watermark, the promise is broken even if unclean elections were on.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harrow.checks import prevention
from harrow.checks.causes import catalogue, links
from harrow.checks.causes.background import tell_election
from harrow.checks.causes.compaction import compaction_of, is_superseded, with_replacements
from harrow.checks.causes.copies import newer_election, tell_copies, tell_copies_and_leaders
from harrow.checks.causes.requests import tell_ack, tell_disturbance, tell_sent
from harrow.checks.causes.retention import deletion_of
from harrow.checks.causes.story import END, Story, deferred
from harrow.checks.finding import Finding
from harrow.checks.history.records import SendRecord, Value
from harrow.checks.index import Index
from harrow.checks.link import Link
from harrow.checks.promise import (
    ACKS_0,
    ACKS_1,
    CLOCK_SKEW,
    DELETE_RETENTION_MS,
    DISK_FAILURE,
    FLUSH_INTERVAL,
    UNCLEAN_ELECTION,
)
from harrow.checks.replay.partition_state import Ack, LogEntry, has_copy
from harrow.cluster_model import events
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.log.unified_log import DELETE_RECORDS, LEADER_LOG_START, RETENTION_MS
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.trace import TraceLine

_ON_THE_WAY_US: Final = US_PER_SECOND
"""How long after a send faults may still affect its request."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an anomaly happened, the setting that permits it, if any, and what prevents it.

    ``links`` are the conclusions that end the chain, or the whole chain. They are empty if the
    trace does not show a cause.
    """

    links: Sequence[Link]
    permitted_by: str | None = None
    prevented_by: tuple[prevention.Prevention, ...] = ()

    def finding(
        self,
        story: Story,
        *conclusions: Link,
        offset: int | None = None,
        value: Value | None = None,
        details: tuple[tuple[str, Any], ...] = (),
    ) -> Finding:
        """Return the anomaly that this cause explains, in a story's partition.

        *conclusions* end the finding's chain.
        """
        return Finding(
            partition=story.partition,
            offset=offset,
            value=value,
            chain=story.chain(*self.links, *conclusions),
            permitted_by=self.permitted_by,
            prevented_by=self.prevented_by,
            details=details,
        )


def explain_replaced(index: Index, partition: str, value: Value, offset: int) -> Cause:
    """Explain why a record that consumers have read is no longer at its offset.

    The cause has the whole chain.
    """
    story = Story(index, partition)
    cause = tell_replaced(story, value, offset)
    return replace(cause, links=story.chain(*cause.links))


def tell_replaced(story: Story, value: Value, offset: int) -> Cause:
    """Tell how a record left its offset, and return the cause."""
    group = story.copies(value, offset)
    tell_copies_and_leaders(story, group)
    return _cause(story, group, value)


def tell_lost_send(story: Story, send: SendRecord) -> Cause:
    """Tell how an acked record was lost, and return the cause.

    The acks setting of the producer decides what Kafka promised about the record.
    """
    ack = _ack_of(story, send)
    group = _copies_of_append(story, send, ack)
    producer = story.evidence.producers[send.process]
    if not group:
        tell_sent(story, send, producer.name)
        begin = story.start(send.invoked_us)
        end = story.start((send.completed_us or send.invoked_us) + _ON_THE_WAY_US)
        for broker in story.settings.replicas:
            tell_disturbance(story, producer.name, broker, begin, end)
    tell_copies_and_leaders(story, group)
    tell_ack(story, send, ack, group)
    if producer.acks == "0":
        instead = prevention.SAFE_ACKS if group else prevention.WAITING_FOR_ANSWERS
        return Cause((catalogue.no_ack_awaited.conclude(),), ACKS_0, (instead,))
    # Once the high watermark has passed a record, the ISR elects no leader without it. A later loss
    # therefore has nothing to do with the moment of the ack.
    if producer.acks == "1" and not any(copy.is_committed for copy in group):
        conclusion = catalogue.acked_before_replication.conclude(value=send.value)
        return Cause((conclusion,), ACKS_1, (prevention.SAFE_ACKS,))
    isr = None if ack is None else story.isr_at(ack.broker, ack.number)
    alone = isr is not None and len(isr) < 2 <= len(story.settings.replicas)
    return _cause(story, group, send.value, alone=alone, since_us=send.completed_us)


@deferred
def tell_acknowledgement(story: Story, send: SendRecord) -> None:
    """Tell the ack that completed a send."""
    ack = _ack_of(story, send)
    tell_ack(story, send, ack, _copies_of_append(story, send, ack))


def _cause(
    story: Story,
    group: Sequence[LogEntry],
    value: Value,
    *,
    alone: bool = False,
    since_us: int | None = None,
) -> Cause:
    """Return why a record was lost.

    *alone* is true if the record was acked, at *since_us*, while the leader was alone in the ISR.
    """
    by_policy = _by_retention(story, group, value) or _by_compaction(story, group)
    if by_policy is not None:
        return by_policy
    # Where a log compacted its copy, the later record that replaced it was lost.
    copies = with_replacements(story.index, story.partition, group)
    election = unclean_election_without(story, copies)
    if not group and not story.evidence.follows_logs:
        election = _unclean_election_since(story, since_us or 0)
    if election is not None and story.settings.elects_uncleanly(election.at_us):
        conclusion = catalogue.unclean_election.conclude(leader=election.leader, value=value)
        weak = (prevention.TWO_IN_SYNC,) if alone and story.settings.min_insync_replicas < 2 else ()
        return Cause((conclusion,), UNCLEAN_ELECTION, (prevention.CLEAN_ELECTIONS, *weak))
    below_start = _by_log_start_above_offset(story, group)
    if below_start is not None:
        return below_start
    by_storage = _by_storage(story, copies, alone=alone)
    if by_storage is not None:
        return by_storage
    excuse = story.index.excuse(story.partition, group[0].offset if group else None)
    if excuse is not None:
        return Cause((catalogue.by_excuse(excuse, logs_parted=True),), excuse.setting, excuse.prevented_by)
    if not group:
        return Cause(())
    if newer_election(story, group[0]) is not None:
        kind = catalogue.acked_by_deposed_leader
    elif any(copy.is_committed for copy in group):
        kind = catalogue.committed_record_lost
    else:
        kind = catalogue.acked_before_commit
    return Cause((kind.conclude(value=group[0].value),))


def _by_storage(story: Story, group: Sequence[LogEntry], *, alone: bool) -> Cause | None:
    """Return the cause if copies were lost in disk failures or power losses, otherwise None."""
    # The last copy of each broker counts: a broker may have fetched a lost record again.
    last = list({copy.broker: copy for copy in group}.values())
    if any(copy.lost_with_disk or copy.damaged for copy in last):
        by_disk = _by_disk_failure(story, group, last, alone=alone)
        if by_disk is not None:
            return by_disk
    if any(copy.lost_with_power for copy in last):
        because = _by_power_loss(story, group, last)
        return Cause((because,), FLUSH_INTERVAL, (prevention.FLUSHING,))
    return None


def _by_retention(story: Story, group: Sequence[LogEntry], value: Value) -> Cause | None:
    sends = story.index.sends_of(story.partition, value)
    deletion = deletion_of(story.index, story.partition, group, sends[0].invoked_us if sends else None)
    if deletion is None:
        return None
    setting = deletion.setting
    if setting == CLOCK_SKEW:
        apart = catalogue.deleted_by_wrong_clock.conclude(
            value=value, broker=deletion.broker, lead_us=deletion.lead_us
        )
        return Cause((apart,), CLOCK_SKEW)
    if setting == DELETE_RECORDS:
        if deletion.was_due:
            return Cause((catalogue.deleted_by_request.conclude(value=value),), DELETE_RECORDS)
        return Cause((catalogue.deleted_beyond_request.conclude(value=value),))
    if not deletion.was_due:
        return Cause((catalogue.deleted_too_early.conclude(value=value, setting=setting),))
    passed = catalogue.retention_passed.conclude(value=value, setting=setting)
    longer = prevention.KEEPING_LONGER if setting == RETENTION_MS else prevention.KEEPING_MORE
    return Cause((passed,), setting, (longer,))


def _by_compaction(story: Story, group: Sequence[LogEntry]) -> Cause | None:
    compaction = compaction_of(story.index, story.partition, group)
    if compaction is None:
        return None
    value, later = compaction.copy.value, compaction.later
    index, partition = story.index, story.partition
    if later is not None and (
        later.value in index.readable(partition) or is_superseded(index, partition, later.value)
    ):
        # The record is not lost. It is missing only because some leader never had it.
        return None
    if later is not None and compaction.copy.removed is not None:
        of_later = story.copies(later.value, later.offset)
        was_committed = later.offset < compaction.copy.removed.high_watermark
        conclusion = catalogue.superseded_by_lost_record.conclude(
            value=value, later=later.value, committed=was_committed
        )
        if not was_committed:
            tell_copies(story, of_later)
            return Cause((conclusion,))
        # The later record was committed by then, so it had to stay. The cause of its loss decides.
        tell_copies_and_leaders(story, of_later)
        cause = _cause(story, of_later, later.value)
        return replace(cause, links=(*cause.links, conclusion))
    if not compaction.is_tombstone:
        return Cause((catalogue.compacted_without_later_record.conclude(value=value),))
    if not compaction.was_due:
        early = catalogue.tombstone_removed_too_early.conclude(value=value, setting=DELETE_RETENTION_MS)
        return Cause((early,))
    if compaction.lead_us:
        apart = catalogue.tombstone_expired_by_wrong_clock.conclude(value=value, lead_us=compaction.lead_us)
        return Cause((apart,), CLOCK_SKEW)
    expired = catalogue.tombstone_expired.conclude(value=value, setting=DELETE_RETENTION_MS)
    return Cause((expired,), DELETE_RETENTION_MS, (prevention.KEEPING_TOMBSTONES,))


def _by_power_loss(story: Story, group: Sequence[LogEntry], copies: Sequence[LogEntry]) -> Link:
    """Return why a record was lost, if some of the last *copies* were lost in a power loss.

    Kafka promises to keep a committed record while one in-sync replica is alive. If the only
    in-sync replica loses power, the partition waits for it, even if another replica has the record
    (KIP-966). A replica that comes back without the unflushed end of its log, before the control
    plane notices, stays in the ISR (KIP-966 removes it), or an outdated request lets it in again
    (KIP-903).
    """
    value = group[0].value
    lost = {copy.broker: copy.removed.number for copy in copies if copy.removed and copy.lost_with_power}
    if len(lost) == len(copies):
        return catalogue.power_loss.conclude(lost=tuple(sorted(lost)))
    first_led = _first_led_without(story, group, lost)
    end, leader = first_led or (END, max(lost, key=lost.__getitem__))
    having = tuple(sorted(copy.broker for copy in copies if not copy.lost_with_power))
    isr = _isr_before(story, lost[leader])
    if isr is not None and set(isr) <= lost.keys():
        return catalogue.last_in_isr_lost_power.conclude(isr=isr, value=value, having=having)
    return catalogue.in_isr_after_power_loss.conclude(
        leader=leader,
        value=value,
        having=having,
        rejoined=_has_rejoined_isr(story, leader, lost[leader], end),
    )


def _by_disk_failure(
    story: Story, group: Sequence[LogEntry], copies: Sequence[LogEntry], *, alone: bool
) -> Cause | None:
    """Return why a record was lost, if some of the last *copies* were lost with disks.

    This works like `_by_power_loss`, but a lost disk alone is not a cause, because replication
    protects against disk failures. It is a cause only if every replica lost the record, or if a
    replica that had lost the record with its disk became leader. None means that the record was
    lost for another reason.
    """
    value = group[0].value
    struck = [copy for copy in copies if copy.lost_with_machine]
    lost = {copy.broker: copy.removed.number for copy in struck if copy.removed}
    damaged = {copy.broker: copy.damaged for copy in copies if copy.damaged and not copy.removed}
    lost.update(damaged)
    if len(lost) == len(copies):
        weak = alone and story.settings.min_insync_replicas < 2
        more = prevention.TWO_IN_SYNC if weak else prevention.MORE_REPLICAS
        return Cause(
            (catalogue.disk_failure.conclude(value=value, lost=tuple(sorted(lost))),), DISK_FAILURE, (more,)
        )
    leader = story.index.last_leader(story.partition)
    if leader in damaged:
        having = tuple(sorted(copy.broker for copy in copies if copy.broker not in lost and not copy.removed))
        because = catalogue.damaged_on_leader.conclude(leader=leader, value=value, having=having)
        return Cause((because,), DISK_FAILURE)
    first_led = _first_led_without(story, group, lost)
    if first_led is None or not any(copy.broker == first_led[1] and copy.lost_with_disk for copy in struck):
        return None
    end, leader = first_led
    having = tuple(sorted(copy.broker for copy in copies if copy.broker not in lost))
    isr = _isr_before(story, lost[leader])
    if isr is not None and set(isr) <= lost.keys():
        because = catalogue.last_in_isr_lost_disk.conclude(isr=isr, value=value, having=having)
    else:
        rejoined = _has_rejoined_isr(story, leader, lost[leader], end)
        because = catalogue.in_isr_after_disk_loss.conclude(
            leader=leader, value=value, having=having, rejoined=rejoined
        )
    return Cause((because,), DISK_FAILURE)


def _first_led_without(
    story: Story, group: Sequence[LogEntry], lost: Mapping[int, int]
) -> tuple[int, int] | None:
    """Return the line and the broker of the first leadership without the record, after a loss.

    *lost* maps a broker to the line at which it lost the record.
    """
    leaderships = (
        (number, event.broker)
        for number, event in story.events(events.BecameLeader)
        if lost.get(event.broker, END) < number and not has_copy(group, event.broker, number)
    )
    return next(leaderships, None)


def _isr_before(story: Story, line: int) -> tuple[int, ...] | None:
    """Return the ISR before a line, from the last event that showed it."""
    change: (
        TraceLine[
            events.BecameLeader
            | events.IsrWritten
            | events.IsrChanged
            | events.LeaderElected
            | events.IsrReduced
        ]
        | None
    )
    change = story.last(
        events.BecameLeader,
        events.IsrWritten,
        events.IsrChanged,
        events.LeaderElected,
        events.IsrReduced,
        before=line,
    )
    return None if change is None else change.event.isr


def _has_rejoined_isr(story: Story, leader: int, lost_at: int, end: int) -> bool:
    """Return whether a broker joined the ISR again between its loss and its leadership."""
    return any(
        lost_at < number < end
        and leader in event.isr
        and leader not in (story.isr_at(event.broker, number) or (leader,))
        for number, event in story.events(events.IsrChanged)
    )


def _ack_of(story: Story, send: SendRecord) -> Ack | None:
    """Return the ack that completed a send: the last ack before the send completed."""
    ended_us = send.completed_us or 0
    acks = [ack for ack in story.acks(send.value) if send.invoked_us <= ack.at_us <= ended_us]
    return acks[-1] if acks else None


def _copies_of_append(story: Story, send: SendRecord, ack: Ack | None) -> Sequence[LogEntry]:
    """Return the copies that belong to the append that was acked.

    A value can be appended, truncated and appended again. Copies of one append share their offset
    and their leader epoch.
    """
    stored = story.copies(send.value, send.offset)
    if ack is not None and send.offset is not None:
        for copy in reversed(stored):
            if copy.broker == ack.broker and copy.number < ack.number:
                return [other for other in stored if other.leader_epoch == copy.leader_epoch]
    return stored


def _by_log_start_above_offset(story: Story, group: Sequence[LogEntry]) -> Cause | None:
    """Return the cause if the log of a later leader already started above the record, or None.

    Only an unclean election assigns an offset twice. A replica that had deleted its log beyond the
    offset before that election never fetches the new record, and joins the ISR without it.
    """
    if not group:
        return None
    stored = group[0]
    successor = next(
        (
            event.leader
            for number, event in story.elections
            if number > stored.number
            and event.leader_epoch > stored.leader_epoch
            and event.leader != NO_LEADER
            and not has_copy(group, event.leader, number)
        ),
        NO_LEADER,
    )
    starts: Sequence[TraceLine[events.LogStartRaised | events.LogStartedAnew]]
    starts = story.events(events.LogStartRaised, events.LogStartedAnew)
    for line, start in starts:
        if start.broker != successor or start.offset <= stored.offset:
            continue
        for number, election in story.elections:
            is_unclean = election.unclean and story.settings.elects_uncleanly(election.at_us)
            if line < number < stored.number and is_unclean:
                reason = start.reason if isinstance(start, events.LogStartRaised) else LEADER_LOG_START
                deleted = links.retention_deleted(
                    start.at_us, successor, log_start=start.offset, reason=reason, offset=stored.offset
                )
                story.tell(line, deleted, decides=True)
                tell_election(story, TraceLine(number, election), decides=True)
                because = catalogue.unclean_election_below_log_start.conclude(
                    leader=election.leader, value=stored.value, successor=successor, log_start=start.offset
                )
                return Cause((because,), UNCLEAN_ELECTION, (prevention.CLEAN_ELECTIONS,))
    return None


def _unclean_election_since(story: Story, since_us: int) -> events.LeaderElected | None:
    """Return the first unclean election after a time.

    If the run cannot watch logs, this election may have lost any record that is older.
    """
    later = (event for _, event in story.elections if event.unclean and event.at_us >= since_us)
    return next(later, None)


def unclean_election_without(story: Story, group: Sequence[LogEntry]) -> events.LeaderElected | None:
    """Return the first unclean election, in a later epoch, of a leader without the record.

    "Later" is decided by epochs, not by time: a leader that does not know of the election continues
    to append, and commits records if it is alone in the ISR. An election after the last copy was
    removed is not the cause.
    """
    if not group:
        return None
    removed = [copy.removed.number for copy in group if copy.removed is not None]
    end = max(removed) if len(removed) == len(group) else END
    for number, event in story.elections:
        is_later = event.leader_epoch > group[0].leader_epoch and number < end
        if event.unclean and is_later and not has_copy(group, event.leader, number):
            return event
    return None
