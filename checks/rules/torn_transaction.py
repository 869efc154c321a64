"""torn-transaction: a transaction took effect in one place and not in another."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from harrow.checks import prevention as preventions
from harrow.checks import promise
from harrow.checks.causes.lives import tell_stored
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.causes.transactions import lost_decision, partitions_deciding, tell_marker, tell_states
from harrow.checks.finding import Finding
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.records import Transaction, Value
from harrow.checks.index import Index
from harrow.checks.link import RecordValue, cause
from harrow.checks.permission import Promise
from harrow.checks.rule import Rule
from harrow.checks.transaction_fates import COMMITTED, OPEN, TransactionFate
from harrow.cluster_model.events import Flag, PartitionName
from harrow.cluster_model.settings import TRANSACTIONAL_ID


class _Part(NamedTuple):
    """A record of a transaction: where it stands, and what became of it there."""

    partition: str
    offset: int
    value: Value
    fate: TransactionFate


@cause("ended-both-ways")
def ended_both_ways(
    *,
    committed: RecordValue,
    place: PartitionName,
    other: RecordValue,
    other_place: PartitionName,
    is_open: Flag = False,
) -> str:
    """A record of a transaction is committed, and another one of it is not."""
    how = "has no end in the log" if is_open else "is aborted"
    return f"{committed} in {place} is committed and {other} in {other_place} {how}, although both are of one transaction"


def find(index: Index) -> Iterator[Finding]:
    """Compare the markers behind the records of each transaction.

    By what the application took for one transaction, whatever coordinators made of it. What was sent in several transactions tells nothing.
    """
    standing: dict[str, dict[Value, list[_Part]]] = {}
    for transaction in index.history.transactions:
        parts = _parts(index, transaction, standing)
        committed = [part for part in parts if part.fate.state == COMMITTED]
        if committed and len(committed) < len(parts):
            others = [part for part in parts if part.fate.state != COMMITTED]
            yield _finding(index, transaction, committed[0], others[0])


def _parts(
    index: Index, transaction: Transaction, standing: dict[str, dict[Value, list[_Part]]]
) -> list[_Part]:
    values = index.history.records.values
    parts: list[_Part] = []
    for name, row in transaction.sends:
        if name not in standing:
            standing[name] = _standing(index, name)
        if not index.history.partitions[name].sent_again.get(values[row]):
            parts += standing[name].get(values[row], ())
    return parts


def _standing(index: Index, partition: str) -> dict[Value, list[_Part]]:
    """Return the records of transactions in a partition by value. What is open may end yet, unless the run has waited for that."""
    found: dict[Value, list[_Part]] = {}
    for offset, fate in index.fates(partition).items():
        value = index.standing_at(partition, offset)
        if value is not None and (fate.state != OPEN or partition in index.evidence.held_up):
            found.setdefault(value, []).append(_Part(partition, offset, value, fate))
    return found


def _finding(index: Index, transaction: Transaction, committed: _Part, other: _Part) -> Finding:
    story = Story(index, other.partition)
    begun, ended = [], []
    for part in (committed, other):
        stored = [
            copy
            for copy in index.partition(part.partition).by_value.get(str(part.value), ())
            if copy.offset == part.offset and not copy.is_copy
        ]
        if stored:
            begun.append(stored[0].number)
            tell_stored(Story(index, part.partition) if part is committed else story, stored[0])
        marked = tell_marker(story, part.partition, part.fate)
        if marked is not None:
            ended.append(marked)
    since = min(begun, default=0)
    end = max(ended, default=since)
    for producer_id in dict.fromkeys((committed.fate.producer_id, other.fate.producer_id)):
        tell_states(story, producer_id, since, end + AFTER)
    concluded = ended_both_ways.conclude(
        committed=committed.value,
        place=committed.partition,
        other=other.value,
        other_place=other.partition,
        is_open=other.fate.state == OPEN,
    )
    deciding = partitions_deciding(index, other.fate.producer_id, (committed.partition, other.partition))
    permitted = lost_decision(index, deciding, since)
    return Finding(
        partition=other.partition,
        offset=other.offset,
        value=other.value,
        chain=story.chain(*(() if permitted is None else permitted.links), concluded),
        permitted_by=None if permitted is None else permitted.permitted_by,
        prevented_by=preventions.by_behaviour(index.evidence, preventions.TRANSACTIONAL)
        if permitted is None
        else permitted.prevented_by,
        details=(
            ("process", transaction.process),
            ("committed", [committed.partition, committed.offset, committed.value]),
        ),
    )


RULE: Final = Rule(
    name=promise.TORN_TRANSACTION,
    definition=ANOMALIES[promise.TORN_TRANSACTION].definition
    + " In a run the markers in the logs tell: one record of a transaction is committed, another one aborted, or never ended.",
    source="KIP-98; TransactionCoordinator.scala, TransactionMarkerChannelManager.scala; KIP-890.",
    promise=Promise(
        promised_by=(TRANSACTIONAL_ID,),
        permissions=(
            *promise.BY_LOST_DECISION,
            *(
                replace(permission, when="where only a history is known")
                for permission in promise.BY_ISOLATION
            ),
        ),
        releases="since 0.11 (KIP-98); also when requests come late since 4.0 (KIP-890)",
    ),
    find=find,
    verb="half of a transaction:",
)
