"""hanging-transaction: a transaction stays open in a log, and nothing will end it."""

from collections.abc import Iterator
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.facts import LEADER
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.causes.transactions import lost_decision, partitions_deciding, tell_states
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import ACTOR, NOTHING_HAPPENED, cause, link
from harrow.checks.permission import Promise
from harrow.checks.replay.log_ends import LogEnds
from harrow.checks.replay.partition_state import LogTransaction
from harrow.checks.rule import Rule
from harrow.cluster_model import events
from harrow.cluster_model.coordinators.transactions.transaction_metadata import ONGOING, PREPARED
from harrow.cluster_model.settings import TRANSACTION_TIMEOUT


@link(
    "transaction-begun",
    events.TransactionBegun,
    needs=(LEADER.of(then=ACTOR),),
    makes=(LEADER.of(then=ACTOR),),
)
def transaction_begun(
    *, offset: events.Offset, producer_id: events.Number, producer_epoch: events.Epoch
) -> str:
    """A log got the first batch of a transaction."""
    return f"appended the first batch of a transaction at offset {offset} (producer id {producer_id}, epoch {producer_epoch})"


@cause("never-ended", free_because=NOTHING_HAPPENED)
def never_ended(*, offset: events.Offset, state: events.Text = "") -> str:
    """A transaction is open when each one had to have ended; ``state`` is what its coordinator has
    of it, if anything."""
    known = f"its coordinator has written {state}" if state else "no coordinator knows that it is open there"
    return f"the transaction at offset {offset} was still open when every transaction had to have ended, and {known}"


def find(index: Index) -> Iterator[Finding]:
    """Find what is open in the logs of the last leaders after the cluster has healed, and longer
    than any transaction may be open.

    A run that did not get so far tells nothing. Internal topics count: offsets of a transaction
    that stays open are never committed.
    """
    evidence = index.evidence
    if evidence.unfinished or not evidence.read_back or not index.has(events.TransactionBegun):
        return
    logs = LogEnds()
    partitions: dict[str, None] = {}
    for _, (_, name, *fields) in index.raw_events(*LogEnds.TAKES):
        logs.take(name, fields)
        if name == events.TransactionBegun.name:
            partitions[fields[1]] = None
    for partition in partitions:
        for known in logs.of(index.last_leader(partition), partition).transactions:
            if known.marker_offset is None:
                yield _finding(index, partition, known)


def _finding(index: Index, partition: str, known: LogTransaction) -> Finding:
    story = Story(index, partition)
    begun = [
        (number, event)
        for number, event in index.events(events.TransactionBegun, partition=partition)
        if (event.producer_id, event.first_offset) == (known.producer_id, known.first_offset)
    ]
    number, event = begun[0]
    story.tell(
        number,
        transaction_begun(
            event.at_us,
            event.broker,
            offset=event.first_offset,
            producer_id=event.producer_id,
            producer_epoch=event.producer_epoch,
        ),
        decides=True,
    )
    tell_states(story, known.producer_id, number, len(index.evidence.trace) + AFTER)
    states = [
        written
        for _, written in index.events(events.TransactionStateChanged)
        if written.producer_id == known.producer_id
    ]
    is_known = (
        bool(states) and states[-1].state in (ONGOING, *PREPARED) and partition in states[-1].partitions
    )
    permitted = lost_decision(index, partitions_deciding(index, known.producer_id, (partition,)), number)
    concluded = never_ended.conclude(offset=known.first_offset, state=states[-1].state if is_known else "")
    value = index.standing_at(partition, known.first_offset)
    return Finding(
        partition=partition,
        offset=known.first_offset,
        value=value,
        chain=story.chain(*(() if permitted is None else permitted.links), concluded),
        permitted_by=None if permitted is None else permitted.permitted_by,
        prevented_by=() if permitted is None else permitted.prevented_by,
        details=(("producer_id", known.producer_id), ("producer_epoch", known.producer_epoch)),
    )


RULE: Final = Rule(
    name=promise.HANGING_TRANSACTION,
    definition=(
        "A transaction is open in a partition's log after the cluster has healed and longer than any transaction may be open: what "
        "stands behind it is never read with read_committed, and in __consumer_offsets its offsets are never committed."
    ),
    source="KIP-98 (transaction.timeout.ms); KIP-664 (hanging transactions); KIP-890.",
    promise=Promise(
        promised_by=(TRANSACTION_TIMEOUT,),
        permissions=promise.BY_LOST_DECISION,
        releases="also for what comes late since 3.6 (KIP-890)",
    ),
    find=find,
    verb="open for ever from",
)
