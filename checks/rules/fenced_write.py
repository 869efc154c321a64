"""fenced-write: a record was committed although its producer was fenced before it was written."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.copies import tell_stored
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.causes.transactions import deciding_partitions, lost_decision, tell_marker, tell_states
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import FORBIDDEN, RecordValue, cause
from harrow.checks.permission import Promise
from harrow.checks.replay.partition_state import LogEntry
from harrow.checks.rule import Rule
from harrow.checks.transaction_fates import COMMITTED, TransactionFate
from harrow.cluster_model import events
from harrow.cluster_model.settings import TRANSACTIONAL_ID


@cause("written-after-fence", needs_nothing_because=FORBIDDEN)
def written_after_fence(
    *,
    value: RecordValue,
    producer_id: events.Number,
    producer_epoch: events.Epoch,
    newer_epoch: events.Epoch,
) -> str:
    return (
        f"{value} was written with epoch {producer_epoch} of producer id {producer_id} after a coordinator had written epoch "
        f"{newer_epoch}, and is committed"
    )


_Fences = Mapping[int, list[tuple[int, int]]]
"""The fences of each producer id: the lines at which coordinators wrote new epochs, and the
epochs."""


def find(index: Index) -> Iterator[Finding]:
    """Find committed records that were appended after a newer epoch of their producer was written.

    Records that precede the marker of the new epoch do not count, because this marker aborts them.
    """
    fences = index.derived(_fences)
    if not _has_fenced(index):
        return
    suspects = {
        (partition, offset): fence
        for partition in index.logs
        for offset, fate in index.fates(partition).items()
        if fate.state == COMMITTED and (fence := _fence_of(fences, fate)) is not None
    }
    if suspects:
        yield from _late_writes(index, suspects)


def _fences(index: Index) -> _Fences:
    fences: dict[int, list[tuple[int, int]]] = {}
    for number, raw in index.raw_events(events.TransactionStateChanged):
        producer_id: int = raw[4]
        epoch: int = raw[5]
        epochs = fences.setdefault(producer_id, [])
        if not epochs or epoch > epochs[-1][1]:
            epochs.append((number, epoch))
    return fences


def _has_fenced(index: Index) -> bool:
    """Return whether a coordinator gave a producer a newer epoch."""
    return any(len(epochs) > 1 for epochs in index.derived(_fences).values())


def _fence_of(fences: _Fences, fate: TransactionFate) -> tuple[int, int] | None:
    """Return the first fence against a record's epoch: the first newer epoch."""
    of_producer = fences.get(fate.producer_id)
    if of_producer is None or of_producer[-1][1] <= fate.producer_epoch:
        return None
    place = bisect_right(of_producer, fate.producer_epoch, key=itemgetter(1))
    return of_producer[place]


def _late_writes(index: Index, suspects: Mapping[tuple[str, int], tuple[int, int]]) -> Iterator[Finding]:
    """Find the suspects that were appended after their fence, the first record of each batch."""
    late: dict[tuple[str, int], int] = {}
    for number, raw in index.raw_events(events.BatchAppended):
        partition: str = raw[3]
        base_offset: int = raw[4]
        leader_epoch: int = raw[5]
        for offset in range(base_offset, base_offset + len(raw[8])):
            fence = suspects.get((partition, offset))
            # If a deposed leader appended at this offset, that was another record.
            if fence is not None and index.fates(partition)[offset].leader_epoch == leader_epoch:
                if number > fence[0]:
                    late[partition, offset] = number
                break
    for (partition, offset), number in sorted(late.items()):
        yield _finding(index, partition, offset, number, suspects[partition, offset])


def _finding(index: Index, partition: str, offset: int, number: int, fence: tuple[int, int]) -> Finding:
    fate: TransactionFate = index.fates(partition)[offset]
    value = index.standing_at(partition, offset)
    story = Story(index, partition)
    copies: list[LogEntry] = [copy for copy in story.copies_at(offset) if copy.number == number]
    for copy in copies:
        tell_stored(story, copy, with_producer=True)
    marker = tell_marker(story, partition, fate)
    tell_states(story, fate.producer_id, fence[0] - 1, (marker or number) + AFTER)
    lost = lost_decision(index, deciding_partitions(index, fate.producer_id, (partition,)), fence[0])
    late = written_after_fence.conclude(
        value="" if value is None else value,
        producer_id=fate.producer_id,
        producer_epoch=fate.producer_epoch,
        newer_epoch=fence[1],
    )
    return (lost or Cause(())).finding(
        story,
        late,
        offset=offset,
        value=value,
        details=(("producer_id", fate.producer_id), ("producer_epoch", fate.producer_epoch)),
    )


RULE: Final = Rule(
    name=promise.FENCED_WRITE,
    goes_by_order=True,
    definition=(
        "A producer wrote a record after its coordinator had given its transactional id a newer epoch, and the record is "
        "committed: a fenced producer writes in the transactions of its successor."
    ),
    source="KIP-98; TransactionCoordinator.handleInitProducerId, ProducerAppendInfo.checkProducerEpoch; KIP-890.",
    promise=Promise(
        promised_by=(TRANSACTIONAL_ID,),
        permissions=promise.BY_LOST_DECISION,
        releases="since 0.11 (KIP-98); in partitions outside its own transaction since 3.6 (KIP-890)",
    ),
    find=find,
    is_tried=_has_fenced,
    verb="written by a fenced producer",
)
