"""Applications that read a topic and write what they make of it: each a loop of named steps between the calls of its clients.

A loop is a generator that reads from top to bottom like the code that it stands for. It yields the name of the step that it is about
to take, how long it is busy, or a call whose result it waits for. Between any two of these the application can be held, and
whatever holds it can kill it there, stop it, or let it go on.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from harrow.cluster_model.clients.group_consumer import AUTO, NEVER, GroupConsumer, Records
from harrow.cluster_model.clients.producer import Producer
from harrow.cluster_model.clients.transaction_manager import CALL_TIMED_OUT, FATAL_ERROR, OnDone
from harrow.cluster_model.clients.transactional_producer import TransactionalProducer
from harrow.cluster_model.coordinators.protocol import NO_GENERATION, NO_INSTANCE, NO_MEMBER
from harrow.cluster_model.errors import NONE
from harrow.cluster_model.events import ApplicationEnded, ApplicationStep
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, History, effect_of
from harrow.cluster_model.release import Behaviours
from harrow.cluster_model.settings import consumer_config, producer_config
from harrow.cluster_model.sim.choices import between
from harrow.cluster_model.sim.host import Host
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
"""The steps: the call that is made next, or `process` before the work for a record begins."""

SEND_FAILED: Final = "SEND_FAILED"
"""What an application has written was not acknowledged (KafkaProducer.send, by its callback)."""
CONSUMER_FAILED: Final = "CONSUMER_FAILED"
"""Its consumer can be no member of its group any more."""

NO_MEMBERSHIP: Final = (NO_MEMBER, NO_GENERATION, NO_INSTANCE)
_RECORD_BYTES: Final = 30

Record = tuple[str, int, str]
"""Partition, offset, value."""
Call = Callable[[Callable[[Any], None]], None]
"""What a loop waits for: it is given what to call with the result."""
Loop = Generator[Any, Any, str]
"""It yields what it waits for, and returns the error for which it ends."""
Part = Generator[Any, Any, None]
"""A part of one."""


class ResultStore:
    """What instances of an application store outside of Kafka: results, and with each in one transaction the offset behind its record.

    A result of a record that one is there of is refused: the instance that brings it has been left behind.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def next_offset(self, partition: str) -> int | None:
        """Return from where on there are no results; None where there is none yet."""
        return self._next.get(partition)

    def put(self, partition: str, offset: int) -> bool:
        """Store the result of a record; return whether it was taken."""
        if offset < self._next.get(partition, 0):
            return False
        self._next[partition] = offset + 1
        return True


