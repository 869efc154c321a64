"""Reconstructs earlier contents of checkpoint files from the trace.

Disks of the model keep no old contents, because few runs revert a checkpoint.
"""

from collections.abc import Iterable
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache
from harrow.cluster_model.trace import TraceEvent, decode

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

_EPOCH_EVENTS: Final = frozenset(
    kind.name
    for kind in (
        events.BecameLeader,
        events.BatchAppended,
        events.BatchReplicated,
        events.LogTruncated,
        events.LogOpened,
        events.LogLost,
        events.LogDeleted,
    )
)
_OFFSET_EVENTS: Final = frozenset(
    kind.name
    for kind in (
        *(events.CheckpointWritten, events.CheckpointReverted, events.LogLost),
        events.LogDeleted,
    )
)


def checkpoint_at(trace: Iterable[TraceEvent], broker: int, name: str, at_us: int) -> dict[str, int]:
    """Return the offsets that a broker's checkpoint file had at *at_us*, by partition."""
    offsets: dict[str, int] = {}
    for raw in trace:
        if raw[0] > at_us:
            break
        if raw[1] not in _OFFSET_EVENTS or raw[2] != broker:
            continue
        match decode(raw):
            case events.CheckpointWritten() | events.CheckpointReverted() as written if written.kind == name:
                offsets.update(written.offsets)
            case events.LogLost():
                offsets.clear()
            case events.LogDeleted() as deleted:
                offsets.pop(deleted.partition, None)
    return offsets


def epochs_at(
    trace: Iterable[TraceEvent], broker: int, at_us: int, *, from_elections: bool
) -> dict[str, list[tuple[int, int]]]:
    """Return the epoch entries that a broker's checkpoints had at *at_us*, by partition.

    With *from_elections*, a leader adds the entry of its epoch when it is elected, and otherwise
    with the first batch (switch `epoch_entry_on_election`).
    """
    caches: dict[str, LeaderEpochCache] = {}
    for raw in trace:
        if raw[0] > at_us:
            break
        if raw[1] not in _EPOCH_EVENTS or raw[2] != broker:
            continue
        cache = caches.setdefault(raw[3], LeaderEpochCache())
        match decode(raw):
            case events.BecameLeader() as led if from_elections:
                cache.assign(led.leader_epoch, led.start_offset)
            case events.BatchAppended() | events.BatchReplicated() as batch:
                cache.assign(batch.leader_epoch, batch.base_offset)
            case events.LogTruncated() as truncated:
                cache.truncate_from_end(truncated.to_offset)
            case events.LogOpened() as opened:
                cache.truncate_from_end(opened.leo)
            case events.LogLost() | events.LogDeleted():
                cache.entries.clear()
    return {partition: cache.entries for partition, cache in caches.items()}
