"""How transactions went: what their applications asked for, what coordinators wrote, and which markers logs got.

What a transaction was promised is lost where a log lost the records that decided about it: those of `__transaction_state`, or
markers. `lost_decision` says what permits that. Where it is known which decision an application was told otherwise about,
`forgotten_commit` and `lost_abort` ask for that one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from harrow.checks import prevention as preventions
from harrow.checks.causes.background import tell_held
from harrow.checks.causes.facts import ABORT_ASKED, ABORT_DECIDED, COMMIT_ASKED, COMMIT_DECIDED
from harrow.checks.causes.loss import Cause, explain_replaced
from harrow.checks.causes.story import AFTER, Story, source
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.link import FROM_TRACE, OWN_DEED, Gap, cause, link
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


@link("transaction-opened", events.TransactionOpened, free_because=OWN_DEED)
def transaction_opened(*, producer_id: events.Number, producer_epoch: events.Number) -> str:
    """An application began a transaction."""
    return f"began a transaction (producer id {producer_id}, epoch {producer_epoch})"


@link(
    "transaction-end-asked",
    events.TransactionEnding,
    free_because=OWN_DEED,
    makes=(
        COMMIT_ASKED.of("producer_id", where=("committed", True)),
        ABORT_ASKED.of("producer_id", where=("committed", False)),
    ),
)
def transaction_end_asked(*, committed: events.Flag, producer_id: events.Number | None = None) -> str:
    """An application asked for its transaction to end."""
    return f"asked for its transaction to be {ENDS[committed]}"


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
    """A coordinator wrote what becomes of a transactional id."""
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
    """A log got the marker that ends a transaction there; ``is_undecided``: no coordinator had written that decision."""
    although = ", although no coordinator had decided that" if is_undecided else ""
    return f"marked the transaction of producer id {producer_id} as {ENDS[committed]}, at offset {offset} of {place}{although}"


@link(
    "producer-initialized",
    events.ProducerInitialized,
    free_because=OWN_DEED,
    makes=(ABORT_ASKED.of("producer_id"),),
)
def producer_initialized(*, producer_id: events.Number, producer_epoch: events.Number) -> str:
    """A producer got an epoch: older ones are fenced from then on."""
    return f"was given epoch {producer_epoch} of producer id {producer_id}"


@cause("transaction-log-led-uncleanly", free_because=FROM_TRACE)
def log_led_uncleanly(*, place: events.PartitionName) -> str:
    """A leader from outside the ISR need not have what decided about a transaction."""
    return f"{place} was led uncleanly ({UNCLEAN_ELECTION}): the new leader need not have had what decided about the transaction"


@cause("transaction-log-lost-power", free_because=FROM_TRACE)
def log_lost_power(*, place: events.PartitionName) -> str:
    """What decided about a transaction went with power."""
    return f"a replica of {place} lost its power, and what it had not flushed of the transaction with it ({FLUSH_INTERVAL})"


@cause("transaction-log-lost-disk", free_because=FROM_TRACE)
def log_lost_disk(*, place: events.PartitionName) -> str:
    """What decided about a transaction went with a disk."""
    return f"a replica of {place} lost its disk, or what was on it"


@cause("commit-forgotten", free_because=FROM_TRACE)
def commit_forgotten(
    *, transactional_id: events.Text, place: events.PartitionName, setting: events.Text
) -> str:
    """A coordinator did not know any more that it had committed, and its client was told so."""
    return f"{place} has lost that the transaction of {transactional_id} is committed ({setting}), so that its coordinator knew nothing of it"


def coordinator_partition(index: Index, transactional_id: str) -> str | None:
    """Return the partition whose leader coordinates a transactional id; None where the run does not tell how many there are."""
    count = sum(name.startswith(f"{TRANSACTION_STATE}-") for name in index.evidence.partitions)
    return f"{TRANSACTION_STATE}-{partition_for(transactional_id, count)}" if count else None


def lost_decision(
    index: Index, partitions: Iterable[str], since: int, until: int | None = None
) -> Cause | None:
    """Return what permits that logs of these partitions do not have what they were told after a line of the trace, and *until* another one."""
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
                if event.unclean and settings is not None and settings.unclean_leader_election:
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
    """Return what permits an application to be told that its transaction is aborted although it is committed: the coordinator's log lost that.

    A marker has committed the record at *offset*, and by the time the application was told, the leader of the coordinator's partition
    had nothing that says so. What it had, it knew. A producer whose coordinator has lost its id can only abort (``TransactionManager.EndTxnHandler``).
    """
    index, until = story.index, story.index.position_at(until_us)
    found = _committed_with(story, value, offset)
    if found is None:
        return None
    stored, line, marker = found
    for transactional_id in transactional_ids(index, marker.producer_id):
        place = coordinator_partition(index, transactional_id)
        decided = () if place is None else _commits(index, place, transactional_id, marker)
        decided = [entry for entry in decided if stored.number < entry.number <= until]
        if place is None or not decided or _is_led_with(Story(index, place), decided, until):
            continue
        lost = explain_replaced(index, place, decided[0].value, decided[0].offset)
        if lost.permitted_by is not None:
            tell_states(story, marker.producer_id, stored.number, line + AFTER)
            _tell_marked(story, line, marker)
            forgotten = commit_forgotten.conclude(
                transactional_id=transactional_id, place=place, setting=lost.permitted_by
            )
            return Cause((forgotten,), lost.permitted_by, lost.prevented_by)
    return None


def lost_abort(story: Story, value: Value, offset: int) -> Cause | None:
    """Return what permits that an aborted record is committed with a later transaction of its producer: the marker between is gone.

    A leader had marked the transaction as aborted, and the one that wrote the marker of the later one had nothing of that: its log has one
    transaction that goes on.
    """
    found = _committed_with(story, value, offset)
    if found is None:
        return None
    stored, line, marker = found
    aborts = [
        (number, event)
        for number, event in story.events(events.TransactionMarkerWritten)
        if stored.number < number < line and event.producer_id == stored.producer_id and not event.committed
    ]
    if not aborts or any(
        event.broker == marker.broker and not _is_cut(story, event, number, line) for number, event in aborts
    ):
        return None
    aborted_at, aborted = aborts[0]
    lost = lost_decision(story.index, (story.partition,), aborted_at, line)
    if lost is not None:
        _tell_marked(story, aborted_at, aborted)
        _tell_marked(story, line, marker)
    return lost


def _is_cut(story: Story, marker: events.TransactionMarkerWritten, begin: int, end: int) -> bool:
    """Return whether a broker's log has lost a marker between two lines."""
    losses: Sequence[
        TraceLine[events.LogTruncated | events.UnflushedLost | events.CorruptionCut | events.LogLost]
    ]
    losses = story.events(events.LogTruncated, events.UnflushedLost, events.CorruptionCut, events.LogLost)
    for number, loss in losses:
        left = loss.to_offset if isinstance(loss, events.LogTruncated) else loss.from_offset
        if begin < number < end and loss.broker == marker.broker and left <= marker.offset:
            return True
    return False


