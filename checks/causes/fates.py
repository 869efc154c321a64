"""Explains the fate of transactional records from markers and the coordinators' own records."""

from collections.abc import Sequence

from harrow.checks.causes.copies import tell_stored
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.causes.transactions import deciding_partitions, lost_decision, tell_marker, tell_states
from harrow.checks.history.records import Transaction, Value
from harrow.checks.index import Index
from harrow.checks.link import FROM_LOGS, Link, RecordValue, cause
from harrow.checks.transaction_fates import ABORTED, COMMITTED, OPEN, TransactionPart
from harrow.cluster_model.events import Flag, PartitionName


@cause("aborted-although-acked", needs_nothing_because=FROM_LOGS)
def aborted_although_acked(*, value: RecordValue, place: PartitionName, is_open: Flag = False) -> str:
    """An application was told that its transaction had committed, but the log does not show it."""
    how = "was never committed or aborted" if is_open else "was aborted"
    return f"{value} in {place} {how}, although the application was told that the transaction had committed"


def parts_of(index: Index, transaction: Transaction) -> list[TransactionPart]:
    """Return the records of a transaction in the logs, and the group offsets that it committed.

    A record that was sent in several transactions is excluded, because its transaction is
    ambiguous. An open transaction may still end, so its records count only if the run waited in
    vain for the end.
    """
    values = index.history.records.values
    parts: list[TransactionPart] = []
    for name, row in transaction.sends:
        if not index.history.partitions[name].sent_again.get(values[row]):
            parts += index.transaction_parts(name).get(values[row], ())
    producers = {(part.fate.producer_id, part.fate.producer_epoch) for part in parts}
    for since_us, key in index.group_work.offsets_of(transaction) if parts else ():
        until_us = index.history.times_us[transaction.position]
        # Two transactions of one epoch can commit the same offset, if the first was aborted.
        parts += [
            part
            for at_us, part in index.offset_parts.get(key, ())
            if since_us <= at_us <= until_us
            and (part.fate.producer_id, part.fate.producer_epoch) in producers
        ]
    return [part for part in parts if part.fate.state != OPEN or part.partition in index.evidence.held_up]


def is_torn(parts: Sequence[TransactionPart]) -> bool:
    """Return whether a transaction was committed in one place but not in another."""
    committed = sum(part.fate.state == COMMITTED for part in parts)
    return 0 < committed < len(parts)


def aborted_parts(index: Index, partition: str, value: Value) -> Sequence[TransactionPart]:
    """Return the copies of a record if the transactions of all copies are aborted, else nothing."""
    parts = index.transaction_parts(partition).get(value, ())
    return parts if all(part.fate.state == ABORTED for part in parts) else ()


def explain_parts(story: Story, parts: Sequence[TransactionPart], *conclusions: Link) -> Cause:
    """Tell how transactions ended in the logs, and return the cause.

    If a log lost a decision about a transaction, this loss is part of the cause.
    """
    index = story.index
    starts, ends = [], []
    for part in parts:
        copies = [copy for copy in index.copies_at(part.partition, part.offset) if not copy.is_copy]
        if copies:
            starts.append(copies[-1].number)
            if part.partition == story.partition:
                tell_stored(story, copies[-1])
        marker_line = tell_marker(story, part.partition, part.fate)
        if marker_line is not None:
            ends.append(marker_line)
    since = min(starts, default=0)
    for producer_id in dict.fromkeys(part.fate.producer_id for part in parts):
        tell_states(story, producer_id, since, max(ends, default=since) + AFTER)
    places = [part.partition for part in parts]
    decision_partitions = [
        name for part in parts for name in deciding_partitions(index, part.fate.producer_id, places)
    ]
    lost = lost_decision(index, decision_partitions, since)
    if lost is not None:
        return Cause((*lost.links, *conclusions), lost.permitted_by, lost.prevented_by)
    return Cause(conclusions)


def explain_aborted(story: Story, part: TransactionPart) -> Cause:
    """Tell how an acked record was aborted or left undecided, and return the cause."""
    return explain_parts(
        story,
        (part,),
        aborted_although_acked.conclude(
            value=part.value, place=part.partition, is_open=part.fate.state == OPEN
        ),
    )
