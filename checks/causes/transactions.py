"""Explains how transactions ended: requests of applications, decisions of coordinators, markers.

A transaction may end differently in two places if a log loses the records that decided it: records
of `__transaction_state`, or markers. `lost_decision` returns what permits such a loss. If the lost
decision itself is known, `forgotten_commit` and `lost_abort` explain it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from harrow.checks import prevention as preventions
from harrow.checks.causes.background import tell_disturbed_messages
from harrow.checks.causes.facts import ABORT_ASKED, ABORT_DECIDED, COMMIT_ASKED, COMMIT_DECIDED
from harrow.checks.causes.loss import Cause, explain_replaced
from harrow.checks.causes.story import AFTER, Story, source
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.link import FROM_TRACE, OWN_ACTION, Gap, cause, link
from harrow.checks.promise import DISK_FAILURE, FLUSH_INTERVAL, UNCLEAN_ELECTION
from harrow.checks.replay.partition_state import LogEntry, has_copy
from harrow.checks.transaction_fates import TransactionFate
from harrow.cluster_model import events
from harrow.cluster_model.coordinators.coordinator_log import record_value
from harrow.cluster_model.coordinators.internal_topics import partition_for
from harrow.cluster_model.coordinators.transactions.transaction_metadata import (
    COMPLETE_COMMIT,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from harrow.cluster_model.topology import TRANSACTION_STATE
from harrow.cluster_model.trace import TraceLine

ENDS: Final = {True: "committed", False: "aborted"}
"""How a transaction ended, as a word, by whether it was committed."""


@link("transaction-opened", events.TransactionOpened, needs_nothing_because=OWN_ACTION)
def transaction_opened(*, producer_id: events.Number, producer_epoch: events.Number) -> str:
    return f"began a transaction (producer id {producer_id}, epoch {producer_epoch})"


@link(
    "transaction-end-asked",
    events.TransactionEnding,
    needs_nothing_because=OWN_ACTION,
    makes=(
        COMMIT_ASKED.of("producer_id", where=("committed", True)),
        ABORT_ASKED.of("producer_id", where=("committed", False)),
    ),
)
def transaction_end_asked(*, committed: events.Flag, producer_id: events.Number | None = None) -> str:
    return f"requested that its transaction be {ENDS[committed]}"


@link(
    "transaction-state-written",
    events.TransactionStateChanged,
    role="as coordinator",
    needs=(
        COMMIT_ASKED.of("producer_id", where=("state", PREPARE_COMMIT)),
        ABORT_ASKED.of("producer_id", where=("state", PREPARE_ABORT)),
    ),
    makes=(
        COMMIT_ASKED.of("producer_id", then=False, where=("state", PREPARE_COMMIT)),
        ABORT_ASKED.of("producer_id", then=False, where=("state", PREPARE_ABORT)),
        COMMIT_DECIDED.of("producer_id", where=("state", PREPARE_COMMIT)),
        ABORT_DECIDED.of("producer_id", where=("state", PREPARE_ABORT)),
    ),
)
def transaction_state_written(
    *,
    transactional_id: events.Text,
    state: events.Text,
    producer_id: events.Number,
    producer_epoch: events.Epoch,
) -> str:
    return f"wrote {state} for {transactional_id} (producer id {producer_id}, epoch {producer_epoch})"


@link(
    "transaction-marked",
    events.TransactionMarkerWritten,
    needs=(
        COMMIT_DECIDED.of("producer_id", where=("committed", True), unless=("is_undecided",)),
        ABORT_DECIDED.of("producer_id", where=("committed", False), unless=("is_undecided",)),
    ),
)
def transaction_marked(
    *,
    place: events.PartitionName,
    offset: events.Offset,
    committed: events.Flag,
    producer_id: events.Number,
    is_undecided: events.Flag = False,
) -> str:
    """A log got the marker that ends a transaction in this log.

    ``is_undecided``: no coordinator had written the decision that the marker carries out.
    """
    although = ", although no coordinator had decided that" if is_undecided else ""
    return f"marked the transaction of producer id {producer_id} as {ENDS[committed]}, at offset {offset} of {place}{although}"


@link(
    "producer-initialized",
    events.ProducerInitialized,
    needs_nothing_because=OWN_ACTION,
    makes=(ABORT_ASKED.of("producer_id"),),
)
def producer_initialized(*, producer_id: events.Number, producer_epoch: events.Number) -> str:
    return f"got epoch {producer_epoch} of producer id {producer_id}"


@cause("transaction-log-led-uncleanly", needs_nothing_because=FROM_TRACE)
def log_led_uncleanly(*, place: events.PartitionName) -> str:
    return f"{place} was led uncleanly ({UNCLEAN_ELECTION}), by a leader that may lack the decision about the transaction"


@cause("transaction-log-lost-power", needs_nothing_because=FROM_TRACE)
def log_lost_power(*, place: events.PartitionName) -> str:
    return f"a replica of {place} lost power before it had flushed its records of the transaction ({FLUSH_INTERVAL})"


@cause("transaction-log-lost-disk", needs_nothing_because=FROM_TRACE)
def log_lost_disk(*, place: events.PartitionName) -> str:
    return f"a replica of {place} lost its disk, or the data on it"


@cause("commit-forgotten", needs_nothing_because=FROM_TRACE)
def commit_forgotten(
    *, transactional_id: events.Text, place: events.PartitionName, setting: events.Text
) -> str:
    return f"{place} lost the commit of the transaction of {transactional_id} ({setting}), so its coordinator knew nothing of it"


def coordinator_partition(index: Index, transactional_id: str) -> str | None:
    """Return the partition whose leader coordinates a transactional id."""
    count = index.derived(_transaction_partitions)
    return f"{TRANSACTION_STATE}-{partition_for(transactional_id, count)}" if count else None


def _transaction_partitions(index: Index) -> int:
    return sum(name.startswith(f"{TRANSACTION_STATE}-") for name in index.evidence.partitions)


def lost_decision(
    index: Index, partitions: Iterable[str], since: int, until: int | None = None
) -> Cause | None:
    """Return what permits that these partitions lost records between lines *since* and *until*."""
    for name in dict.fromkeys(partitions):
        excuse = index.excuse(name, None)
        if excuse is not None:
            return Cause((), excuse.setting, excuse.prevented_by)
        settings = index.evidence.partitions.get(name)
        for number, event in index.events(
            events.LeaderElected, events.UnflushedLost, events.CorruptionCut, events.LogLost, partition=name
        ):
            if number < since or (until is not None and number > until):
                continue
            if isinstance(event, events.LeaderElected):
                if event.unclean and settings is not None and settings.elects_uncleanly(event.at_us):
                    return Cause(
                        (log_led_uncleanly.conclude(place=name),),
                        UNCLEAN_ELECTION,
                        (preventions.CLEAN_ELECTIONS,),
                    )
            elif isinstance(event, events.UnflushedLost) or (
                isinstance(event, events.CorruptionCut) and event.torn
            ):
                return Cause((log_lost_power.conclude(place=name),), FLUSH_INTERVAL, (preventions.FLUSHING,))
            else:
                return Cause((log_lost_disk.conclude(place=name),), DISK_FAILURE)
    return None


def forgotten_commit(story: Story, value: Value, offset: int, until_us: int) -> Cause | None:
    """Explain why an application got the answer "aborted" although its record is committed.

    A marker has committed the record at *offset*, but the log of the coordinator lost the decision
    to commit: the partition's leader no longer has it when it answers the application. A producer
    whose coordinator has lost its id can only abort (``TransactionManager.EndTxnHandler``).
    """
    index, until = story.index, story.index.position_at(until_us)
    commit = _record_and_commit(story, value, offset)
    if commit is None:
        return None
    stored, line, marker = commit
    for transactional_id in transactional_ids(index, marker.producer_id):
        place = coordinator_partition(index, transactional_id)
        decided = () if place is None else _commit_records(index, place, transactional_id, marker)
        decided = [entry for entry in decided if stored.number < entry.number <= until]
        if place is None or not decided or _has_latest_leader(Story(index, place), decided, until):
            continue
        lost = explain_replaced(index, place, decided[0].value, decided[0].offset)
        if lost.permitted_by is not None:
            tell_states(story, marker.producer_id, stored.number, line + AFTER)
            _tell_marker_link(story, TraceLine(line, marker))
            forgotten = commit_forgotten.conclude(
                transactional_id=transactional_id, place=place, setting=lost.permitted_by
            )
            return Cause((forgotten,), lost.permitted_by, lost.prevented_by)
    return None


def lost_abort(story: Story, value: Value, offset: int) -> Cause | None:
    """Return what permits that a later transaction commits an aborted record: a lost abort marker.

    A leader had marked the first transaction as aborted. The leader that wrote the later marker
    lacks this first marker, so its log has one transaction instead of two.
    """
    commit = _record_and_commit(story, value, offset)
    if commit is None:
        return None
    stored, line, marker = commit
    aborts = [
        TraceLine(number, event)
        for number, event in story.events(events.TransactionMarkerWritten)
        if stored.number < number < line and event.producer_id == stored.producer_id and not event.committed
    ]
    if not aborts or any(
        event.broker == marker.broker and not _was_marker_lost(story, event, number, line)
        for number, event in aborts
    ):
        return None
    lost = lost_decision(story.index, (story.partition,), aborts[0].number, line)
    if lost is not None:
        _tell_marker_link(story, aborts[0])
        _tell_marker_link(story, TraceLine(line, marker))
    return lost


def _was_marker_lost(story: Story, marker: events.TransactionMarkerWritten, begin: int, end: int) -> bool:
    """Return whether a broker's log lost a marker between two lines."""
    losses: Sequence[
        TraceLine[events.LogTruncated | events.UnflushedLost | events.CorruptionCut | events.LogLost]
    ]
    losses = story.events(events.LogTruncated, events.UnflushedLost, events.CorruptionCut, events.LogLost)
    for number, loss in losses:
        end_offset = loss.to_offset if isinstance(loss, events.LogTruncated) else loss.from_offset
        if begin < number < end and loss.broker == marker.broker and end_offset <= marker.offset:
            return True
    return False


