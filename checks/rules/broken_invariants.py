"""Turns each invariant into a rule: a finding for each break, with its cause and its permission.

The trace has an event for each break (`invariant_broken`), and the cause of the break in the trace
decides the verdict. After an unclean election the leader may lack committed records, and after a
power loss a replica may lack records that it had not flushed. In these cases, Kafka does not
promise that replicas agree. A break with any other cause is a flaw.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from harrow.checks import prevention, promise
from harrow.checks.causes import catalogue, links
from harrow.checks.causes.background import tell_forgotten_change, tell_written, written_isr
from harrow.checks.causes.copies import tell_stored
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.places import explain_lost_place, loss_link
from harrow.checks.causes.story import Story
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import FORBIDDEN, Link, link
from harrow.checks.permission import Promise
from harrow.checks.replay.partition_state import COMPACTION, RETENTION, LogEntry, has_copy
from harrow.checks.rule import SEEN_IN_CLUSTER, Rule
from harrow.cluster_model import events
from harrow.cluster_model.invariants import catalogue as invariants
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.release.profiles import behaviours_in
from harrow.cluster_model.topology import KRAFT, node_text
from harrow.cluster_model.trace import TraceLine, decode

_BETWEEN_REPLICAS: Final = (invariants.ISR_HOLDS_COMMITTED, invariants.LOG_MATCHING)
"""These invariants do not hold if a replica lacks records that the other replicas have."""

_LEAVING_HOLE: Final = (COMPACTION, RETENTION)
"""These causes remove a record, but do not move the end of the log."""

_RECORDS_SHOWN: Final = 3
_NO_BROKER: Final = -1
_NO_EPOCH: Final = -1
_WITHIN_LOG: Final = (invariants.EPOCH_CACHE_MONOTONIC, invariants.PRODUCER_STATE_MATCHES_LOG)
"""These invariants do not hold if a log has records of two leaders that did not know each other."""

_Broken = TraceLine[events.InvariantBroken]


@link("invariant-broken", events.InvariantBroken, impersonal=True, needs_nothing_because=FORBIDDEN)
def invariant_broken(*, broker_id: events.BrokerId, details: events.Text, offset: events.Offset) -> str:
    return f"{node_text(broker_id)}: {details}"


def _find(invariant: str, index: Index) -> Iterator[Finding]:
    for broken in index.events(events.InvariantBroken):
        if broken.event.invariant == invariant:
            yield _finding(index, broken)


def _finding(index: Index, broken: _Broken) -> Finding:
    event = broken.event
    story = Story(index, event.partition)
    cause, line = _cause(story, broken)
    lines = dict.fromkeys(number for number in (line, _last_cut(story, broken)) if number is not None)
    for number in lines:
        story.tell(number, _cause_link(decode(index.evidence.trace[number - 1])), decides=True)
    if event.invariant in _BETWEEN_REPLICAS or event.invariant == invariants.PRODUCER_STATE_MATCHES_LOG:
        _tell_stored_records(story, broken)
    if event.invariant == invariants.ISR_HOLDS_COMMITTED:
        _tell_joined_isr(story, broken)
    breach = invariant_broken(
        event.at_us, event.broker, broker_id=event.broker, details=event.details, offset=event.offset
    )
    story.tell(broken.number, breach)
    return cause.finding(story, offset=event.offset if event.offset >= 0 else None)


# Causes


def _cause(story: Story, broken: _Broken) -> tuple[Cause, int | None]:
    """Return the cause of a break, and the line of the event that caused the break, if known."""
    event = broken.event
    between = _between_replicas(story, broken) if event.invariant in _BETWEEN_REPLICAS else None
    if between is not None:
        return between
    is_of_logs = event.invariant in _BETWEEN_REPLICAS or event.invariant in _WITHIN_LOG
    excuse = story.index.excuse(event.partition, event.offset) if is_of_logs else None
    if excuse is not None:
        return Cause((catalogue.by_excuse(excuse),), excuse.setting, excuse.prevented_by), None
    if event.invariant == invariants.CHECKPOINT_WITHIN_LOG:
        for line in story.events(events.CheckpointReverted):
            if line.number < broken.number and line.event.broker == event.broker:
                because = catalogue.old_checkpoint.conclude(file=line.event.kind)
                return Cause((because,), promise.DISK_FAILURE), None
        for cut in story.events(events.CorruptionCut):
            is_below = cut.event.from_offset < event.offset and not cut.event.torn
            if cut.number < broken.number and cut.event.broker == event.broker and is_below:
                because = catalogue.damaged_below_checkpoint.conclude(offset=cut.event.from_offset)
                return Cause((because,), promise.DISK_FAILURE), cut.number
    return Cause(()), None


def _between_replicas(story: Story, broken: _Broken) -> tuple[Cause, int | None] | None:
    """Return what permits that replicas differ in committed records, and the line of this event.

    None if nothing permits the difference.
    """
    for group in _committed_records(story, broken):
        election = _unclean_election(story, broken, group)
        if election is not None:
            because = catalogue.unclean_election_broke_invariant.conclude()
            prevented_by = (prevention.CLEAN_ELECTIONS,)
            return Cause((because,), promise.UNCLEAN_ELECTION, prevented_by), election
        loss = _lost_copy(story, broken, group)
        if loss is not None and loss.lost_with_disk:
            because = catalogue.disk_loss_in_isr.conclude()
            return Cause((because,), promise.DISK_FAILURE), _line_of(loss)
        if loss is not None:
            because = catalogue.power_loss_in_isr.conclude()
            prevented_by = (prevention.FLUSHING,)
            return Cause((because,), promise.FLUSH_INTERVAL, prevented_by), _line_of(loss)
    return _cause_of_lost_place(story, broken)


def _cause_of_lost_place(story: Story, broken: _Broken) -> tuple[Cause, int] | None:
    """Return what permits the loss of an offset without a record: a marker, or a hole.

    Several leaders may have written at the offset, if one did not know of its successor. A member
    of the ISR is taken to lack what the latest leader wrote, unless only the member itself has it.
    """
    number, event = broken
    histories = [stored for _, stored in sorted(_stored_places(story, broken).items(), reverse=True)]
    if event.invariant == invariants.ISR_HOLDS_COMMITTED:
        histories = [stored for stored in histories if set(stored) != {event.broker}][:1] or histories[:1]
    for stored in histories or [{}]:
        lost = explain_lost_place(story, event.offset, stored, number, lacking=event.broker)
        if lost is not None:
            return lost.cause, lost.line
    return None


def _stored_places(story: Story, broken: _Broken) -> dict[int, dict[int, int]]:
    """Return the lines at which brokers got a marker or a hole at the offset, by leader epoch."""
    number, event = broken
    stored: dict[int, dict[int, int]] = {}
    for line, marked in story.events(events.TransactionMarkerWritten):
        if line < number and marked.offset == event.offset:
            stored.setdefault(_leader_epoch(story, line, marked), {})[marked.broker] = line
    for copy in story.copies_at(event.offset):
        if copy.removed is not None and copy.removed.cause in _LEAVING_HOLE and copy.removed.number < number:
            of_epoch = stored.setdefault(copy.leader_epoch, {})
            of_epoch[copy.broker] = min(copy.number, of_epoch.get(copy.broker, copy.number))
    return stored


def _leader_epoch(story: Story, line: int, marked: events.TransactionMarkerWritten) -> int:
    """Return the leader epoch of a marker's batch, whose event is just before the marker's."""
    trace = story.evidence.trace
    for place in range(line - 2, -1, -1):
        event = decode(trace[place])
        if (
            isinstance(event, events.BatchAppended | events.BatchReplicated)
            and (event.broker, event.partition) == (marked.broker, story.partition)
            and event.base_offset == marked.offset
        ):
            return event.leader_epoch
    return _NO_EPOCH


def _committed_records(story: Story, broken: _Broken) -> list[list[LogEntry]]:
    """Return the copies of each record that was committed at the offset before the break.

    If a member of the ISR broke the invariant, only the latest record that it lacks counts, because
    the loss of an earlier record at the offset does not explain why it lacks the present record. If
    a leader, even a deposed one, has just committed a record at the offset, this record counts.
    """
    number, event = broken
    groups: dict[tuple[str, int], list[LogEntry]] = {}
    for copy in story.copies_at(event.offset):
        if copy.number < number:
            groups.setdefault((copy.value, copy.leader_epoch), []).append(copy)
    committed = [group for group in groups.values() if any(0 < copy.committed < number for copy in group)]
    if event.invariant != invariants.ISR_HOLDS_COMMITTED:
        return committed
    lacking = [group for group in committed if not has_copy(group, event.broker, number)]
    committer = _committer(story, broken)
    of_committer = [group for group in lacking if has_copy(group, committer, number)]
    # The latest record may have been truncated, and an earlier record may still be in a log.
    present = [group for group in lacking if any(copy.is_there(number) for copy in group)]
    return sorted(of_committer or present or lacking, key=lambda group: group[0].leader_epoch)[-1:]


def _committer(story: Story, broken: _Broken) -> int:
    """Return the broker whose high watermark has just passed the offset, -1 for any other break."""
    line = story.index.derived(_lines_of_causes)[broken.number]
    if not line:
        return _NO_BROKER
    cause = decode(story.evidence.trace[line - 1])
    is_commit = (
        isinstance(cause, events.HighWatermarkSet)
        and cause.partition == story.partition
        and cause.hw > broken.event.offset
    )
    return cause.broker if isinstance(cause, events.HighWatermarkSet) and is_commit else _NO_BROKER


def _lines_of_causes(index: Index) -> Mapping[int, int]:
    """Return for each line of a break the last line before it that is no break, or 0."""
    lines: dict[int, int] = {}
    for line, _ in index.raw_events(events.InvariantBroken):
        lines[line] = lines.get(line - 1, line - 1)
    return lines


def _unclean_election(story: Story, broken: _Broken, group: list[LogEntry]) -> int | None:
    """Return the line of the unclean election, in a later epoch, of a leader without the record."""
    for number, event in story.elections:
        is_permitted = event.unclean and story.settings.elects_uncleanly(event.at_us)
        is_later = number <= broken.number and event.leader_epoch > group[0].leader_epoch
        if is_permitted and is_later and not has_copy(group, event.leader, number):
            return number
    return None


def _lost_copy(story: Story, broken: _Broken, group: list[LogEntry]) -> LogEntry | None:
    """Return a copy lost in a power loss or disk failure that its broker did not get back."""
    for copy in {copy.broker: copy for copy in group}.values():
        if (
            copy.lost_with_machine
            and copy.removed is not None
            and copy.removed.number < broken.number
            and not _joined_after_restart(story, broken, copy.broker, copy.removed.number)
        ):
            return copy
    return None


def _joined_after_restart(story: Story, broken: _Broken, broker: int, lost: int) -> bool:
    """Return whether an ISR member lost a record, restarted, and then joined the ISR without it.

    With KIP-903 (`isr_expansion_checks_broker_epoch`) a replica joins only by a fetch that it sent
    after its restart. So it must have all committed records, and its earlier loss permits nothing.
    If the replica was a member when it lost the record, or joined before it registered again, the
    loss counts.
    """
    evidence = story.evidence
    is_promised = (
        evidence.metadata == KRAFT
        and behaviours_in(evidence.release).replication.isr_expansion_checks_broker_epoch
    )
    is_of_member = broken.event.invariant == invariants.ISR_HOLDS_COMMITTED and broker == broken.event.broker
    if not (is_promised and is_of_member):
        return False
    changes: Sequence[TraceLine[events.LeaderElected | events.IsrReduced | events.IsrWritten]]
    changes = story.events(events.LeaderElected, events.IsrReduced, events.IsrWritten)
    joined, was_member = 0, True
    for number, event in changes:
        if number >= broken.number:
            break
        is_member = broker in event.isr
        if is_member != was_member:
            joined = number if is_member and isinstance(event, events.IsrWritten) else 0
        was_member = is_member
    return any(
        lost < number < joined and event.broker == broker
        for number, event in story.events(events.BrokerRegistered)
    )


def _line_of(loss: LogEntry) -> int | None:
    return None if loss.removed is None else loss.removed.number


# Telling


def _last_cut(story: Story, broken: _Broken) -> int | None:
    """Return the line at which the broker's log last lost its end at the offset, or None."""
    number, event = broken
    removed = [copy.removed for copy in story.copies_at(event.offset) if copy.broker == event.broker]
    cuts = [
        entry.number
        for entry in removed
        if entry is not None and entry.cause not in _LEAVING_HOLE and entry.number < number
    ]
    return max(cuts, default=None)