class Application:
    """A process of an application, with its consumer and its producer, from its start to its end.

    *next_number* numbers what it writes. *on_end* is called when it ends by itself, with whether that is for an error.
    """

    delivery: ClassVar[str]
    steps: ClassVar[tuple[str, ...]]
    """The steps of its loop."""

    def __init__(
        self,
        spec: ApplicationSpec,
        hosts: tuple[Host, Host],
        processes: tuple[int, int],
        release: str,
        behaviours: Behaviours,
        history: History,
        brokers: tuple[int, ...],
        partitions: Mapping[str, tuple[str, ...]],
        store: ResultStore,
        next_number: Callable[[], int],
        on_end: Callable[[bool], None],
    ) -> None:
        self._spec = spec
        self._host = hosts[0]
        self._hosts = hosts
        self._history = history
        self._processes = processes
        self._store = store
        self._next_number = next_number
        self._on_end = on_end
        self.slow_us = 0
        # What it waits for: a poll, or any call.
        self._on_polled: Callable[[Any], None] | None = None
        self._result: Any = None
        self._is_waiting = False
        # Where it is to be held, and how many times it still passes there.
        self.hold: tuple[str, int] | None = None
        self.held_at: str | None = None
        self._told: dict[str, None] = {}
        # How many of its batches had failed when it flushed last.
        self._failures = 0
        self._is_closing = False
        self._has_ended = False
        source = partitions[spec.source]
        self.consumer = GroupConsumer(
            hosts[0],
            processes[0],
            brokers,
            consumer_config(release, spec.consumer_settings()),
            behaviours,
            history,
            0,
            topics=(spec.source,),
            topic_partitions=source,
            commit=AUTO if self.delivery == AUTO_COMMITTED else NEVER,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_records=self._polled,
            on_failed=self._consumer_failed,
        )
        self.producer: Producer | None = None
        if spec.target is not None:
            kind = TransactionalProducer if spec.transactional_id else Producer
            self.producer = kind(
                hosts[1],
                processes[1],
                brokers,
                partitions[spec.target],
                producer_config(release, spec.producer_settings(), behaviours),
                behaviours,
                history,
                _RECORD_BYTES,
            )
        self._loop = self._run()

    def start(self) -> None:
        if self.producer is not None:
            self.producer.start()
        self._advance(None)

    # What can be asked and done

    def unfinished(self) -> int:
        """Return how many of its records have no outcome yet, and 1 more while it does anything but wait for records."""
        written = 0 if self.producer is None else self.producer.unfinished
        return written if self._has_ended else written + (not self._is_idle())

    def _is_idle(self) -> bool:
        return self._on_polled is not None and self.consumer.coordinator.is_settled()

    def reached(self) -> Mapping[str, int]:
        """Return up to where it has read each of its partitions, as far as it knows that they are its own."""
        found = {name: self.consumer.reached(name) for name in self.consumer.coordinator.owned}
        return {name: offset for name, offset in found.items() if offset is not None}

    def hold_at(self, step: str, passes: int) -> None:
        """Do not go on at a step, once it has been passed so many times."""
        self.hold = step, passes

    def let_go(self) -> None:
        """Go on, where it is held, and hold it nowhere."""
        self.hold = None
        if self.held_at is not None:
            self.held_at = None
            self._advance(None)

    def close(self) -> None:
        """Close its clients when it would poll next, and end."""
        self._is_closing = True
        if self._on_polled is not None:
            self.consumer.return_nothing()

    def abandon(self) -> None:
        """The process dies."""
        self._has_ended = True
        if self.producer is not None:
            self.producer.abandon()

    def clock_stepped(self, by_us: int) -> None:
        self.consumer.clock_stepped(by_us)
        if self.producer is not None:
            self.producer.clock_stepped(by_us)

    # The thread that runs the loop

    def _advance(self, value: Any) -> None:
        """Run on, with what the last call has returned, up to the next one that does not return at once."""
        while not self._has_ended:
            try:
                awaited = self._loop.send(value)
            except StopIteration as stopped:
                self._end(stopped.value)
                return
            value = None
            if isinstance(awaited, str):
                self._tell(awaited)
                if self._is_held(awaited):
                    self.held_at = awaited
                    return
            elif isinstance(awaited, int):
                self._host.set_timer(awaited, self._advance)
                return
            else:
                self._result, self._is_waiting = None, False
                awaited(self._returned)
                if self._result is None:
                    self._is_waiting = True
                    return
                value, self._result = self._result, None

    def _returned(self, result: Any) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._advance(result)
        else:
            self._result = result

    def _tell(self, step: str) -> None:
        """Tell of a step; of those that are taken for each record once for all that a poll has returned."""
        if step == POLL:
            self._told.clear()
        if step not in self._told:
            self._told[step] = None
            self._host.emit(ApplicationStep, self._host.name, self._spec.group, step)

    def _is_held(self, step: str) -> bool:
        if self.hold is None or self.hold[0] != step:
            return False
        passes = self.hold[1]
        self.hold = (step, passes - 1) if passes else None
        return not passes

    def _end(self, error: str) -> None:
        """The loop is over: for an error, or because it was to be closed."""
        if not self._has_ended:
            self._has_ended = True
            if error != NONE:
                self._host.emit(ApplicationEnded, self._host.name, self._spec.group, error)
            self._on_end(error != NONE)

    def _consumer_failed(self) -> None:
        # It is called in the middle of what the consumer does.
        self._host.set_timer(0, self._end, CONSUMER_FAILED)

    # What loops are made of

    def _run(self) -> Loop:
        """Start, and do again and again what is to be done with what a poll returns."""
        self.consumer.start()
        while True:
            yield POLL
            records: Records = yield self._poll
            if self._is_closing and not records:
                yield self._close
                return NONE
            error: str = yield from self._handle(records)
            if error != NONE:
                return error

    def _handle(self, records: Records) -> Loop:
        """Do what is to be done with what a poll has returned; return an error after which nothing more can be done."""
        raise NotImplementedError

    def _poll(self, on_done: Callable[[Any], None]) -> None:
        self._on_polled = on_done
        if not self.consumer.is_polling():
            self.consumer.poll_again()
        if self._is_closing:
            self.consumer.return_nothing()

    def _polled(self, records: Records) -> None:
        on_polled, self._on_polled = self._on_polled, None
        assert on_polled is not None, "records for an application that does not poll"
        on_polled(records)

    def _close(self, on_done: Callable[[Any], None]) -> None:
        """Wait for what was written, and close both clients."""

        def flushed() -> None:
            self.consumer.close(lambda: on_done(NONE))

        if self.producer is None:
            flushed()
        else:
            self.producer.flush(flushed)

    def _write_each(self, records: Records) -> Part:
        """Process records one after the other, and write what comes of each."""
        if self.slow_us:
            yield self.slow_us
        work_us = self._spec.work_us
        for _, _, value in _flat(records):
            yield PROCESS
            if work_us:
                yield work_us
            yield SEND
            self._write(value)

    def _write(self, value: str) -> None:
        assert self.producer is not None
        self.producer.send(effect_of(self._spec.name, self._next_number(), value))

    def _flush(self, on_done: Callable[[Any], None]) -> None:
        """Wait until all that was written has been acknowledged, or some of it not."""
        producer = self.producer
        assert producer is not None

        def flushed() -> None:
            known, self._failures = self._failures, producer.failures
            on_done(NONE if producer.failures == known else SEND_FAILED)

        producer.flush(flushed)

    def _commit(self, on_done: Callable[[Any], None]) -> None:
        self.consumer.commit(self.consumer.consumed_to, on_done)

    def _rewind(self) -> None:
        if self._spec.rewinds:
            self.consumer.rewind()

    def _assigned(self, partitions: Sequence[str]) -> None:
        """Read these partitions, too (``onPartitionsAssigned``)."""

    def _revoked(self, partitions: Sequence[str]) -> None:
        """Read these partitions no more (``onPartitionsRevoked``, ``onPartitionsLost``)."""


