"""What clients invoked and what came back: the history that rules judge.

The shape is that of the histories of the Jepsen Kafka workload: an invocation and
a completion apart, the value a list of micro-operations.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harrow.cluster_model.packed_log import PackedLog, Row

INVOKE: Final = "invoke"
OK: Final = "ok"
FAIL: Final = "fail"
INFO: Final = "info"

SEND: Final = "send"
POLL: Final = "poll"
TXN: Final = "txn"
ASSIGN: Final = "assign"
SUBSCRIBE: Final = "subscribe"
COMMIT: Final = "commit"
STORE: Final = "store"
"""What an operation is (``f``): one micro-operation of a kind, or a transaction of several, of both kinds;
or what a consumer reads from then on, or commits, or what its application stores outside of Kafka."""

READING_OR_WRITING: Final = frozenset({SEND, POLL, TXN})
"""Those whose values are micro-operations; others say nothing of records."""

MicroOperation = tuple[Any, ...]
"""``("send", partition, value)``, ``("send", partition, (offset, value))``, ``("poll",)``
or ``("poll", {partition: [(offset, value), ...]})``."""


def effect_of(application: str, number: int, value: str) -> str:
    """Return the value of a record that an application makes of another one: unlike any other, and it says what it was made of."""
    return f"{application}:{number}({value})"


def origin_of(effect: str) -> str | None:
    """Return the value of the record that an application has made another one of, None for what is no such record."""
    _, parenthesis, value = effect.partition("(")
    return value[:-1] if parenthesis and value.endswith(")") else None


@dataclass(slots=True)
class Operation:
    """One line of a history. ``time_us`` is virtual; a file has nanoseconds.

    ``value`` are micro-operations, of any number and mixed when ``f`` is ``txn``: `sends` and `polls` walk them.
    """

    index: int
    process: int
    type: str
    f: str
    value: tuple[MicroOperation, ...]
    time_us: int
    error: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled by its fields: compiled, it has no other way to be."""
        return Operation, _row(self)

    @property
    def is_completion(self) -> bool:
        """Whether it says what came back, rather than what was asked for."""
        return self.type != INVOKE

    def sends(self) -> Iterator[tuple[str, int | None, str]]:
        """Yield what it sends, as (partition, offset, value); the offset is None where it is not known."""
        micros: tuple[Any, ...] = (
            self.value
        )  # Of other operations they are names, which compiled code would not take.
        for micro in micros:
            if micro[0] == SEND:
                _, partition, written = micro
                offset, value = written if isinstance(written, tuple) else (None, written)
                yield partition, offset, value

    def polls(self) -> Iterator[tuple[str, int, str]]:
        """Yield what it has read, as (partition, offset, value)."""
        micros: tuple[Any, ...] = self.value
        for micro in micros:
            if micro[0] == POLL and len(micro) > 1:
                for partition, pairs in micro[1].items():
                    for offset, value in pairs:
                        yield partition, offset, value

    def as_mapping(self) -> dict[str, Any]:
        """Return the operation as it is written to ``history.jsonl``."""
        line: dict[str, Any] = {
            "index": self.index,
            "process": self.process,
            "type": self.type,
            "f": self.f,
            "value": [_micro_as_list(micro) for micro in self.value],
            "time": self.time_us * 1_000,
        }
        if self.error is not None:
            line["error"] = self.error
        return line


