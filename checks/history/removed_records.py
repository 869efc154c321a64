"""Summarises the records that were removed from a history because no rule needs them.

Nearly all records of a large history are plain: sent once, acknowledged and polled at one offset.
Without them, a history has the same findings, because offsets may have gaps of any size. Only
sizes, distances between offsets, polls that returned nothing, and the rules that the history tries
would differ, so the summary keeps what determines them.
"""

from collections.abc import Mapping
from dataclasses import field

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRecords:
    """The removed records, and the size of the whole history.

    ``sent``, ``acked`` and ``polled`` count removed records. ``lines`` and ``processes`` count
    those of the whole history. ``ranks`` has, by partition and offset, how many known offsets of
    the whole history are lower; it has all offsets whose distance a finding may state. A partition
    without removed records needs no ranks. ``read_dry`` has, by partition, the positions at
    which the last poll that returned nothing of the partition was invoked and completed.

    ``sends_in_turn`` says whether a process sent several of the removed records to a partition.
    ``polls_in_turn`` and ``polls_together`` are those of the whole history (`HistoryIndex`).
    """

    lines: int = 0
    processes: int = 0
    sent: int = 0
    acked: int = 0
    polled: int = 0
    sends_in_turn: bool = False
    polls_in_turn: bool = False
    polls_together: bool = False
    ranks: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    read_dry: Mapping[str, tuple[int, int]] = field(default_factory=dict)
