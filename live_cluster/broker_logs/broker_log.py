"""Reads the log of a running broker or controller."""

import threading
from itertools import count
from pathlib import Path
from typing import Final

from harrow.cluster_model.controller.control_plane import CONTROLLER_FAILOVER
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.broker_logs.controller_terms import BROKER_START, ControllerTerms
from harrow.live_cluster.broker_logs.log_lines import (
    CauseLine,
    EpochLine,
    LogReader,
    PartitionLine,
    RefusalLine,
    TruncationLine,
)

_READ_BYTES: Final = 1 << 20
"""The size of one read."""


@dataclass(frozen=True, slots=True)
class LoggedPartition:
    """A partition in a controller's log, with its eligible leader replicas (KIP-966)."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    eligible: tuple[int, ...]


class BrokerLog:
    """The contents of a log. Any thread may call; each call first reads the lines that are new.

    The file may not exist yet. A process that is restarted appends to the file.
    """

    def __init__(self, file: Path, default_reason: str) -> None:
        self._file = file
        self._reader = LogReader(default_reason)
        self._terms = ControllerTerms()
        self._lock = threading.Lock()
        self._position = 0
        self._incomplete_line = b""
        self._truncations: dict[str, TruncationLine] = {}
        self._refusals: list[RefusalLine] = []
        self._leader_epochs: dict[str, int] = {}
        self._partitions: dict[str, LoggedPartition] = {}
        # The lines that explain elections, numbered in the order of the log.
        self._causes: list[tuple[int, CauseLine]] = []
        self._numbers = count(1)
        # For each partition, the newest cause that has explained a change of it, of those causes
        # that explain only one.
        self._explained: dict[str, int] = {}

    def truncation_reason(self, partition: str, to_offset: int) -> str:
        """Return the reason for a truncation, only once; empty if the reason is unknown."""
        with self._lock:
            self._read_new_lines()
            truncation = self._truncations.pop(partition, None)
        # Truncation removes whole batches, so the log may end before the logged offset.
        return truncation.reason if truncation is not None and truncation.to_offset >= to_offset else ""

    def refusals(self) -> list[RefusalLine]:
        """Return the truncations that a broker has refused since the last call."""
        with self._lock:
            self._read_new_lines()
            refusals, self._refusals = self._refusals, []
        return refusals

    def leader_epoch(self, partition: str) -> int:
        """Return the last leader epoch that the current process logged for a partition, or -1."""
        with self._lock:
            self._read_new_lines()
            return self._leader_epochs.get(partition, -1)

    def partitions(self) -> dict[str, LoggedPartition]:
        """Return the partitions in the log of a KRaft controller."""
        with self._lock:
            self._read_new_lines()
            return dict(self._partitions)

    def resignations(self) -> list[int]:
        """Return the controller epochs from which a broker has resigned since the last call."""
        with self._lock:
            self._read_new_lines()
            return self._terms.resignations()

    def is_active_in(self, controller_epoch: int) -> bool:
        """Return whether the node has become the active controller in an epoch, and still is."""
        with self._lock:
            self._read_new_lines()
            return self._terms.is_active_in(controller_epoch)

    def election_reason(self, partition: str) -> str:
        """Return why a controller has just changed a partition; empty if the log does not tell."""
        with self._lock:
            self._read_new_lines()
            for number, cause in reversed(self._causes):
                if cause.partitions is None or partition in cause.partitions:
                    if not cause.explains_one:
                        return cause.reason
                    explained, self._explained[partition] = self._explained.get(partition, 0), number
                    return cause.reason if number > explained else ""
            return ""

    def _read_new_lines(self) -> None:
        try:
            with self._file.open("rb") as file:
                file.seek(self._position)
                while data := file.read(_READ_BYTES):
                    self._position += len(data)
                    *lines, self._incomplete_line = (self._incomplete_line + data).split(b"\n")
                    for line in lines:
                        self._handle_line(line.decode("utf-8", "backslashreplace"))
        except FileNotFoundError:
            return

    def _handle_line(self, line: str) -> None:
        self._terms.read(line)
        if BROKER_START.search(line) is not None:
            self._leader_epochs.clear()
        entry = self._reader.read(line)
        if isinstance(entry, TruncationLine):
            self._truncations[entry.partition] = entry
        elif isinstance(entry, RefusalLine):
            self._refusals.append(entry)
        elif isinstance(entry, EpochLine):
            self._leader_epochs[entry.partition] = entry.leader_epoch
        elif isinstance(entry, PartitionLine):
            self._update_partition(entry)
        elif entry is not None:
            if entry.reason == CONTROLLER_FAILOVER:
                # The causes of the controller's earlier terms explain no changes from now on.
                self._causes.clear()
            self._causes.append((next(self._numbers), entry))

    def _update_partition(self, line: PartitionLine) -> None:
        before = self._partitions.get(line.partition, LoggedPartition(-1, -1, (), ()))
        self._partitions[line.partition] = LoggedPartition(
            leader=before.leader if line.leader is None else line.leader,
            leader_epoch=before.leader_epoch if line.leader_epoch is None else line.leader_epoch,
            isr=before.isr if line.isr is None else line.isr,
            eligible=before.eligible if line.eligible is None else line.eligible,
        )