class ExactlyOnce(Application):
    """Consume, transform, produce: what it has written and what it has read are committed in one transaction (KIP-98, KIP-447).

    A transaction that fails it aborts, and goes back to what its group has committed. Where its producer can do no more, it ends.
    """

    delivery = EXACTLY_ONCE
    steps = (POLL, BEGIN, PROCESS, SEND, SEND_OFFSETS, COMMIT, ABORT)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What is committed with the transaction that is open.
        self._offsets: dict[str, int] = {}

    def _run(self) -> Loop:
        # First of all: it has the transaction ended that a former life has left open, on which the committed offsets hang.
        error: str = yield from self._until_returned(self._transactional.init_transactions)
        if error != NONE:
            return error
        return (yield from super()._run())

    @property
    def _transactional(self) -> TransactionalProducer:
        assert isinstance(self.producer, TransactionalProducer)
        return self.producer

    def _until_returned(self, call: Callable[[OnDone], None]) -> Loop:
        """Make a call, and the same again where it times out."""
        error: str = CALL_TIMED_OUT
        while error == CALL_TIMED_OUT:
            error = yield call
        return error

    def _handle(self, records: Records) -> Loop:
        producer = self._transactional
        yield BEGIN
        error: str = producer.begin_transaction()
        if error == NONE:
            yield from self._write_each(records)
            yield SEND_OFFSETS
            error = yield self._send_offsets
        if error == NONE:
            yield COMMIT
            error = yield from self._until_returned(producer.commit_transaction)
        if error != NONE and producer.transactions.state != FATAL_ERROR:
            yield ABORT
            yield from self._until_returned(producer.abort_transaction)
            self._rewind()
        if self._offsets:
            # Whether they count hangs on the transaction that they were sent in.
            type_ = OK if error == NONE else INFO if producer.transactions.state == FATAL_ERROR else FAIL
            self._note_commit(type_, error)
            self._offsets = {}
        return error if producer.transactions.state == FATAL_ERROR else NONE

    def _send_offsets(self, on_done: OnDone) -> None:
        known = self.consumer.group_metadata()
        as_member = (known.member, known.generation, known.instance)
        member, generation, instance = as_member if self._spec.group_metadata else NO_MEMBERSHIP
        self._offsets = dict(self.consumer.consumed_to)
        self._note_commit(INVOKE, NONE)
        self._transactional.send_offsets(self._offsets, known.group, member, generation, instance, on_done)

    def _note_commit(self, type_: str, error: str) -> None:
        said = None if error == NONE else error
        self._history.committed(
            self._processes[0], self._offsets.items(), self._host.clock.now_us, type_, said
        )


