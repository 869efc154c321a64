"""read-above-lso: a broker served a read_committed consumer records of open transactions."""

from collections.abc import Iterator
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.copies import tell_stored
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.causes.transactions import tell_states
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import FORBIDDEN, cause, link
from harrow.checks.permission import Promise
from harrow.checks.replay.log_ends import ReadAboveLso
from harrow.checks.rule import Rule
from harrow.cluster_model import events
from harrow.cluster_model.trace import TraceLine


@link("served-above-lso", events.RecordsServed, event="read", needs_nothing_because=FORBIDDEN)
def served(
    *,
    client: events.ClientName,
    end_offset: events.Offset,
    lso: events.Offset,
    offset: events.Offset,
) -> str:
    return f"served {client} up to offset {end_offset} (exclusive), when its last stable offset was {lso}"


@cause("read-while-open", needs_nothing_because=FORBIDDEN)
def read_while_open(*, offset: events.Offset, producer_id: events.Number) -> str:
    return f"offset {offset} is behind the first offset of an open transaction of producer id {producer_id}"


def find(index: Index) -> Iterator[Finding]:
    """Compare each answer to a read_committed consumer with the last stable offset (LSO)."""
    for read in index.log_ends.reads if _is_tried(index) else ():
        yield _finding(index, read)


def _is_tried(index: Index) -> bool:
    has_readers = any(each.read_committed for each in index.evidence.consumers.values())
    return has_readers and index.has(events.TransactionBegun)


def _finding(index: Index, read: ReadAboveLso) -> Finding:
    number, row, lso, holding = read
    event = events.RecordsServed(row[0], *row[2:])
    offset = max(event.offset, lso)
    story = Story(index, event.partition)
    group = [copy for copy in story.copies_at(offset) if copy.is_there(number)]
    for copy in group:
        tell_stored(story, copy)
    line = TraceLine(number, event)
    story.tell_event(line, served, decides=True, lso=lso, offset=offset)
    conclusions = []
    if holding is not None:
        producer_id = holding.producer_id
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
    is_tried=_is_tried,
    verb="read before its transaction had ended",
)
