"""All replicas of a broker: produce, fetch, leadership, ISR, checkpoints (``ReplicaManager.scala``)."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

from harrow.cluster_model import errors, events, protocol
from harrow.cluster_model.broker.append_locks import AppendLocks, Steps
from harrow.cluster_model.broker.client_quota_manager import ClientQuotaManager
from harrow.cluster_model.broker.delayed_requests import (
    DelayedDeleteRecords,
    DelayedFetch,
    DelayedProduce,
    OperationTimer,
    PendingAck,
)
from harrow.cluster_model.broker.fetch_session import (
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    FetchWatchers,
)
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.purgatory import Purgatory
from harrow.cluster_model.broker.rate import NO_LIMIT
from harrow.cluster_model.broker.replica_fetcher import ReplicaFetcherManager
from harrow.cluster_model.broker.replica_selector import may_have_read_replica, preferred_read_replica
from harrow.cluster_model.broker.replication_quota_manager import ReplicationQuotaManager
from harrow.cluster_model.broker.transaction_verification import TransactionVerification, Verified
from harrow.cluster_model.controller.control_plane import AlterPartitionManager
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.producer_state import ProducerStates
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch, record_count
from harrow.cluster_model.log.unified_log import HIGH_WATERMARK_TRUNCATION, NO_OFFSET, UnifiedLog
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.release.replication import HIGH_WATERMARK, LEADER_EPOCH, WITH_SELECTOR
from harrow.cluster_model.release.switch import ALWAYS
from harrow.cluster_model.settings import NO_SELECTOR, BrokerConfig, TopicConfig
from harrow.cluster_model.sim.connection import Connection, Message
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.periodic_task import PeriodicTask
from harrow.cluster_model.topology import is_internal

_BOOTSTRAP_MAX_US: Final = 10**9
"""Longer than a cluster needs to start, which it does before time zero."""

_BY_EPOCH: Final = (errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH)
_LEADER_CHANGE_ERRORS: Final = (errors.NOT_LEADER_FOR_PARTITION, errors.FENCED_LEADER_EPOCH)
_UNVERIFIED: Final = (
    errors.CONCURRENT_TRANSACTIONS,
    errors.NETWORK_EXCEPTION,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
)
"""Why it is not known whether a partition is in a transaction: producers try NOT_ENOUGH_REPLICAS again (``handleProduceAppend``)."""
_NO_GUARD: Final = -1
_LEADER_ANSWERS: Final = (errors.NONE, errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH)
"""What only a leader finds of a fetch's leader epoch."""


AppendCompleted = Callable[[dict[str, PendingAck]], None]
"""Told of each partition the error and the base offset of what was appended."""


