"""Defines applications as programs: generators of steps, in the order of their real code.

A program yields a step and receives the answer to that step. It touches no client. Two drivers take
the steps. In the model `harrow.cluster_model.clients.application.Application` answers when a client
calls back. In a process on real brokers
`harrow.live_cluster.clients.application_worker.ApplicationWorker` answers when a library call
returns. So an application does the same things in the same order with both drivers. What differs
between the clients belongs in a driver.

The driver announces each step that has a name. A fault can hold the application at such a step, and
then kill the application or let it continue. If a step can fail, its answer is the name of the
error in Kafka, or `NONE` if it succeeded.
"""

# Plain Python: this file is not compiled, because the programs are generators that receive the
# answers to their steps.

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
"""When an application that consumes commits its offsets.

The consumer commits automatically (``enable.auto.commit``), or the application commits after or
before it processes the records of a poll, or offsets are never committed.
"""

SEND_FAILED: Final = "SEND_FAILED"
"""The error of a flush: the callback of KafkaProducer.send reported a failure for a record."""
CONSUMER_FAILED: Final = "CONSUMER_FAILED"
"""The error with which a driver ends a program whose consumer can no longer be in its group."""

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
    """Wait for records. The answer is None if there are none and the application must close."""


class SlowDown(ProgramStep):
    """Spend the time that the fault `slow_poll` adds to each poll."""


class ProcessRecord(ProgramStep, name=PROCESS):
    """Spend the time that it takes to process a record."""


@dataclass(frozen=True)
class ProcessRecords(ProgramStep):
    """Spend the time that it takes to process a poll's records, and report them as processed."""

    records: Records


@dataclass(frozen=True)
class WriteResult(ProgramStep, name=SEND):
    """Send the result of the record whose value is *value*."""

    value: str


class FlushResults(ProgramStep, name=FLUSH):
    """Wait until every sent record has an outcome.

    The answer is `SEND_FAILED` if a record has failed since the last flush, otherwise `NONE`.
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
    """Fence former sessions of the producer.

    After a timeout the driver repeats the call, as it does for commits and aborts.
    """


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
    """If the transaction has offsets, write their outcome to the history."""

    outcome: str
    error: str


@dataclass(frozen=True)
class StoreResult(ProgramStep, name=STORE):
    """Store the result of a record, together with its offset, outside of Kafka."""

    record: Record


class PrepareRecords(ProgramStep, name=PROCESS):
    """Spend the time that the fault `slow_poll` adds, before workers get the records."""


@dataclass(frozen=True)
class HandOut(ProgramStep):
    """Hand records to workers, and wait until a worker has taken the last record.

    The answer is the offsets that the application may commit.
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
    """The names of the steps at which the application can be held."""
    commits_itself: ClassVar[bool] = False
    """Whether the consumer commits polled positions automatically."""
    begins_at_store: ClassVar[bool] = False
    """Whether the application starts after its last stored result, not at committed offsets."""

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

    If a transaction fails, the application aborts it and returns to the committed offsets. The
    application ends when its producer has failed for good.
    """

    delivery = EXACTLY_ONCE
    steps = (POLL, BEGIN, PROCESS, SEND, SEND_OFFSETS, COMMIT, ABORT)

    def run(self) -> Program:
        # First end the transaction that an earlier session left open, because the offsets
        # in it may still be committed.
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
    """Commits the polled positions once all results of a poll are acknowledged."""

    delivery = AT_LEAST_ONCE
    steps = (POLL, PROCESS, SEND, FLUSH, COMMIT)

    def _handle(self, records: Records) -> Program:
        yield from self._write_each(records)
        error: str = yield FlushResults()
        if error == NONE:
            # If the commit fails, the next commit includes its offsets, or the next owner of the
            # partition reads the records again.
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
    """Stores each result together with the offset of its record, and starts after the last result.

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

    Workers finish records in any order. The application polls again once a worker is free. Because
    the result of a finished record may not be acknowledged yet, the application flushes first, and
    then commits the offsets of records that were finished before the flush.
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
    """Commits the highest finished offset, even if records below it are unfinished."""

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
"""The names of the steps of all programs."""


# The programs of consumers and producers


def read_for_group(commit: str) -> Program:
    """Process the records of each poll; *commit* says when to commit their offsets, if at all."""
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


