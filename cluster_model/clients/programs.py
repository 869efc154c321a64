"""Defines applications as programs: generators of steps, in the order of their real code.

A program yields a step and receives its answer. It touches no client. Two drivers take the steps.
In the model `harrow.cluster_model.clients.application.Application` answers when a client calls
back. In a process on real brokers
`harrow.live_cluster.clients.application_worker.ApplicationWorker` answers when a library call
returns. So an application does the same things in the same order in both. Differences
between clients belong in a driver.

The driver announces each step with a name. A fault can hold the application there, and then kill it
or let it continue. The answer to a failed step is the name of the error in Kafka, otherwise `NONE`.
"""

# Plain Python: the programs are generators that receive the answers to their steps.

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, ClassVar, Final

from harrow.cluster_model.errors import NONE
from harrow.cluster_model.history import FAIL, INFO, OK
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    AUTO_COMMITTED,
    EXACTLY_ONCE,
    HIGHEST_FINISHED,
    IDEMPOTENT_SINK,
    WATERMARK,
    ApplicationSpec,
)

POLL: Final = "poll"
BEGIN: Final = "begin"
PROCESS: Final = "process"
SEND: Final = "send"
FLUSH: Final = "flush"
SEND_OFFSETS: Final = "send_offsets"
COMMIT: Final = "commit"
ABORT: Final = "abort"
STORE: Final = "store"
"""The names of steps at which an application can be held."""

AUTO: Final = "auto"
AFTER: Final = "after"
BEFORE: Final = "before"
NEVER: Final = "never"
"""When a consumer's application commits.

By ``enable.auto.commit``, after or before processing the records of a poll, or never.
"""

SEND_FAILED: Final = "SEND_FAILED"
"""A record was not acknowledged, as the callback of KafkaProducer.send reports."""
CONSUMER_FAILED: Final = "CONSUMER_FAILED"
"""The consumer cannot be a member of its group any longer. A driver ends the program with this."""

Record = tuple[str, int, str]
"""Partition, offset, value."""
Records = Mapping[str, list[tuple[int, str]]]
"""Offsets and values by partition."""


# The steps


@dataclass(frozen=True)
class ProgramStep:
    """A step that a driver takes for a program. An application can be held at a named step."""

    name: ClassVar[str]

    def __init_subclass__(cls, name: str = "") -> None:
        cls.name = name


class SubscribeToSource(ProgramStep):
    """Join the group."""


class PollRecords(ProgramStep, name=POLL):
    """Wait for records. The answer is None if there are none and the application is to close."""


class SlowDown(ProgramStep):
    """Spend the time that the fault `slow_poll` adds to each poll."""


class ProcessRecord(ProgramStep, name=PROCESS):
    """Spend the processing time of a record."""


@dataclass(frozen=True)
class ProcessRecords(ProgramStep):
    """Spend the processing time of a poll's records, and report them as processed."""

    records: Records


@dataclass(frozen=True)
class WriteResult(ProgramStep, name=SEND):
    """Send the result of a record with this value."""

    value: str


class FlushResults(ProgramStep, name=FLUSH):
    """Wait until every sent record has an outcome.

    The answer is `SEND_FAILED` if any has failed since the last flush.
    """


@dataclass(frozen=True)
class CommitOffsets(ProgramStep, name=COMMIT):
    """Commit *offsets*, by default the polled positions (commitSync). The answer is the error."""

    offsets: Mapping[str, int] | None = None


class RewindToCommitted(ProgramStep):
    """Continue from the committed offsets of the group."""


class CloseClients(ProgramStep):
    """Flush, leave the group and close both clients."""


class InitTransactions(ProgramStep):
    """Fence former sessions. The driver repeats this, a commit or an abort after a timeout."""


class OpenTransaction(ProgramStep, name=BEGIN):
    """Begin a transaction. The answer is the error."""


class SendOffsets(ProgramStep, name=SEND_OFFSETS):
    """Add the polled positions to the transaction. The answer is the error."""


class CommitOpenTransaction(ProgramStep, name=COMMIT):
    """Commit the transaction. The answer is the error."""


class AbortOpenTransaction(ProgramStep, name=ABORT):
    """Abort the transaction. The answer is the error."""


class HasProducerFailed(ProgramStep):
    """Ask whether the producer has failed for good."""


class MustAbort(ProgramStep):
    """Ask whether an error leaves no choice but to abort the transaction."""


