"""Finds reads of records that were aborted or never decided.

``isolation.level`` decides whether such a read is permitted.
"""

from collections.abc import Mapping

from harrow.checks.evidence import Evidence
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import Value
from harrow.cluster_model.history import OK, POLL, columns_of
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class UndecidedRead:
    """A read of an aborted or undecided record.

    ``position`` is the place of the reading operation in the history.
    """

    offset: int
    position: int
    is_read_committed: bool


def undecided_reads(evidence: Evidence, history: HistoryIndex) -> Mapping[tuple[str, Value], UndecidedRead]:
    """Return one read of each record that may not be committed.

    If a consumer with ``read_committed`` read the record, its read is returned.
    """
    values = history.records.values
    wanted = {
        (name, values[row])
        for name, partition in history.partitions.items()
        for row in (*partition.failed, *partition.unsure)
    }
    reads: dict[tuple[str, Value], UndecidedRead] = {}
    position = -1
    for _, processes, types, fs, operations, _, _ in columns_of(evidence.operations) if wanted else ():
        for process, type_, f, value in zip(processes, types, fs, operations, strict=True):
            position += 1
            consumer = evidence.consumers.get(process)
            if consumer is None or type_ != OK or f != POLL:
                continue
            for name, pairs in value[0][1].items():
                for offset, read in pairs:
                    key = (name, read)
                    if key in wanted and (key not in reads or consumer.read_committed):
                        reads[key] = UndecidedRead(offset, position, consumer.read_committed)
    return reads
