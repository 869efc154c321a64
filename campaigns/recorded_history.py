"""What clients did in a recorded run: ``history.jsonl``, an operation a line, with the clients' names."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from campaigns.problem import Problem
from campaigns.recorded_run import RecordError

HISTORY: Final = "history.jsonl"
_NS_PER_US: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOperation:
    """A line of a history: what a client invoked, or what came back. Times are virtual microseconds."""

    at_us: int
    client: str
    type: str
    f: str
    value: tuple[Any, ...]
    error: str | None

    def sends(self) -> Iterator[tuple[str, int | None, str]]:
        """Yield what it sends: partition, offset (None where nobody knows it) and value."""
        for micro in self.value:
            if micro and micro[0] == "send" and len(micro) == 3:
                offset, value = micro[2] if isinstance(micro[2], list) else (None, micro[2])
                yield str(micro[1]), offset, str(value)

    def polled(self) -> Iterator[tuple[str, int | None, str]]:
        """Yield what came back of its polls: partition, offset and value."""
        for micro in self.value:
            if len(micro) == 2 and micro[0] == "poll" and isinstance(micro[1], dict):
                for partition, pairs in micro[1].items():
                    for offset, value in pairs:
                        yield partition, offset, str(value)


def read_operations(folder: Path, processes: Mapping[str, str]) -> list[RecordedOperation]:
    """Return the operations of a recorded run in the order of their times.

    *processes* are the clients' names by the number of their process; one that has none is called
    ``client 3``.

    Raises:
        RecordError: the file is missing or damaged.

    """
    path = folder / HISTORY
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise _wrong(path, "is missing: what clients did cannot be told without it") from None
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise _wrong(path, "not UTF-8") from None
    operations = [_operation(path, number, line, processes) for number, line in enumerate(lines, 1)]
    # A poll is written down when it is over, also its invocation.
    return sorted(operations, key=lambda operation: operation.at_us)


def _operation(path: Path, number: int, line: str, processes: Mapping[str, str]) -> RecordedOperation:
    try:
        found = json.loads(line)
        operation = RecordedOperation(
            at_us=int(found["time"]) // _NS_PER_US,
            client=processes.get(str(found["process"]), f"client {found['process']}"),
            type=str(found["type"]),
            f=str(found["f"]),
            value=tuple(found["value"] or ()),
            error=found.get("error"),
        )
        # What cannot be read of its value is wrong here, not when somebody wants to see it.
        _ = list(operation.sends()), list(operation.polled())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        message = 'an operation is wanted here: {"index": ..., "process": ..., "type": ..., ...}'
        raise _wrong(path, message, number) from None
    return operation


def _wrong(path: Path, message: str, line: int = 0) -> RecordError:
    return RecordError(Problem(str(path), line, 1 if line else 0, message))
