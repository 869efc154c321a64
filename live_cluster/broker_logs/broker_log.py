"""The log of a broker or a controller, followed while that writes it."""

import threading
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from harrow.live_cluster.broker_logs.controller_terms import STARTS, ControllerTerms
from harrow.live_cluster.broker_logs.log_lines import (
    CONTROLLER_FAILOVER,
    CauseLine,
    EpochLine,
    LogReader,
    PartitionLine,
    RefusalLine,
    TruncationLine,
)

_READ_BYTES: Final = 1 << 20
"""How much is read at once."""


@dataclass(frozen=True, slots=True)
class LoggedPartition:
    """A partition as a controller has it: who leads, the ISR, and who may lead although it is outside (KIP-966)."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    eligible: tuple[int, ...]


class BrokerLog:
    """What a log has told so far. Any thread may ask; each question reads what has been written since the last.

    A file that is not there yet tells nothing. A process that is started again writes on at its end.
    """

    def __init__(self, file: Path, default_reason: str) -> None:
        self._file = file
        self._reader = LogReader(default_reason)
        self._terms = ControllerTerms()
        self._lock = threading.Lock()
        self._read = 0
        self._rest = b""
        self._truncations: dict[str, TruncationLine] = {}
        self._refusals: list[RefusalLine] = []
        self._leader_epochs: dict[str, int] = {}
        self._partitions: dict[str, LoggedPartition] = {}
        # With their numbers: a cause is older than another.
        self._causes: list[tuple[int, CauseLine]] = []
        self._numbers = count(1)
        # The newest cause that has explained a change of a partition, where each explains one.
        self._explained: dict[str, int] = {}

    def truncation_reason(self, partition: str, to_offset: int) -> str:
        """Return why a log has lost what it had from an offset on; empty where it is not told. Asked again, it is not."""
        with self._lock:
            self._look()
            told = self._truncations.pop(partition, None)
        # A batch goes as a whole: what is left may end before the offset.
        return told.reason if told is not None and told.to_offset >= to_offset else ""

    def refusals(self) -> list[RefusalLine]:
        """Return the truncations that a broker has refused since this was asked last."""
        with self._lock:
            self._look()
            refusals, self._refusals = self._refusals, []
        return refusals

    def leader_epoch(self, partition: str) -> int:
        """Return the leader epoch that a broker has begun to lead or follow in last, in its present life; -1 where it does not tell."""
        with self._lock:
            self._look()
            return self._leader_epochs.get(partition, -1)

    def partitions(self) -> dict[str, LoggedPartition]:
        """Return the partitions as a controller of KRaft has them."""
        with self._lock:
            self._look()
            return dict(self._partitions)

    def resignations(self) -> list[int]:
        """Return the controller epochs from which a broker has resigned since this was asked last."""
        with self._lock:
            self._look()
            return self._terms.resignations()

    def election_reason(self, partition: str) -> str:
        """Return why a controller that has changed a partition just now has done so; empty where it does not tell."""
        with self._lock:
            self._look()
            for number, cause in reversed(self._causes):
                if cause.partitions is None or partition in cause.partitions:
                    if not cause.explains_one:
                        return cause.reason
                    explained, self._explained[partition] = self._explained.get(partition, 0), number
                    return cause.reason if number > explained else ""
            return ""

    def _look(self) -> None:
        try:
            with self._file.open("rb") as file:
                file.seek(self._read)
                while data := file.read(_READ_BYTES):
                    self._read += len(data)
                    *lines, self._rest = (self._rest + data).split(b"\n")
                    for line in lines:
                        self._take(line.decode("utf-8", "backslashreplace"))
        except FileNotFoundError:
            return

    def _take(self, line: str) -> None:
        self._terms.read(line)
        if STARTS.search(line) is not None:
            self._leader_epochs.clear()
        told = self._reader.read(line)
        if isinstance(told, TruncationLine):
            self._truncations[told.partition] = told
        elif isinstance(told, RefusalLine):
            self._refusals.append(told)
        elif isinstance(told, EpochLine):
            self._leader_epochs[told.partition] = told.leader_epoch
        elif isinstance(told, PartitionLine):
            self._change(told)
        elif told is not None:
            if told.reason == CONTROLLER_FAILOVER:
                # What it did when it was controller before is over.
                self._causes.clear()
            self._causes.append((next(self._numbers), told))

    def _change(self, line: PartitionLine) -> None:
        known = self._partitions.get(line.partition, LoggedPartition(-1, -1, (), ()))
        self._partitions[line.partition] = LoggedPartition(
            leader=known.leader if line.leader is None else line.leader,
            leader_epoch=known.leader_epoch if line.leader_epoch is None else line.leader_epoch,
            isr=known.isr if line.isr is None else line.isr,
            eligible=known.eligible if line.eligible is None else line.eligible,
        )