def _tell_stored_records(story: Story, broken: _Broken) -> None:
    """Tell the last records that were stored at the offset, each record once."""
    stored: dict[tuple[str, int], LogEntry] = {}
    for copy in story.copies_at(broken.event.offset):
        if copy.is_there(broken.number):
            stored.setdefault((copy.value, copy.leader_epoch), copy)
    last = sorted(stored.values(), key=lambda copy: copy.number)[-_RECORDS_SHOWN:]
    for copy in last:
        tell_stored(story, copy)


def _tell_joined_isr(story: Story, broken: _Broken) -> None:
    """Tell the change that let the broker into the ISR although it lacked a stored record."""
    number, event = broken
    stored = min((copy.number for copy in story.copies_at(event.offset)), default=number)
    for line, written in reversed(story.events(events.IsrWritten)):
        joined = event.broker in written.isr and event.broker not in (written_isr(story, line) or ())
        if stored < line < number and joined:
            tell_written(story, line, written, decides=True)
            tell_forgotten_change(story, written.broker, event.offset, number)
            return


def _cause_link(event: events.Event) -> Link:
    loss = loss_link(event)
    if loss is not None:
        return loss
    match event:
        case events.LogDeleted():
            return links.log_deleted(event.at_us, event.broker, leo=0, offset=0)
        case events.LogTruncated():
            leo = event.to_offset
            return links.truncated(event.at_us, event.broker, leo=leo, reason=event.reason, offset=leo)
        case events.LogOpened():
            return links.cut_back(event.at_us, event.broker, offset=event.leo)
        case events.BatchAppended() | events.BatchReplicated():
            return links.cut_back(event.at_us, event.broker, offset=event.base_offset)
        case _:
            raise TypeError(event)


