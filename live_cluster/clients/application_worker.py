"""The process of an application, which runs a program with the blocking calls of a library.

`harrow.cluster_model.clients.application.Application` runs the same programs on the model.
"""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from harrow.cluster_model.clients import programs
from harrow.cluster_model.errors import NONE
from harrow.cluster_model.history import effect_of
from harrow.live_cluster.clients.channel import AskingChannel, Channel
from harrow.live_cluster.clients.client_library import ClientLibrary, MembershipError
from harrow.live_cluster.clients.member import GroupMembership
from harrow.live_cluster.clients.run_clock import RunClock
from harrow.live_cluster.clients.senders import LibrarySender, ProducerFailedError, TransactionalSender
from harrow.live_cluster.names import names_of

OF_PRODUCER: Final = "producer"
OF_CONSUMER: Final = "consumer"
"""Values of ``of`` in a report: it comes from the application's producer, or from its consumer. A
report without ``of`` comes from the application itself."""
_POLL_INTERVAL_S: Final = 0.02
_OUTCOMES_TIMEOUT_S: Final = 5.0
"""How long an application waits for the outcomes of its records before it is held."""
_NO_OFFSETS: Final[Mapping[str, int]] = {}


class ApplicationWorker:
    """Runs the program of an application with a consumer and, for some, a producer."""

    def __init__(self, channel: Channel, client: dict[str, Any], library: ClientLibrary) -> None:
        self._channel = AskingChannel(channel)
        self._name: str = client["name"]
        self._source: str = client["source"]
        self._partitions: list[str] = client["partitions"]
        self._clock = RunClock()
        self._start_ns: int = client["start_ns"]
        self._stop_ns: int | None = client["stop_ns"]
        self._work_s: float = client["work_ns"] / 1e9
        self._slow_s: float = client["slow_ns"] / 1e9
        self._as_member: bool = client["group_metadata"]
        self._hold_point = programs.HoldPoint()
        self._set_hold(client["hold"])
        self._is_held = False
        self._is_closing = False
        self._is_over = False
        self._last_waiting: dict[str, Any] = {}
        self._written_count = 0
        # The offsets in the open transaction.
        self._offsets: dict[str, int] = {}
        # Guards the workers and their results.
        self._changed = threading.Condition()
        self._workers = programs.WorkerRecords(client["delivery"])
        # Whether the workers have finished all records at some time since the last commit.
        self._all_finished = False
        self._workers_count: int = client["workers"]
        self._work_times_ns: list[int] = client["takes_ns"]
        self._worked_count = 0
        self._program = programs.APPLICATIONS[client["delivery"]](rewinds=client["rewinds"])
        self._transactions: TransactionalSender | None = None
        self._sender = self._make_sender(client, library)
        self._member = GroupMembership(
            partial(self._channel.report_now, of=OF_CONSUMER),
            library.make_member(client["consumer"]),
            names_of(client),
            client["max_poll_records"],
            begins_at_zero=client["begins_at_zero"],
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
        )
        self._handlers: dict[type[programs.ProgramStep], Callable[[Any], Any]] = {
            programs.SubscribeToSource: lambda _: self._member.subscribe([self._source]),
            programs.PollRecords: lambda _: self._poll(),
            programs.SlowDown: lambda _: time.sleep(self._slow_s),
            programs.ProcessRecord: lambda _: time.sleep(self._work_s),
            programs.WriteResult: lambda step: self._write(step.value),
            programs.FlushResults: lambda _: NONE if self._any_sender.flush() else programs.SEND_FAILED,
            programs.CommitOffsets: self._commit,
            programs.RewindToCommitted: lambda _: self._member.rewind(),
            programs.CloseClients: lambda _: self._close(),
            programs.InitTransactions: lambda _: self._transactional.init_transactions() or NONE,
            programs.OpenTransaction: lambda _: self._transactional.begin() or NONE,
            programs.SendOffsets: lambda _: self._send_offsets() or NONE,
            programs.CommitOpenTransaction: lambda _: self._transactional.commit() or NONE,
            programs.AbortOpenTransaction: lambda _: self._transactional.abort() or NONE,
            programs.HasProducerFailed: lambda _: self._transactional.has_failed,
            programs.NoteOffsets: self._note_offsets,
            programs.StoreResult: lambda step: self._store(*step.record),
            programs.PrepareRecords: lambda _: time.sleep(self._slow_s),
            programs.HandOut: lambda step: self._hand_out(step.records),
            programs.ForgetHandedOut: lambda _: self._forget(),
        }

    def _make_sender(self, client: dict[str, Any], library: ClientLibrary) -> LibrarySender | None:
        report = partial(self._channel.report_now, of=OF_PRODUCER)
        settings, names = client["producer"], names_of(client)
        if settings is None:
            return None
        if not isinstance(self._program, programs.ExactlyOnce):
            return LibrarySender(report, library.make_producer(settings), names)
        self._transactions = TransactionalSender(report, library.make_transactions(settings), names)
        return self._transactions

    @property
    def _any_sender(self) -> LibrarySender:
        assert self._sender is not None, "only a program with a target topic writes"
        return self._sender

    @property
    def _transactional(self) -> TransactionalSender:
        assert self._transactions is not None, "only a program with transactions uses them"
        return self._transactions

    def work(self, orders: list[dict[str, Any]]) -> None:
        """Run the program from its start time to its end; then wait to be killed."""
        self._clock.await_beginning(self._channel, orders)
        for order in orders:
            self._obey(order)
        while (left_s := (self._start_ns - self._clock.now_ns()) / 1e9) > 0:
            self._obey_all(left_s)
        if self._sender is not None:
            threading.Thread(target=self._receive_outcomes, args=(self._sender,), daemon=True).start()
        if isinstance(self._program, programs.ParallelWorkers):
            for _ in range(self._workers_count):
                threading.Thread(target=self._run_worker, daemon=True).start()
        try:
            error = self._run()
            self._channel.report_now(ended=None if error == NONE else error)
            while True:
                self._channel.orders(None)
        finally:
            self._is_over = True

    def _receive_outcomes(self, sender: LibrarySender) -> None:
        """Receive outcomes of records at any time, as the sender thread of the Java client does."""
        while not self._is_over:
            sender.poll(_POLL_INTERVAL_S)

    # Orders

    def _obey_all(self, timeout_s: float | None) -> None:
        for order in self._channel.orders(timeout_s):
            self._obey(order)

    def _obey(self, order: dict[str, Any]) -> None:
        if "hold" in order:
            self._set_hold(order["hold"])
        elif "slow_ns" in order:
            self._slow_s = order["slow_ns"] / 1e9
        elif "close" in order:
            self._is_closing = True
        else:
            # Any other order releases a held application.
            self._hold_point.hold = None
            self._is_held = False

    def _set_hold(self, hold: list[Any] | None) -> None:
        self._hold_point.hold = None if hold is None else (hold[0], hold[1])

    # Steps

    def _run(self) -> str:
        """Run the program to its end, and return its error."""
        program, answer = self._program.run(), None
        try:
            while True:
                step = program.send(answer)
                if step.name:
                    self._reach(step.name)
                answer = self._handlers[type(step)](step)
        except StopIteration as stopped:
            error: str = stopped.value
            return error
        except ProducerFailedError as failed:
            return str(failed)
        except MembershipError:
            return programs.CONSUMER_FAILED

    def _reach(self, step: str) -> None:
        """Report a step, and wait if the application is held there."""
        if step == programs.POLL:
            self._end_if_producer_failed()
        self._obey_all(0)
        if self._hold_point.should_report(step):
            self._channel.report_now(step=step)
        if not self._hold_point.is_awaited(step):
            return
        holds = self._hold_point.holds(step)
        self._channel.report_now(passed=step, hold=self._hold_point.hold)
        if not holds:
            return
        # On the model records leave at once. Those of a library wait for a thread, and a pause
        # could delay them.
        if self._sender is not None:
            self._sender.wait(_OUTCOMES_TIMEOUT_S)
        self._is_held = True
        self._channel.report_now(held=step)
        while self._is_held:
            self._obey_all(None)

    def _end_if_producer_failed(self) -> None:
        """End the application if its producer has failed for good.

        The Java client would recover.
        """
        error = None if self._sender is None else self._sender.fatal_error()
        if error is not None:
            raise ProducerFailedError(error)

    # Consumer

    def _poll(self) -> programs.Records | None:
        """Wait until there are records, or the application must close or commit."""
        if self._program.commits_itself:
            # The Java client commits the records of earlier polls in a poll
            # (``ConsumerCoordinator.maybeAutoCommitOffsetsAsync``).
            self._member.set_processed(self._member.consumed)
        invoked_ns = time.monotonic_ns()
        while True:
            if self._stop_ns is not None and self._clock.now_ns() >= self._stop_ns:
                self._is_closing = True
            is_over = self._is_closing or self._must_commit()
            records = self._member.poll(invoked_ns, 0 if is_over else _POLL_INTERVAL_S)
            if records or is_over:
                break
            self._report_waiting(is_idle=self._member.is_settled and self._is_idle())
            self._obey_all(0)
        self._report_waiting(is_idle=False)
        return None if self._is_closing and not records else records

    def _report_waiting(self, *, is_idle: bool) -> None:
        waiting = {"idle": is_idle, "reached": self._member.read_end()}
        if waiting != self._last_waiting:
            self._last_waiting = waiting
            self._channel.report_now(**waiting)

    def _on_assigned(self, partitions: list[str]) -> Mapping[str, int]:
        """Return the offsets at which to begin instead of the group's committed offsets."""
        if not self._program.begins_at_store:
            return _NO_OFFSETS
        offsets: Mapping[str, int] = self._channel.ask(stored=partitions)
        return offsets

    def _on_revoked(self, partitions: list[str]) -> None:
        with self._changed:
            self._workers.forget(partitions)

    def _commit(self, step: programs.CommitOffsets) -> str:
        offsets = self._member.consumed if step.offsets is None else step.offsets
        return self._member.commit(offsets) or NONE

    def _close(self) -> None:
        if self._sender is not None:
            self._sender.flush()
        self._member.close()

    # Producer

    def _write(self, value: str) -> None:
        with self._changed:
            # All processes of an instance share one sequence of numbers.
            number: int = self._channel.ask(next=True)
            partition = self._partitions[self._written_count % len(self._partitions)]
            self._written_count += 1
            self._any_sender.send(partition, effect_of(self._name, number, value))

    def _send_offsets(self) -> str | None:
        self._offsets = dict(self._member.consumed)
        metadata = self._member.group_metadata(as_member=self._as_member)
        self._channel.report_now(of=OF_CONSUMER, committing=self._offsets)
        return self._transactional.send_offsets(self._member.on_cluster(self._offsets), metadata)

    def _note_offsets(self, step: programs.NoteOffsets) -> None:
        offsets, self._offsets = self._offsets, {}
        if offsets:
            error = None if step.error == NONE else step.error
            self._channel.report_now(of=OF_CONSUMER, committed=offsets, error=error, outcome=step.outcome)

    # Store and workers

    def _store(self, partition: str, offset: int, value: str) -> None:
        """Store a result in harrow, which has the store of all instances."""
        self._channel.ask(store=value, partition=partition, offset=offset)

    def _hand_out(self, records: programs.Records) -> dict[str, int]:
        with self._changed:
            self._workers.add(records)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._workers.waiting)
            self._all_finished = False
            return self._workers.to_commit(self._member.consumed)

    def _run_worker(self) -> None:
        """Run one worker."""
        workers = self._workers
        while True:
            with self._changed:
                self._changed.wait_for(lambda: workers.waiting)
                record, unfinished = workers.begin()
                work_ns = self._work_times_ns[self._worked_count % len(self._work_times_ns)]
                self._worked_count += 1
                self._changed.notify_all()
            _work(work_ns)
            self._write(record[2])
            with self._changed:
                workers.finish(record, unfinished)
                self._all_finished = self._all_finished or workers.is_done()

    def _is_idle(self) -> bool:
        with self._changed:
            return self._workers.is_done()

    def _must_commit(self) -> bool:
        # A poll has a timeout, so that finished records are committed even if no more arrive.
        with self._changed:
            return self._all_finished

    def _forget(self) -> None:
        with self._changed:
            self._workers.forget_all()


def _work(duration_ns: int) -> None:
    time.sleep(duration_ns / 1e9)
