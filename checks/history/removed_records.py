"""What is known of the records that were removed from a history because no rule needs them.

Nearly all records of a large history are plain: sent once, acknowledged and polled at one offset.
Without them, a history has the same findings, because offsets may have gaps of any size. Only
sizes, distances between offsets, and polls that returned nothing would differ, so these are kept
here.
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
    of which no record was removed needs no ranks. ``read_dry`` has, by partition, the positions at
    which the last poll that returned nothing of the partition was invoked and completed.
    """

    lines: int = 0
    processes: int = 0
    sent: int = 0
    acked: int = 0
    polled: int = 0
    ranks: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    read_dry: Mapping[str, tuple[int, int]] = field(default_factory=dict)
