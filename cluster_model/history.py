"""Records the history of a run: the operations of clients and their results, which rules judge.

The format is that of Jepsen's Kafka workload: an operation has two lines, its invocation and its
completion. The value of a line is a list of micro-operations.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.packed_log import PackedLog
from harrow.cluster_model.row_groups import Row

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
"""The function of an operation (``f``): a send, a poll, or a transaction with several of both; the
new assignment or subscription of a consumer; a commit; or the results that an application stores
outside Kafka."""

READING_OR_WRITING: Final = frozenset({SEND, POLL, TXN})
"""The functions of operations that send or poll records: their values are micro-operations."""

MicroOperation = tuple[Any, ...]
"""``("send", partition, value)``, ``("send", partition, (offset, value))``, ``("poll",)``
or ``("poll", {partition: [(offset, value), ...]})``."""


def effect_of(application: str, number: int, value: str) -> str:
    """Return the value of an application's output record.

    It is unique, and contains the input value.
    """
    return f"{application}:{number}({value})"


def origin_of(effect: str) -> str | None:
    """Return the input value of an application's output record, or None for any other record."""
    _, parenthesis, value = effect.partition("(")
    return value[:-1] if parenthesis and value.endswith(")") else None


@dataclass(slots=True)
class Operation:
    """One line of a history: the invocation or the completion of an operation.

    ``f`` is the function, such as ``send``. ``time_us`` is virtual time; ``history.jsonl`` has
    nanoseconds. ``value`` has the micro-operations: several if ``f`` is ``txn``. `sends` and
    `polls` iterate over them. For a subscription or an assignment, ``value`` has partitions
    instead.
    """

    index: int
    process: int
    type: str
    f: str
    value: tuple[Any, ...]
    time_us: int
    error: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields, because compiled classes have no default pickling."""
        return Operation, _row(self)

    @property
    def is_completion(self) -> bool:
        """Whether the operation is a completion, not an invocation."""
        return self.type != INVOKE

    def sends(self) -> Iterator[tuple[str, int | None, str]]:
        """Yield each sent record as (partition, offset, value), with None for an unknown offset."""
        for micro in self._micro_operations():
            if micro[0] == SEND:
                _, partition, record = micro
                offset, value = record if isinstance(record, tuple) else (None, record)
                yield partition, offset, value

    def polls(self) -> Iterator[tuple[str, int, str]]:
        """Yield each polled record as (partition, offset, value)."""
        for micro in self._micro_operations():
            if micro[0] == POLL and len(micro) > 1:
                for partition, pairs in micro[1].items():
                    for offset, value in pairs:
                        yield partition, offset, value

    def _micro_operations(self) -> tuple[MicroOperation, ...]:
        return self.value if self.f in READING_OR_WRITING else ()

    def as_mapping(self) -> dict[str, Any]:
        """Return the operation in the format of ``history.jsonl``."""
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
    """Yield operations block by block, as one column for each field.

    Rows stay rows: no `Operation` objects are made from them.
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
    """The operations of a run, ordered by time.

    Operations are stored as rows, and `Operation` objects are made from them on access.
    """

    __slots__ = (
        "_newest",
        "_operation_count",
        "_process_count",
        "_unpacked_max",
        "operations",
        "process_names",
    )

    def __init__(self) -> None:
        # An operation takes several times as much memory as a row of the trace.
        unpacked_max = PackedLog.UNPACKED_MAX // 8
        self.operations: PackedLog[Operation] = PackedLog(Operation, unpacked_max=unpacked_max)
        self._newest = self.operations.newest
        self._operation_count = 0
        self._unpacked_max = unpacked_max
        self.process_names: dict[int, str] = {}
        self._process_count = 0

    def new_process(self, name: str) -> int:
        """Return the number of a new client process. A client that restarts gets a new number."""
        number = self._process_count
        self._process_count += 1
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
        self._newest.append((self._operation_count, process, type_, f, value, time_us, error))
        self._operation_count += 1
        if len(self._newest) > self._unpacked_max:
            self.operations.pack()
            self._unpacked_max = self.operations.unpacked_max

    def record_send(self, process: int, partition: str, value: str, time_us: int) -> None:
        """Record that an application sends a record."""
        self.add(process, INVOKE, SEND, ((SEND, partition, value),), time_us)

    def record_ack(self, process: int, partition: str, offset: int | None, value: str, time_us: int) -> None:
        """Record an acknowledged send.

        With ``acks=0`` the *offset* is None, because it is unknown.
        """
        record: Any = value if offset is None else (offset, value)
        self.add(process, OK, SEND, ((SEND, partition, record),), time_us)

    def record_failure(
        self, process: int, partition: str, value: str, time_us: int, error: str, *, definite: bool
    ) -> None:
        """Record a failed send. It is *definite* if the record is certainly in no log."""
        type_ = FAIL if definite else INFO
        self.add(process, type_, SEND, ((SEND, partition, value),), time_us, error)

    def record_subscription(self, process: int, partitions: Sequence[str], time_us: int) -> None:
        """Record a subscription to topics that have these partitions.

        `record_assignment` records which of the partitions the consumer then reads.
        """
        self._assign(SUBSCRIBE, process, partitions, time_us)

    def record_assignment(self, process: int, partitions: Sequence[str], time_us: int) -> None:
        """Record an assignment. The consumer may start a newly assigned partition at any offset."""
        self._assign(ASSIGN, process, partitions, time_us)

    def _assign(self, f: str, process: int, partitions: Sequence[str], time_us: int) -> None:
        value: Any = tuple(partitions)
        self.add(process, INVOKE, f, value, time_us)
        self.add(process, OK, f, value, time_us)

    def record_commit(
        self,
        process: int,
        offsets: Iterable[tuple[str, int]],
        time_us: int,
        type_: str,
        error: str | None = None,
    ) -> None:
        """Record the invocation of a commit of offsets, or its completion, depending on *type_*."""
        self.add(
            process, type_, COMMIT, tuple((COMMIT, name, offset) for name, offset in offsets), time_us, error
        )

    def record_store(
        self, process: int, partition: str, results: Sequence[tuple[int, str]], time_us: int
    ) -> None:
        """Record results stored outside Kafka, each with the offset of its input record."""
        value = tuple([(STORE, partition, result) for result in results])
        self.add(process, INVOKE, STORE, value, time_us)
        self.add(process, OK, STORE, value, time_us)

    def record_poll(
        self, process: int, records: dict[str, list[tuple[int, str]]], invoked_us: int, time_us: int
    ) -> None:
        self.add(process, INVOKE, POLL, ((POLL,),), invoked_us)
        self.add(process, OK, POLL, ((POLL, records),), time_us)