class AtLeastOnce(Application):
    """What it has read it commits when all that it has made of it is acknowledged."""

    delivery = AT_LEAST_ONCE
    steps = (POLL, PROCESS, SEND, FLUSH, COMMIT)

    def _handle(self, records: Records) -> Loop:
        yield from self._write_each(records)
        yield FLUSH
        error: str = yield self._flush
        if error == NONE:
            yield COMMIT
            # What could not be committed is with the next commit, or is read again by who gets the partitions.
            yield self._commit
        else:
            self._rewind()
        return NONE


class AtMostOnce(Application):
    """It processes what it has committed, and nothing else."""

    delivery = AT_MOST_ONCE
    steps = (POLL, COMMIT, PROCESS, SEND)

    def _handle(self, records: Records) -> Loop:
        yield COMMIT
        error: str = yield self._commit
        if error == NONE:
            yield from self._write_each(records)
        return NONE


class AutoCommitted(Application):
    """It processes what polls return, and its consumer commits that now and then, whatever has come of it."""

    delivery = AUTO_COMMITTED
    steps = (POLL, PROCESS, SEND)

    def _handle(self, records: Records) -> Loop:
        yield from self._write_each(records)
        return NONE


class IdempotentSink(Application):
    """It stores each result together with the offset of its record, and begins where its store is.

    Its group says which partitions it reads, and not from where on.
    """

    delivery = IDEMPOTENT_SINK
    steps = (POLL, PROCESS, STORE)

    def _assigned(self, partitions: Sequence[str]) -> None:
        for name in partitions:
            offset = self._store.next_offset(name)
            if offset is not None:
                self.consumer.seek(name, offset)

    def _handle(self, records: Records) -> Loop:
        if self.slow_us:
            yield self.slow_us
        for partition, offset, value in _flat(records):
            yield PROCESS
            if self._spec.work_us:
                yield self._spec.work_us
            yield STORE
            if self._store.put(partition, offset):
                result = effect_of(self._spec.name, self._next_number(), value)
                now_us = self._host.clock.now_us
                self._history.stored(self._processes[0], partition, ((offset, result),), now_us)
        return NONE


