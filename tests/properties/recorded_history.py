"""Reads and changes histories in the simplest way: each function walks over the whole history."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from tests.properties.correct_log import History, Key, Line, Value

T = TypeVar("T")
Pair = list[Any]
"""An offset and the value polled there, as in the line."""


class Draw(Protocol):
    """Choose one of several: ``Random(seed).choice``, or a draw of Hypothesis."""

    def __call__(self, options: Sequence[T], /) -> T: ...


@dataclass(eq=False)
class Operation:
    """An invocation and its completion. Changing these lines changes the history."""

    number: int
    invocation: Line
    completion: Line | None = None

    @property
    def process(self) -> int:
        process = self.invocation["process"]
        assert isinstance(process, int)
        return process

    @property
    def f(self) -> str:
        return str(self.invocation["f"])

    @property
    def type(self) -> str:
        return "info" if self.completion is None else str(self.completion["type"])

    @property
    def micros(self) -> list[list[Any]]:
        """The micro-operations with their known results."""
        if self.f not in ("send", "poll", "txn"):
            return []
        micros: list[list[Any]] = (self.completion or self.invocation)["value"]
        return micros

    @property
    def sends(self) -> list[tuple[str, Value, int | None]]:
        """Key, value and known offset of all sends."""
        return [parse_send(micro) for micro in self.micros if micro[0] == "send"]

    @property
    def sent_values(self) -> list[tuple[str, Value]]:
        return [(key, value) for key, value, _ in self.sends]

    @property
    def sent_keys(self) -> set[str]:
        return {key for key, _, _ in self.sends}

    @property
    def lines(self) -> list[Line]:
        return [self.invocation, *([self.completion] if self.completion else [])]

    @property
    def only_sends(self) -> bool:
        return bool(self.micros) and all(micro[0] == "send" for micro in self.micros)

    @property
    def rebalanced(self) -> set[str]:
        log = (self.completion or {}).get("rebalance-log", [])
        return {str(key) for entry in log for key in entry["keys"]}

    def poll_lists(self, key: str | None = None) -> list[tuple[str, list[Pair]]]:
        """Return the lists of polled records of one or all keys, in the order of the polls."""
        polled = [micro[1] for micro in self.micros if micro[0] == "poll" and len(micro) == 2]
        return [(k, pairs) for records in polled for k, pairs in records.items() if key in (None, k)]

    def polled(self, key: str) -> list[Pair]:
        return [pair for _, pairs in self.poll_lists(key) for pair in pairs]

    def polled_keys(self) -> list[str]:
        return list(dict.fromkeys(key for key, pairs in self.poll_lists() if pairs))


def parse_send(micro: list[Any]) -> tuple[str, Value, int | None]:
    _, key, record = micro
    return (str(key), record[1], record[0]) if isinstance(record, list) else (str(key), record, None)


@dataclass
class Recording:
    """The operations of a history, without its faults, and facts that follow by definition.

    ``order`` is the version order of each key as (offset, value), ``places`` the index of a value
    in that order, ``read`` the values in ok polls, ``sender`` the operation that sent a value.
    """

    history: History
    operations: list[Operation] = field(default_factory=list)
    read: dict[str, set[Value]] = field(default_factory=lambda: defaultdict(set))
    order: dict[str, list[tuple[int, Value]]] = field(default_factory=dict)
    sender: dict[tuple[str, Value], Operation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.operations = list(operations(self.history))
        for operation in self.operations:
            self.sender.update({(key, value): operation for key, value, _ in operation.sends})
            if operation.type == "ok":
                for key, pairs in operation.poll_lists():
                    self.read[key].update(value for _, value in pairs)
        records_of: dict[str, dict[int, Value]] = defaultdict(dict)
        for operation in self.operations:
            for key, pairs in operation.poll_lists():
                records_of[key].update((offset, value) for offset, value in pairs)
            if self.committed(operation):
                for key, value, offset in operation.sends:
                    if offset is not None:
                        records_of[key][offset] = value
        self.order = {key: sorted(records.items()) for key, records in records_of.items()}
        self.places = {
            (key, value): at for key, records in self.order.items() for at, (_, value) in enumerate(records)
        }

    def committed(self, operation: Operation) -> bool:
        if operation.type == "info":
            return any(value in self.read[key] for key, value, _ in operation.sends)
        return operation.type == "ok"

    def read_records(self, key: str) -> list[tuple[int, Value]]:
        """Return the records of a key in ok polls, in their version order.

        In a correct history they are the first ones of that order, because polls skip nothing.
        """
        return [record for record in self.order.get(key, ()) if record[1] in self.read[key]]

    def is_all_read(self, key: str) -> bool:
        """Return whether all committed values of a key were polled.

        If so, the next record that is appended is also the next one in the version order.
        """
        ordered = {value for _, value in self.order.get(key, ())}
        committed = {
            value
            for operation in self.operations
            if self.committed(operation)
            for k, value, _ in operation.sends
            if k == key
        }
        return ordered | committed <= self.read[key]

    def next_offset(self, key: str) -> int:
        """Return the offset after the highest offset of a key in any line."""
        offsets = [offset for operation in self.operations for offset, _ in operation.polled(key)]
        offsets += [
            offset
            for operation in self.operations
            for k, _, offset in operation.sends
            if k == key and offset is not None
        ]
        return max(offsets, default=-1) + 1

    def key_as_sent(self, key: str) -> Key:
        """Return a key as in sends, where a number stays a number. In polls it is a string."""
        for operation in self.operations:
            for micro in operation.micros:
                if micro[0] == "send" and str(micro[1]) == key:
                    name: Key = micro[1]
                    return name
        return key

    def fresh_process(self) -> int:
        return max((operation.process for operation in self.operations), default=0) + 1

    def sessions(self, key: str | None = None) -> Iterator[tuple[str, list[Operation]]]:
        """Yield each key with ok operations that polled it during one assignment of a process."""
        for process in sorted({operation.process for operation in self.operations}):
            current: dict[str, list[Operation]] = {}
            for operation in self.operations:
                if operation.process != process:
                    continue
                if operation.f in ("assign", "subscribe") and operation.completion is not None:
                    assigned = {str(k) for k in operation.completion["value"]}
                    yield from ((k, current.pop(k)) for k in list(current) if k not in assigned)
                for k in operation.polled_keys() if operation.type == "ok" else ():
                    current.setdefault(k, []).append(operation)
            yield from ((k, session) for k, session in current.items() if key in (None, k))

    def certain_sender(self, key: str, value: Value) -> Operation | None:
        """Return the operation that sent a value, unless its outcome is unknown."""
        sender = self.sender.get((key, value))
        is_certain = sender is not None and sender.completion is not None and self.committed(sender)
        return sender if is_certain else None

    def edges(self) -> dict[int, list[tuple[int, str]]]:
        """Return which operations depend on each operation, and how.

        An operation depends on the one that wrote the record before its own (``ww``), and on the
        ones whose records it polled (``wr``).
        """
        edges: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for key, records in self.order.items():
            senders = [self.certain_sender(key, value) for _, value in records]
            for one, other in pairwise(senders):
                if one is not None and other is not None and one is not other:
                    edges[one.number].append((other.number, "ww"))
        for operation in self.operations:
            for key, pairs in operation.poll_lists():
                writers = [self.certain_sender(key, value) for _, value in pairs]
                for writer in writers:
                    if writer is not None and writer is not operation:
                        edges[writer.number].append((operation.number, "wr"))
        return edges


def operations(history: History) -> list[Operation]:
    """Match completions to invocations.

    If a process has several operations in flight, their sends tell them apart.
    """
    all_operations: list[Operation] = []
    pending: dict[int, list[Operation]] = defaultdict(list)
    for line in history:
        process = line["process"]
        if not isinstance(process, int):
            continue
        if line["type"] == "invoke":
            all_operations.append(Operation(len(all_operations), line))
            pending[process].append(all_operations[-1])
            continue
        same = [
            operation
            for operation in pending[process]
            if operation.f == line["f"] and operation.sent_values == Operation(0, line).sent_values
        ]
        same[0].completion = line
        pending[process].remove(same[0])
    return all_operations


def reachable(edges: dict[int, list[tuple[int, str]]], start: int, by: Iterable[str]) -> set[int]:
    """Return the direct and indirect dependents of an operation."""
    kinds, dependents, pending = set(by), set[int](), [start]
    while pending:
        for target, kind in edges.get(pending.pop(), ()):
            if kind in kinds and target not in dependents:
                dependents.add(target)
                pending.append(target)
    return dependents


# Changes


def operation_lines(process: int, f: str, invoked: Any, completed: Any, type_: str = "ok") -> list[Line]:
    return [
        {"process": process, "type": "invoke", "f": f, "value": invoked},
        {"process": process, "type": type_, "f": f, "value": completed},
    ]


def read_lines(process: int, key: str, records: Iterable[tuple[int, Value]], type_: str = "ok") -> list[Line]:
    """Return the lines of a poll. A poll that is not ok belongs to a transaction."""
    polled = [["poll", {key: [list(record) for record in records]}]]
    return operation_lines(process, "poll" if type_ == "ok" else "txn", [["poll"]], polled, type_)


def send_lines(
    process: int, key: Key, value: Value, offset: int | None = None, type_: str = "ok"
) -> list[Line]:
    completed = value if offset is None else [offset, value]
    return operation_lines(process, "send", [["send", key, value]], [["send", key, completed]], type_)


def weave(history: History, draw: Draw, *strands: list[Line], after: int = 0) -> None:
    """Insert operations of new processes into the history, one strand after the other."""
    at = after
    for strand in strands:
        at = draw(range(at, len(history) + 1))
        history[at:at] = strand
        at += len(strand)
    number(history)


def weave_reads(recording: Recording, draw: Draw, key: str, *strands: list[Line]) -> None:
    """Insert polls of a key into the history, after all sends to it."""
    sends = [
        line for operation in recording.operations if key in operation.sent_keys for line in operation.lines
    ]
    last = max((line["index"] for line in sends), default=-1)
    weave(recording.history, draw, *strands, after=last + 1)


def number(history: History) -> None:
    for index, line in enumerate(history):
        line["index"] = index
        line["time"] = 1_000 * index


def remove(history: History, lines: Sequence[Line]) -> None:
    history[:] = [line for line in history if all(line is not removed for removed in lines)]


def drop_polled(recording: Recording, key: str, drops: Callable[[Pair], bool]) -> None:
    """Remove certain records of a key from all polls."""
    for operation in recording.operations:
        for _, pairs in operation.poll_lists(key):
            pairs[:] = [pair for pair in pairs if not drops(pair)]


def shift_offsets(recording: Recording, key: str, start: int, by: int) -> None:
    """Leave a gap: shift the records from an offset on."""
    for operation in recording.operations:
        for _, pairs in operation.poll_lists(key):
            for pair in pairs:
                pair[0] += by if pair[0] >= start else 0
        for micro in operation.micros:
            if micro[0] == "send" and str(micro[1]) == key and isinstance(micro[2], list):
                micro[2][0] += by if micro[2][0] >= start else 0
