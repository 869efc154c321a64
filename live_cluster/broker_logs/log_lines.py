"""The lines of a broker's or a controller's log that explain its actions.

Each release has its own wording. The patterns come from the source of each release (comments name
the class that logs a line), and are tested with lines that its brokers have logged. A line
announces an action, so it is in the log before the action happens.
"""

import re
from typing import Final

from harrow.cluster_model.controller.control_plane import (
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    CONTROLLER_FAILOVER,
    PREFERRED_LEADER,
    TOPIC_CREATION,
)
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.unified_log import (
    HIGH_WATERMARK_TRUNCATION,
    LEADER_EPOCH_TRUNCATION,
    OUT_OF_RANGE_TRUNCATION,
)


@dataclass(frozen=True, slots=True)
class TruncationLine:
    """A broker truncates a log to an offset. The truncation may remove nothing."""

    partition: str
    to_offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class RefusalLine:
    """A broker stops, because its log ends beyond the leader's. A leader not named is None."""

    partition: str
    leader: int | None
    end_offset: int
    leo: int


@dataclass(frozen=True, slots=True)
class CauseLine:
    """A controller does something that may elect leaders, of some partitions or (None) of any.

    The line explains all changes until the next such line; with ``explains_one``, it explains only
    one change of each partition.
    """

    reason: str
    partitions: frozenset[str] | None = None
    explains_one: bool = False


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """A KRaft controller has changed a partition. Fields that did not change are None."""

    partition: str
    leader: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    eligible: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class EpochLine:
    """A broker has become leader or follower in a leader epoch."""

    partition: str
    leader_epoch: int


LogLine = TruncationLine | RefusalLine | CauseLine | EpochLine | PartitionLine

_PARTITION: Final = r"(?P<partition>[a-zA-Z0-9._-]+-\d+)"

# Log.truncateTo: "Truncating log t-0 to offset 1." up to 1.0, then "[Log partition=t-0, dir=...]
# Truncating to offset 1"; from 3.0 on it is a UnifiedLog.
_TRUNCATED: Final = re.compile(
    rf"(?:Truncating log {_PARTITION} to offset (?P<offset>\d+)|"
    rf"Log partition={_PARTITION.replace('partition', 'logged', 1)}, dir=[^\]]*\] Truncating to offset (?P<to>\d+))"
)
# Without records to remove: "Truncating t-0 to 2 has no effect", "Truncating to 2 has no effect".
_NO_EFFECT: Final = re.compile(
    rf"(?:Truncating {_PARTITION} to \d+|Log partition={_PARTITION.replace('partition', 'logged', 1)}, dir=[^\]]*\] Truncating to \d+)"
    " has no effect"
)
_REASONS: Final = (
    # AbstractFetcherThread.truncateToHighWatermark, from 2.2 on; with the state since 3.0.
    (
        rf"Truncating partition {_PARTITION} (?:to|with .* due to) local high watermark",
        HIGH_WATERMARK_TRUNCATION,
    ),
    # AbstractFetcherThread.maybeTruncateToEpochEndOffsets and truncateOnFetchResponse.
    (rf"Truncating partition {_PARTITION} with .* due to leader epoch", LEADER_EPOCH_TRUNCATION),
    # ReplicaFetcherThread.maybeTruncate of 0.11 and 1.0;
    # AbstractFetcherThread.getOffsetTruncationState since.
    (rf"leader replied with an unknown offset in {_PARTITION}\. ", HIGH_WATERMARK_TRUNCATION),
    # ReplicaFetcherThread.handleOffsetOutOfRange; AbstractFetcherThread.fetchOffsetAndTruncate.
    (
        rf"Replica \d+ for partition {_PARTITION} reset its fetch offset from \d+ to current leader \d+'s latest offset",
        OUT_OF_RANGE_TRUNCATION,
    ),
    (
        rf"Reset fetch offset for partition {_PARTITION} from \d+ to current leader's latest offset",
        OUT_OF_RANGE_TRUNCATION,
    ),
)
_REASON_LINES: Final = tuple((re.compile(pattern), reason) for pattern, reason in _REASONS)
# ReplicaFetcherThread.handleOffsetOutOfRange, up to 2.0.0.
_REFUSED: Final = re.compile(
    rf"log truncation is not allowed for partition {_PARTITION}, +current leader(?: (?P<leader>\d+))?'s latest offset "
    r"(?P<end_offset>\d+) is less than replica(?: \d+)?'s latest offset (?P<leo>\d+)",
    re.IGNORECASE,
)

# ReplicaManager.becomeLeaderOrFollower, makeLeaders and makeFollowers, in the state change log
# at TRACE: a request, and its completion.
_LEADER_AND_ISR_RECEIVED: Final = re.compile(
    r"eceived LeaderAndIsr request PartitionState\(.*?leaderEpoch=(?P<epoch>\d+),.*"
    r"correlation id (?P<id>\d+) from controller (?P<controller>\d+) epoch \d+ for partition (?P<partitions>\S+)"
)
_LEADER_AND_ISR_COMPLETED: Final = re.compile(
    r"ompleted LeaderAndIsr request correlationId (?P<id>\d+) from controller (?P<controller>\d+) epoch \d+"
    r" for the become-(?:leader|follower) transition for partition (?P<partitions>\S+)"
)

