"""torn-transaction: a transaction took effect in one place but not in another."""

from collections.abc import Iterator
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.fates import explain_parts, is_torn, parts_of
from harrow.checks.causes.story import Story
from harrow.checks.finding import Finding
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.records import Transaction
from harrow.checks.index import Index
from harrow.checks.link import FROM_LOGS, RecordValue, cause
from harrow.checks.permission import Promise
from harrow.checks.rule import Rule
from harrow.checks.transaction_fates import COMMITTED, OPEN, TransactionPart
from harrow.cluster_model.events import Flag, PartitionName
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import TRANSACTIONAL_ID


@cause("ended-both-ways", needs_nothing_because=FROM_LOGS)
def ended_both_ways(
    *,
    committed: RecordValue,
    place: PartitionName,
    other: RecordValue,
    other_place: PartitionName,
    is_open: Flag = False,
) -> str:
    how = "is neither committed nor aborted" if is_open else "is aborted"
    return f"{committed} in {place} is committed and {other} in {other_place} {how}, although both belong to one transaction"


def find(index: Index) -> Iterator[Finding]:
    """Compare how the logs ended the parts of each transaction: its records and its offsets.

    The application decides which parts belong to one transaction, even if coordinators saw several
    transactions.
    """
    for transaction in index.history.transactions:
        parts = parts_of(index, transaction)
        if is_torn(parts):
            committed = next(part for part in parts if part.fate.state == COMMITTED)
            other = next(part for part in parts if part.fate.state != COMMITTED)
            yield _finding(index, transaction, committed, other)


def _is_tried(index: Index) -> bool:
    """Return whether a transaction had several parts: records, or a record and offsets."""
    return any(
        len(transaction.sends) > 1 or any(index.group_work.offsets_of(transaction))
        for transaction in index.history.transactions
    )


def _finding(
    index: Index, transaction: Transaction, committed: TransactionPart, other: TransactionPart
) -> Finding:
    story = Story(index, other.partition)
    concluded = ended_both_ways.conclude(
        committed=committed.value,
        place=committed.partition,
        other=other.value,
        other_place=other.partition,
        is_open=other.fate.state == OPEN,
    )
    why = explain_parts(story, (committed, other), concluded)
    return why.finding(
        story,
        offset=other.offset,
        value=other.value,
        details=(
            ("process", transaction.process),
            ("committed", [committed.partition, committed.offset, committed.value]),
        ),
    )


RULE: Final = Rule(
    name=promise.TORN_TRANSACTION,
    definition=ANOMALIES[promise.TORN_TRANSACTION].definition
    + " In a run the markers in the logs tell: one record of a transaction is committed, another one aborted, or never ended. The offsets "
    "that it commits are records like others.",
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
    is_tried=_is_tried,
    verb="half of a transaction:",
)
