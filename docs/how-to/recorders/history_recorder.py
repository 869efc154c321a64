"""Appends what a Kafka client does to a history that `harrow check` judges."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class HistoryRecorder:
    """Records one client under a process number; a client that restarts needs a new number.

    A line is one write at the end of the file, so all clients of a machine can share the file.
    """

    def __init__(self, path: str, process: int) -> None:
        self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - open as long as the client
        self._process = process
        self._assigned: set[str] = set()

    def write(self, type_: str, f: str, value: list[Any]) -> None:
        """Write the invocation of an operation, or how it ended."""
        line = {"process": self._process, "type": type_, "f": f, "value": value, "time": time.time_ns()}
        self._file.write(f"{json.dumps(line)}\n".encode())

    def rebalance(self, *, assigned: Iterable[str] = (), revoked: Iterable[str] = ()) -> None:
        """Record the partitions that a consumer has after a rebalance."""
        self._assigned = (self._assigned - {*revoked}) | {*assigned}
        for type_ in ("invoke", "ok"):
            self.write(type_, "assign", sorted(self._assigned))
