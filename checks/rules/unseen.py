"""unseen: an acked record can be read, but no consumer ever read it."""

from collections.abc import Iterable, Sequence
from typing import Final

from harrow.checks.causes import compaction
from harrow.checks.causes.copies import tell_place
from harrow.checks.causes.loss import Cause, tell_acknowledgement
from harrow.checks.causes.story import Story
from harrow.checks.causes.transactions import deciding_partitions, lost_decision
from harrow.checks.finding import Finding
from harrow.checks.history.records import UNKNOWN, SendRecord, Value
from harrow.checks.index import Index
from harrow.checks.link import NOTHING_HAPPENED, cause
from harrow.checks.permission import Promise
from harrow.checks.promise import (
    BY_LOSS,
    BY_LOST_DECISION,
    HIGH_WATERMARK,
    UNSEEN,
    committed_reads,
    durability,
)
from harrow.checks.rule import Rule
from harrow.cluster_model.events import Offset, Pairs
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID


def _places_text(places: Pairs) -> str:
    return " and ".join(f"at offset {offset} of broker {broker}" for broker, offset in places)


@cause("stands-above-lso", needs_nothing_because=NOTHING_HAPPENED)
def stands_above_lso(*, places: Pairs, lso: Offset) -> str:
    return f"it is {_places_text(places)}, but read_committed ends at offset {lso}, long after every transaction had to have ended"


@cause("stands-unread", needs_nothing_because=NOTHING_HAPPENED)
def stands_unread(*, places: Pairs) -> str:
    return f"it is {_places_text(places)}, but no poll returned it although the partition was read to its end"


def find(index: Index) -> Iterable[Finding]:
    """Find acked records that the last leader's log has, but that no poll returned."""
    unread: dict[tuple[str, Value], Finding] = {}
    for partition, sends in index.acked.items():
        if partition not in index.evidence.read_back:
            continue
        held_up_at = index.evidence.held_up.get(partition)
        if held_up_at is not None:
            acked_at = index.history.records.acked_at
            behind = [place for place, row in enumerate(sends.rows) if acked_at[row] >= held_up_at]
            for send in map(sends.__getitem__, behind):
                if send.value in index.readable(partition):
                    unread.setdefault((partition, send.value), _finding(index, send, held_up_at))
        for send in map(sends.__getitem__, _unread(index, partition, sends.rows)):
            is_new = (partition, send.value) not in unread and send.value in index.readable(partition)
            if is_new and not compaction.was_compacted_away(index, partition, send.value):
                unread[partition, send.value] = _finding(index, send)
    return unread.values()


def _unread(index: Index, partition: str, rows: Sequence[int]) -> list[int]:
    """Return the indices in *rows* of sends whose records no poll returned.

    For a record of a transaction, only the polls of read_committed consumers count.
    """
    history, records = index.history, index.history.records
    polled_by, values = records.polled_by, records.values
    # Most records were read in the order of their rows, so their values need no lookup.
    unread = [place for place, row in enumerate(rows) if polled_by[row] == UNKNOWN]
    unread = [place for place in unread if not index.orders.is_read(partition, values[rows[place]])]
    if index.has_transactions:
        consumers, producers = index.evidence.consumers, index.evidence.producers
        committed = {process for process, settings in consumers.items() if settings.read_committed}
        transactional = {process for process, settings in producers.items() if settings.transactional_id}
        unread += [
            place
            for place, row in enumerate(rows)
            if polled_by[row] != UNKNOWN
            and history.processes[polled_by[row]] not in committed
            and history.processes[records.invoked[row]] in transactional
            and values[row] not in index.committed_reads.get(partition, ())
        ]
    return sorted(unread)


def _finding(index: Index, send: SendRecord, held_up_at: int | None = None) -> Finding:
    partition = send.partition
    places = [
        (str(broker), values.index(send.value))
        for broker, values in index.logs[partition].items()
        if send.value in values
    ]
    story = Story(index, partition)
    lost = None
    if held_up_at is not None:
        fate = index.fates(partition).get(held_up_at)
        producer_id = NO_PRODUCER_ID if fate is None else fate.producer_id
        lost = lost_decision(index, deciding_partitions(index, producer_id, (partition,)), 0)
    tell_place(story, places[0][1], send.value)
    tell_acknowledgement(story, send)
    return (lost or Cause(())).finding(
        story,
        stands_unread.conclude(places=tuple(places))
        if held_up_at is None
        else stands_above_lso.conclude(places=tuple(places), lso=held_up_at),
        offset=send.offset,
        value=send.value,
    )


RULE: Final = Rule(
    name=UNSEEN,
    definition=(
        "A send was acknowledged and the record is still in the leader's log, but no consumer ever read it, although the "
        "partition was read back to its end after the cluster had healed. A transactional record needs a read_committed "
        "consumer, for which that end is the last stable offset once every transaction has to have ended."
    ),
    source="Jepsen's Kafka workload (unseen); ReplicaManager.readFromLocalLog.",
    promise=Promise(
        promised_by=(HIGH_WATERMARK,),
        permissions=(
            *dict.fromkeys(replace(permission, when="when the record is lost") for permission in BY_LOSS),
            *BY_LOST_DECISION,
        ),
        to_producer=durability,
        in_run=committed_reads,
    ),
    find=find,
    is_tried=Index.has_acks,
    is_undecided=Index.has_unread,
    verb="never read",
)