class IsTransactionOpen(ProgramStep):
    """Ask whether an open transaction accepts records."""


class WaitForRecord(ProgramStep):
    """Wait until the next record of the workload is due.

    The answer is False once the workload is over.

    Records that become due while the program waits for something else, or while its process is
    paused, are skipped.
    """


class SendNextRecord(ProgramStep):
    """Send the record that is due."""


@dataclass(frozen=True)
class NoteOffsets(ProgramStep):
    """Record the outcome of the offsets in the transaction in the history, if there are any."""

    outcome: str
    error: str


@dataclass(frozen=True)
class StoreResult(ProgramStep, name=STORE):
    """Store the result of a record, together with its offset, outside of Kafka."""

    record: Record


class PrepareRecords(ProgramStep, name=PROCESS):
    """Spend the time that `slow_poll` adds, before workers get the records."""


@dataclass(frozen=True)
class HandOut(ProgramStep):
    """Hand records to workers, and wait until a worker has taken the last record.

    The answer is the offsets to commit.
    """

    records: Records


class ForgetHandedOut(ProgramStep):
    """Forget which handed-out records are finished and which are not."""


Program = Generator[ProgramStep, Any, str]
"""A generator of steps that returns the error that ended it."""
ProgramPart = Generator[ProgramStep, Any, None]


# The programs


class ApplicationProgram(ABC):
    """An application from its start to its end."""

    delivery: ClassVar[str]
    steps: ClassVar[tuple[str, ...]]
    """The names of its steps."""
    commits_itself: ClassVar[bool] = False
    """Whether the consumer commits polled positions automatically."""
    begins_at_store: ClassVar[bool] = False
    """Whether the application starts where its store ends, whatever its group has committed."""

    def __init__(self, *, rewinds: bool) -> None:
        self._rewinds = rewinds

    def run(self) -> Program:
        """Subscribe, then handle the records of each poll."""
        yield SubscribeToSource()
        while True:
            records: Records | None = yield PollRecords()
            if records is None:
                yield CloseClients()
                return NONE
            error: str = yield from self._handle(records)
            if error != NONE:
                return error

    @abstractmethod
    def _handle(self, records: Records) -> Program:
        """Handle the records of a poll. Return an error only if it ends the application."""

    def _write_each(self, records: Records) -> ProgramPart:
        """Process the records in order, and write the result of each."""
        yield SlowDown()
        for _, _, value in flat_records(records):
            yield ProcessRecord()
            yield WriteResult(value)

    def _rewind(self) -> ProgramPart:
        if self._rewinds:
            yield RewindToCommitted()


class ExactlyOnce(ApplicationProgram):
    """Consume, transform, produce: one transaction for results and offsets (KIP-98, KIP-447).

    The application aborts a failed transaction, and returns to the committed offsets. It ends when
    its producer has failed for good.
    """

    delivery = EXACTLY_ONCE
    steps = (POLL, BEGIN, PROCESS, SEND, SEND_OFFSETS, COMMIT, ABORT)

    def run(self) -> Program:
        # First end the transaction that an earlier session left open: it may have offsets to
        # commit.
        error: str = yield InitTransactions()
        return (yield from super().run()) if error == NONE else error

    def _handle(self, records: Records) -> Program:
        error: str = yield OpenTransaction()
        if error == NONE:
            yield from self._write_each(records)
            error = yield SendOffsets()
        if error == NONE:
            error = yield CommitOpenTransaction()
        if error != NONE and not (yield HasProducerFailed()):
            yield AbortOpenTransaction()
            yield from self._rewind()
        has_failed: bool = yield HasProducerFailed()
        # The offsets take effect only if their transaction does.
        yield NoteOffsets(OK if error == NONE else INFO if has_failed else FAIL, error)
        return error if has_failed else NONE


class AtLeastOnce(ApplicationProgram):
    """Commits its positions once all results of a poll are acknowledged."""

    delivery = AT_LEAST_ONCE
    steps = (POLL, PROCESS, SEND, FLUSH, COMMIT)

    def _handle(self, records: Records) -> Program:
        yield from self._write_each(records)
        error: str = yield FlushResults()
        if error == NONE:
            # If the commit fails, the next one includes its offsets, or another owner reads again.
            yield CommitOffsets()
        else:
            yield from self._rewind()
        return NONE


