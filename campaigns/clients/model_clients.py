"""Runs the producers and consumers of a workload on the model.

Each process of a producer application is a session of its own: a restart starts a new session.
"""

from collections import deque
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final

from harrow.campaigns.clients.client import Reader, Sender
from harrow.campaigns.clients.client_promises import consumer_promises, producer_promises
from harrow.checks.evidence import ConsumerSettings, ProducerSettings
from harrow.cluster_model.clients.consumer import Consumer
from harrow.cluster_model.clients.group_consumer import GroupConsumer
from harrow.cluster_model.clients.producer import Producer
from harrow.cluster_model.clients.programs import (
    AbortOpenTransaction,
    CommitOpenTransaction,
    InitTransactions,
    IsTransactionOpen,
    MustAbort,
    OpenTransaction,
    Program,
    ProgramStep,
    SendNextRecord,
    WaitForRecord,
    generate_records,
    generate_transactions,
    transactions_to_abort,
)
from harrow.cluster_model.clients.transaction_manager import (
    ABORTABLE_ERROR,
    IN_TRANSACTION,
    OnDone,
    retry_timeouts,
)
from harrow.cluster_model.clients.transactional_producer import TransactionalProducer
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import ClientStopped, ClockStepped
from harrow.cluster_model.history import History
from harrow.cluster_model.settings import consumer_config, producer_config
from harrow.cluster_model.sim.choices import between
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topology import ConsumerSpec, ProducerSpec

_LATER: Final = object()
"""Stands for the answer to a program's step if the answer comes later."""