def _committed_with(
    story: Story, value: Value, offset: int
) -> tuple[LogEntry, int, events.TransactionMarkerWritten] | None:
    """Return a record as its leader appended it, and the first marker that has committed it, with its line."""
    stored = next((copy for copy in story.copies(value, offset) if not copy.is_copy), None)
    if stored is None:
        return None
    found = (
        (stored, number, event)
        for number, event in story.events(events.TransactionMarkerWritten)
        if number > stored.number and event.producer_id == stored.producer_id and event.committed
        if 0 <= event.first_offset <= offset < event.offset
    )
    return next(found, None)


def _commits(
    index: Index, place: str, transactional_id: str, marker: events.TransactionMarkerWritten
) -> Sequence[LogEntry]:
    """Return the copies of what a coordinator wrote of the decision that a marker tells, in the order of storing."""
    found = [
        entry
        for text, entries in index.partition(place).by_value.items()
        if _is_commit(text, transactional_id, marker)
        for entry in entries
    ]
    return sorted(found, key=lambda entry: entry.number)


def _is_commit(text: str, transactional_id: str, marker: events.TransactionMarkerWritten) -> bool:
    if not text.startswith(f"{transactional_id} {{"):
        return False
    known = record_value(text, transactional_id)
    is_of_marker = (known["producer_id"], known["producer_epoch"]) == (
        marker.producer_id,
        marker.producer_epoch,
    )
    return is_of_marker and known["state"] in (PREPARE_COMMIT, COMPLETE_COMMIT)


def _is_led_with(story: Story, copies: Sequence[LogEntry], until: int) -> bool:
    """Return whether who leads at a line, in the latest epoch that has begun, has one of some records."""
    led = [
        (event.leader_epoch, event.broker)
        for number, event in story.events(events.BecameLeader)
        if number <= until
    ]
    return bool(led) and has_copy(copies, max(led)[1], until)


