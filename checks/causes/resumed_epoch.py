"""Finds leaders that lost records and resumed their epoch, which Kafka cannot detect.

A broker that returns while there is no controller is still the leader, in the same epoch. If its
machine lost power, its log now ends earlier. It gives its next records offsets that its followers
already have, in the same epoch, so a truncation cannot tell the records apart. Leader epochs guard
against other leaders, not against a leader that lost records. Whether a leader loses records
depends on flushing and on its disk.
"""

from collections.abc import Iterable, Mapping

from harrow.cluster_model.events import BecameLeader, CorruptionCut, LogLost, UnflushedLost

Loss = UnflushedLost | CorruptionCut | LogLost


def resumed_epochs(events: Iterable[BecameLeader | Loss]) -> Mapping[str, int]:
    """Return the lowest offset that a leader lost before it resumed its epoch, by partition."""
    led: dict[tuple[int, str], int] = {}
    lost: dict[tuple[int, str, int], int] = {}
    lowest: dict[str, int] = {}
    for event in events:
        broker, partition = event.broker, event.partition
        if isinstance(event, BecameLeader):
            led[broker, partition] = event.leader_epoch
            offset = lost.get((broker, partition, event.leader_epoch))
            if offset is not None:
                lowest[partition] = min(lowest.get(partition, offset), offset)
        elif (broker, partition) in led:
            leadership = (broker, partition, led[broker, partition])
            lost[leadership] = min(lost.get(leadership, event.from_offset), event.from_offset)
    return lowest