def _record_and_commit(
    story: Story, value: Value, offset: int
) -> tuple[LogEntry, int, events.TransactionMarkerWritten] | None:
    """Return the leader's copy of a record, and the line and marker that committed the record."""
    stored = next((copy for copy in story.copies(value, offset) if not copy.is_copy), None)
    if stored is None:
        return None
    commits = (
        (stored, number, event)
        for number, event in story.events(events.TransactionMarkerWritten)
        if number > stored.number and event.producer_id == stored.producer_id and event.committed
        if 0 <= event.first_offset <= offset < event.offset
    )
    return next(commits, None)


def _commit_records(
    index: Index, place: str, transactional_id: str, marker: events.TransactionMarkerWritten
) -> Sequence[LogEntry]:
    """Return the copies of a coordinator's decision to commit, in the order of storing."""
    records = [
        entry
        for text, entries in index.partition(place).by_value.items()
        if _is_commit(text, transactional_id, marker)
        for entry in entries
    ]
    return sorted(records, key=lambda entry: entry.number)


def _is_commit(text: str, transactional_id: str, marker: events.TransactionMarkerWritten) -> bool:
    if not text.startswith(f"{transactional_id} {{"):
        return False
    record = record_value(text, transactional_id)
    is_of_marker = (record["producer_id"], record["producer_epoch"]) == (
        marker.producer_id,
        marker.producer_epoch,
    )
    return is_of_marker and record["state"] in (PREPARE_COMMIT, COMPLETE_COMMIT)