def lost_marker(index: Index, partition: str, offset: int, until_us: int, position: int = 0) -> Cause | None:
    """Return what permits a consumer to be elsewhere, by a time, than behind what it read at *offset*: a marker stood there, and is gone.

    The consumer had gone past the marker, which is no record of any client, so the gap begins before the last record that it has read. Where
    it is known to have been at a *position*, it had gone past all before that, aborted records as well.
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
    """Return the transactional ids that a producer id was given to: one, or none where no coordinator was seen."""
    return list(
        dict.fromkeys(
            event.transactional_id
            for _, event in index.events(events.TransactionStateChanged)
            if event.producer_id == producer_id
        )
    )


def partitions_deciding(index: Index, producer_id: int, partitions: Iterable[str]) -> Iterator[str]:
    """Yield some partitions, and those of the coordinators that decided about a producer."""
    yield from partitions
    for transactional_id in transactional_ids(index, producer_id):
        coordinator = coordinator_partition(index, transactional_id)
        if coordinator is not None:
            yield coordinator


def tell_states(story: Story, producer_id: int, begin: int, end: float) -> None:
    """Tell what coordinators wrote about a producer, and what its applications asked for, between two lines."""
    clients = set()
    for number, initialized in story.index.events(events.ProducerInitialized):
        if initialized.producer_id == producer_id:
            clients.add(initialized.client)
            if begin < number < end:
                story.tell(
                    number,
                    producer_initialized(
                        initialized.at_us,
                        initialized.client,
                        producer_id=producer_id,
                        producer_epoch=initialized.producer_epoch,
                    ),
                    decides=True,
                )
    for number, ending in story.index.events(events.TransactionEnding):
        if begin < number < end and ending.client in clients:
            story.tell(
                number,
                transaction_end_asked(
                    ending.at_us, ending.client, committed=ending.committed, producer_id=producer_id
                ),
                decides=True,
            )
    for number, written in story.index.events(events.TransactionStateChanged):
        if begin < number < end and written.producer_id == producer_id:
            _tell_state(story, number, written)


@source(COMMIT_DECIDED)
@source(ABORT_DECIDED)
def _tell_decision(story: Story, line: float, gap: Gap) -> None:
    """Tell when a coordinator wrote the decision that a marker carries out."""
    (producer_id,) = gap.need.subject
    known = _decision(story, line, producer_id, committed=gap.need.fact is COMMIT_DECIDED)
    if known is not None:
        _tell_state(story, *known)


def _decision(
    story: Story, line: float, producer_id: int, *, committed: bool
) -> TraceLine[events.TransactionStateChanged] | None:
    """Return where a coordinator wrote, before a line, that the transaction of a producer commits or aborts."""
    state = PREPARE_COMMIT if committed else PREPARE_ABORT
    written = story.index.events(events.TransactionStateChanged)
    found = (
        each
        for each in reversed(written)
        if each.number < line and (each.event.producer_id, each.event.state) == (producer_id, state)
    )
    return next(found, None)


def _tell_state(story: Story, number: int, written: events.TransactionStateChanged) -> None:
    """Tell what a coordinator wrote about a producer."""
    story.tell(
        number,
        transaction_state_written(
            written.at_us,
            written.broker,
            transactional_id=written.transactional_id,
            state=written.state,
            producer_id=written.producer_id,
            producer_epoch=written.producer_epoch,
        ),
    )


@source(COMMIT_ASKED)
def _tell_commit_asked(story: Story, line: float, gap: Gap) -> None:
    """Tell when an application had asked for a commit, and what kept that request on its way."""
    (producer_id,) = gap.need.subject
    clients = _clients(story.index, producer_id)
    for number, ending in reversed(story.index.events(events.TransactionEnding)):
        if number < line and ending.committed and ending.client in clients:
            asked = transaction_end_asked(
                ending.at_us, ending.client, committed=True, producer_id=producer_id
            )
            story.tell(number, asked)
            tell_held(story, "EndTxn", ending.client, number, line)
            return


@source(ABORT_ASKED)
def _tell_abort_asked(story: Story, line: float, gap: Gap) -> None:
    """Tell who had asked for an abort: the application, or one that began with the same id."""
    (producer_id,) = gap.need.subject
    clients = _clients(story.index, producer_id)
    asked: Sequence[TraceLine[events.TransactionEnding | events.ProducerInitialized]]
    asked = story.index.events(events.TransactionEnding, events.ProducerInitialized)
    for number, event in reversed(asked):
        if number >= line or event.client not in clients:
            continue
        if isinstance(event, events.ProducerInitialized):
            if event.producer_id == producer_id:
                began = producer_initialized(
                    event.at_us, event.client, producer_id=producer_id, producer_epoch=event.producer_epoch
                )
                story.tell(number, began)
                return
        elif not event.committed:
            ending = transaction_end_asked(
                event.at_us, event.client, committed=False, producer_id=producer_id
            )
            story.tell(number, ending)
            return


def _clients(index: Index, producer_id: int) -> set[str]:
    """Return the clients that were given a producer id."""
    return {
        event.client
        for _, event in index.events(events.ProducerInitialized)
        if event.producer_id == producer_id
    }


def tell_marker(story: Story, partition: str, fate: TransactionFate) -> int | None:
    """Tell which marker decided about a record, and return its line; None where the trace has it not."""
    for number, event in story.index.events(events.TransactionMarkerWritten, partition=partition):
        if event.offset == fate.marker_offset and event.producer_id == fate.producer_id:
            _tell_marked(story, number, event)
            return number
    return None


def _tell_marked(story: Story, number: int, event: events.TransactionMarkerWritten) -> None:
    marked = transaction_marked(
        event.at_us,
        event.broker,
        place=event.partition,
        offset=event.offset,
        committed=event.committed,
        producer_id=event.producer_id,
        is_undecided=story.index.has(events.TransactionStateChanged)
        and _decision(story, number, event.producer_id, committed=event.committed) is None,
    )
    story.tell(number, marked, decides=True)