class ProducerClient(Sender):
    """A producer application: its sessions in sequence, and zombies that run beside them."""

    def __init__(self, spec: ProducerSpec, cluster: Cluster) -> None:
        self.spec = spec
        self._name = spec.name
        self.config = producer_config(cluster.release, spec.settings, cluster.behaviours)
        self._cluster = cluster
        self._sessions: list[_ProducerSession] = []
        self._generated = 0
        self._skew_us = 0
        self.aborts = transactions_to_abort(spec.transaction_abort_every)

    def start(self) -> None:
        session = self._begin_session()
        if self.spec.interval_us is not None:
            first_us = self.spec.start_us + between(self._cluster.choices.workload, 0, self.spec.interval_us)
            session.schedule(first_us)

    def _begin_session(self) -> "_ProducerSession":
        kind = TransactionalSession if self.config.transactional_id else _ProducerSession
        session = kind(self, self._cluster, self._skew_us)
        self._sessions.append(session)
        return session

    def next_value(self) -> str:
        """Return the next value to send. It is unique across the sessions of the client."""
        number = self._generated
        self._generated = number + 1
        return f"{self._name}:{number}"

    def is_nth(self, every: int) -> bool:
        """Return whether the number of values up to now is a multiple of *every*."""
        return self._generated % every == 0

    def send(
        self, value: str, partition: str | None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        # An application that is down accepts no records.
        if self._sessions[-1].process.running:
            self._sessions[-1].send(value, partition, key, tombstone=tombstone)

    def begin_transaction(self) -> None:
        self._transactional_session().begin_transaction()

    def commit_transaction(self) -> None:
        self._transactional_session().commit_transaction()

    def abort_transaction(self) -> None:
        self._transactional_session().abort_transaction()

    def _transactional_session(self) -> "TransactionalSession":
        session = self._sessions[-1]
        assert isinstance(session, TransactionalSession), f"{self.spec.name} has no transactional.id"
        return session

    def restart(self) -> None:
        self.stop()
        self.start_again()

    def stop(self) -> None:
        if self.is_running():
            self._cluster.trace.emit(ClientStopped, self.spec.name)
        for session in self._sessions:
            session.stop()

    def unfinished(self) -> int:
        return sum(session.unfinished() for session in self._sessions)

    def producer_settings(self) -> dict[int, ProducerSettings]:
        return {
            session.history_process: producer_promises(self.spec.name, self.config)
            for session in self._sessions
        }

    def is_running(self) -> bool:
        return bool(self._sessions) and self._sessions[-1].process.running

    def is_paused(self) -> bool:
        return self._sessions[-1].process.paused

    def crash(self) -> None:
        self.stop()

    def start_again(self) -> None:
        session = self._begin_session()
        if self.spec.interval_us is not None:
            session.schedule(self._cluster.simulator.now_us + self.spec.interval_us)

    def pause(self) -> None:
        self._sessions[-1].pause()

    def resume(self) -> None:
        for session in self._sessions:
            session.resume()

    def step_clock(self, by_us: int) -> None:
        self._skew_us += by_us
        self._cluster.trace.emit(ClockStepped, self.spec.name, by_us, self._skew_us)
        for session in self._sessions:
            if session.process.running:
                session.producer.on_clock_step(by_us)

    def set_clock(self) -> None:
        if self._skew_us:
            self.step_clock(-self._skew_us)

    def can_become_zombie(self) -> bool:
        return True

    def make_zombie(self) -> None:
        self.pause()
        self.start_again()


class _ProducerSession:
    """A process of a producer application, with its producer."""

    _PRODUCER: ClassVar[type[Producer]] = Producer

    def __init__(self, client: ProducerClient, cluster: Cluster, skew_us: int) -> None:
        spec = client.spec
        self.process = Process(spec.name, skew_us=skew_us)
        self.history_process = cluster.history.new_process(spec.name)
        self._client = client
        self._cluster = cluster
        self._interval_us = spec.interval_us
        self._stop_us = spec.stop_us
        self._keys = spec.keys
        self.producer = self._PRODUCER(
            cluster.host(self.process),
            self.history_process,
            tuple(cluster.processes),
            spec.partitions or cluster.partition_names(),
            client.config,
            cluster.behaviours,
            cluster.history,
            spec.record_bytes,
            () if spec.partitions else cluster.topic_names(),
            later=cluster.absent_ids(),
        )
        self._awaits_record = False
        self._program = self._make_program()
        self.producer.start()
        self._advance(None)

    def unfinished(self) -> int:
        return self.producer.unfinished

    def send(self, value: str, partition: str | None, key: str | None, *, tombstone: bool) -> None:
        self.producer.send(value, partition, key, tombstone=tombstone)

    def stop(self) -> None:
        if self.process.running:
            self.producer.abandon()
            self.process.kill()
            self._cluster.network.process_died(self.process, power_loss=False)

    def pause(self) -> None:
        pause(self._cluster, self.process)

    def resume(self) -> None:
        if self.process.paused:
            self._cluster.simulator.resume(self.process)

    def schedule(self, at_us: int) -> None:
        """Schedule the next record, unless the producer stops before *at_us*."""
        if self._stop_us is None or at_us < self._stop_us:
            self._cluster.simulator.schedule(at_us, self.process, self._record_due, None)
        else:
            self._report_due(is_due=False)

    def _record_due(self, _: None) -> None:
        self._report_due(is_due=True)
        interval_us = self._interval_us
        assert interval_us is not None
        # Gaps range from half to one and a half times the mean.
        gap_us = interval_us // 2 + self._cluster.choices.workload.below(interval_us + 1)
        self.schedule(self._cluster.simulator.now_us + gap_us)

    # The driver of the application's program (`harrow.cluster_model.clients.programs`). The program
    # yields steps, and the driver performs each with the producer and sends the answer back.

    def _make_program(self) -> Program:
        return generate_records()

    def _report_due(self, *, is_due: bool) -> None:
        if self._awaits_record:
            self._awaits_record = False
            self._advance(is_due)

    def _advance(self, answer: Any) -> None:
        """Resume the program with an answer. Perform its steps until it has to wait or ends."""
        while True:
            try:
                step = self._program.send(answer)
            except StopIteration:
                return
            if isinstance(step, WaitForRecord):
                self._awaits_record = True
                return
            answer = self._perform(step)
            if answer is _LATER:
                return

    def _perform(self, step: ProgramStep) -> Any:
        """Perform a step, and return the answer to it, or `_LATER`."""
        assert isinstance(step, SendNextRecord), step
        self._send_next()
        return None

    def _send_next(self) -> None:
        value = self._client.next_value()
        if not self._keys:
            self.producer.send(value)
            return
        every = self._client.spec.tombstone_every
        key = f"k{self._cluster.choices.workload.below(self._keys)}"
        self.producer.send(value, None, key, tombstone=bool(every) and self._client.is_nth(every))


class TransactionalSession(_ProducerSession):
    """A process of an application with transactions.

    The application calls its producer from one thread. While it waits for a call to return, further
    calls from the campaign's script are queued, and generated records that are due are skipped.
    """

    _PRODUCER = TransactionalProducer

    def __init__(self, client: ProducerClient, cluster: Cluster, skew_us: int) -> None:
        self._is_waiting = False
        self._calls: deque[Callable[[], None]] = deque()
        super().__init__(client, cluster, skew_us)

    @property
    def _transactional(self) -> TransactionalProducer:
        assert isinstance(self.producer, TransactionalProducer)
        return self.producer

    def unfinished(self) -> int:
        """Count the records in flight and the unfinished calls, but not an open transaction."""
        return super().unfinished() + (self._is_waiting + len(self._calls) if self.process.running else 0)

    # Calls that the campaign's script makes

    def send(self, value: str, partition: str | None, key: str | None, *, tombstone: bool) -> None:
        self._call(lambda: self.producer.send(value, partition, key, tombstone=tombstone))

    def begin_transaction(self) -> None:
        self._call(self._begin)

    def commit_transaction(self) -> None:
        self._call(lambda: self._wait_for(self._transactional.commit_transaction, self._ignore))

    def abort_transaction(self) -> None:
        self._call(lambda: self._wait_for(self._transactional.abort_transaction, self._ignore))

    def _call(self, call: Callable[[], None]) -> None:
        if self._is_waiting:
            self._calls.append(call)
        elif self.process.running:
            call()

    def _begin(self) -> None:
        self._transactional.begin_transaction()

    def _ignore(self, _: str) -> None:
        """Ignore the error of a call that the campaign's script makes."""

    def _wait_for(self, call: Callable[[OnDone], None], on_done: OnDone) -> None:
        """Make a call. When it has returned, make the calls that were queued meanwhile."""

        def returned(error: str) -> None:
            self._is_waiting = False
            on_done(error)
            while self._calls and not self._is_waiting:
                self._calls.popleft()()

        self._is_waiting = True
        retry_timeouts(call, returned)

    # The driver of the application's program

    def _make_program(self) -> Program:
        return generate_transactions(self._client.spec.transaction_records, self._client.aborts)

    def _report_due(self, *, is_due: bool) -> None:
        if not self._is_waiting:
            super()._report_due(is_due=is_due)

    def _perform(self, step: ProgramStep) -> Any:
        transactional = self._transactional
        if isinstance(step, MustAbort):
            return transactional.transactions.state == ABORTABLE_ERROR
        if isinstance(step, IsTransactionOpen):
            return transactional.transactions.state == IN_TRANSACTION
        if isinstance(step, OpenTransaction):
            return transactional.begin_transaction()
        if isinstance(step, SendNextRecord):
            return super()._perform(step)
        if isinstance(step, InitTransactions):
            self._wait_for(transactional.init_transactions, self._advance)
        elif isinstance(step, CommitOpenTransaction):
            self._wait_for(transactional.commit_transaction, self._advance)
        else:
            assert isinstance(step, AbortOpenTransaction), step
            self._wait_for(transactional.abort_transaction, self._advance)
        return _LATER


def pause(cluster: Cluster, process: Process) -> None:
    process.paused = True
    cluster.network.wake_idle_fetches(process)


class ConsumerClient(Reader):
    """A consumer application."""

    def __init__(self, spec: ConsumerSpec, cluster: Cluster, bootstrap: tuple[int, ...] = ()) -> None:
        self.spec = spec
        self._cluster = cluster
        self._config = consumer_config(cluster.release, spec.settings)
        self._bootstrap = bootstrap
        self._process = Process(spec.name)
        self._zombies: list[Process] = []
        self._consumer: Consumer | None = None
        self._history_process = -1
        self._history_processes: list[int] = []
        self._operations_seen = 0
        self._consumed: set[str] = set()
        self._skips_corrupt = False
        self._slow_us = 0

    def skip_corrupt(self) -> None:
        self._skips_corrupt = True

    def start(self) -> None:
        now_us = self._cluster.simulator.now_us
        self._cluster.simulator.schedule(max(self.spec.start_us, now_us), self._process, self._begin, None)
        if self.spec.group and self.spec.stop_us is not None:
            self._cluster.at(max(self.spec.stop_us, now_us), self._close)

    def _close(self, _: None) -> None:
        """Close the consumer and end its process; a paused process is closed when it resumes."""
        if isinstance(self._consumer, GroupConsumer) and self._process.running:
            simulator = self._cluster.simulator
            member = self._consumer, self._process
            simulator.schedule(simulator.now_us, self._process, self._leave, member)

    def _leave(self, member: tuple[GroupConsumer, Process]) -> None:
        consumer, process = member
        consumer.close(lambda: self._end(process))

    def _end(self, process: Process) -> None:
        self._cluster.trace.emit(ClientStopped, self.spec.name)
        self._kill(process)

    def _begin(self, _: None) -> None:
        history = self._cluster.history
        self._history_process = history.new_process(self.spec.name)
        self._history_processes.append(self._history_process)
        self._operations_seen = len(history.operations)
        if self.spec.group:
            self._begin_as_member(history)
            return
        self._consumer = Consumer(
            self._cluster.host(self._process),
            self._history_process,
            tuple(self._cluster.processes),
            self.spec.partitions or self._cluster.partition_names(),
            self._config,
            history,
            self.spec.poll_interval_us,
            self._bootstrap,
            sends_leader_epoch=self._cluster.behaviours.replication.fetch_leader_epoch_fencing,
            skips_corrupt=self._skips_corrupt,
            topics=() if self.spec.partitions else self._cluster.topic_names(),
            fetch_error_clears_read_replica=self._cluster.behaviours.clients.fetch_error_clears_read_replica,
            later=self._cluster.absent_ids(),
        )
        self._consumer.start()

    def _begin_as_member(self, history: History) -> None:
        spec, cluster = self.spec, self._cluster
        topics = spec.topics or cluster.topic_names()
        self._consumer = GroupConsumer(
            cluster.host(self._process),
            self._history_process,
            tuple(cluster.processes),
            self._config,
            cluster.behaviours,
            history,
            spec.poll_interval_us + self._slow_us,
            topics=topics,
            topic_partitions=tuple(
                name for name in cluster.partition_names() if name.rpartition("-")[0] in topics
            ),
            partitions=spec.partitions,
            commit=spec.commit,
        )
        self._consumer.start()

    def stop(self) -> None:
        for process in (*self._zombies, self._process):
            self._kill(process)

    def _kill(self, process: Process) -> None:
        process.kill()
        self._cluster.network.process_died(process, power_loss=False)

    def is_running(self) -> bool:
        return self._consumer is not None and self._process.running

    def can_become_zombie(self) -> bool:
        return bool(self.spec.group)

    def can_be_slowed(self) -> bool:
        return bool(self.spec.group)

    def slow_down(self, by_us: int) -> None:
        self._slow_us += by_us
        if isinstance(self._consumer, GroupConsumer):
            self._consumer.slow_down(by_us)

    def is_member(self) -> bool:
        return bool(self.spec.group)

    def close(self) -> None:
        self._close(None)

    def make_zombie(self) -> None:
        self.pause()
        self._zombies.append(self._process)
        self._process = Process(self.spec.name)
        self._begin(None)

    def is_paused(self) -> bool:
        return self._process.paused

    def crash(self) -> None:
        self._cluster.trace.emit(ClientStopped, self.spec.name)
        self.stop()

    def start_again(self) -> None:
        self._process.start()
        self._begin(None)

    def pause(self) -> None:
        pause(self._cluster, self._process)

    def resume(self) -> None:
        for process in (*self._zombies, self._process):
            if process.paused:
                self._cluster.simulator.resume(process)

    def step_clock(self, by_us: int) -> None:
        self._process.skew_us += by_us
        self._cluster.trace.emit(ClockStepped, self.spec.name, by_us, self._process.skew_us)
        if self._consumer is not None and self._process.running:
            self._consumer.on_clock_step(by_us)

    def set_clock(self) -> None:
        if self._process.skew_us:
            self.step_clock(-self._process.skew_us)

    def consumed(self) -> Collection[str]:
        # Few runs call this, so values are collected only when it is called; there may be millions.
        operations = self._cluster.history.operations
        if self._consumer is not None and len(operations) > self._operations_seen:
            for operation in operations[self._operations_seen :]:
                if operation.process == self._history_process:
                    self._consumed.update([consumed for _, _, consumed in operation.polls()])
            self._operations_seen = len(operations)
        return self._consumed

    def consumer_settings(self) -> dict[int, ConsumerSettings]:
        return dict.fromkeys(self._history_processes, consumer_promises(self.spec, self._config))

    def position(self, partition: str) -> int | None:
        return None if self._consumer is None else self._consumer.read_end(partition)

    def is_held_up(self, partition: str) -> bool:
        return self._consumer is not None and self._consumer.is_held_up(partition)

    def has_read_to_end(self) -> bool:
        return self._consumer is not None and self._consumer.has_read_to_end()