def generate_transactions(records_per_transaction: int, aborts: Iterator[bool]) -> Program:
    """Send the records of the workload in transactions; *aborts* says which transactions to abort.

    The program aborts a transaction that fails. Once the producer has failed for good, for example
    because a successor has fenced it, the program sends nothing.
    """
    yield from _abort_after((yield InitTransactions()))
    sent, to_abort = 0, False
    while (yield WaitForRecord()):
        if (yield MustAbort()):
            yield from _abort_after((yield AbortOpenTransaction()))
            continue
        if not (yield IsTransactionOpen()):
            error: str = yield OpenTransaction()
            if error != NONE:
                continue
            sent, to_abort = 0, next(aborts)
        yield SendNextRecord()
        sent += 1
        if sent >= records_per_transaction:
            yield from _end_transaction(to_abort=to_abort)
    if (yield MustAbort()):
        yield from _abort_after((yield AbortOpenTransaction()))
    elif (yield IsTransactionOpen()):
        yield from _end_transaction(to_abort=to_abort)
    return NONE


def _end_transaction(*, to_abort: bool) -> ProgramPart:
    yield from _abort_after((yield AbortOpenTransaction() if to_abort else CommitOpenTransaction()))


def _abort_after(error: str) -> ProgramPart:
    """Abort the transaction if *error*, from the call before, leaves no choice."""
    while error != NONE and (yield MustAbort()):
        error = yield AbortOpenTransaction()


def transactions_to_abort(every: int, earlier_count: int = 0) -> Iterator[bool]:
    """Yield for each transaction whether to abort it: one in *every*.

    The first *earlier_count* transactions are skipped, because an earlier session began them.
    """
    for number in count(earlier_count + 1):
        yield every > 0 and number % every == 0


# Code that both drivers use


class HoldPoint:
    """The step at which to hold an application, and the steps reported since its last poll."""

    __slots__ = ("_reported", "hold")

    def __init__(self) -> None:
        self.hold: tuple[str, int] | None = None
        """The step at which to hold the application, and how often it passes that step first."""
        self._reported: set[str] = set()

    def should_report(self, step: str) -> bool:
        """Return whether to report a step: only the first time after each poll."""
        if step == POLL:
            self._reported.clear()
        if step in self._reported:
            return False
        self._reported.add(step)
        return True

    def is_awaited(self, step: str) -> bool:
        return self.hold is not None and self.hold[0] == step

    def holds(self, step: str) -> bool:
        """Count the arrival at a step. Return whether the application is held there."""
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
        # For each partition, the unfinished offsets in order, and the highest finished offset.
        self._unfinished_offsets: dict[str, dict[int, None]] = {}
        self._highest_finished: dict[str, int] = {}

    def add(self, records: Records) -> None:
        for record in flat_records(records):
            self._unfinished_offsets.setdefault(record[0], {})[record[1]] = None
            self.waiting.append(record)

    def begin(self) -> tuple[Record, dict[int, None] | None]:
        """Return the next record for a worker, and the unfinished offsets of its partition.

        The worker passes both to `finish` afterwards.
        """
        self.busy += 1
        record = self.waiting.popleft()
        return record, self._unfinished_offsets.get(record[0])

    def finish(self, record: Record, unfinished: dict[int, None] | None) -> None:
        """Note that a record is finished, unless its partition was forgotten meanwhile."""
        partition, offset, _ = record
        self.busy -= 1
        if unfinished is not None and unfinished is self._unfinished_offsets.get(partition):
            unfinished.pop(offset, None)
            self._highest_finished[partition] = max(offset, self._highest_finished.get(partition, offset))

    def is_done(self) -> bool:
        return not self.busy and not self.waiting

    def to_commit(self, consumed: Mapping[str, int]) -> dict[str, int]:
        """Return the offsets to commit when the application has polled up to *consumed*."""
        if self._commits_highest:
            return {name: offset + 1 for name, offset in self._highest_finished.items()}
        return {
            name: next(iter(self._unfinished_offsets.get(name, ())), offset)
            for name, offset in consumed.items()
        }

    def forget_all(self) -> None:
        self.forget(self._unfinished_offsets)

    def forget(self, partitions: Iterable[str]) -> None:
        """Drop the waiting records of partitions, because their next owner will read them.

        Workers still finish the records that they have.
        """
        for name in tuple(partitions):
            self._unfinished_offsets.pop(name, None)
            self._highest_finished.pop(name, None)
        self.waiting = deque(record for record in self.waiting if record[0] in self._unfinished_offsets)


class ResultStore:
    """An application's store outside of Kafka, which all instances of the application share.

    One transaction stores a result together with the offset after its record. The store refuses a
    second result for a record, because it comes from an instance that no longer owns the partition.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def next_offset(self, partition: str) -> int | None:
        """Return the offset after the last stored result of a partition; None if there is none."""
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