def _has_latest_leader(story: Story, copies: Sequence[LogEntry], until: int) -> bool:
    """Return whether the latest leader at a line has one of the *copies*."""
    leaderships = [
        (event.leader_epoch, event.broker)
        for number, event in story.events(events.BecameLeader)
        if number <= until
    ]
    return bool(leaderships) and has_copy(copies, max(leaderships)[1], until)


def lost_marker(index: Index, partition: str, offset: int, until_us: int, position: int = 0) -> Cause | None:
    """Return what permits a jump of a consumer's position after *offset*: a lost marker.

    A marker takes an offset in the log. If a marker was lost, a record may get its offset, which
    the consumer has already passed. If the consumer's *position* is known, it has passed all
    offsets below, including those of aborted records.
    """
    markers: dict[int, int] = {}
    for number, event in index.events(events.TransactionMarkerWritten, partition=partition):
        markers.setdefault(event.offset, number)
    log = index.last_log(partition)
    place = offset + 1
    while place in markers or place < position:
        if place in markers and (place >= len(log) or log[place] is not None):
            return lost_decision(index, (partition,), markers[place], index.position_at(until_us))
        place += 1
    return None


def transactional_ids(index: Index, producer_id: int) -> list[str]:
    """Return the transactional ids of a producer id: one, or none if none was observed."""
    states = index.events(events.TransactionStateChanged)
    return list(
        dict.fromkeys(state.transactional_id for _, state in states if state.producer_id == producer_id)
    )


