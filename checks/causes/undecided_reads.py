"""Who read what was aborted, or was never decided: whether that may be hangs on the ``isolation.level`` of the consumer."""

from collections.abc import Mapping
from dataclasses import dataclass

from harrow.checks.evidence import Evidence
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import Value
from harrow.cluster_model.history import OK, POLL, columns_of


@dataclass(frozen=True, slots=True)
class UndecidedRead:
    """A consumer has read a record: where that stood, and the position of the operation."""

    offset: int
    position: int
    is_read_committed: bool


def undecided_reads(evidence: Evidence, history: HistoryIndex) -> Mapping[tuple[str, Value], UndecidedRead]:
    """Return who read what is not known to be committed: of each record one read, by read_committed where there is one."""
    values = history.records.values
    wanted = {
        (name, values[row])
        for name, partition in history.partitions.items()
        for row in (*partition.failed, *partition.unsure)
    }
    found: dict[tuple[str, Value], UndecidedRead] = {}
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
                    if key in wanted and (key not in found or consumer.read_committed):
                        found[key] = UndecidedRead(offset, position, consumer.read_committed)
    return found