class ReplicaManager:
    """The partitions of one broker since its last start."""

    # Of more than 30 attributes CPython makes a dictionary for each object, and looks up everything more slowly.
    __slots__ = (
        "_alter_partition_manager",
        "_answers_by_hw",
        "_behaviours",
        "_broker",
        "_config",
        "_delete_purgatory",
        "_fetch_quota",
        "_fetch_watchers",
        "_fetchers",
        "_host",
        "_is_shut_down",
        "_is_shutting_down",
        "_isr_shrinking",
        "_isr_suspects",
        "_isr_writes",
        "_leader_quota",
        "_leader_throttled_rate",
        "_metadata",
        "_produce_purgatory",
        "_respond",
        "_selects_read_replica",
        "_sessions",
        "_switches",
        "_timers",
        "_topic_config",
        "_transaction_switches",
        "_verification",
        "_verified",
        "append_locks",
        "controller_epoch",
        "logs",
        "on_leadership_change",
        "on_log_dir_failure",
        "on_unblocked",
        "partitions",
        "repeats_idle_fetches",
    )

    def __init__(
        self,
        broker: int,
        host: Host,
        disk: Disk,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        behaviours: Behaviours,
        alter_partition_manager: AlterPartitionManager,
        respond: Callable[[Message, Any], None],
        metadata: MetadataCache,
        fetch_quota: ClientQuotaManager | None = None,
    ) -> None:
        self._broker = broker
        self._host = host
        self.logs = LogManager(broker, host, disk, config, topic_config, behaviours)
        self.append_locks = AppendLocks(host, disk)
        self._config = config
        self._topic_config = topic_config
        self._behaviours = behaviours
        self._switches = behaviours.replication
        self._transaction_switches = behaviours.transactions
        self._respond = respond
        self._metadata = metadata
        self._fetch_quota = fetch_quota
        # From the first partition on that is throttled.
        self._leader_quota: ReplicationQuotaManager | None = None
        self._leader_throttled_rate = config.leader_throttled_rate
        self.partitions: dict[str, Partition] = {}
        self.controller_epoch = 0
        self._fetch_watchers = FetchWatchers()
        self._sessions = FetchSessionCache(
            config.fetch_session_slots,
            self._fetch_watchers,
            # Kafka draws ids. Two lives of a broker have to have different ones all the same.
            first_id=max(host.clock.now_us + _BOOTSTRAP_MAX_US, 1),
            bound_to_connection=not behaviours.replication.fetch_sessions,
        )
        # The partitions of which a member of the ISR may be behind, and so out of sync one day.
        self._isr_suspects: dict[str, None] = {}
        looks_twice = not behaviours.replication.isr_lag_counts_messages
        self._isr_shrinking = PeriodicTask(
            host, config.replica_lag_time_max_us // (1 + looks_twice), self._shrink_isrs
        )
        self._isr_writes: dict[str, None] = {}
        self._produce_purgatory: Purgatory[DelayedProduce] = Purgatory()
        self._delete_purgatory: Purgatory[DelayedDeleteRecords] = Purgatory()
        self._timers: dict[int, OperationTimer] = {}
        self._verification = TransactionVerification(
            host,
            metadata,
            config.transaction_topic_partitions,
            adds=behaviours.transactions.transactions_v2,
        )
        # What coordinators have answered about produces that wait to be handled again.
        self._verified: dict[tuple[int, int], dict[str, tuple[str, int]]] = {}
        self._alter_partition_manager = alter_partition_manager
        # Consumers that read from a follower have something to read when its high watermark has moved (KIP-392).
        replicated = (
            self._fetch_watchers.check
            if behaviours.replication.replication_completes_fetches
            else self._fetch_watchers.note
        )
        self._fetchers = ReplicaFetcherManager(
            broker,
            host,
            config,
            behaviours.replication,
            self.append_locks,
            replicated,
            self._fetch_watchers.note,
        )
        self._answers_by_hw = behaviours.replication.high_watermark_answers_followers == ALWAYS or (
            behaviours.replication.high_watermark_answers_followers == WITH_SELECTOR
            and config.replica_selector != NO_SELECTOR
        )
        self._selects_read_replica = (
            behaviours.replication.follower_fetching and config.replica_selector != NO_SELECTOR
        )
        self.repeats_idle_fetches = True
        """Whether a fetch that waits may repeat itself: not while requests wait for threads."""
        self._is_shutting_down = False
        self._is_shut_down = False
        self.logs.on_dir_failure = self.handle_log_dir_failure
        self.logs.on_log_start = self._log_start_raised
        self.on_unblocked: Callable[[Message], None] = self.handle_produce
        """What handles a request to append that has waited for an ISR to be written, while the disk is slow."""
        self.on_log_dir_failure: Callable[[tuple[str, ...]], None] = lambda _: None
        self.on_leadership_change: Callable[[Partition, bool], None] = lambda _partition, _leads: None
        """Told when a partition of an internal topic is led here in another epoch, or is not led here any more."""

    def start(self) -> None:
        """Begin the periodic tasks."""
        self._alter_partition_manager.start()
        self.logs.start()
        self._isr_shrinking.start()

    def clock_stepped(self, by_us: int) -> None:
        """Have followers been caught up so much longer ago, as the clock has it by which leaders go (``Replica.isCaughtUp``)."""
        sessions: dict[tuple[int, int], FetchSession] = {}
        for partition in self.partitions.values():
            for replica in partition.remote_replicas.values():
                replica.clock_stepped(by_us)
                if replica.session is not None:
                    sessions[replica.broker, replica.session.id] = replica.session
        for session in sessions.values():
            session.counted_us = session.last_fetch_us - by_us
        self.logs.clock_stepped()

    @property
    def hangs(self) -> bool:
        """Whether a shutdown waits for ever for a fetcher, and never comes to what follows."""
        return self._fetchers.hangs

    def shutdown(self) -> None:
        """Stop fetching, answer nothing that waits, and close the logs (``ReplicaManager.shutdown``)."""
        self._is_shut_down = True
        self._fetchers.shutdown()
        self._verification.close()
        for timer in self._timers.values():
            timer.stop()
        if self.hangs:
            self.logs.stop()
        else:
            self.logs.shutdown()

    def connection_closed(self, connection: Connection) -> None:
        """Forget the timer of a connection that is gone."""
        self._timers.pop(connection.id, None)
        self._sessions.connection_closed(connection.id)

    # Produce

    def handle_produce(self, message: Message) -> None:
        """Append, and answer as acks says."""
        request: protocol.ProduceRequest = message[2]
        if self._blocked(request.batches, self.handle_produce, message):
            return
        if request.transactional_id:
            if not self._is_verified(message):
                return
            acks = {name: self._append_of_transaction(message, name) for name in request.batches}
            self._verified.pop(_key(message), None)
        else:
            acks = {name: self._append(name, batch, request.acks) for name, batch in request.batches.items()}
        self._answer_produce(message, acks)
        # Followers are woken after this request has its place in the purgatory: what
        # they fetch now may complete it.
        for name in request.batches:
            self._fetch_watchers.check(name)

    def produce_steps(self, message: Message) -> Steps:
        """Append while the disk is slow: one batch after the other, of which those that are refused wait for no disk."""
        request: protocol.ProduceRequest = message[2]
        if self._blocked(request.batches, self.on_unblocked, message):
            return
        if request.transactional_id and not self._is_verified(message):
            return
        locks, acks = self.append_locks, {}
        for name, batch in request.batches.items():
            if name in self.partitions:
                yield from locks.begin_append(name)
                partition = self.partitions.get(name)
                if partition is not None and partition.may_append(batch, request.acks):
                    yield from locks.write(name)
                acks[name] = self._append_of_transaction(message, name)
                locks.end_append(name)
                self._fetch_watchers.check(name)
            else:
                acks[name] = self._append(name, batch, request.acks)
        self._verified.pop(_key(message), None)
        self._answer_produce(message, acks)

    def _answer_produce(self, message: Message, acks: dict[str, PendingAck]) -> None:
        """Answer as acks says, at once or when the followers have what was appended."""
        request: protocol.ProduceRequest = message[2]
        if request.acks == -1 and any(ack.pending for ack in acks.values()):
            deadline_us = self._host.clock.now_us + request.timeout_us
            delayed = DelayedProduce(message, deadline_us, acks, self.partitions, self._complete_produce)
            if not delayed.try_complete():
                self._produce_purgatory.watch(delayed, list(acks))
                self._watch_deadline(message[0], delayed)
        else:
            self._complete_produce(message, acks)

    # Transactions

    def verify_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: tuple[str, ...],
        on_verified: Verified,
    ) -> None:
        """Ask the coordinator whether a group's partitions are in a transaction, or with transactions v2 add them.

        (``maybeStartTransactionVerificationForPartition``.) The coordinator is not asked about those in which it is open already, nor about
        those in which its producer has gone on to a later epoch, nor in releases that verify nothing. *on_verified* is told the errors.
        """
        unknown: list[str] = []
        refused: dict[str, str] = {}
        behaviours = self._behaviours
        is_asked = (
            behaviours.transactions.transactional_commits_verified or behaviours.transactions.transactions_v2
        )
        for name in partitions if is_asked and behaviours.transactions.transaction_verification else ():
            partition = self.partitions.get(name)
            if partition is None:
                continue
            if self._is_refused_unverified(partition, producer_id, producer_epoch):
                refused[name] = errors.INVALID_PRODUCER_EPOCH
            elif not partition.log.producers.is_in_transaction(producer_id, producer_epoch):
                unknown.append(name)
        if not unknown:
            on_verified(refused)
            return

        def verified(found: dict[str, str]) -> None:
            on_verified({**refused, **found})

        self._verification.verify(transactional_id, producer_id, producer_epoch, tuple(unknown), verified)

    def _is_refused_unverified(self, partition: Partition, producer_id: int, producer_epoch: int) -> bool:
        return self._transaction_switches.stale_epoch_refused_unverified and partition.log.producers.is_stale(
            producer_id, producer_epoch
        )

    def _is_verified(self, message: Message) -> bool:
        """Return whether the partitions of a produce are known to be in its transaction; else ask, and handle it again then.

        Of a partition in which the transaction is open already, the coordinator need not be asked.
        """
        key, request = _key(message), message[2]
        if not self._transaction_switches.transaction_verification or key in self._verified:
            return True
        guards: dict[str, int] = {}
        refused: dict[str, tuple[str, int]] = {}
        producer = (NO_PRODUCER_ID, protocol.NO_EPOCH)
        for name, batch in request.batches.items():
            partition = self.partitions.get(name)
            if partition is None or not self._has_to_be_verified(partition, batch):
                continue
            if self._is_refused_unverified(partition, batch.producer_id, batch.producer_epoch):
                refused[name] = (errors.INVALID_PRODUCER_EPOCH, _NO_GUARD)
            else:
                guards[name] = partition.log.producers.begin_verification(batch)
                producer = (batch.producer_id, batch.producer_epoch)
        if not guards:
            if refused:
                self._verified[key] = refused
            return True

        def verified(found: dict[str, str]) -> None:
            asked = {name: (found.get(name, errors.NONE), guards[name]) for name in guards}
            self._verified[key] = {**refused, **asked}
            self.on_unblocked(message)

        self._verification.verify(request.transactional_id, *producer, tuple(guards), verified)
        return False

    def _has_to_be_verified(self, partition: Partition, batch: RecordBatch) -> bool:
        return (
            batch.is_transactional
            and partition.is_leader()
            and not partition.log.producers.is_in_transaction(batch.producer_id, batch.producer_epoch)
        )

    def _append_of_transaction(self, message: Message, name: str) -> PendingAck:
        """Append a batch of a produce, unless it begins a transaction of which the coordinator does not know."""
        request: protocol.ProduceRequest = message[2]
        batch, partition = request.batches[name], self.partitions.get(name)
        if (
            request.transactional_id
            and self._transaction_switches.transaction_verification
            and partition is not None
        ):
            error, guard = self._verified.get(_key(message), {}).get(name, (errors.NONE, _NO_GUARD))
            if error == errors.NONE and self._has_to_be_verified(partition, batch):
                producers = partition.log.producers
                is_known = producers.verification_guard(batch.producer_id) == guard
                if not is_known and producers.find_duplicate(batch) is None:
                    error = self._error_of_unverified(producers, batch)
            if error != errors.NONE:
                unverified = errors.NOT_ENOUGH_REPLICAS if error in _UNVERIFIED else error
                return PendingAck(unverified, -1, -1)
        return self._append(name, batch, request.acks)

    def _error_of_unverified(self, producers: ProducerStates, batch: RecordBatch) -> str:
        """Return what is told of a batch whose transaction has ended while the coordinator was asked about it."""
        is_stale = producers.is_stale(batch.producer_id, batch.producer_epoch)
        is_told = is_stale and self._transaction_switches.stale_epoch_told_first
        return errors.INVALID_PRODUCER_EPOCH if is_told else errors.INVALID_TXN_STATE

    def append_records(
        self, batches: dict[str, RecordBatch], acks: int, timeout_us: int, on_complete: AppendCompleted
    ) -> None:
        """Append for a coordinator on this broker; *on_complete* is given what came of each partition (``appendRecords``).

        With *acks* of -1 that is when the high watermark has passed the records, or the time is over. A slow disk does not
        hold these appends up.
        """
        if self._blocked(batches, self.append_records, batches, acks, timeout_us, on_complete):
            return
        pending = {name: self._append(name, batch, acks) for name, batch in batches.items()}
        if acks == -1 and any(ack.pending for ack in pending.values()):
            deadline_us = self._host.clock.now_us + timeout_us
            delayed = DelayedProduce(on_complete, deadline_us, pending, self.partitions, _complete_append)
            if not delayed.try_complete():
                self._produce_purgatory.watch(delayed, list(pending))
                OperationTimer(self._host).watch(delayed)
        else:
            on_complete(pending)
        for name in batches:
            self._fetch_watchers.check(name)

    def when_committed(self, name: str, timeout_us: int, on_complete: Callable[[str], None]) -> None:
        """Say when the high watermark has passed all that a log has by now, or why not: another broker leads, or the time is over.

        How many are in the ISR does not matter, as it does to who appends with acks=all (``CoordinatorRuntime``).
        """
        partition = self.partitions.get(name)
        if partition is None:
            on_complete(self._error_without_replica(name))
            return

        def completed(acks: dict[str, PendingAck]) -> None:
            error = acks[name].error
            on_complete(errors.NONE if error == errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND else error)

        waits = {name: PendingAck(errors.NONE, NO_OFFSET, partition.log.log_end_offset)}
        deadline_us = self._host.clock.now_us + timeout_us
        delayed = DelayedProduce(completed, deadline_us, waits, self.partitions, _complete_append)
        if not delayed.try_complete():
            self._produce_purgatory.watch(delayed, [name])
            OperationTimer(self._host).watch(delayed)

    def _append(self, name: str, batch: RecordBatch, acks: int) -> PendingAck:
        partition = self.partitions.get(name)
        if partition is None:
            return PendingAck(self._error_without_replica(name), -1, -1)
        result, hw_rose = partition.append_as_leader(batch, acks)
        if result.duplicate:
            self._host.emit(
                events.BatchDeduplicated,
                self._broker,
                name,
                batch.producer_id,
                batch.base_sequence,
                result.base_offset,
            )
        if hw_rose:
            self._produce_purgatory.check(name)
            self._delete_purgatory.check(name)
        self._suspect_isr(name)
        required_offset = result.base_offset + record_count(batch.values)
        if result.duplicate and not self._switches.duplicate_waits_for_hw:
            required_offset = 0
        return PendingAck(result.error, result.base_offset, required_offset)

    def _complete_produce(self, message: Message, acks: dict[str, PendingAck]) -> None:
        request: protocol.ProduceRequest = message[2]
        for name, ack in acks.items():
            if ack.error != errors.NONE:
                self._reject("Produce", name, message[0].client.name, ack.error)
            elif request.acks != 0:
                values = request.batches[name].values
                self._host.emit(
                    events.BatchAcknowledged, self._broker, name, ack.base_offset, request.acks, values
                )
        if request.acks != 0:
            answer = protocol.ProduceResponse({n: (a.error, a.base_offset) for n, a in acks.items()})
            for name, ack in acks.items():
                leader = self._current_leader(name, ack.error)
                if leader is not None:
                    answer.current_leaders[name] = leader
            self._respond(message, answer)
        elif any(ack.error != errors.NONE for ack in acks.values()):
            # No client waits for an answer; closing the connection makes the client look for the leader.
            self._host.close_by_server(message[0])
        else:
            self._respond(message, None)

    # Fetch

    def handle_fetch(self, message: Message) -> None:
        """Find the session of a fetch, and read what there is."""
        request: protocol.FetchRequest = message[2]
        session = self._sessions.session_of(
            request,
            message[0],
            self._host.clock.now_us,
            keeps_epoch=self._switches.fetch_sessions_keep_epoch,
        )
        if isinstance(session, str):
            self._reject("Fetch", "", message[0].client.name, session)
            self._respond(message, protocol.FetchResponse({}, session))
        else:
            session.replica_epoch = request.replica_epoch
            for name in request.forgotten:
                if name in self.partitions:
                    self.partitions[name].leave_session(session)
            self._fetch(message, session)

    def _fetch(self, message: Message, session: FetchSession) -> None:
        """Read; with nothing to read, wait in the purgatory.

        As in Kafka the answer has the high watermark as it was before this fetch counted,
        unless it had to wait.
        """
        request: protocol.FetchRequest = message[2]
        if self._isr_writes and self._blocked(session.partitions, self._fetch, message, session):
            return
        # What a follower's former life has fetched says nothing of it (``Replica.updateFetchStateOrThrow``).
        counts = request.replica_id >= 0 and not (
            self._switches.former_life_fetch_refused
            and self._metadata.is_of_former_life(request.replica_id, session.replica_epoch)
        )
        if request.max_wait_us <= 0 or self._can_answer(session, request):
            answer = self._read(message, session)
            if counts:
                self._update_follower(session, request)
            self._rest(session, request)
            self._respond(message, answer)
            return
        hw_rose = counts and self._update_follower(session, request)
        delayed = DelayedFetch(
            message,
            self._host.clock.now_us,
            session,
            self.partitions,
            self._complete_fetch,
            self._watch_fetch,
            None if self._leader_quota is None else self._is_withheld,
        )
        if request.rack and self._selects_read_replica:
            delayed.redirected = self._names_read_elsewhere(session, request.rack)
        # What this fetch acknowledged may have let the next batch of the same producer in. Were it not looked at
        # again (``tryCompleteElseWatch``), it would wait for its whole time with that batch before its eyes.
        if hw_rose and any(delayed.try_complete(name) for name in tuple(session.news)):
            return
        self._rest(session, request)
        session.delayed = delayed
        if session.idle is None or session.idle.is_traced:
            self._host.emit(events.FetchDelayed, self._broker, request.replica_id)
        self._fetch_watchers.watch(session, session.news)
        if (
            self.repeats_idle_fetches
            and delayed.is_repeatable()
            and self._isr_writes.keys().isdisjoint(session.partitions)
        ):
            session.idle = self._host.repeat_while_idle(delayed)
        if session.idle is None:
            self._watch_fetch(delayed)

    def _names_read_elsewhere(self, session: FetchSession, rack: str) -> tuple[str, ...]:
        """Return the partitions of a fetch that waits which a consumer is to read from another replica."""
        return tuple(
            name
            for name in session.news
            if self._read_replica(self.partitions[name], session.partitions[name].offset, rack) is not None
        )

    def _can_answer(self, session: FetchSession, request: protocol.FetchRequest) -> bool:
        """Return whether there is data to read, an error to report, or another replica to read from."""
        isolation = protocol.LOG_END if request.replica_id >= 0 else request.isolation_level
        for name in session.news:
            cached = session.partitions[name]
            partition = self.partitions.get(name)
            if partition is None or partition.check_fetch(cached.leader_epoch, request) != errors.NONE:
                return True
            if request.rack and self._read_replica(partition, cached.offset, request.rack) is not None:
                if self._switches.read_replica_answered_at_once:
                    return True
                continue
            if (
                (
                    cached.offset < partition.readable_end(isolation)
                    and not (partition.log.compacts and partition.is_hole(cached.offset, isolation))
                    and not (self._leader_quota is not None and self._is_withheld(name, request.replica_id))
                )
                or not partition.has_offset(cached.offset)
                or (
                    cached.last_epoch != protocol.NO_EPOCH
                    and partition.is_at_odds(cached.offset, cached.last_epoch)
                )
                or (self._answers_by_hw and partition.owes_high_watermark(request.replica_id))
            ):
                return True
        return False

    def _read(self, message: Message, session: FetchSession) -> protocol.FetchResponse:
        """Read what there is of every partition with news, or say why it cannot be read."""
        request: protocol.FetchRequest = message[2]
        is_consumer = request.replica_id < 0
        if is_consumer and self._fetch_quota is not None:
            return self._read_within_quota(message, session, self._fetch_quota)
        answer: dict[str, protocol.FetchedPartition] = {}
        for name in session.news:
            cached = session.partitions[name]
            fetched = self._read_partition(name, cached, message, request.max_bytes)
            if is_consumer and fetched.batches:
                self._served(name, cached, message, fetched)
            if cached.update_response_data(fetched):
                answer[name] = fetched
        if self._leader_quota is not None and not is_consumer:
            for name, fetched in answer.items():
                self._leader_quota.record(name, sum([batch.size_bytes for batch in fetched.batches]))
        return protocol.FetchResponse(answer, errors.NONE, session.id)

    def _read_within_quota(
        self, message: Message, session: FetchSession, quota: ClientQuotaManager
    ) -> protocol.FetchResponse:
        """Read as much as a consumer may have at once; one that has exceeded its quota gets nothing of it yet.

        Before KIP-219 it gets that, but later. An answer without records does not count, where Kafka counts its few bytes.
        """
        request: protocol.FetchRequest = message[2]
        client = message[0].client.name
        left, size_bytes = quota.largest_answer(client), 0
        found: dict[str, protocol.FetchedPartition] = {}
        for name in session.news:
            fetched = self._read_partition(
                name, session.partitions[name], message, min(request.max_bytes, left)
            )
            bytes_here = sum([batch.size_bytes for batch in fetched.batches])
            if bytes_here > left and size_bytes:
                # Only the first batch of all comes whatever its size (KIP-74).
                fetched.batches, fetched.corrupt_offset, bytes_here = (), -1, 0
            left -= bytes_here
            size_bytes += bytes_here
            found[name] = fetched
        throttle_us = quota.record(client, size_bytes) if size_bytes else 0
        if throttle_us and self._switches.throttled_answer_at_once:
            quota.unrecord(client, size_bytes)
            if request.session_epoch > protocol.INITIAL_SESSION_EPOCH:
                return protocol.FetchResponse({}, errors.NONE, session.id, throttle_us)
            self._sessions.forget(session, message[0])
            return protocol.FetchResponse({}, throttle_us=throttle_us)
        answer: dict[str, protocol.FetchedPartition] = {}
        for name, fetched in found.items():
            cached = session.partitions[name]
            if fetched.batches:
                self._served(name, cached, message, fetched)
            if cached.update_response_data(fetched):
                answer[name] = fetched
        return protocol.FetchResponse(answer, errors.NONE, session.id, throttle_us)

    def _served(
        self, name: str, cached: CachedPartition, message: Message, fetched: protocol.FetchedPartition
    ) -> None:
        client, end_offset = message[0].client.name, fetched.batches[-1].next_offset
        self._host.emit(
            events.RecordsServed, self._broker, name, client, cached.offset, end_offset, fetched.hw
        )

    def _is_withheld(self, name: str, follower: int) -> bool:
        """Return whether a follower gets nothing of a partition now (``shouldLeaderThrottle``): never a consumer, or one in the ISR."""
        quota = self._leader_quota
        return (
            quota is not None
            and follower >= 0
            and follower not in self.partitions[name].isr
            and quota.is_throttled(name)
            and quota.is_exceeded
        )

    def _holds_back(self, name: str, follower: int, offset: int) -> bool:
        if not self._is_withheld(name, follower):
            return False
        self._host.emit(events.ReplicaThrottled, self._broker, name, follower, offset)
        return True

    def throttle_replication(self, rate: int | None) -> None:
        """Have throttled partitions replicated at another rate, None for without limit: an administrator has said so."""
        self._leader_throttled_rate = NO_LIMIT if rate is None else rate
        if self._leader_quota is not None:
            self._leader_quota.bound = self._leader_throttled_rate
        self._fetchers.throttle(rate)

    def _mark_throttled(self, name: str, topic_config: TopicConfig) -> None:
        """Note which replicas of a partition's topic are throttled (``TopicConfigHandler.updateThrottledList``)."""
        topic = name.rpartition("-")[0]
        if topic_config.leader_throttled_replicas:
            if self._leader_quota is None:
                self._leader_quota = ReplicationQuotaManager(
                    self._broker, self._host.clock, self._config, self._switches
                )
                self._leader_quota.bound = self._leader_throttled_rate
            self._leader_quota.mark_throttled(topic, topic_config.leader_throttled_replicas)
        if topic_config.follower_throttled_replicas:
            self._fetchers.mark_throttled(topic, topic_config.follower_throttled_replicas)

    def _read_partition(
        self, name: str, cached: CachedPartition, message: Message, max_bytes: int
    ) -> protocol.FetchedPartition:
        request: protocol.FetchRequest = message[2]
        offset = cached.offset
        diverging: tuple[int, int] | None = None
        partition = self.partitions.get(name)
        if partition is None:
            return self._refused(name, cached, message, self._error_without_replica(name))
        error = partition.check_fetch(cached.leader_epoch, request)
        if error == errors.NONE:
            if request.rack and (answer := self._redirected(partition, offset, request.rack, message)):
                return answer
            if request.replica_id >= 0 and not partition.is_replica(request.replica_id):
                # ``followerReplicaOrThrow``
                error = errors.UNKNOWN_LEADER_EPOCH
            elif cached.last_epoch != protocol.NO_EPOCH:
                error, diverging = partition.divergence(offset, cached.last_epoch)
            if error == errors.NONE and diverging is None and not partition.has_offset(offset):
                error = errors.OFFSET_OUT_OF_RANGE
        if error != errors.NONE:
            return self._refused(name, cached, message, error)
        log = partition.log
        if diverging is not None:
            self._epoch_end_answered(name, request.replica_id, cached.last_epoch, *diverging)
            return protocol.FetchedPartition(
                errors.NONE, log.high_watermark, diverging=diverging, log_start_offset=log.log_start_offset
            )
        isolation = protocol.LOG_END if request.replica_id >= 0 else request.isolation_level
        readable_end = partition.readable_end(isolation)
        stable = readable_end if isolation == protocol.READ_COMMITTED else -1
        if offset >= readable_end or (
            self._leader_quota is not None and self._holds_back(name, request.replica_id, offset)
        ):
            return protocol.FetchedPartition(
                errors.NONE,
                log.high_watermark,
                log_start_offset=log.log_start_offset,
                last_stable_offset=stable,
                aborted=self._aborted_behind(log, offset) if offset == stable else (),
            )
        batches = log.read(offset, readable_end, max_bytes)
        corrupt_offset = log.corrupt_offset(offset, readable_end, max_bytes)
        return protocol.FetchedPartition(
            errors.NONE,
            log.high_watermark,
            batches,
            corrupt_offset=corrupt_offset,
            log_start_offset=log.log_start_offset,
            last_stable_offset=stable,
            aborted=(
                log.aborted_transactions(offset, batches[-1].next_offset)
                if batches and isolation == protocol.READ_COMMITTED
                else ()
            ),
        )

    def _aborted_behind(self, log: UnifiedLog, offset: int) -> tuple[tuple[int, int], ...]:
        """Return the aborted transactions that a fetch from the last stable offset is told of."""
        if not self._transaction_switches.aborted_told_at_stable_offset or offset == log.log_end_offset:
            return ()
        return log.aborted_transactions(offset, offset)

    def _refused(
        self, name: str, cached: CachedPartition, message: Message, error: str
    ) -> protocol.FetchedPartition:
        """Return the answer to a fetch that gets an error."""
        sender = message[0].client.name
        self._reject("Fetch", name, sender, error)
        partition = self.partitions.get(name)
        if partition is not None and error in _BY_EPOCH:
            self._host.emit(
                events.FetchFenced,
                *(self._broker, name, sender, cached.offset, partition.leader_epoch, cached.leader_epoch),
            )
        return protocol.FetchedPartition(error, -1, current_leader=self._current_leader(name, error))

    def _read_replica(self, partition: Partition, offset: int, rack: str) -> int | None:
        """Return which other replica a consumer in a rack is to read from, None for this one (``findPreferredReadReplica``)."""
        if not self._selects_read_replica or (
            partition.leader != self._broker and self._switches.read_replica_selected_by_leader
        ):
            return None
        return preferred_read_replica(partition, offset, rack, self._metadata)

    def _may_redirect(self, partition: Partition, offset: int, rack: str) -> bool:
        """Return whether a consumer that has read everything may be sent elsewhere, although nothing happens here.

        That is so while another replica in its rack is dead, say. A follower knows no more of the others than when it led.
        """
        if partition.leader != self._broker:
            return self._read_replica(partition, offset, rack) is not None
        return self._selects_read_replica and may_have_read_replica(partition, rack, self._metadata)

    def _redirected(
        self, partition: Partition, offset: int, rack: str, message: Message
    ) -> protocol.FetchedPartition | None:
        """Return the answer to a consumer that is to read from another replica, None if it may read from this one."""
        replica = self._read_replica(partition, offset, rack)
        if replica is None:
            return None
        log, client = partition.log, message[0].client.name
        self._host.emit(events.ReadReplicaPreferred, self._broker, partition.name, client, replica)
        return protocol.FetchedPartition(
            errors.NONE,
            log.high_watermark,
            log_start_offset=log.log_start_offset,
            preferred_read_replica=replica,
        )

    def _update_follower(self, session: FetchSession, told: protocol.FetchRequest | None = None) -> bool:
        """Note what a follower has, and where its logs begin of which a request says anything; return whether some HW rose."""
        hw_rose = False
        session.counted_us = self._host.clock.now_us
        for name in tuple(session.news):
            partition = self.partitions.get(name)
            cached = session.partitions[name]
            if partition is None:
                continue
            error = partition.check_epoch(cached.leader_epoch)
            if error not in _LEADER_ANSWERS or not partition.is_replica(session.replica_id):
                continue
            leader_leo = partition.log.log_end_offset
            if error == errors.NONE and cached.last_epoch != protocol.NO_EPOCH:
                error, diverging = partition.divergence(cached.offset, cached.last_epoch)
                if diverging is not None and self._switches.diverging_fetch_uncounted:
                    # Its LEO says nothing while it has other records than the leader.
                    self._suspect_isr(name)
                    continue
            if error != errors.NONE or not partition.has_offset(cached.offset):
                partition.follower_failed(session.replica_id)
                continue
            if cached.offset < leader_leo:
                self._suspect_isr(name)
            self._host.emit(events.FollowerFetched, self._broker, name, session.replica_id, cached.offset)
            partition.take_from_other_session(session)
            log_start = None if told is None or name not in told.partitions else told.log_starts.get(name, 0)
            if partition.update_follower(
                session.replica_id, cached.offset, leader_leo, session.replica_epoch, log_start
            ):
                hw_rose = True
                self._produce_purgatory.check(name)
                self._fetch_watchers.check(name)
            if name in self._isr_writes:
                self._fetch_watchers.wake(name)
            self._delete_purgatory.check(name)
        return hw_rose

    def _rest(self, session: FetchSession, request: protocol.FetchRequest) -> None:
        """Look no more at partitions of which everything is told and fetched, until something happens to them."""
        if not session.is_kept:
            return
        isolation = protocol.LOG_END if request.replica_id >= 0 else request.isolation_level
        for name in tuple(session.news):
            partition, cached = self.partitions.get(name), session.partitions[name]
            if partition is None:
                continue
            log = partition.log
            if (
                log.high_watermark == cached.hw
                and log.log_start_offset == cached.log_start_offset
                and (
                    partition.readable_end(isolation) <= cached.offset
                    or (log.compacts and partition.is_hole(cached.offset, isolation))
                )
                and partition.check_fetch(cached.leader_epoch, request) == errors.NONE
                and not (request.rack and self._may_redirect(partition, cached.offset, request.rack))
                and not (
                    cached.last_epoch != protocol.NO_EPOCH
                    and partition.is_at_odds(cached.offset, cached.last_epoch)
                )
                and (
                    request.replica_id < 0
                    or partition.follows_quietly(request.replica_id, cached.offset, session)
                )
            ):
                del session.news[name]
                self._fetch_watchers.watch(session, (name,))

    def _complete_fetch(self, delayed: DelayedFetch, expired: bool) -> None:
        session = delayed.session
        if expired and (session.idle is None or session.idle.is_traced):
            self._host.emit(events.FetchExpired, self._broker, session.replica_id)
        answer = self._read(delayed.message, session)
        if not session.is_kept:
            self._fetch_watchers.unwatch(session, session.partitions)
        self._respond(delayed.message, answer)

    # Epochs and ends

    def handle_offsets_for_leader_epoch(self, message: Message) -> None:
        """Answer where leader epochs end (KIP-101; without the epoch before KIP-279)."""
        request: protocol.OffsetsForLeaderEpochRequest = message[2]
        if self._blocked(request.partitions, self.handle_offsets_for_leader_epoch, message):
            return
        answer: dict[str, tuple[str, int, int]] = {}
        for name, (current_epoch, requested_epoch) in request.partitions.items():
            partition = self.partitions.get(name)
            if partition is None:
                answer[name] = (self._error_without_replica(name), -1, -1)
                continue
            error = partition.check_epoch(current_epoch)
            if error != errors.NONE:
                self._reject("OffsetsForLeaderEpoch", name, message[0].client.name, error)
                answer[name] = (error, -1, -1)
                continue
            log = partition.log
            epoch, end_offset = log.epochs.end_offset_for(
                requested_epoch,
                log.log_end_offset,
                answers_below_first=self._switches.epoch_below_first_answered,
            )
            if self._switches.follower_truncation == LEADER_EPOCH:
                epoch = -1
            answer[name] = (errors.NONE, epoch, end_offset)
            self._epoch_end_answered(name, request.replica_id, requested_epoch, epoch, end_offset)
        self._respond(message, protocol.OffsetsForLeaderEpochResponse(answer))

    def _epoch_end_answered(
        self, name: str, replica: int, requested_epoch: int, epoch: int, end_offset: int
    ) -> None:
        self._host.emit(
            events.EpochEndAnswered, self._broker, name, replica, requested_epoch, epoch, end_offset
        )

    def handle_list_offsets(self, message: Message) -> None:
        """Answer where partitions end, for followers or for consumers of an isolation level, or where they begin."""
        request: protocol.ListOffsetsRequest = message[2]
        if self._blocked(request.partitions, self.handle_list_offsets, message):
            return
        isolation = protocol.LOG_END if request.replica_id >= 0 else request.isolation_level
        answer: dict[str, tuple[str, int]] = {}
        for name, epoch in request.partitions.items():
            partition = self.partitions.get(name)
            if partition is None:
                answer[name] = (self._error_without_replica(name), -1)
                continue
            error = partition.check_epoch(epoch)
            if error == errors.NONE and request.timestamp == protocol.EARLIEST_TIMESTAMP:
                answer[name] = (error, partition.log.log_start_offset)
                continue
            if error == errors.NONE and isolation != protocol.LOG_END and partition.high_watermark_lags():
                error = errors.OFFSET_NOT_AVAILABLE
            answer[name] = (error, partition.readable_end(isolation) if error == errors.NONE else -1)
        self._respond(message, protocol.ListOffsetsResponse(answer))

    # Deleting records

    def delete_records(
        self, name: str, offset: int, timeout_us: int, respond: Callable[[str, int, int], None]
    ) -> None:
        """Delete what a leader has below an offset, and answer when all live replicas have done so (KIP-107).

        *respond* is given the error, the offset that was meant, and below which one nothing is left.
        """
        if self._blocked({name: None}, self.delete_records, name, offset, timeout_us, respond):
            return
        partition = self.partitions.get(name)
        if partition is None:
            respond(self._error_without_replica(name), offset, NO_OFFSET)
            return
        error, required_offset = partition.delete_records(offset)
        if error != errors.NONE:
            respond(error, required_offset, NO_OFFSET)
            return
        self._log_start_raised(name)
        delayed = DelayedDeleteRecords(
            self._host.clock.now_us + timeout_us,
            required_offset,
            partial(self._low_watermark, name),
            lambda error, low_watermark: respond(error, required_offset, low_watermark),
        )
        if not delayed.try_complete():
            self._delete_purgatory.watch(delayed, [name])
            OperationTimer(self._host).watch(delayed)

    def _low_watermark(self, name: str) -> tuple[str, int]:
        partition = self.partitions.get(name)
        if partition is None:
            return self._error_without_replica(name), NO_OFFSET
        return partition.low_watermark(self._is_alive)

    def _log_start_raised(self, name: str) -> None:
        """Have followers, or the leader, hear where a log begins."""
        self._fetch_watchers.check(name)
        self._fetchers.log_start_raised(name)

    # Log directories

    def handle_log_dir_failure(self, log_dir: int) -> None:
        """Serve nothing of a log directory that cannot be written to; without another one, end at once.

        After ``ReplicaManager.handleLogDirFailure``. Up to 0.11 any I/O error ends the broker (KIP-112), and in KRaft one of the directory
        with the metadata log: from 3.7 on it looks for that here; before, the thread that writes that log fails within half a second
        (``KafkaRaftManager.RaftIoThread``). The controller is told, which in ZooKeeper mode asks which replicas are gone.
        """
        closed = self.logs.close_dir(log_dir)
        self._host.emit(events.LogDirFailed, self._broker, log_dir, closed)
        if self.logs.is_halting:
            self._host.halt()
            return
        for name in closed:
            self._fetchers.remove(name)
            self.partitions[name].take_offline()
            self._isr_suspects.pop(name, None)
        self._check_waiting(closed)
        # A directory that had failed before the broker started has logs, too, which it has not opened.
        self.on_log_dir_failure(self.logs.stored_in(log_dir))

    # Leadership

    def change_steps(self, changed: tuple[Collection[str], bool]) -> Steps:
        """Wait for what the change of some partitions waits for while the disk is slow, and of fetchers if it removes any."""
        names, removes_fetchers = changed
        locks = self.append_locks
        yield from locks.begin_change()
        if removes_fetchers:
            yield from locks.wait_for_fetchers()
        for name in names:
            yield from locks.wait_for_appends(name)

    def changed_by_request(
        self, request: protocol.LeaderAndIsrRequest | protocol.StopReplicaRequest
    ) -> tuple[Collection[str], bool]:
        """Return which partitions a controller's request changes, and whether it removes partitions from fetchers."""
        if isinstance(request, protocol.StopReplicaRequest):
            return (request.partitions if request.delete_partitions else ()), True
        return self.changed_by(request.partition_states, self._is_newer)

    def changed_by(
        self,
        states: Mapping[str, protocol.LeaderAndIsrPartitionState],
        is_newer: Callable[[Partition, protocol.LeaderAndIsrPartitionState], bool] | None = None,
    ) -> tuple[Collection[str], bool]:
        """Return which of the partitions are changed that are here, and whether any are."""
        is_newer = self._is_newer_metadata if is_newer is None else is_newer
        changed = [
            name
            for name, state in states.items()
            if (partition := self.partitions.get(name)) is None or is_newer(partition, state)
        ]
        return changed, bool(changed)

    def handle_leader_and_isr(self, message: Message) -> None:
        """Become leader or follower of partitions, unless the controller is an old one."""
        request: protocol.LeaderAndIsrRequest = message[2]
        if self.is_stale_controller(request.controller_epoch):
            self._reject("LeaderAndIsr", "", message[0].client.name, errors.STALE_CONTROLLER_EPOCH)
            self._respond(message, protocol.ControlResponse(request.api, errors.STALE_CONTROLLER_EPOCH))
            return
        if self._blocked(request.partition_states, self.handle_leader_and_isr, message):
            return
        self._host.publish(events.ControlRequestObeyed, self._broker, request.api, request.controller_epoch)
        self.controller_epoch = request.controller_epoch
        changed = []
        offline = tuple(name for name in request.partition_states if self.logs.is_offline(name))
        for name, state in request.partition_states.items():
            if name in offline:
                continue
            partition = self._partition(name)
            if not self._is_newer(partition, state):
                continue
            leader = state.leader_and_isr.leader
            if leader == self._broker:
                self._lead(partition, state)
                changed.append(name)
            elif self._is_alive(leader):
                if partition.make_follower(state):
                    self._follow(partition)
                changed.append(name)
        self._check_waiting(changed)
        self._tell_coordinators(changed)
        self._respond(message, protocol.ControlResponse(request.api, errors.NONE, offline))

    def apply_metadata(
        self, broker_epoch: int, states: Mapping[str, protocol.LeaderAndIsrPartitionState]
    ) -> None:
        """Lead and follow as the metadata log says (``ReplicaManager.applyDelta``).

        A replica that is assigned to this broker no longer is deleted, also one that is left of a former life
        (``findStrayPartitions``). Fetches have its *broker_epoch* from now on.
        """
        if self._switches.replica_epoch_checked:
            self._fetchers.broker_epoch = broker_epoch
        changed = []
        for name, state in states.items():
            if self._broker not in state.replicas:
                self._delete_replica(name)
                continue
            if self.logs.is_offline(name):
                continue
            partition = self._partition(name)
            if not self._is_newer_metadata(partition, state):
                continue
            leader = state.leader_and_isr.leader
            if leader == self._broker:
                self._lead(partition, state)
            else:
                self._follow_as_published(partition, state)
            changed.append(name)
        self._check_waiting(changed)
        self._tell_coordinators(changed)

    def _tell_coordinators(self, changed: Collection[str]) -> None:
        """Have coordinators learn of elections and resignations, once those who wait have been answered (``onLeadershipChange``)."""
        for name in changed:
            if is_internal(name):
                partition = self.partitions[name]
                self.on_leadership_change(partition, partition.is_leader())

    def _follow_as_published(self, partition: Partition, state: protocol.LeaderAndIsrPartitionState) -> None:
        """Follow a leader; in controlled shutdown only while this replica counts (``applyLocalFollowersDelta``)."""
        leader, isr = state.leader_and_isr.leader, state.leader_and_isr.isr
        is_changed = partition.make_follower(state)
        if self._is_shutting_down and (leader == protocol.NO_LEADER or self._broker not in isr):
            self._fetchers.remove(partition.name)
        elif is_changed:
            self._fetchers.remove(partition.name)
            if leader in self._metadata.live_brokers:
                self._follow(partition)

    def begin_controlled_shutdown(self) -> None:
        """Note that the broker is to stop: where it follows the metadata log, it fetches nothing for whose sake it is not waited for."""
        self._is_shutting_down = True

    def _lead(self, partition: Partition, state: protocol.LeaderAndIsrPartitionState) -> None:
        self._fetchers.remove(partition.name)
        partition.make_leader(state)
        self._suspect_isr(partition.name)

    def _check_waiting(self, partitions: Collection[str]) -> None:
        """Look at the requests that wait for something of partitions that have changed."""
        for name in partitions:
            self._produce_purgatory.check(name)
            self._delete_purgatory.check(name)
            self._fetch_watchers.check(name)

    def is_stale_controller(self, controller_epoch: int) -> bool:
        """Return whether a control request comes from a controller that has been succeeded."""
        return (
            controller_epoch < self.controller_epoch and self._behaviours.zookeeper.controller_epoch_fencing
        )

    def handle_stop_replica(self, message: Message) -> None:
        """Stop fetching, and delete what is no longer assigned here; while an ISR is being written that waits for it."""
        request: protocol.StopReplicaRequest = message[2]
        if request.delete_partitions and self._blocked(
            dict.fromkeys(request.partitions), self.handle_stop_replica, message
        ):
            return
        offline = []
        for name in request.partitions:
            self._fetchers.remove(name)
            if request.delete_partitions and not self._delete_replica(name):
                offline.append(name)
        self._respond(message, protocol.ControlResponse(request.api, errors.NONE, tuple(offline)))

    def _delete_replica(self, name: str) -> bool:
        """Be no replica of a partition any more: refuse what waits for it, and delete its log (``stopPartitions``).

        Return False where the log stays, for its log directory has failed: KAFKA_STORAGE_ERROR (``HostedPartition.Offline``).
        """
        if self.logs.is_offline(name) or (self.logs.has(name) and not self.logs.can_write(name)):
            return False
        partition = self.partitions.get(name)
        if partition is not None:
            self._fetchers.remove(name)
            partition.give_up()
            self._check_waiting([name])
            self._tell_coordinators([name])
            self._isr_suspects.pop(name, None)
            del self.partitions[name]
        if self.logs.has(name):
            self.logs.delete(name)
        return True

    def _current_leader(self, name: str, error: str) -> tuple[int, int] | None:
        """Return who leads a partition in which epoch, for a client that was refused for that (``KafkaApis.getCurrentLeader``)."""
        if error not in _LEADER_CHANGE_ERRORS or not self._behaviours.clients.leader_in_answer:
            return None
        partition = self.partitions.get(name)
        if partition is not None:
            leader, epoch = partition.leader, partition.leader_epoch
        else:
            known = self._metadata.leader_and_epoch(name)
            leader, epoch = (protocol.NO_LEADER, protocol.NO_EPOCH) if known is None else known
        return None if leader == protocol.NO_LEADER else (leader, epoch)

    def _error_without_replica(self, name: str) -> str:
        """Return why a partition is not served of which there is no replica here (``getPartitionOrError``).

        A client that asks where it was before a reassignment has to look for its leader.
        """
        is_known = self._metadata.leader_and_epoch(name) is not None
        return errors.NOT_LEADER_FOR_PARTITION if is_known else errors.UNKNOWN_TOPIC_OR_PARTITION

    def _is_newer(self, partition: Partition, state: protocol.LeaderAndIsrPartitionState) -> bool:
        if state.leader_and_isr.leader_epoch > partition.leader_epoch:
            return True
        return (
            not self._behaviours.zookeeper.leader_epoch_fencing
            and state.leader_and_isr.leader_epoch != partition.leader_epoch
        )

    def _is_newer_metadata(self, partition: Partition, state: protocol.LeaderAndIsrPartitionState) -> bool:
        """Return whether the metadata log does not lag behind what is known of a partition, or has no replica of it here any more.

        What a leader knows from the answer to its AlterPartition, the log tells once more. Then the leader forgets what else it has asked for
        meanwhile, whose answer is out of date for it (``Partition.makeLeader``).
        """
        is_older = state.leader_and_isr.partition_epoch < partition.partition_epoch
        return not is_older or not partition.is_known or self._broker not in state.replicas

    def _partition(self, name: str) -> Partition:
        partition = self.partitions.get(name)
        if partition is None:
            topic_config = self._topic_config(name.rsplit("-", 1)[0])
            self._mark_throttled(name, topic_config)
            partition = Partition(
                name,
                self._broker,
                self._host,
                self.logs,
                self._switches,
                self._alter_partition_manager,
                self._isr_altered,
                self._config.replica_lag_time_max_us,
                topic_config.min_insync_replicas,
                self._metadata.may_join_isr,
                topic_config.unclean_leader_election,
                self._isr_writes,
                self._config.replica_lag_max_messages,
                timestamp_before_max_us=topic_config.timestamp_before_max_us,
                timestamp_after_max_us=topic_config.timestamp_after_max_us,
            )
            partition.answers_by_hw = self._answers_by_hw
            self.partitions[name] = partition
        return partition

    def _follow(self, partition: Partition) -> None:
        self._fetchers.remove(partition.name)
        if self._switches.follower_truncation == HIGH_WATERMARK:
            partition.truncate_to(partition.log.high_watermark, HIGH_WATERMARK_TRUNCATION)
        self._fetchers.add(partition)

    # ISR

    def _isr_altered(self, partition: Partition, _hw_rose: bool) -> None:
        """The ISR's lock is free again."""
        if self._is_shut_down:
            return  # The log is closed to the requests that have waited.
        self._fetch_watchers.check(partition.name)
        self._produce_purgatory.check(partition.name)
        self._delete_purgatory.check(partition.name)
        blocked, partition.blocked = partition.blocked, []
        for handle_again in blocked:
            handle_again()

    def _suspect_isr(self, name: str) -> None:
        self._isr_suspects[name] = None
        self._isr_shrinking.request()

    def _shrink_isrs(self) -> bool:
        if self._is_shut_down:
            return False
        for name in tuple(self._isr_suspects):
            if not self.partitions[name].maybe_shrink_isr():
                del self._isr_suspects[name]
            if name in self._isr_writes:
                self._fetch_watchers.wake(name)
        return bool(self._isr_suspects)

    # Small parts

    def _is_alive(self, broker: int) -> bool:
        return broker in self._metadata.live_brokers

    def _blocked(self, names: Mapping[str, object], handle: Callable[..., None], *request: Any) -> bool:
        """Have a request wait while the ISR of one of its partitions is being written, to be handled again."""
        for name in self._isr_writes:
            if name in names:
                self.partitions[name].blocked.append(partial(handle, *request))
                return True
        return False

    def _watch_fetch(self, delayed: DelayedFetch) -> None:
        self._watch_deadline(delayed.message[0], delayed)

    def _watch_deadline(self, connection: Connection, operation: DelayedFetch | DelayedProduce) -> None:
        timer = self._timers.get(connection.id)
        if timer is None:
            timer = self._timers[connection.id] = OperationTimer(self._host)
        timer.watch(operation)

    def _reject(self, api: str, partition: str, sender: str, error: str) -> None:
        self._host.emit(events.RequestRejected, self._broker, api, partition, sender, error)


def _key(message: Message) -> tuple[int, int]:
    return message[0].id, message[1]


def _complete_append(on_complete: AppendCompleted, acks: dict[str, PendingAck]) -> None:
    on_complete(acks)