def deciding_partitions(index: Index, producer_id: int, partitions: Iterable[str]) -> Iterator[str]:
    """Yield *partitions*, and those of `__transaction_state` that decide for a producer."""
    yield from partitions
    for transactional_id in transactional_ids(index, producer_id):
        coordinator = coordinator_partition(index, transactional_id)
        if coordinator is not None:
            yield coordinator


def tell_states(story: Story, producer_id: int, begin: int, end: float) -> None:
    """Tell what coordinators wrote about a producer, and what its applications requested."""
    clients = _clients(story.index, producer_id)
    for line in story.index.events(events.ProducerInitialized):
        if begin < line.number < end and line.event.producer_id == producer_id:
            story.tell_event(line, producer_initialized, decides=True)
    for ending in story.index.events(events.TransactionEnding):
        if begin < ending.number < end and ending.event.client in clients:
            story.tell_event(ending, transaction_end_asked, decides=True, producer_id=producer_id)
    for state in story.index.events(events.TransactionStateChanged):
        if begin < state.number < end and state.event.producer_id == producer_id:
            story.tell_event(state, transaction_state_written)


@source(COMMIT_DECIDED)
@source(ABORT_DECIDED)
def _tell_decision(story: Story, line: float, gap: Gap) -> None:
    """Tell when a coordinator wrote the decision that a marker carries out."""
    (producer_id,) = gap.need.subject
    decision = _decision(story, line, producer_id, committed=gap.need.fact is COMMIT_DECIDED)
    if decision is not None:
        story.tell_event(decision, transaction_state_written)


def _decision(
    story: Story, line: float, producer_id: int, *, committed: bool
) -> TraceLine[events.TransactionStateChanged] | None:
    """Return the last event before a line that decided to commit, or to abort, a transaction."""
    state = PREPARE_COMMIT if committed else PREPARE_ABORT
    for each in reversed(story.index.events(events.TransactionStateChanged)):
        if each.number < line and (each.event.producer_id, each.event.state) == (producer_id, state):
            return each
    return None


@source(COMMIT_ASKED)
def _tell_commit_asked(story: Story, line: float, gap: Gap) -> None:
    """Tell when an application requested a commit, and what delayed that request."""
    (producer_id,) = gap.need.subject
    clients = _clients(story.index, producer_id)
    for ending in reversed(story.index.events(events.TransactionEnding)):
        client = ending.event.client
        if ending.number < line and ending.event.committed and client in clients:
            story.tell_event(ending, transaction_end_asked, producer_id=producer_id)
            tell_disturbed_messages(story, "EndTxn", client, ending.number, line)
            return


@source(ABORT_ASKED)
def _tell_abort_asked(story: Story, line: float, gap: Gap) -> None:
    """Tell who requested an abort: the application, or one that started with the same id later."""
    (producer_id,) = gap.need.subject
    clients = _clients(story.index, producer_id)
    requests: Sequence[TraceLine[events.TransactionEnding | events.ProducerInitialized]]
    requests = story.index.events(events.TransactionEnding, events.ProducerInitialized)
    for request in reversed(requests):
        if request.number >= line or request.event.client not in clients:
            continue
        if isinstance(request.event, events.ProducerInitialized):
            if request.event.producer_id == producer_id:
                story.tell_event(request, producer_initialized)
                return
        elif not request.event.committed:
            story.tell_event(request, transaction_end_asked, producer_id=producer_id)
            return


def _clients(index: Index, producer_id: int) -> set[str]:
    starts = index.events(events.ProducerInitialized)
    return {start.client for _, start in starts if start.producer_id == producer_id}


def tell_marker(story: Story, partition: str, fate: TransactionFate) -> int | None:
    """Tell the marker that decided about a record, and return its line."""
    for line in story.index.events(events.TransactionMarkerWritten, partition=partition):
        if line.event.offset == fate.marker_offset and line.event.producer_id == fate.producer_id:
            _tell_marker_link(story, line)
            return line.number
    return None


def _tell_marker_link(story: Story, line: TraceLine[events.TransactionMarkerWritten]) -> None:
    marker = line.event
    is_undecided = (
        story.index.has(events.TransactionStateChanged)
        and _decision(story, line.number, marker.producer_id, committed=marker.committed) is None
    )
    story.tell_event(
        line, transaction_marked, decides=True, place=marker.partition, is_undecided=is_undecided
    )