class AtMostOnce(ApplicationProgram):
    """Commits before it processes, and skips records whose commit failed."""

    delivery = AT_MOST_ONCE
    steps = (POLL, COMMIT, PROCESS, SEND)

    def _handle(self, records: Records) -> Program:
        error: str = yield CommitOffsets()
        if error == NONE:
            yield from self._write_each(records)
        return NONE


class AutoCommitted(ApplicationProgram):
    """Processes the records of polls. Its consumer commits periodically, even after a failure."""

    delivery = AUTO_COMMITTED
    steps = (POLL, PROCESS, SEND)
    commits_itself = True

    def _handle(self, records: Records) -> Program:
        yield from self._write_each(records)
        return NONE


class IdempotentSink(ApplicationProgram):
    """Stores each result together with the offset of its record, and starts where its store ends.

    Its group decides which partitions it reads, but not from which offset.
    """

    delivery = IDEMPOTENT_SINK
    steps = (POLL, PROCESS, STORE)
    begins_at_store = True

    def _handle(self, records: Records) -> Program:
        yield SlowDown()
        for record in flat_records(records):
            yield ProcessRecord()
            yield StoreResult(record)
        return NONE


class ParallelWorkers(ApplicationProgram):
    """Hands records to workers, and commits the lowest unfinished offset.

    Workers finish in any order. It polls again once a worker is free. The result of a finished
    record may not be acknowledged yet, so it flushes, and then commits the records that were
    finished before the flush.
    """

    delivery = WATERMARK
    steps = (POLL, PROCESS, FLUSH, COMMIT)

    def _handle(self, records: Records) -> Program:
        yield PrepareRecords()
        offsets: Mapping[str, int] = yield HandOut(records)
        error: str = yield FlushResults()
        if error != NONE:
            yield ForgetHandedOut()
            yield from self._rewind()
        elif offsets:
            yield CommitOffsets(offsets)
        return NONE


class HighestFinished(ParallelWorkers):
    """Commits the highest finished offset instead, and so also unfinished offsets below it."""

    delivery = HIGHEST_FINISHED


APPLICATIONS: Final[Mapping[str, type[ApplicationProgram]]] = {
    kind.delivery: kind
    for kind in (
        *(ExactlyOnce, AtLeastOnce, AtMostOnce, AutoCommitted, IdempotentSink),
        *(ParallelWorkers, HighestFinished),
    )
}
"""The program of each `delivery` in a campaign."""

STEPS: Final = tuple(dict.fromkeys(step for kind in APPLICATIONS.values() for step in kind.steps))
"""The names of all their steps."""


# The programs of consumers and producers


def read_for_group(commit: str) -> Program:
    """Process the records of each poll, and commit before, after or not at all."""
    yield SubscribeToSource()
    while True:
        records: Records | None = yield PollRecords()
        if records is None:
            yield CloseClients()
            return NONE
        # If the commit fails, another member may process the records.
        if commit == BEFORE and (yield CommitOffsets()) != NONE:
            continue
        yield ProcessRecords(records)
        if commit == AFTER:
            yield CommitOffsets()


def generate_records() -> Program:
    """Send each record of the workload."""
    wait, send = WaitForRecord(), SendNextRecord()
    while (yield wait):
        yield send
    return NONE


def generate_transactions(records_of_each: int, aborts: Iterator[bool]) -> Program:
    """Send the records of the workload in transactions; *aborts* says which transactions to abort.

    It aborts a transaction that fails. Once its producer has failed for good, for example because a
    successor has fenced it, it sends nothing.
    """
    yield from _abort_after((yield InitTransactions()))
    sent, is_aborted = 0, False
    while (yield WaitForRecord()):
        if (yield MustAbort()):
            yield from _abort_after((yield AbortOpenTransaction()))
            continue
        if not (yield IsTransactionOpen()):
            error: str = yield OpenTransaction()
            if error != NONE:
                continue
            sent, is_aborted = 0, next(aborts)
        yield SendNextRecord()
        sent += 1
        if sent >= records_of_each:
            yield from _end_transaction(is_aborted=is_aborted)
    if (yield MustAbort()):
        yield from _abort_after((yield AbortOpenTransaction()))
    elif (yield IsTransactionOpen()):
        yield from _end_transaction(is_aborted=is_aborted)
    return NONE


def _end_transaction(*, is_aborted: bool) -> ProgramPart:
    yield from _abort_after((yield AbortOpenTransaction() if is_aborted else CommitOpenTransaction()))