_COMMITTED: Final = (
    *(promise.BY_UNCLEAN_ELECTION, promise.BY_POWER_LOSS_IN_ISR, promise.BY_RESUMED_EPOCH),
    *(promise.BY_DISK_LOSS_IN_ISR, promise.BY_FORGOTTEN_EPOCH),
)

_PROMISES: Final[Mapping[str, Promise]] = {
    invariants.HW_MONOTONIC: Promise(promised_by=(promise.HIGH_WATERMARK,)),
    invariants.HW_WITHIN_LOG: Promise(promised_by=(promise.HIGH_WATERMARK,)),
    invariants.ISR_HOLDS_COMMITTED: Promise(
        promised_by=(promise.IN_SYNC_REPLICAS,),
        permissions=_COMMITTED,
        releases="kept since 0.11 (KIP-101), when joining the ISR since 2.0.1 (KAFKA-7128), after a restart since 3.5 in KRaft (KIP-903)",
    ),
    invariants.ONE_CONTROLLER_PER_EPOCH: Promise(promised_by=(promise.CONTROLLER_EPOCH,)),
    invariants.LOG_MATCHING: Promise(
        promised_by=(promise.HIGH_WATERMARK,),
        permissions=_COMMITTED,
        releases="kept since 0.11 (KIP-101), through fast leader changes since 2.0 (KIP-279)",
    ),
    invariants.EPOCH_CACHE_MONOTONIC: Promise(
        promised_by=(promise.LEADER_EPOCH,),
        permissions=(promise.BY_RESUMED_EPOCH, promise.BY_FORGOTTEN_EPOCH),
    ),
    invariants.PRODUCER_STATE_MATCHES_LOG: Promise(
        promised_by=(promise.IDEMPOTENT,),
        permissions=(promise.BY_RESUMED_EPOCH, promise.BY_FORGOTTEN_EPOCH),
        releases="since 0.11 (KIP-98)",
    ),
    invariants.CHECKPOINT_WITHIN_LOG: Promise(
        promised_by=(promise.RECOVERY_POINT,),
        permissions=(
            replace(
                promise.BY_DISK_FAILURE,
                when="when the disk returns an old version of the file",
                prevented_by=(),
            ),
        ),
    ),
    invariants.SHUTDOWN_FLUSHES_LOGS: Promise(promised_by=(promise.RECOVERY_POINT,)),
    invariants.CONTROLLER_EPOCH_MONOTONIC: Promise(promised_by=(promise.CONTROLLER_EPOCH,)),
    invariants.LEADER_EPOCH_MONOTONIC: Promise(promised_by=(promise.LEADER_EPOCH,)),
    invariants.CONTROLLER_WRITES_FENCED: Promise(
        promised_by=(promise.CONTROLLER_EPOCH,), releases="since 2.1 (KAFKA-6082)"
    ),
    invariants.REGISTERED_BEFORE_CONTROL: Promise(
        promised_by=(promise.REGISTRATION,), releases="since 2.0 (KAFKA-6772)"
    ),
    invariants.REGISTRATIONS_KNOWN: Promise(
        promised_by=(promise.BROKER_EPOCH,), releases="since 2.2 (KIP-380)"
    ),
    invariants.FAILOVER_SHRINKS_ISR: Promise(
        promised_by=(promise.IN_SYNC_REPLICAS,), releases="since 2.3 (KAFKA-3143)"
    ),
    invariants.HW_WAITS_FOR_MIN_ISR: Promise(
        promised_by=(promise.HIGH_WATERMARK,), releases="since 3.7 (KAFKA-15583)"
    ),
    invariants.COMMITTED_METADATA_KEPT: Promise(
        promised_by=(promise.CONTROLLER_EPOCH,),
        permissions=(
            replace(
                promise.BY_DISK_FAILURE,
                when="when too few controllers keep their disks for a majority with all committed metadata",
                prevented_by=(),
            ),
        ),
    ),
    invariants.METADATA_SNAPSHOT_COMMITTED: Promise(promised_by=(promise.CONTROLLER_EPOCH,)),
    invariants.COMMITS_OF_PRESENT_GENERATION: Promise(promised_by=(promise.GENERATION,)),
    invariants.ONE_OWNER_PER_PARTITION: Promise(
        promised_by=(promise.CONSUMER_PROTOCOL,), releases="since 4.0 (KIP-848)"
    ),
    invariants.UNCLEAN_REPLICA_NOT_ELECTED: Promise(
        promised_by=(promise.IN_SYNC_REPLICAS,), releases="since 4.1 (KIP-966)"
    ),
}
"""The promise of each invariant."""


def _rule(invariant: invariants.Invariant) -> Rule:
    return Rule(
        name=invariant.name,
        definition=f"Invariant: {invariant.definition}",
        source=invariant.source,
        promise=_PROMISES[invariant.name],
        find=partial(_find, invariant.name),
        verb=f"{invariant.name} broken in",
        is_about_place=True,
        seen_in=SEEN_IN_CLUSTER,
    )


RULES: Final = tuple(
    _rule(invariant) for invariant in invariants.INVARIANTS.values() if not invariant.shown_by_trace
)
"""A rule for each invariant that is watched during the run."""