class ParallelWorkers(Application):
    """It hands records to workers, who finish in any order, and commits the lowest offset that is not finished.

    It polls again once a worker is free. What is acknowledged is finished: so it waits for all that was written before it commits
    what was finished when it began to wait.
    """

    delivery = WATERMARK
    steps = (POLL, PROCESS, FLUSH, COMMIT)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._waiting: deque[Record] = deque()
        # Of each partition, from what a poll has returned on: what is not finished, up to where it was polled, and the highest that is.
        self._unfinished: dict[str, dict[int, None]] = {}
        self._highest: dict[str, int] = {}
        self._busy = 0
        # Whether all has been finished since it looked last what to commit.
        self._all_finished = False
        self._on_free: Callable[[Any], None] | None = None
        super().__init__(*args, **kwargs)

    def _is_idle(self) -> bool:
        return not self._busy and not self._waiting and super()._is_idle()

    def _handle(self, records: Records) -> Loop:
        yield PROCESS
        if self.slow_us:
            yield self.slow_us
        for record in _flat(records):
            self._unfinished.setdefault(record[0], {})[record[1]] = None
            self._waiting.append(record)
        self._hand_out()
        yield self._wait_for_free
        self._all_finished = False
        offsets = self._to_commit()
        yield FLUSH
        error: str = yield self._flush
        if error != NONE:
            self._forget(self._unfinished)
            self._rewind()
        elif offsets:
            yield COMMIT
            yield lambda on_done: self.consumer.commit(offsets, on_done)
        return NONE

    def _to_commit(self) -> dict[str, int]:
        """Return up to where each partition is finished: below the lowest record that is not."""
        consumed = self.consumer.consumed_to
        return {name: next(iter(self._unfinished.get(name, ())), offset) for name, offset in consumed.items()}

    def _wait_for_free(self, on_done: Callable[[Any], None]) -> None:
        if self._waiting:
            self._on_free = on_done
        else:
            on_done(NONE)

    def _hand_out(self) -> None:
        while self._waiting and self._busy < self._spec.workers:
            record = self._waiting.popleft()
            self._busy += 1
            work_us = self._spec.work_us
            takes_us = between(self._host.choices.workload, 0, 2 * work_us)
            self._host.set_timer(takes_us, self._worked, (record, self._unfinished.get(record[0])))

    def _worked(self, done: tuple[Record, dict[int, None] | None]) -> None:
        (partition, offset, value), unfinished = done
        self._busy -= 1
        if self._has_ended:
            return
        self._write(value)
        if unfinished is not None and unfinished is self._unfinished.get(partition):
            unfinished.pop(offset, None)
            self._highest[partition] = max(offset, self._highest.get(partition, offset))
        self._hand_out()
        on_free = self._on_free
        if on_free is not None and not self._waiting:
            self._on_free = None
            on_free(NONE)
        elif not self._busy and not self._waiting:
            # A poll has a timeout, so that what has been finished meanwhile is committed although nothing more comes.
            self._all_finished = True
            self.consumer.return_nothing()

    def _poll(self, on_done: Callable[[Any], None]) -> None:
        super()._poll(on_done)
        if self._all_finished:
            # While it committed.
            self.consumer.return_nothing()

    def _forget(self, partitions: Iterable[str]) -> None:
        for name in tuple(partitions):
            self._unfinished.pop(name, None)
            self._highest.pop(name, None)
        self._waiting = deque(record for record in self._waiting if record[0] in self._unfinished)

    def _revoked(self, partitions: Sequence[str]) -> None:
        """Leave what is not begun to who gets the partitions; what workers are busy with, they finish."""
        self._forget(partitions)


class HighestFinished(ParallelWorkers):
    """The same, but for what it commits: the highest offset that is finished, and with it all below that is not."""

    delivery = HIGHEST_FINISHED

    def _to_commit(self) -> dict[str, int]:
        return {name: offset + 1 for name, offset in self._highest.items()}


APPLICATIONS: Final[Mapping[str, type[Application]]] = {
    kind.delivery: kind
    for kind in (
        *(ExactlyOnce, AtLeastOnce, AtMostOnce, AutoCommitted, IdempotentSink),
        *(ParallelWorkers, HighestFinished),
    )
}
"""The loops by what a campaign calls them."""

STEPS: Final = tuple(dict.fromkeys(step for kind in APPLICATIONS.values() for step in kind.steps))
"""Every step of any of them."""


def _flat(records: Records) -> Iterator[Record]:
    for partition, pairs in records.items():
        for offset, value in pairs:
            yield partition, offset, value
