"""lso-stands-still: read_committed makes no progress although every transaction must have ended."""

from collections.abc import Iterator
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import Story
from harrow.checks.causes.transactions import deciding_partitions, lost_decision
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import NOTHING_HAPPENED, cause
from harrow.checks.permission import Promise
from harrow.checks.rule import Rule
from harrow.checks.transaction_fates import OPEN
from harrow.cluster_model.events import Flag, Number, Offset
from harrow.cluster_model.settings import TRANSACTION_TIMEOUT


@cause("held-up-at", needs_nothing_because=NOTHING_HAPPENED)
def held_up_at(*, lso: Offset, leo: Offset, is_open: Flag, producer_id: Number = -1) -> str:
    """A read_committed reader made no progress beyond ``lso``.

    ``is_open``: the transaction that begins at this offset never ends.
    """
    why = (
        f"the transaction of producer id {producer_id} that begins there has no end"
        if is_open
        else "no transaction in the log is open there"
    )
    return f"a read_committed reader got to offset {lso} and no further, the log ends at {leo}, and {why}"


def find(index: Index) -> Iterator[Finding]:
    """Find partitions in which the run's own reader got stuck after every transaction had ended."""
    for partition, lso in index.evidence.held_up.items():
        log = index.evidence.replicas.get(partition, {}).get(index.last_leader(partition))
        if log is None:
            continue
        fates = index.fates(partition)
        fate = fates.get(lso)
        is_open = fate is not None and fate.state == OPEN
        producer_id = fate.producer_id if fate is not None and is_open else -1
        lost = lost_decision(index, deciding_partitions(index, producer_id, (partition,)), 0)
        stuck = held_up_at.conclude(lso=lso, leo=log.leo, is_open=is_open, producer_id=producer_id)
        yield (lost or Cause(())).finding(
            Story(index, partition),
            stuck,
            offset=lso,
            value=index.standing_at(partition, lso),
            details=(("lso", lso), ("leo", log.leo)),
        )


RULE: Final = Rule(
    name=promise.LSO_STANDS_STILL,
    definition=(
        "After the cluster has healed, and after the time that any transaction may be open, a read_committed consumer "
        "still does not reach the end of a partition: the last stable offset does not advance."
    ),
    source="KIP-98; UnifiedLog.maybeIncrementFirstUnstableOffset.",
    promise=Promise(
        promised_by=(TRANSACTION_TIMEOUT,),
        permissions=promise.BY_LOST_DECISION,
        releases="also for late requests since 3.6 (KIP-890)",
    ),
    find=find,
    is_tried=lambda index: index.has_transactions,
    verb="never read with read_committed, from",
)
