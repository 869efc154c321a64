"""What applications do, as programs: generators of named steps that read from top to bottom like the code they stand for.

A program yields a step and is sent the answer. It touches no client. Two drivers take the steps: on the model
`harrow.cluster_model.clients.application.Application` answers when a client calls back; in a process on real brokers
`harrow.live_cluster.clients.application_worker.ApplicationWorker` answers when a call of the library returns. So what an application
does, and in which order, is the same on both. What the clients themselves do differently belongs in a driver.

A step with a name can be held: the driver announces it, and whatever holds it there can kill the application, or let it go on.
An error is answered by its name in Kafka, `NONE` where there is none.
"""

# Plain Python: generators that receive the answers to their steps.

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Final

from harrow.cluster_model.errors import NONE
from harrow.cluster_model.history import FAIL, INFO, OK
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
"""When a consumer's application commits: as ``enable.auto.commit`` says, after processing what a poll returned, before it, or never."""

SEND_FAILED: Final = "SEND_FAILED"
"""A record that the application has written was not acknowledged (KafkaProducer.send, by its callback)."""
CONSUMER_FAILED: Final = "CONSUMER_FAILED"
"""Its consumer cannot be a member of its group any more. A driver ends the program with this error."""

Record = tuple[str, int, str]
"""Partition, offset, value."""
Records = Mapping[str, list[tuple[int, str]]]
"""Offsets and values by partition."""


# The steps


@dataclass(frozen=True)
class ProgramStep:
    """A step that a driver takes for a program. An application can be held at those with a name."""

    name: ClassVar[str]

    def __init_subclass__(cls, name: str = "") -> None:
        cls.name = name


class SubscribeToSource(ProgramStep):
    """Join the group."""


class PollRecords(ProgramStep, name=POLL):
    """Wait for records. The answer is None when there are none and the application is to close."""


class TakeLong(ProgramStep):
    """Take as long for what a poll returned as the fault `slow_poll` says."""


class ProcessRecord(ProgramStep, name=PROCESS):
    """Be busy with a record."""


@dataclass(frozen=True)
class ProcessRecords(ProgramStep):
    """Be busy with all that a poll returned, and report it as processed."""

    records: Records


@dataclass(frozen=True)
class WriteResult(ProgramStep, name=SEND):
    """Send what became of a record with this value."""

    value: str


class FlushResults(ProgramStep, name=FLUSH):
    """Wait until each record sent has an outcome. The answer is `SEND_FAILED` if one failed since the last time."""


@dataclass(frozen=True)
class CommitOffsets(ProgramStep, name=COMMIT):
    """Commit these offsets, or without any those up to which it has polled (commitSync). The answer is the error."""

    offsets: Mapping[str, int] | None = None


class RewindToCommitted(ProgramStep):
    """Read on from where the group has committed."""


class CloseClients(ProgramStep):
    """Flush, leave the group and close both clients."""


class InitTransactions(ProgramStep):
    """Fence former sessions. Of this, of a commit and of an abort the driver makes a call that timed out again."""


class OpenTransaction(ProgramStep, name=BEGIN):
    """Begin a transaction. The answer is the error."""


class SendOffsets(ProgramStep, name=SEND_OFFSETS):
    """Add the offsets up to which it has polled to the transaction. The answer is the error."""


class CommitOpenTransaction(ProgramStep, name=COMMIT):
    """Commit the transaction. The answer is the error."""


class AbortOpenTransaction(ProgramStep, name=ABORT):
    """Abort the transaction. The answer is the error."""


class HasProducerFailed(ProgramStep):
    """Ask whether the producer can do nothing any more."""


class MustAbort(ProgramStep):
    """Ask whether an error has left the transaction with nothing to do but to abort it."""


class IsTransactionOpen(ProgramStep):
    """Ask whether a transaction is open that takes records."""


class WaitForRecord(ProgramStep):
    """Wait until the next record of the workload is due. The answer is False once the workload is over.

    Records that are due while the program waits for something else, or while its process is paused, are left out.
    """


class SendNextRecord(ProgramStep):
    """Send the record that is due."""


@dataclass(frozen=True)
class NoteOffsets(ProgramStep):
    """Note in the history what became of the offsets that were sent in the transaction, if any were."""

    outcome: str
    error: str


@dataclass(frozen=True)
class StoreResult(ProgramStep, name=STORE):
    """Store the result of a record outside of Kafka, and with it the offset."""

    record: Record


class PrepareRecords(ProgramStep, name=PROCESS):
    """Come to the records that workers are to process, as slowly as `slow_poll` says."""


@dataclass(frozen=True)
class HandOut(ProgramStep):
    """Hand records to workers, and wait until the last one is in a worker's hands. The answer is the offsets to commit."""

    records: Records


class ForgetUnfinished(ProgramStep):
    """Forget which of the records that were handed out are finished."""


Program = Generator[ProgramStep, Any, str]
"""It returns the error for which it ends."""
ProgramPart = Generator[ProgramStep, Any, None]


# The programs


