"""log-divergence: after healing, replicas hold different records at a committed offset."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from harrow.checks.causes.catalogue import by_excuse
from harrow.checks.causes.copies import tell_place
from harrow.checks.causes.story import Story, brokers
from harrow.checks.evidence import FinalLog
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import RecordValue, claim
from harrow.checks.permission import Promise
from harrow.checks.promise import BY_FORGOTTEN_EPOCH, BY_RESUMED_EPOCH, HIGH_WATERMARK, LOG_DIVERGENCE
from harrow.checks.rule import DIVERGED, SEEN_IN_LOGS, Rule
from harrow.cluster_model.events import Brokers, Epoch, FieldKind, Offset

_Record = tuple[str, int]
"""A value and its leader epoch."""
_Holders = Annotated[tuple[tuple[RecordValue, Epoch, Brokers], ...], FieldKind.OBJECT]


@claim("logs-differ")
def logs_differ(*, first: Offset, last: Offset, holders: _Holders) -> str:
    """Logs differ; ``holders`` are the records at the first such offset, with epoch and brokers."""
    records = " and ".join(
        f"{value} (epoch {epoch}) on {brokers(having)}" for value, epoch, having in holders
    )
    up_to = f", and the logs differ up to offset {last}" if last > first else ""
    return f"offset {first} is {records}{up_to}"


def find(index: Index) -> Iterator[Finding]:
    """Compare the final logs from the latest log start to the smallest high watermark or LEO."""
    for partition in index.written:
        # A replica outside the ISR has not healed yet, which makes the run inconclusive.
        logs = index.evidence.replicas[partition]
        replicas = {broker: log for broker, log in logs.items() if log.in_sync}
        # Replicas share the batches that a follower copied from its leader.
        stored = [log.batches for log in replicas.values()]
        if all(batches == stored[0] for batches in stored):
            continue
        end = min(min(log.hw, log.leo) for log in replicas.values())
        start = max(log.log_start for log in replicas.values())
        records = {broker: _records(log, start, end) for broker, log in replicas.items()}
        first, *others = records.values()
        if any(other != first for other in others):
            for extent in _extents(records, start):
                there = {broker: log[extent[0] - start] for broker, log in records.items()}
                holders = {broker: record for broker, record in there.items() if record is not None}
                yield _finding(index, partition, extent, holders)


def _records(log: FinalLog, start: int, end: int) -> list[_Record | None]:
    """Return the record or control record at each offset, with its leader epoch.

    The offsets reach from *start* to below *end*. Compacted offsets are None, because each replica
    compacts its log at its own times.
    """
    begin = log.first_offset
    records: list[_Record | None] = []
    # Compaction may leave a hole between batches that it did not change, such as control batches.
    stored = sum([batch.next_offset - batch.base_offset for batch in log.batches])
    is_dense = not log.batches or begin + stored == log.batches[-1].next_offset
    if is_dense and all(batch.keyed is None for batch in log.batches):
        records = [
            (record, batch.leader_epoch)
            for batch in log.batches
            for record in batch.values or (f"the marker of {batch.control_type}",)
        ]
        return records[start - begin : max(end, start) - begin]
    for batch in log.batches:
        records += (None,) * (batch.base_offset - begin - len(records))
        if batch.is_control:
            records.append((f"the marker of {batch.control_type}", batch.leader_epoch))
        for offset, record in batch.records():
            records += (None,) * (offset - begin - len(records))
            records.append((record, batch.leader_epoch))
    records += (None,) * (end - begin - len(records))
    return records[start - begin : max(end, start) - begin]


def _extents(records: Mapping[int, list[_Record | None]], start: int) -> list[tuple[int, int]]:
    """Return the ranges of differing offsets, as (first, last); *records* begin at *start*."""
    extents: list[tuple[int, int]] = []
    for offset, column in enumerate(zip(*records.values(), strict=False), start):
        if len({record for record in column if record is not None}) <= 1:
            continue
        if extents and extents[-1][1] == offset - 1:
            extents[-1] = (extents[-1][0], offset)
        else:
            extents.append((offset, offset))
    return extents


def _finding(
    index: Index, partition: str, extent: tuple[int, int], records: Mapping[int, _Record]
) -> Finding:
    first, last = extent
    excuse = index.excuse(partition, first)
    holders: dict[_Record, list[int]] = {}
    story = Story(index, partition)
    for broker, record in records.items():
        holders.setdefault(record, []).append(broker)
    for value, epoch in holders:
        tell_place(story, first, value, epoch)
    differ = logs_differ.conclude(
        first=first, last=last, holders=tuple((*record, tuple(having)) for record, having in holders.items())
    )
    return Finding(
        partition=partition,
        offset=first,
        chain=story.chain(differ, *([by_excuse(excuse)] if excuse else [])),
        permitted_by=excuse.setting if excuse else None,
        prevented_by=excuse.prevented_by if excuse else (),
    )


RULE: Final = Rule(
    name=LOG_DIVERGENCE,
    definition=(
        "After the cluster has healed, two replicas of a partition hold a different value or leader epoch at an "
        "offset below both their high watermarks. One finding is reported for each run of differing offsets."
    ),
    source="KIP-101, KIP-279 (log divergence).",
    promise=Promise(
        promised_by=(HIGH_WATERMARK,),
        permissions=(BY_RESUMED_EPOCH, BY_FORGOTTEN_EPOCH),
        releases="kept since 0.11 (KIP-101), through fast leader changes since 2.0 (KIP-279)",
    ),
    find=find,
    verb="logs differ at",
    is_about_place=True,
    fate=DIVERGED,
    seen_in=SEEN_IN_LOGS,
)