def columns_of(operations: Sequence[Operation]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Yield the fields of operations column by column, of many operations at a time.

    No object is made of an operation that is kept as a row.
    """
    rows: Iterator[Sequence[Row]]
    if isinstance(operations, PackedLog):
        rows = operations.blocks()
    else:
        rows = iter([[_row(operation) for operation in operations]])
    for block in rows:
        if block:
            yield tuple(zip(*block, strict=True))


def _row(operation: Operation) -> Row:
    return (
        *(operation.index, operation.process, operation.type, operation.f),
        *(operation.value, operation.time_us, operation.error),
    )


def _micro_as_list(micro: MicroOperation | str) -> list[Any] | str:
    if isinstance(micro, str):
        return micro
    if len(micro) == 2 and isinstance(micro[1], dict):
        return [micro[0], {key: [list(pair) for pair in pairs] for key, pairs in micro[1].items()}]
    return [list(part) if isinstance(part, tuple) else part for part in micro]


class History:
    """The operations of a run, in the order of their times.

    They are kept as rows, the fields of an `Operation` in their order, and made when somebody looks at them.
    """

    __slots__ = ("_newest", "_operations", "_processes", "_unpacked_max", "operations", "process_names")

    def __init__(self) -> None:
        self.operations: PackedLog[Operation] = PackedLog(Operation)
        self._newest = self.operations.newest
        self._operations = 0
        self._unpacked_max = self.operations.unpacked_max
        self.process_names: dict[int, str] = {}
        self._processes = 0

    def new_process(self, name: str) -> int:
        """Return the number of a new client process; a restarted client is a new one."""
        number = self._processes
        self._processes += 1
        self.process_names[number] = name
        return number

    def add(
        self,
        process: int,
        type_: str,
        f: str,
        value: tuple[MicroOperation, ...],
        time_us: int,
        error: str | None = None,
    ) -> None:
        self._newest.append((self._operations, process, type_, f, value, time_us, error))
        self._operations += 1
        if len(self._newest) > self._unpacked_max:
            self.operations.pack()

    def send_invoked(self, process: int, partition: str, value: str, time_us: int) -> None:
        """A client hands a record to its producer."""
        self.add(process, INVOKE, SEND, ((SEND, partition, value),), time_us)

    def send_acked(self, process: int, partition: str, offset: int | None, value: str, time_us: int) -> None:
        """The producer reports success; the offset is unknown with ``acks=0``."""
        written: Any = value if offset is None else (offset, value)
        self.add(process, OK, SEND, ((SEND, partition, written),), time_us)

    def send_failed(
        self, process: int, partition: str, value: str, time_us: int, error: str, *, definite: bool
    ) -> None:
        """The producer reports an error; *definite* when the record is surely in no log."""
        type_ = FAIL if definite else INFO
        self.add(process, type_, SEND, ((SEND, partition, value),), time_us, error)

    def subscribed(self, process: int, partitions: Sequence[str], time_us: int) -> None:
        """A consumer subscribes to topics, which have these partitions; which of them it reads its group says (`assigned`)."""
        self._assign(SUBSCRIBE, process, partitions, time_us)

    def assigned(self, process: int, partitions: Sequence[str], time_us: int) -> None:
        """A consumer reads these partitions from now on. Of those that it did not read before its position may be anywhere."""
        self._assign(ASSIGN, process, partitions, time_us)

    def _assign(self, f: str, process: int, partitions: Sequence[str], time_us: int) -> None:
        value: Any = tuple(partitions)
        self.add(process, INVOKE, f, value, time_us)
        self.add(process, OK, f, value, time_us)

    def committed(
        self,
        process: int,
        offsets: Iterable[tuple[str, int]],
        time_us: int,
        type_: str,
        error: str | None = None,
    ) -> None:
        """A consumer commits up to where its group has read partitions, or is told what came of that."""
        self.add(
            process, type_, COMMIT, tuple((COMMIT, name, offset) for name, offset in offsets), time_us, error
        )

    def stored(self, process: int, partition: str, results: Sequence[tuple[int, str]], time_us: int) -> None:
        """An application has stored the results of records outside of Kafka, each with its record's offset."""
        value = tuple([(STORE, partition, result) for result in results])
        self.add(process, INVOKE, STORE, value, time_us)
        self.add(process, OK, STORE, value, time_us)

    def polled(
        self, process: int, records: dict[str, list[tuple[int, str]]], invoked_us: int, time_us: int
    ) -> None:
        self.add(process, INVOKE, POLL, ((POLL,),), invoked_us)
        self.add(process, OK, POLL, ((POLL, records),), time_us)