# Lines of KafkaController.
_CAUSES: Final = (
    (re.compile(r"Broker failure callback for "), BROKER_FAILURE),
    (re.compile(r"New broker startup callback for "), BROKER_STARTUP),
    (re.compile(r"Shutting down broker \d"), CONTROLLED_SHUTDOWN),
    (re.compile(r"New (?:topic|partition) creation callback for "), TOPIC_CREATION),
    (
        re.compile(r"starting become controller state transition|successfully elected as the controller"),
        CONTROLLER_FAILOVER,
    ),
)
_PREFERRED: Final = re.compile(
    r"Starting (?:preferred )?replica leader election (?:\(PREFERRED\) )?for partitions (?P<partitions>.*?)"
    r"(?: triggered by .*)? \("
)
_PARTITION_NAME: Final = re.compile(r"\[(?P<topic>[^,\]]+),(?P<number>\d+)\]|(?P<name>[a-zA-Z0-9._-]+-\d+)")
# ReplicationControlManager.generateLeaderAndIsrUpdates, of KRaft. It logs the number of changed
# partitions, and at DEBUG, as in harrow's log4j.properties, their names. The number alone would
# also seem to explain later changes of other partitions.
_KRAFT_CAUSES: Final = tuple(
    (re.compile(rf"{context}: changing partition\(s\): (?P<partitions>.*?) \("), reason)
    for context, reason in (
        ("handleBrokerFenced", BROKER_FAILURE),
        ("handleBrokerUnfenced", BROKER_STARTUP),
        (r"enterControlledShutdown\[\d+\]", CONTROLLED_SHUTDOWN),
    )
)


# PartitionRegistration.maybeLogPartitionChange logs the changes, ReplicationControlManager.replay a
# new partition as a whole.
_CHANGED: Final = re.compile(r"partition change for (?P<partition>\S+) with topic ID \S+ (?P<values>.*) \(")
_CREATED: Final = re.compile(
    r"Replayed PartitionRecord for new partition (?P<partition>\S+) .*PartitionRegistration\((?P<values>.*)\)\. \("
)
_VALUE: Final = re.compile(
    r"\b(?P<name>isr|elr|leader|leaderEpoch)(?:=|: \S+ -> |: \[[^\]]*\] -> )(?P<value>\[[^\]]*\]|-?\d+)"
)


class LogReader:
    """Interprets the lines of one log in their order.

    *default_reason* is the reason for a truncation that no line explains. It depends on the
    release.
    """

    def __init__(self, default_reason: str) -> None:
        self._default_reason = default_reason
        self._reasons: dict[str, str] = {}
        # The leader epochs in LeaderAndIsr requests, by controller, correlation id and partition.
        self._received_epochs: dict[tuple[str, str, str], int] = {}

    def read(self, line: str) -> LogLine | None:
        """Return what a line means, None if it is about something else."""
        if "LeaderAndIsr request" in line:
            return self._epoch(line)
        if "runcat" in line or "fetch offset" in line or "unknown offset" in line:
            return self._truncation(line)
        if "partition change for" in line or "PartitionRegistration(" in line:
            return _partition(line)
        return _cause(line)

    def _epoch(self, line: str) -> EpochLine | None:
        if (received := _LEADER_AND_ISR_RECEIVED.search(line)) is not None:
            (partition,) = _partitions_in(received)
            self._received_epochs[received["controller"], received["id"], partition] = int(received["epoch"])
        elif (completed := _LEADER_AND_ISR_COMPLETED.search(line)) is not None:
            (partition,) = _partitions_in(completed)
            epoch = self._received_epochs.pop((completed["controller"], completed["id"], partition), None)
            return None if epoch is None else EpochLine(partition, epoch)
        return None

    def _truncation(self, line: str) -> LogLine | None:
        if (refused := _REFUSED.search(line)) is not None:
            leader = refused["leader"]
            return RefusalLine(
                refused["partition"],
                None if leader is None else int(leader),
                int(refused["end_offset"]),
                int(refused["leo"]),
            )
        for pattern, reason in _REASON_LINES:
            if (named := pattern.search(line)) is not None:
                self._reasons[named["partition"]] = reason
                return None
        if (nothing := _NO_EFFECT.search(line)) is not None:
            self._reasons.pop(nothing["partition"] or nothing["logged"], None)
        elif (cut := _TRUNCATED.search(line)) is not None:
            partition = cut["partition"] or cut["logged"]
            reason = self._reasons.pop(partition, self._default_reason)
            return TruncationLine(partition, int(cut["offset"] or cut["to"]), reason)
        return None


def _cause(line: str) -> CauseLine | None:
    for pattern, reason in _CAUSES:
        if pattern.search(line) is not None:
            return CauseLine(reason)
    for pattern, reason in _KRAFT_CAUSES:
        if (changed := pattern.search(line)) is not None:
            return CauseLine(reason, _partitions_in(changed), explains_one=True)
    if (preferred := _PREFERRED.search(line)) is not None:
        return CauseLine(PREFERRED_LEADER, _partitions_in(preferred))
    return None


def _partition(line: str) -> PartitionLine | None:
    change = _CHANGED.search(line) or _CREATED.search(line)
    if change is None:
        return None
    values = {match["name"]: match["value"] for match in _VALUE.finditer(change["values"])}

    def number(name: str) -> int | None:
        return int(values[name]) if name in values else None

    def brokers(name: str) -> tuple[int, ...] | None:
        return tuple(map(int, re.findall(r"\d+", values[name]))) if name in values else None

    return PartitionLine(
        change["partition"], number("leader"), number("leaderEpoch"), brokers("isr"), brokers("elr")
    )


def _partitions_in(line: re.Match[str]) -> frozenset[str]:
    """Return the partitions in a line, in the format of ZooKeeper or of KRaft controllers."""
    return frozenset(
        match["name"] or f"{match['topic']}-{match['number']}"
        for match in _PARTITION_NAME.finditer(line["partitions"])
    )
