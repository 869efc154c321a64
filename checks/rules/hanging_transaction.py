"""hanging-transaction: a transaction stays open in a log, and no marker will end it."""

from collections.abc import Iterator
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.facts import LEADER
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.causes.transactions import deciding_partitions, lost_decision, tell_states
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import ACTOR, NOTHING_HAPPENED, cause, link
from harrow.checks.permission import Promise
from harrow.checks.replay.partition_state import LogTransaction
from harrow.checks.rule import Rule
from harrow.cluster_model import events
from harrow.cluster_model.coordinators.transactions.transaction_metadata import ONGOING, PREPARED
from harrow.cluster_model.settings import TRANSACTION_TIMEOUT

_OPEN: Final = frozenset({ONGOING, *PREPARED})


@link(
    "transaction-begun",
    events.TransactionBegun,
    needs=(LEADER.of(then=ACTOR),),
    makes=(LEADER.of(then=ACTOR),),
)
def transaction_begun(
    *, offset: events.Offset, producer_id: events.Number, producer_epoch: events.Epoch
) -> str:
    return f"appended the first batch of a transaction at offset {offset} (producer id {producer_id}, epoch {producer_epoch})"


@cause("never-ended", needs_nothing_because=NOTHING_HAPPENED)
def never_ended(*, offset: events.Offset, state: events.Text = "") -> str:
    """A transaction is open too long; ``state`` is the last one that its coordinator wrote."""
    decision = (
        f"its coordinator has written {state}" if state else "no coordinator knows that it is open there"
    )
    return f"the transaction at offset {offset} was still open when every transaction had to have ended, and {decision}"


def find(index: Index) -> Iterator[Finding]:
    """Find transactions that are open in the last leaders' logs, longer than any may be open.

    The logs are those at the end of a run, after the cluster has healed; an unfinished run proves
    nothing. Internal topics count as well, because a transaction that hangs in __consumer_offsets
    never commits its offsets.
    """
    evidence = index.evidence
    if evidence.unfinished or not evidence.read_back:
        return
    logs = index.log_ends
    for partition in logs.partitions:
        for transaction in logs.of(index.last_leader(partition), partition).transactions:
            if transaction.marker_offset is None:
                yield _finding(index, partition, transaction)


def _finding(index: Index, partition: str, transaction: LogTransaction) -> Finding:
    story = Story(index, partition)
    begin = next(
        line
        for line in index.events(events.TransactionBegun, partition=partition)
        if (line.event.producer_id, line.event.first_offset)
        == (transaction.producer_id, transaction.first_offset)
    )
    number = begin.number
    story.tell_event(begin, transaction_begun, decides=True, offset=transaction.first_offset)
    tell_states(story, transaction.producer_id, number, len(index.evidence.trace) + AFTER)
    states = [
        written
        for _, written in index.events(events.TransactionStateChanged)
        if written.producer_id == transaction.producer_id
    ]
    is_known = bool(states) and states[-1].state in _OPEN and partition in states[-1].partitions
    lost = lost_decision(index, deciding_partitions(index, transaction.producer_id, (partition,)), number)
    first_offset = transaction.first_offset
    return (lost or Cause(())).finding(
        story,
        never_ended.conclude(offset=first_offset, state=states[-1].state if is_known else ""),
        offset=first_offset,
        value=index.standing_at(partition, first_offset),
        details=(("producer_id", transaction.producer_id), ("producer_epoch", transaction.producer_epoch)),
    )


RULE: Final = Rule(
    name=promise.HANGING_TRANSACTION,
    definition=(
        "A transaction is open in a partition's log after the cluster has healed, and longer than any transaction may be open. "
        "read_committed never reads beyond it, and in __consumer_offsets its offsets are never committed."
    ),
    source="KIP-98 (transaction.timeout.ms); KIP-664 (hanging transactions); KIP-890.",
    promise=Promise(
        promised_by=(TRANSACTION_TIMEOUT,),
        permissions=promise.BY_LOST_DECISION,
        releases="also for late requests since 3.6 (KIP-890)",
    ),
    find=find,
    is_tried=lambda index: index.has(events.TransactionBegun),
    verb="never closed from",
)
