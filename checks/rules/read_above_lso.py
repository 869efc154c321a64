"""read-above-lso: a broker served a read_committed consumer records that are not committed yet."""

from collections.abc import Iterator
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.lives import tell_stored
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.causes.transactions import tell_states
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import FORBIDDEN, cause, link
from harrow.checks.permission import Promise
from harrow.checks.replay.log_ends import LogEnds
from harrow.checks.replay.partition_state import ReplicaState
from harrow.checks.rule import Rule
from harrow.cluster_model import events
from harrow.cluster_model.trace import TraceLine


@link("served-above-lso", events.RecordsServed, event="read", free_because=FORBIDDEN)
def served(
    *,
    client: events.ClientName,
    end_offset: events.Offset,
    lso: events.Offset,
    offset: events.Offset,
) -> str:
    return f"served {client} up to offset {end_offset} (exclusive), when its last stable offset was {lso}"


@cause("read-while-open", free_because=FORBIDDEN)
def read_while_open(*, offset: events.Offset, producer_id: events.Number) -> str:
    return f"offset {offset} is behind the first offset of an open transaction of producer id {producer_id}"


def find(index: Index) -> Iterator[Finding]:
    """Compare each answer to a read_committed consumer with the broker's last stable offset."""
    consumers = {each.name for each in index.evidence.consumers.values() if each.read_committed}
    if not consumers or not index.has(events.TransactionBegun):
        return
    logs = LogEnds()
    for number, (at_us, name, *fields) in index.raw_events(*LogEnds.HANDLERS, events.RecordsServed):
        if name != events.RecordsServed.name:
            logs.take(name, fields)
            continue
        broker, partition, client, _, end_offset, _ = fields
        replica = logs.of(broker, partition)
        if client in consumers and replica.transactions and end_offset > replica.lso:
            yield _finding(index, number, events.RecordsServed(at_us, *fields), replica)


def _finding(index: Index, number: int, event: events.RecordsServed, replica: ReplicaState) -> Finding:
    lso = replica.lso
    offset = max(event.offset, lso)
    story = Story(index, event.partition)
    group = [copy for copy in story.copies_at(offset) if copy.is_there(number)]
    for copy in group:
        tell_stored(story, copy)
    line = TraceLine(number, event)
    story.tell_event(line, served, decides=True, lso=lso, offset=offset)
    holding = [transaction for transaction in replica.transactions if transaction.first_offset == lso]
    conclusions = []
    if holding:
        producer_id = holding[0].producer_id
        tell_states(story, producer_id, min((copy.number for copy in group), default=number), number + AFTER)
        conclusions.append(read_while_open.conclude(offset=offset, producer_id=producer_id))
    return Finding(
        partition=event.partition,
        offset=offset,
        value=group[0].value if group else None,
        chain=story.chain(*conclusions),
        details=(("client", event.client),),
    )


RULE: Final = Rule(
    name=promise.READ_ABOVE_LSO,
    goes_by_order=True,
    definition=(
        "A broker served a read_committed consumer records at or above its last stable offset: the first offset of a "
        "transaction without a marker, or whose marker is not committed."
    ),
    source="KIP-98; UnifiedLog.fetchLastStableOffsetMetadata, ReplicaManager.readFromLocalLog (FetchTxnCommitted).",
    promise=Promise(promised_by=(promise.READ_COMMITTED,), releases="since 0.11 (KIP-98)"),
    find=find,
    verb="read before its transaction had ended",
)