class ApplicationProgram(ABC):
    """What an application does from its start to its end."""

    delivery: ClassVar[str]
    steps: ClassVar[tuple[str, ...]]
    """The names of its steps."""
    commits_itself: ClassVar[bool] = False
    """Whether its consumer commits by itself what polls have returned."""
    begins_at_store: ClassVar[bool] = False
    """Whether it reads from where its store ends, wherever its group has committed."""

    def __init__(self, *, rewinds: bool) -> None:
        self._rewinds = rewinds

    def run(self) -> Program:
        """Subscribe, then handle what each poll returns."""
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
        """Handle what a poll returned; return an error after which nothing more can be done."""

    def _write_each(self, records: Records) -> ProgramPart:
        """Process records one after the other, and write the result of each."""
        yield TakeLong()
        for _, _, value in flat(records):
            yield ProcessRecord()
            yield WriteResult(value)

    def _rewind(self) -> ProgramPart:
        if self._rewinds:
            yield RewindToCommitted()


class ExactlyOnce(ApplicationProgram):
    """Consume, transform, produce: one transaction commits what it has written and what it has read (KIP-98, KIP-447).

    It aborts a transaction that fails, and goes back to what its group has committed. It ends when its producer can do no more.
    """

    delivery = EXACTLY_ONCE
    steps = (POLL, BEGIN, PROCESS, SEND, SEND_OFFSETS, COMMIT, ABORT)

    def run(self) -> Program:
        # This comes first: it ends the transaction that a former life left open, on which the committed offsets depend.
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
        # Whether the offsets count depends on the transaction that they were sent in.
        yield NoteOffsets(OK if error == NONE else INFO if has_failed else FAIL, error)
        return error if has_failed else NONE


class AtLeastOnce(ApplicationProgram):
    """Commits its position once all results of a poll are acknowledged."""

    delivery = AT_LEAST_ONCE
    steps = (POLL, PROCESS, SEND, FLUSH, COMMIT)

    def _handle(self, records: Records) -> Program:
        yield from self._write_each(records)
        error: str = yield FlushResults()
        if error == NONE:
            # If this fails, the next commit covers it, or the next owner of the partitions reads it again.
            yield CommitOffsets()
        else:
            yield from self._rewind()
        return NONE


class AtMostOnce(ApplicationProgram):
    """It processes what it has committed, and nothing else."""

    delivery = AT_MOST_ONCE
    steps = (POLL, COMMIT, PROCESS, SEND)

    def _handle(self, records: Records) -> Program:
        error: str = yield CommitOffsets()
        if error == NONE:
            yield from self._write_each(records)
        return NONE


class AutoCommitted(ApplicationProgram):
    """It processes what polls return. Its consumer commits that now and then, whatever came of it."""

    delivery = AUTO_COMMITTED
    steps = (POLL, PROCESS, SEND)
    commits_itself = True

    def _handle(self, records: Records) -> Program:
        yield from self._write_each(records)
        return NONE


class IdempotentSink(ApplicationProgram):
    """It stores each result together with the offset of its record, and begins where its store ends.

    Its group decides which partitions it reads, but not from where on.
    """

    delivery = IDEMPOTENT_SINK
    steps = (POLL, PROCESS, STORE)
    begins_at_store = True

    def _handle(self, records: Records) -> Program:
        yield TakeLong()
        for record in flat(records):
            yield ProcessRecord()
            yield StoreResult(record)
        return NONE


class ParallelWorkers(ApplicationProgram):
    """It hands records to workers, who finish in any order, and commits the lowest offset that is not finished.

    It polls again once a worker is free. A finished record may not be acknowledged yet: so it waits for all results written
    before it commits what was finished when it began to wait.
    """

    delivery = WATERMARK
    steps = (POLL, PROCESS, FLUSH, COMMIT)

    def _handle(self, records: Records) -> Program:
        yield PrepareRecords()
        offsets: Mapping[str, int] = yield HandOut(records)
        error: str = yield FlushResults()
        if error != NONE:
            yield ForgetUnfinished()
            yield from self._rewind()
        elif offsets:
            yield CommitOffsets(offsets)
        return NONE


class HighestFinished(ParallelWorkers):
    """The same, but it commits the highest offset that is finished, and so all below that are not."""

    delivery = HIGHEST_FINISHED


APPLICATIONS: Final[Mapping[str, type[ApplicationProgram]]] = {
    kind.delivery: kind
    for kind in (
        *(ExactlyOnce, AtLeastOnce, AtMostOnce, AutoCommitted, IdempotentSink),
        *(ParallelWorkers, HighestFinished),
    )
}
"""The programs of applications by what a campaign calls them."""

STEPS: Final = tuple(dict.fromkeys(step for kind in APPLICATIONS.values() for step in kind.steps))
"""The names of all their steps."""


# The programs of consumers and producers


