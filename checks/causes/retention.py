"""What retention has deleted, and whether it had promised to keep it.

Retention is no loss: a record is kept for ``retention.ms``, or until the log is ``retention.bytes`` large without it, whether
somebody has read it or not. Whether that was so is told from the settings, from when the record was sent, and from
how large the log was afterwards; the reason that a broker gives is not believed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.replay.partition_state import RETENTION, LogEntry
from harrow.cluster_model.events import LogStartRaised
from harrow.cluster_model.log.unified_log import LEADER_LOG_START, RETENTION_BYTES, RETENTION_MS
from harrow.cluster_model.trace import decode


@dataclass(frozen=True, slots=True)
class Deletion:
    """A record went with the beginning of a log: by which setting, and whether that promised no more."""

    setting: str
    was_due: bool


def deletion_of(
    index: Index, partition: str, copies: Sequence[LogEntry], sent_us: int | None
) -> Deletion | None:
    """Return how retention took the first of a record's *copies* that it took, None if it took none.

    A follower that begins its log where its leader does follows a deletion, and decides on none.
    """
    settings = index.evidence.partitions[partition].on_broker
    for copy in copies:
        removed = copy.removed
        if removed is None or removed.cause != RETENTION or removed.reason == LEADER_LOG_START:
            continue
        config = settings.get(copy.broker)
        event = decode(index.evidence.trace[removed.number - 1])
        if config is None or not isinstance(event, LogStartRaised):
            continue
        age_us = removed.at_us - (copy.at_us if sent_us is None else sent_us)
        due = {
            RETENTION_MS: 0 <= config.retention_us < age_us,
            RETENTION_BYTES: 0 <= config.retention_bytes <= event.bytes_left,
        }
        by_size = due[RETENTION_BYTES] and (removed.reason == RETENTION_BYTES or not due[RETENTION_MS])
        setting = RETENTION_BYTES if by_size else RETENTION_MS
        return Deletion(setting, due[setting])
    return None


def is_read_and_expired(index: Index, partition: str, value: Value, sent_us: int) -> bool:
    """Return whether a record has been read, and deleted when retention promised no more."""
    if not index.orders.is_read(partition, value):
        return False
    copies = index.partition(partition).by_value.get(str(value), ())
    deletion = deletion_of(index, partition, copies, sent_us)
    return deletion is not None and deletion.was_due