def _abort_after(error: str) -> ProgramPart:
    """Abort the transaction if a failed call leaves no choice."""
    while error != NONE and (yield MustAbort()):
        error = yield AbortOpenTransaction()


def transactions_to_abort(every: int, begun: int = 0) -> Iterator[bool]:
    """Yield True for one transaction in *every*, after *begun* earlier transactions."""
    for number in count(begun + 1):
        yield every > 0 and number % every == 0


# Code that both drivers use


class HoldPoint:
    """The step at which an application is to be held, and its reported steps."""

    __slots__ = ("_reported", "hold")

    def __init__(self) -> None:
        self.hold: tuple[str, int] | None = None
        """A step, and how many more times the application passes it."""
        self._reported: set[str] = set()

    def should_report(self, step: str) -> bool:
        """Return whether to report a step. A repeated step is reported only once per poll."""
        if step == POLL:
            self._reported.clear()
        if step in self._reported:
            return False
        self._reported.add(step)
        return True

    def is_awaited(self, step: str) -> bool:
        return self.hold is not None and self.hold[0] == step

    def holds(self, step: str) -> bool:
        """Arrive at a step. Return whether the application is held there."""
        if self.hold is None or self.hold[0] != step:
            return False
        passes = self.hold[1]
        self.hold = (step, passes - 1) if passes else None
        return not passes


class WorkerRecords:
    """Records that an application's workers process, and records that wait for a worker."""

    def __init__(self, delivery: str) -> None:
        self._commits_highest = delivery == HIGHEST_FINISHED
        self.waiting: deque[Record] = deque()
        self.busy = 0
        # The unfinished offsets of each partition, in order, and its highest finished offset.
        self._unfinished_offsets: dict[str, dict[int, None]] = {}
        self._highest_finished: dict[str, int] = {}

    def add(self, records: Records) -> None:
        for record in flat_records(records):
            self._unfinished_offsets.setdefault(record[0], {})[record[1]] = None
            self.waiting.append(record)

    def begin(self) -> tuple[Record, dict[int, None] | None]:
        """Give a worker the next record. The worker passes it to `finish` afterwards."""
        self.busy += 1
        record = self.waiting.popleft()
        return record, self._unfinished_offsets.get(record[0])

    def finish(self, record: Record, unfinished: dict[int, None] | None) -> None:
        """Take back a finished record. It counts unless its partition was forgotten meanwhile."""
        partition, offset, _ = record
        self.busy -= 1
        if unfinished is not None and unfinished is self._unfinished_offsets.get(partition):
            unfinished.pop(offset, None)
            self._highest_finished[partition] = max(offset, self._highest_finished.get(partition, offset))

    def is_done(self) -> bool:
        return not self.busy and not self.waiting

    def to_commit(self, consumed: Mapping[str, int]) -> dict[str, int]:
        """Return the offsets to commit, where *consumed* are the polled positions."""
        if self._commits_highest:
            return {name: offset + 1 for name, offset in self._highest_finished.items()}
        return {
            name: next(iter(self._unfinished_offsets.get(name, ())), offset)
            for name, offset in consumed.items()
        }

    def forget_all(self) -> None:
        self.forget(self._unfinished_offsets)

    def forget(self, partitions: Iterable[str]) -> None:
        """Leave waiting records to the next owner of the partitions.

        Workers finish their records.
        """
        for name in tuple(partitions):
            self._unfinished_offsets.pop(name, None)
            self._highest_finished.pop(name, None)
        self.waiting = deque(record for record in self.waiting if record[0] in self._unfinished_offsets)


class ResultStore:
    """The store of an application outside of Kafka, which its instances share.

    Each result is stored in one transaction with the offset after its record. A second result for a
    record is refused, because it comes from an instance that no longer owns the partition.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def next_offset(self, partition: str) -> int | None:
        """Return the offset after the last result; None if there is no result yet."""
        return self._next.get(partition)

    def add(self, partition: str, offset: int) -> bool:
        """Store the result of a record. Return whether the store accepted it."""
        if offset < self._next.get(partition, 0):
            return False
        self._next[partition] = offset + 1
        return True


def application_program(spec: ApplicationSpec) -> ApplicationProgram:
    """Return the program of an application."""
    return APPLICATIONS[spec.delivery](rewinds=spec.rewinds)


def flat_records(records: Records) -> Iterator[Record]:
    for partition, pairs in records.items():
        for offset, value in pairs:
            yield partition, offset, value