def read_for_group(commit: str) -> Program:
    """Process what each poll returns, and commit it before or after that, or not at all."""
    yield SubscribeToSource()
    while True:
        records: Records | None = yield PollRecords()
        if records is None:
            yield CloseClients()
            return NONE
        # If this fails, another member may take care of the records.
        if commit == BEFORE and (yield CommitOffsets()) != NONE:
            continue
        yield ProcessRecords(records)
        if commit == AFTER:
            yield CommitOffsets()


def generate_records() -> Program:
    """Send each record of the workload."""
    while (yield WaitForRecord()):
        yield SendNextRecord()
    return NONE


def generate_transactions(records_of_each: int, aborts: Iterator[bool]) -> Program:
    """Send each record of the workload in a transaction; *aborts* has for each whether it is to be aborted.

    It aborts a transaction that fails. Once its producer can do no more, as when a successor has fenced it, it sends nothing.
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
    """Abort the transaction if a call has failed and left nothing else to do."""
    while error != NONE and (yield MustAbort()):
        error = yield AbortOpenTransaction()


def transactions_to_abort(every: int, begun: int = 0) -> Iterator[bool]:
    """Yield for each generated transaction whether it is one of *every* so many, where there were *begun* of them before."""
    for number in count(begun + 1):
        yield every > 0 and number % every == 0


# What drivers share


class HoldPoint:
    """Where an application is to be held, and which of its steps are worth reporting."""

    __slots__ = ("_reported", "hold")

    def __init__(self) -> None:
        self.hold: tuple[str, int] | None = None
        """A step, and how often the application may still pass it."""
        self._reported: set[str] = set()

    def is_news(self, step: str) -> bool:
        """Return whether to report a step: those taken for each record are reported once for each poll."""
        if step == POLL:
            self._reported.clear()
        if step in self._reported:
            return False
        self._reported.add(step)
        return True

    def is_awaited(self, step: str) -> bool:
        return self.hold is not None and self.hold[0] == step

    def holds(self, step: str) -> bool:
        """Come to a step; return whether the application is held there."""
        if self.hold is None or self.hold[0] != step:
            return False
        passes = self.hold[1]
        self.hold = (step, passes - 1) if passes else None
        return not passes


class WorkerRecords:
    """Records in the hands of an application's workers, and those that wait for one."""

    def __init__(self, delivery: str) -> None:
        self._commits_highest = delivery == HIGHEST_FINISHED
        self.waiting: deque[Record] = deque()
        self.busy = 0
        # For each partition: what is unfinished of what polls returned, up to where it was polled, and the highest that is finished.
        self._unfinished: dict[str, dict[int, None]] = {}
        self._highest: dict[str, int] = {}

    def add(self, records: Records) -> None:
        for record in flat(records):
            self._unfinished.setdefault(record[0], {})[record[1]] = None
            self.waiting.append(record)

    def begin(self) -> tuple[Record, dict[int, None] | None]:
        """Put the next record into a worker's hands; what this returns goes to `finish`."""
        self.busy += 1
        record = self.waiting.popleft()
        return record, self._unfinished.get(record[0])

    def finish(self, record: Record, unfinished: dict[int, None] | None) -> None:
        """Take a record back; it counts unless its partition was forgotten meanwhile."""
        partition, offset, _ = record
        self.busy -= 1
        if unfinished is not None and unfinished is self._unfinished.get(partition):
            unfinished.pop(offset, None)
            self._highest[partition] = max(offset, self._highest.get(partition, offset))

    def is_done(self) -> bool:
        return not self.busy and not self.waiting

    def to_commit(self, consumed: Mapping[str, int]) -> dict[str, int]:
        """Return the offsets to commit where it has polled up to *consumed*: below the lowest unfinished record."""
        if self._commits_highest:
            return {name: offset + 1 for name, offset in self._highest.items()}
        return {name: next(iter(self._unfinished.get(name, ())), offset) for name, offset in consumed.items()}

    def forget_all(self) -> None:
        self.forget(self._unfinished)

    def forget(self, partitions: Iterable[str]) -> None:
        """Leave what has not begun to the next owner of the partitions. Workers finish what they have."""
        for name in tuple(partitions):
            self._unfinished.pop(name, None)
            self._highest.pop(name, None)
        self.waiting = deque(record for record in self.waiting if record[0] in self._unfinished)


class ResultStore:
    """What the instances of an application store outside of Kafka: results, each in one transaction with the offset behind its record.

    A second result for a record is refused: the instance that brings it has been left behind.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def next_offset(self, partition: str) -> int | None:
        """Return the offset behind the last result; None where there is no result yet."""
        return self._next.get(partition)

    def put(self, partition: str, offset: int) -> bool:
        """Store the result of a record; return whether it was taken."""
        if offset < self._next.get(partition, 0):
            return False
        self._next[partition] = offset + 1
        return True


def application_program(spec: ApplicationSpec) -> ApplicationProgram:
    """Return what an application does."""
    return APPLICATIONS[spec.delivery](rewinds=spec.rewinds)


def flat(records: Records) -> Iterator[Record]:
    for partition, pairs in records.items():
        for offset, value in pairs:
            yield partition, offset, value
