"""Drives applications in the model: takes the steps of a program with the model's clients."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harrow.cluster_model.clients import programs
from harrow.cluster_model.clients.group_consumer import GroupConsumer, Records
from harrow.cluster_model.clients.producer import Producer
from harrow.cluster_model.clients.programs import Record
from harrow.cluster_model.clients.transaction_manager import FATAL_ERROR, OnDone, retry_timeouts
from harrow.cluster_model.clients.transactional_producer import TransactionalProducer
from harrow.cluster_model.coordinators.protocol import NO_GENERATION, NO_INSTANCE, NO_MEMBER
from harrow.cluster_model.errors import NONE
from harrow.cluster_model.events import ApplicationEnded, ApplicationStep
from harrow.cluster_model.history import INVOKE, History, effect_of
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import consumer_config, producer_config
from harrow.cluster_model.sim.choices import between
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.topology import ApplicationSpec

NO_MEMBERSHIP: Final = (NO_MEMBER, NO_GENERATION, NO_INSTANCE)
_RECORD_BYTES: Final = 30
_PENDING: Final = object()
"""The answer to a step whose actual answer comes later."""


class Application:
    """A process of an application, with its consumer and its producer, from its start to its end.

    *next_number* returns the number of the next result. *on_end* is called when the application
    ends without a crash; its argument says whether an error ended it.
    """

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
        store: programs.ResultStore,
        next_number: Callable[[], int],
        on_end: Callable[[bool], None],
    ) -> None:
        self._spec = spec
        self._host = hosts[0]
        self._history = history
        self._processes = processes
        self._store = store
        self._next_number = next_number
        self._on_end = on_end
        self.slow_us = 0
        self.hold_point = programs.HoldPoint()
        self.held_at: str | None = None
        self._held_step: programs.ProgramStep | None = None
        self._on_polled: Callable[[Any], None] | None = None
        self._answer: Any = None
        self._is_waiting = False
        # How many batches of the producer had failed by the last flush.
        self._failures = 0
        self._is_closing = False
        self._has_ended = False
        self._workers = programs.WorkerRecords(spec.delivery)
        # Whether workers have finished everything since the program last got offsets to commit.
        self._all_finished = False
        self._on_handed_out: Callable[[Any], None] | None = None
        # The offsets in the open transaction.
        self._offsets: dict[str, int] = {}
        program = programs.application_program(spec)
        self._begins_at_store = program.begins_at_store
        self.consumer = GroupConsumer(
            hosts[0],
            processes[0],
            brokers,
            consumer_config(release, spec.consumer_settings()),
            behaviours,
            history,
            0,
            topics=(spec.source,),
            topic_partitions=partitions[spec.source],
            commit=programs.AUTO if program.commits_itself else programs.NEVER,
            on_assigned=self._seek_to_store,
            on_revoked=self._workers.forget,
            on_records=self._return_records,
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
        self._program = program.run()
        self._handlers: dict[type[programs.ProgramStep], Callable[[Any], Any]] = {
            programs.SubscribeToSource: lambda _: self.consumer.start(),
            programs.PollRecords: lambda _: self._wait(self._poll),
            programs.SlowDown: lambda _: self._be_busy(self.slow_us),
            programs.ProcessRecord: lambda _: self._be_busy(self._spec.work_us),
            programs.WriteResult: lambda step: self._write(step.value),
            programs.FlushResults: lambda _: self._wait(self._flush),
            programs.CommitOffsets: self._commit,
            programs.RewindToCommitted: lambda _: self.consumer.rewind(),
            programs.CloseClients: lambda _: self._wait(self._close),
            programs.InitTransactions: lambda _: self._call_until_done(self._transactional.init_transactions),
            programs.OpenTransaction: lambda _: self._transactional.begin_transaction(),
            programs.SendOffsets: lambda _: self._wait(self._send_offsets),
            programs.CommitOpenTransaction: lambda _: self._call_until_done(
                self._transactional.commit_transaction
            ),
            programs.AbortOpenTransaction: lambda _: self._call_until_done(
                self._transactional.abort_transaction
            ),
            programs.HasProducerFailed: lambda _: self._transactional.transactions.state == FATAL_ERROR,
            programs.NoteOffsets: self._note_offsets,
            programs.StoreResult: lambda step: self._store_result(step.record),
            programs.PrepareRecords: lambda _: self._be_busy(self.slow_us),
            programs.HandOut: lambda step: self._wait(
                lambda on_done: self._hand_out_all(step.records, on_done)
            ),
            programs.ForgetHandedOut: lambda _: self._workers.forget_all(),
        }

    def start(self) -> None:
        if self.producer is not None:
            self.producer.start()
        self._advance(None)

    # For the campaign

    def unfinished(self) -> int:
        """Return the number of sent records without an outcome, plus 1 unless idle or ended."""
        written = 0 if self.producer is None else self.producer.unfinished
        return written if self._has_ended else written + (not self._is_idle())

    def _is_idle(self) -> bool:
        return (
            self._workers.is_done() and self._on_polled is not None and self.consumer.coordinator.is_settled()
        )

    def read_end(self) -> Mapping[str, int]:
        """Return how far the application has read each partition that it believes it owns."""
        offsets = {name: self.consumer.read_end(name) for name in self.consumer.coordinator.owned}
        return {name: offset for name, offset in offsets.items() if offset is not None}

    def let_go(self) -> None:
        """Cancel the hold, and continue if the application is held already."""
        self.hold_point.hold = None
        step, self._held_step, self.held_at = self._held_step, None, None
        if step is not None:
            self._take(step)

    def close(self) -> None:
        """Close the clients at the next poll that returns no records, and end."""
        self._is_closing = True
        if self._on_polled is not None:
            self.consumer.return_nothing()

    def abandon(self) -> None:
        """End as in a crash of the process."""
        self._has_ended = True
        if self.producer is not None:
            self.producer.abandon()

    def on_clock_step(self, by_us: int) -> None:
        self.consumer.on_clock_step(by_us)
        if self.producer is not None:
            self.producer.on_clock_step(by_us)

    # Taking steps

    def _advance(self, answer: Any) -> None:
        """Pass *answer* to the program, and run it until it ends, is held or waits again."""
        while not self._has_ended:
            try:
                step = self._program.send(answer)
            except StopIteration as stopped:
                self._end(stopped.value)
                return
            name = step.name
            if name:
                if self.hold_point.should_report(name):
                    self._host.emit(ApplicationStep, self._host.name, self._spec.group, name)
                if self.hold_point.holds(name):
                    self._held_step, self.held_at = step, name
                    return
            answer = self._handlers[type(step)](step)
            if answer is _PENDING:
                return

    def _take(self, step: programs.ProgramStep) -> None:
        """Take the step at which the program was held, and continue."""
        answer = self._handlers[type(step)](step)
        if answer is not _PENDING:
            self._advance(answer)

    def _wait(self, call: Callable[[Callable[[Any], None]], None]) -> Any:
        """Make a call and return its result, or `_PENDING` if the result comes later."""
        self._answer, self._is_waiting = _PENDING, False
        call(self._return_result)
        self._is_waiting = self._answer is _PENDING
        return self._answer

    def _return_result(self, result: Any) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._advance(result)
        else:
            self._answer = result

    def _call_until_done(self, call: Callable[[OnDone], None]) -> Any:
        return self._wait(lambda on_done: retry_timeouts(call, on_done))

    def _be_busy(self, busy_us: int) -> Any:
        if not busy_us:
            return None
        self._host.set_timer(busy_us, self._advance)
        return _PENDING

    def _end(self, error: str) -> None:
        """End the application, after an error or because it was closed."""
        if not self._has_ended:
            self._has_ended = True
            if error != NONE:
                self._host.emit(ApplicationEnded, self._host.name, self._spec.group, error)
            self._on_end(error != NONE)

    # The consumer

    def _poll(self, on_done: Callable[[Any], None]) -> None:
        self._on_polled = on_done
        if not self.consumer.is_polling():
            self.consumer.poll_again()
        if self._is_closing or self._all_finished:
            self.consumer.return_nothing()

    def _return_records(self, records: Records) -> None:
        on_polled, self._on_polled = self._on_polled, None
        assert on_polled is not None, "records for an application that does not poll"
        on_polled(None if self._is_closing and not records else records)

    def _consumer_failed(self) -> None:
        # The consumer calls this in the middle of its own work, so the application ends later.
        self._host.set_timer(0, self._end, programs.CONSUMER_FAILED)

    def _seek_to_store(self, partitions: Sequence[str]) -> None:
        for name in partitions:
            offset = self._store.next_offset(name) if self._begins_at_store else None
            if offset is not None:
                self.consumer.seek(name, offset)

    def _commit(self, step: programs.CommitOffsets) -> Any:
        offsets = self.consumer.consumed_to if step.offsets is None else step.offsets
        return self._wait(lambda on_done: self.consumer.commit(offsets, on_done))

    def _close(self, on_done: Callable[[Any], None]) -> None:
        def flushed() -> None:
            self.consumer.close(lambda: on_done(None))

        if self.producer is None:
            flushed()
        else:
            self.producer.flush(flushed)

    # The producer

    @property
    def _transactional(self) -> TransactionalProducer:
        assert isinstance(self.producer, TransactionalProducer)
        return self.producer

    def _write(self, value: str) -> None:
        assert self.producer is not None
        self.producer.send(effect_of(self._spec.name, self._next_number(), value))

    def _flush(self, on_done: Callable[[Any], None]) -> None:
        producer = self.producer
        assert producer is not None

        def flushed() -> None:
            failures, self._failures = self._failures, producer.failures
            on_done(NONE if producer.failures == failures else programs.SEND_FAILED)

        producer.flush(flushed)

    def _send_offsets(self, on_done: OnDone) -> None:
        metadata = self.consumer.group_metadata()
        as_member = (metadata.member, metadata.generation, metadata.instance)
        member, generation, instance = as_member if self._spec.group_metadata else NO_MEMBERSHIP
        self._offsets = dict(self.consumer.consumed_to)
        self._add_commit(INVOKE, None)
        self._transactional.send_offsets(self._offsets, metadata.group, member, generation, instance, on_done)

    def _note_offsets(self, step: programs.NoteOffsets) -> None:
        if self._offsets:
            self._add_commit(step.outcome, None if step.error == NONE else step.error)
            self._offsets = {}

    def _add_commit(self, type_: str, error: str | None) -> None:
        now_us = self._host.clock.now_us
        self._history.record_commit(self._processes[0], self._offsets.items(), now_us, type_, error)

    # The store and the workers

    def _store_result(self, record: Record) -> None:
        partition, offset, value = record
        if self._store.add(partition, offset):
            result = effect_of(self._spec.name, self._next_number(), value)
            now_us = self._host.clock.now_us
            self._history.record_store(self._processes[0], partition, ((offset, result),), now_us)

    def _hand_out_all(self, records: programs.Records, on_done: Callable[[Any], None]) -> None:
        self._workers.add(records)
        self._on_handed_out = on_done
        self._hand_out()
        self._answer_if_handed_out()

    def _hand_out(self) -> None:
        workers = self._workers
        while workers.waiting and workers.busy < self._spec.workers:
            work_us = between(self._host.choices.workload, 0, 2 * self._spec.work_us)
            self._host.set_timer(work_us, self._finish_record, workers.begin())

    def _answer_if_handed_out(self) -> bool:
        """Answer the program if it waits for a worker to take the last record, and one has.

        Return whether it was answered.
        """
        on_done = self._on_handed_out
        if on_done is None or self._workers.waiting:
            return False
        self._on_handed_out, self._all_finished = None, False
        on_done(self._workers.to_commit(self.consumer.consumed_to))
        return True

    def _finish_record(self, done: tuple[Record, dict[int, None] | None]) -> None:
        record, unfinished = done
        if self._has_ended:
            return
        self._write(record[2])
        self._workers.finish(record, unfinished)
        self._hand_out()
        if not self._answer_if_handed_out() and self._workers.is_done():
            # A real poll has a timeout. It ends here, so that the application commits finished
            # records even if no more records arrive.
            self._all_finished = True
            self.consumer.return_nothing()
