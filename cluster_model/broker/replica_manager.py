"""Manages a broker's replicas: appends, leadership and ISRs (``ReplicaManager.scala``)."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.broker.append_locks import AppendLocks, Steps
from harrow.cluster_model.broker.client_quota_manager import ClientQuotaManager
from harrow.cluster_model.broker.delayed_requests import (
    DelayedDeleteRecords,
    DelayedProduce,
    OperationTimer,
    PendingAck,
)
from harrow.cluster_model.broker.fetch_session import HostedPartition
from harrow.cluster_model.broker.fetching import Fetching
from harrow.cluster_model.broker.hosted_replicas import HostedReplicas
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.replica import CountedSession
from harrow.cluster_model.broker.replica_fetcher import ReplicaFetcherManager
from harrow.cluster_model.broker.transaction_verification import TransactionVerification, VerificationCallback
from harrow.cluster_model.controller.control_plane import AlterPartitionManager
from harrow.cluster_model.events import (
    BatchAcknowledged,
    BatchDeduplicated,
    ControlRequestObeyed,
    LogDirFailed,
)
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.producer_state import ProducerStates
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch, record_count
from harrow.cluster_model.log.unified_log import HIGH_WATERMARK_TRUNCATION, NO_OFFSET
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.release.replication import HIGH_WATERMARK
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.connection import Connection, Exchange, Respond
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import is_internal

_UNVERIFIED_ERRORS: Final = (
    errors.NETWORK_EXCEPTION,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
)
"""Errors of a verification that leave open whether a transaction includes a partition.

A producer gets NOT_ENOUGH_REPLICAS instead, after which it retries (``handleProduceAppend``).
Without transactions v2 it also gets that instead of CONCURRENT_TRANSACTIONS.
"""
_ADD_PARTITIONS_RETRY_BACKOFF_US: Final = 20 * US_PER_MS
"""The default of ``add.partitions.to.txn.retry.backoff.ms``, which campaigns cannot set."""
_ADD_PARTITIONS_RETRY_BACKOFF_MAX_US: Final = 100 * US_PER_MS
"""The default of ``add.partitions.to.txn.retry.backoff.max.ms``, which campaigns cannot set.

Retries end this long after the first request.
"""
_NO_GUARD: Final = -1
"""Stands for the guard of a partition that was not verified (``VerificationGuard``)."""


AppendCallback = Callable[[dict[str, PendingAck]], None]
"""Receives the result of the append to each partition."""


class ReplicaManager:
    """The replicas of one incarnation of a broker."""

    # Without slots, CPython gives an object with more than 30 attributes a dictionary of its own,
    # with slower lookups.
    __slots__ = (
        "_alter_partition_manager",
        "_behaviours",
        "_broker",
        "_config",
        "_fetchers",
        "_host",
        "_hosted",
        "_is_shutting_down",
        "_isr_suspects",
        "_isr_writes",
        "_may_join_isr",
        "_metadata",
        "_on_isr_altered",
        "_on_produce_complete",
        "_respond",
        "_switches",
        "_topic_config",
        "_transaction_switches",
        "_verification",
        "_verification_results",
        "append_locks",
        "controller_epoch",
        "fetching",
        "logs",
        "on_leadership_change",
        "on_log_dir_failure",
        "on_unblocked",
        "partitions",
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
        respond: Respond,
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
        hosted = HostedReplicas(broker, host, config, behaviours, respond, metadata)
        self._hosted = hosted
        self.partitions = hosted.partitions
        self._isr_suspects = hosted.isr_suspects
        self._isr_writes = hosted.isr_writes
        self.fetching = Fetching(hosted, config, fetch_quota)
        self.controller_epoch = 0
        self._verification = TransactionVerification(host, metadata, config.transaction_topic_partitions)
        # For each produce that the broker will handle again after a verification: the error and the
        # verification guard of each partition.
        self._verification_results: dict[tuple[int, int], dict[str, tuple[str, int]]] = {}
        self._alter_partition_manager = alter_partition_manager
        self._fetchers = ReplicaFetcherManager(
            broker, host, config, behaviours.replication, self.append_locks, hosted.hosted
        )
        # These are bound once, so that not every partition or request has bound methods of its own.
        self._may_join_isr = metadata.may_join_isr
        self._on_isr_altered = self._handle_isr_written
        self._on_produce_complete = self._complete_produce
        self._is_shutting_down = False
        self.logs.on_dir_failure = self.handle_log_dir_failure
        self.logs.on_log_start = self._on_log_start_raised
        self.on_unblocked: Callable[[Exchange[protocol.ProduceRequest]], None] = self.handle_produce
        """Handles a produce again after it has waited for an ISR write or a verification."""
        self.on_log_dir_failure: Callable[[tuple[str, ...]], None] = lambda _: None
        self.on_leadership_change: Callable[[Partition, bool], None] = lambda _partition, _leads: None
        """Called with a partition of an internal topic, and whether this broker now leads it.

        This happens whenever the partition gets another leader or a new leader epoch here.
        """

    def start(self) -> None:
        """Begin the periodic tasks."""
        self._alter_partition_manager.start()
        self.logs.start()
        self._hosted.start()

    def on_clock_step(self, by_us: int) -> None:
        """Shift the times at which followers were last caught up, after the wall clock jumped.

        Kafka measures them with that clock (``Replica.isCaughtUp``).
        """
        sessions: dict[CountedSession, None] = {}
        for partition in self.partitions.values():
            for replica in partition.remote_replicas.values():
                replica.on_clock_step(by_us)
                if replica.session is not None:
                    sessions[replica.session] = None
        for session in sessions:
            session.counted_us = session.last_fetch_us - by_us
        self.logs.on_clock_step()

    @property
    def hangs(self) -> bool:
        """Whether a shutdown of the broker waits forever for a fetcher."""
        return self._fetchers.hangs

    def shutdown(self) -> None:
        """Stop fetching, drop waiting requests and close the logs (``ReplicaManager.shutdown``)."""
        self._hosted.is_shut_down = True
        self._fetchers.shutdown()
        self._verification.close()
        self._hosted.stop_timers()
        if self.hangs:
            self.logs.stop()
        else:
            self.logs.shutdown()

    def dismantle(self) -> None:
        """Drop all replicas (`Cluster.dismantle`)."""
        self.partitions.clear()
        self._isr_suspects.clear()
        self._hosted.hosted.dismantle()
        self.fetching.dismantle()
        self._fetchers.dismantle()
        self.logs.dismantle()

    def connection_closed(self, connection: Connection) -> None:
        """Drop the state of a closed connection."""
        self._hosted.connection_closed(connection)
        self.fetching.connection_closed(connection)

    # Produce

    def handle_produce(self, exchange: Exchange[protocol.ProduceRequest]) -> None:
        """Append the batches of a produce, and answer according to its acks."""
        request = exchange.request
        if self._isr_writes and self._hosted.hold_back(request.batches, self.handle_produce, exchange):
            return
        if request.transactional_id:
            if not self._check_verified(exchange):
                return
            acks = {name: self._append_if_verified(exchange, name) for name in request.batches}
            self._verification_results.pop(_request_key(exchange), None)
        else:
            acks = self._append_all(request.batches, request.acks)
        self._answer_produce(exchange, acks)
        # Answer waiting fetches only now, when this request is in the purgatory, because the next
        # fetches of followers may complete it.
        for ack in acks.values():
            ack.hosted.check_fetches()

    def produce_steps(self, exchange: Exchange[protocol.ProduceRequest]) -> Steps:
        """Append the batches of a produce one after the other, while the disk is slow.

        A rejected batch does not wait for the disk.
        """
        request = exchange.request
        if self._hosted.hold_back(request.batches, self.on_unblocked, exchange):
            return
        if request.transactional_id and not self._check_verified(exchange):
            return
        locks, acks = self.append_locks, {}
        for name, batch in request.batches.items():
            if name in self.partitions:
                yield from locks.begin_append(name)
                partition = self.partitions.get(name)
                if partition is not None and partition.may_append(batch, request.acks):
                    yield from locks.write(partition.log, batch)
                ack = acks[name] = self._append_if_verified(exchange, name)
                locks.end_append(name)
                ack.hosted.check_fetches()
            else:
                acks[name] = self._append(self._hosted.hosted.hosted_partition(name), batch, request.acks)
        self._verification_results.pop(_request_key(exchange), None)
        self._answer_produce(exchange, acks)

    def _answer_produce(
        self, exchange: Exchange[protocol.ProduceRequest], acks: dict[str, PendingAck]
    ) -> None:
        """Answer a produce according to its acks: at once, or when the ISR has the records."""
        request = exchange.request
        if request.acks == -1 and any(ack.pending for ack in acks.values()):
            deadline_us = self._host.clock.now_us + request.timeout_us
            delayed = DelayedProduce(exchange, deadline_us, acks, self._on_produce_complete)
            if not delayed.try_complete():
                _watch(delayed, acks)
                self._hosted.watch_deadline(exchange.connection, delayed)
        else:
            self._complete_produce(exchange, acks)

    # Transactions

    def verify_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: tuple[str, ...],
        on_verified: VerificationCallback,
        *,
        adds: bool,
    ) -> None:
        """Verify for a group coordinator that a transaction includes *partitions*.

        Modelled on ``maybeStartTransactionVerificationForPartition``. This asks the transaction
        coordinator, which adds the partitions if *adds* says so. The broker does not ask about a
        partition in which the transaction is open already, and rejects a partition whose log has a
        later epoch of the producer. In releases without verification the broker never asks.
        *on_verified* receives the errors.
        """
        unverified: list[str] = []
        rejected: dict[str, str] = {}
        behaviours = self._behaviours
        verifies = behaviours.transactions.transactional_commits_verified or adds
        for name in partitions if verifies and behaviours.transactions.transaction_verification else ():
            partition = self.partitions.get(name)
            if partition is None:
                continue
            if self._is_refused_before_verification(partition, producer_id, producer_epoch):
                rejected[name] = errors.INVALID_PRODUCER_EPOCH
            elif not partition.log.producers.is_in_transaction(producer_id, producer_epoch):
                unverified.append(name)
        if not unverified:
            on_verified(rejected)
            return

        def complete(answer: dict[str, str]) -> None:
            on_verified({**rejected, **answer})

        self._verification.verify(
            *(transactional_id, producer_id, producer_epoch, tuple(unverified), complete), adds=adds
        )

    def _is_refused_before_verification(
        self, partition: Partition, producer_id: int, producer_epoch: int
    ) -> bool:
        return (
            self._transaction_switches.stale_epoch_refused_before_verification
            and partition.log.producers.is_stale(producer_id, producer_epoch)
        )

    def _check_verified(self, exchange: Exchange[protocol.ProduceRequest]) -> bool:
        """Return whether the partitions of a produce need no further verification.

        If they do, ask the transaction coordinator, and handle the produce again after the answer.
        A partition in which the transaction is open already needs no verification.
        """
        is_verified = _request_key(exchange) in self._verification_results
        if is_verified or not self._transaction_switches.transaction_verification:
            return True
        return not self._ask_coordinator(exchange, self._host.clock.now_us)

    def _ask_coordinator(self, exchange: Exchange[protocol.ProduceRequest], began_us: int) -> bool:
        """Ask the transaction coordinator about the partitions of a produce that need it.

        Return whether there are any.

        The previous transaction of a producer may not be complete yet, and the coordinator adds
        the partitions of one leader after the other. With transactions v2 the leader therefore
        asks again after CONCURRENT_TRANSACTIONS, for a while from *began_us* on
        (``maybeRetryOnConcurrentTransactions``, KAFKA-18575).
        """
        key, request = _request_key(exchange), exchange.request
        guards: dict[str, int] = {}
        rejected: dict[str, tuple[str, int]] = {}
        producer = (NO_PRODUCER_ID, protocol.NO_EPOCH)
        for name, batch in request.batches.items():
            partition = self.partitions.get(name)
            if partition is None or not self._has_to_be_verified(partition, batch):
                continue
            if self._is_refused_before_verification(partition, batch.producer_id, batch.producer_epoch):
                rejected[name] = (errors.INVALID_PRODUCER_EPOCH, _NO_GUARD)
            else:
                producers = partition.log.producers
                guards[name] = producers.begin_verification(batch, is_v2=request.adds_partitions)
                producer = (batch.producer_id, batch.producer_epoch)
        if not guards:
            if rejected:
                self._verification_results[key] = rejected
            return False

        def ask_again(_: object) -> None:
            if not self._ask_coordinator(exchange, began_us):
                self.on_unblocked(exchange)

        def handle_again(answer: dict[str, str]) -> None:
            may_retry = (
                request.adds_partitions
                and self._host.clock.now_us - began_us < _ADD_PARTITIONS_RETRY_BACKOFF_MAX_US
            )
            if may_retry and errors.CONCURRENT_TRANSACTIONS in answer.values():
                self._host.set_timer(_ADD_PARTITIONS_RETRY_BACKOFF_US, ask_again)
                return
            results = {name: (answer.get(name, errors.NONE), guards[name]) for name in guards}
            self._verification_results[key] = {**rejected, **results}
            self.on_unblocked(exchange)

        self._verification.verify(
            *(request.transactional_id, *producer, tuple(guards), handle_again), adds=request.adds_partitions
        )
        return True

    def _has_to_be_verified(self, partition: Partition, batch: RecordBatch) -> bool:
        return (
            batch.is_transactional
            and partition.is_leader()
            and not partition.log.producers.is_in_transaction(batch.producer_id, batch.producer_epoch)
        )

    def _append_if_verified(self, exchange: Exchange[protocol.ProduceRequest], name: str) -> PendingAck:
        """Append a batch of a produce, unless the verification of its transaction failed."""
        request = exchange.request
        batch, hosted = request.batches[name], self._hosted.hosted.hosted_partition(name)
        partition = hosted.partition
        if (
            request.transactional_id
            and self._transaction_switches.transaction_verification
            and partition is not None
        ):
            error, guard = self._verification_results.get(_request_key(exchange), {}).get(
                name, (errors.NONE, _NO_GUARD)
            )
            if error == errors.NONE and self._has_to_be_verified(partition, batch):
                producers = partition.log.producers
                is_current = producers.verification_guard(batch.producer_id) == guard
                if not is_current and producers.find_duplicate(batch) is None:
                    error = self._error_of_unverified(producers, batch)
            if error != errors.NONE:
                is_v1 = not request.adds_partitions
                if error in _UNVERIFIED_ERRORS or (is_v1 and error == errors.CONCURRENT_TRANSACTIONS):
                    error = errors.NOT_ENOUGH_REPLICAS
                return PendingAck(hosted, error, -1, -1)
        return self._append(hosted, batch, request.acks)

    def _error_of_unverified(self, producers: ProducerStates, batch: RecordBatch) -> str:
        """Return the error for a batch whose transaction ended during the verification."""
        is_stale = producers.is_stale(batch.producer_id, batch.producer_epoch)
        is_epoch_error = is_stale and self._transaction_switches.stale_epoch_reported_before_txn_state
        return errors.INVALID_PRODUCER_EPOCH if is_epoch_error else errors.INVALID_TXN_STATE

    def append_records(
        self, batches: dict[str, RecordBatch], acks: int, timeout_us: int, on_complete: AppendCallback
    ) -> None:
        """Append batches for a coordinator on this broker (``appendRecords``).

        *on_complete* receives the result of each partition. With *acks* of -1 it is called once the
        high watermark has passed the records or the timeout has expired. A slow disk does not delay
        these appends.
        """
        if self._hosted.hold_back(batches, self.append_records, batches, acks, timeout_us, on_complete):
            return
        pending = self._append_all(batches, acks)
        if acks == -1 and any(ack.pending for ack in pending.values()):
            deadline_us = self._host.clock.now_us + timeout_us
            delayed = DelayedProduce(on_complete, deadline_us, pending, _complete_append)
            if not delayed.try_complete():
                _watch(delayed, pending)
                OperationTimer(self._host).watch(delayed)
        else:
            on_complete(pending)
        for ack in pending.values():
            ack.hosted.check_fetches()

    def when_committed(self, name: str, timeout_us: int, on_complete: Callable[[str], None]) -> None:
        """Call *on_complete* once the high watermark has passed the current log end.

        *on_complete* receives an error if another broker leads or the timeout has expired. Unlike
        an append with acks=all, this does not check the size of the ISR (``CoordinatorRuntime``).
        """
        hosted = self._hosted.hosted.hosted_partition(name)
        partition = hosted.partition
        if partition is None:
            on_complete(self._hosted.error_without_replica(name))
            return

        def report(acks: dict[str, PendingAck]) -> None:
            error = acks[name].error
            on_complete(errors.NONE if error == errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND else error)

        waits = {name: PendingAck(hosted, errors.NONE, NO_OFFSET, partition.log.log_end_offset)}
        deadline_us = self._host.clock.now_us + timeout_us
        delayed = DelayedProduce(report, deadline_us, waits, _complete_append)
        if not delayed.try_complete():
            hosted.watch_produce(delayed)
            OperationTimer(self._host).watch(delayed)

    def _append_all(self, batches: dict[str, RecordBatch], acks: int) -> dict[str, PendingAck]:
        hosted = self._hosted.hosted
        return {
            name: self._append(hosted.hosted_partition(name), batch, acks) for name, batch in batches.items()
        }

    def _append(self, hosted: HostedPartition, batch: RecordBatch, acks: int) -> PendingAck:
        partition = hosted.partition
        if partition is None:
            return PendingAck(hosted, self._hosted.error_without_replica(hosted.name), -1, -1)
        result, hw_rose = partition.append_as_leader(batch, acks)
        if result.duplicate:
            self._host.emit(
                BatchDeduplicated,
                self._broker,
                hosted.name,
                batch.producer_id,
                batch.base_sequence,
                result.base_offset,
            )
        if hw_rose:
            hosted.check_produces()
            hosted.check_deletions()
        self._hosted.suspect_isr(partition)
        required_offset = result.base_offset + record_count(batch.values)
        if result.duplicate and not self._switches.duplicate_ack_waits_for_hw:
            required_offset = 0
        return PendingAck(hosted, result.error, result.base_offset, required_offset)

    def _complete_produce(
        self, exchange: Exchange[protocol.ProduceRequest], acks: dict[str, PendingAck]
    ) -> None:
        request = exchange.request
        is_refused = False
        answer = protocol.ProduceResponse({})
        for name, ack in acks.items():
            answer.partitions[name] = (ack.error, ack.base_offset)
            if ack.error != errors.NONE:
                is_refused = True
                self._hosted.reject("Produce", name, exchange.connection.client.name, ack.error)
                leader = self._hosted.current_leader(name, ack.error)
                if leader is not None:
                    answer.current_leaders[name] = leader
            elif request.acks != 0:
                values = request.batches[name].values
                self._host.emit(BatchAcknowledged, self._broker, name, ack.base_offset, request.acks, values)
        if request.acks != 0:
            self._respond(exchange, answer)
        elif is_refused:
            # The client expects no answer. A closed connection makes it look for the leader again.
            self._host.close_by_server(exchange.connection)
        else:
            self._respond(exchange, None)

    # Throttled replication

    def throttle_replication(self, rate: int | None) -> None:
        """Set the rate for throttled partitions in bytes per second; None means no limit."""
        self.fetching.throttle(rate)
        self._fetchers.throttle(rate)

    def _mark_throttled(self, name: str, topic_config: TopicConfig) -> None:
        """Set the throttled replicas of a partition's topic (``updateThrottledList``)."""
        topic = name.rpartition("-")[0]
        if topic_config.leader_throttled_replicas:
            self.fetching.mark_throttled(topic, topic_config.leader_throttled_replicas)
        if topic_config.follower_throttled_replicas:
            self._fetchers.mark_throttled(topic, topic_config.follower_throttled_replicas)

    # Deleting records

    def delete_records(
        self, name: str, offset: int, timeout_us: int, respond: Callable[[str, int, int], None]
    ) -> None:
        """Delete records below an offset, as leader (KIP-107).

        *respond* is called when all live replicas have deleted the records too. It receives the
        error, the resolved offset, and the lowest log start of the replicas.
        """
        if self._hosted.hold_back({name: None}, self.delete_records, name, offset, timeout_us, respond):
            return
        partition = self.partitions.get(name)
        if partition is None:
            respond(self._hosted.error_without_replica(name), offset, NO_OFFSET)
            return
        error, required_offset = partition.delete_records(offset)
        if error != errors.NONE:
            respond(error, required_offset, NO_OFFSET)
            return
        self._on_log_start_raised(name)
        delayed = DelayedDeleteRecords(
            self._host.clock.now_us + timeout_us,
            required_offset,
            partial(self._low_watermark, name),
            lambda error, low_watermark: respond(error, required_offset, low_watermark),
        )
        if not delayed.try_complete():
            self._hosted.hosted.hosted_partition(name).watch_deletion(delayed)
            OperationTimer(self._host).watch(delayed)

    def producers_of(self, name: str) -> tuple[str, tuple[protocol.DescribedProducer, ...]]:
        """Return the error and the producers of a partition that this broker leads (KIP-664)."""
        partition = self.partitions.get(name)
        if partition is None:
            return self._hosted.error_without_replica(name), ()
        if not partition.is_leader():
            return errors.NOT_LEADER_FOR_PARTITION, ()
        states = partition.log.producers
        return errors.NONE, tuple(
            [
                protocol.DescribedProducer(
                    *(producer_id, entry.producer_epoch, entry.last_sequence, entry.coordinator_epoch),
                    states.ongoing_transactions.get(producer_id, NO_OFFSET),
                )
                for producer_id, entry in states.entries.items()
            ]
        )

    def _low_watermark(self, name: str) -> tuple[str, int]:
        partition = self.partitions.get(name)
        if partition is None:
            return self._hosted.error_without_replica(name), NO_OFFSET
        return partition.low_watermark(self._is_alive)

    def _on_log_start_raised(self, name: str) -> None:
        """Let followers or the leader learn that this replica's log start has risen."""
        self._hosted.hosted.hosted_partition(name).check_fetches()
        self._fetchers.on_log_start_raised(name)

    # Log directories

    def handle_log_dir_failure(self, log_dir: int) -> None:
        """Stop serving a log directory that cannot be written. Without another, the broker halts.

        Modelled on ``ReplicaManager.handleLogDirFailure``. Up to 0.11 any I/O error ends the broker
        (KIP-112). In KRaft an I/O error in the directory of the metadata log still ends the broker.
        Since 3.7 the broker checks for that here. Before 3.7 the thread that writes the metadata
        log fails within half a second (``KafkaRaftManager.RaftIoThread``). The broker notifies the
        controller, which in ZooKeeper mode asks which replicas are offline.
        """
        names = self.logs.close_dir(log_dir)
        self._host.emit(LogDirFailed, self._broker, log_dir, names)
        if self.logs.is_halting:
            self._host.halt()
            return
        for name in names:
            self._fetchers.remove(name)
            partition = self.partitions[name]
            partition.take_offline()
            self._isr_suspects.pop(partition, None)
        self._try_waiting_requests(names)
        # A directory that failed before the broker started has logs that were never opened.
        self.on_log_dir_failure(self.logs.stored_in(log_dir))

    # Leadership

    def change_steps(self, changed: tuple[Collection[str], bool]) -> Steps:
        """Wait on a slow disk until partitions may change: for their appends, and for fetchers.

        *changed* has the names of the partitions, and whether fetchers have to drop partitions.
        """
        names, removes_fetchers = changed
        locks = self.append_locks
        yield from locks.begin_change()
        if removes_fetchers:
            yield from locks.wait_for_fetchers()
        for name in names:
            yield from locks.wait_for_appends(name)

    def partitions_changed_by_request(
        self, request: protocol.LeaderAndIsrRequest | protocol.StopReplicaRequest
    ) -> tuple[Collection[str], bool]:
        """Return the partitions that a request changes, and whether fetchers have to drop any."""
        if isinstance(request, protocol.StopReplicaRequest):
            return (request.partitions if request.delete_partitions else ()), True
        return self.partitions_changed_by(request.partition_states, self._is_newer)

    def partitions_changed_by(
        self,
        states: Mapping[str, protocol.LeaderAndIsrPartitionState],
        is_newer: Callable[[Partition, protocol.LeaderAndIsrPartitionState], bool] | None = None,
    ) -> tuple[Collection[str], bool]:
        """Return the partitions that *states* change, and whether fetchers have to drop any."""
        is_newer = self._is_newer_metadata if is_newer is None else is_newer
        changed = [
            name
            for name, state in states.items()
            if (partition := self.partitions.get(name)) is None or is_newer(partition, state)
        ]
        return changed, bool(changed)

    def handle_leader_and_isr(self, exchange: Exchange[protocol.LeaderAndIsrRequest]) -> None:
        """Become leader or follower of partitions, unless the controller is stale."""
        request = exchange.request
        if self.is_stale_controller(request.controller_epoch):
            self._hosted.reject(
                "LeaderAndIsr", "", exchange.connection.client.name, errors.STALE_CONTROLLER_EPOCH
            )
            self._respond(exchange, protocol.ControlResponse(request.api, errors.STALE_CONTROLLER_EPOCH))
            return
        if self._hosted.hold_back(request.partition_states, self.handle_leader_and_isr, exchange):
            return
        self._host.publish(ControlRequestObeyed, self._broker, request.api, request.controller_epoch)
        self.controller_epoch = request.controller_epoch
        changed = []
        offline = tuple(name for name in request.partition_states if self.logs.is_offline(name))
        for name, state in request.partition_states.items():
            if name in offline:
                continue
            partition = self._get_or_create_partition(name)
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
        self._try_waiting_requests(changed)
        self._notify_coordinators(changed)
        self._respond(exchange, protocol.ControlResponse(request.api, errors.NONE, offline))

    def apply_metadata(
        self, broker_epoch: int, states: Mapping[str, protocol.LeaderAndIsrPartitionState]
    ) -> None:
        """Lead and follow according to the metadata log (``ReplicaManager.applyDelta``).

        Replicas that are no longer assigned to this broker are deleted, including those left by a
        previous incarnation (``findStrayPartitions``). Fetches carry *broker_epoch* from now on.
        """
        if self._switches.isr_expansion_checks_broker_epoch:
            self._fetchers.broker_epoch = broker_epoch
        changed = []
        for name, state in states.items():
            if self._broker not in state.replicas:
                self._delete_replica(name)
                continue
            if self.logs.is_offline(name):
                continue
            partition = self._get_or_create_partition(name)
            if not self._is_newer_metadata(partition, state):
                continue
            leader = state.leader_and_isr.leader
            if leader == self._broker:
                self._lead(partition, state)
            else:
                self._follow_as_published(partition, state)
            changed.append(name)
        self._try_waiting_requests(changed)
        self._notify_coordinators(changed)

    def _notify_coordinators(self, changed: Collection[str]) -> None:
        """Tell coordinators of elections and resignations (``onLeadershipChange``).

        Callers answer waiting requests first.
        """
        for name in changed:
            if is_internal(name):
                partition = self.partitions[name]
                self.on_leadership_change(partition, partition.is_leader())

    def _follow_as_published(self, partition: Partition, state: protocol.LeaderAndIsrPartitionState) -> None:
        """Follow the leader that the metadata log names.

        During a controlled shutdown a replica outside the ISR does not fetch
        (``applyLocalFollowersDelta``).
        """
        leader, isr = state.leader_and_isr.leader, state.leader_and_isr.isr
        is_changed = partition.make_follower(state)
        if self._is_shutting_down and (leader == protocol.NO_LEADER or self._broker not in isr):
            self._fetchers.remove(partition.name)
        elif is_changed:
            self._fetchers.remove(partition.name)
            if leader in self._metadata.live_brokers:
                self._follow(partition)

    def begin_controlled_shutdown(self) -> None:
        """From now on, stop fetching a changed partition if this replica is not in its ISR.

        This matters only in KRaft.
        """
        self._is_shutting_down = True

    def _lead(self, partition: Partition, state: protocol.LeaderAndIsrPartitionState) -> None:
        self._fetchers.remove(partition.name)
        partition.make_leader(state)
        self._hosted.suspect_isr(partition)

    def _try_waiting_requests(self, partitions: Collection[str]) -> None:
        """Try the requests that wait for changed partitions."""
        for name in partitions:
            self._hosted.hosted.hosted_partition(name).check()

    def is_stale_controller(self, controller_epoch: int) -> bool:
        """Return whether a control request comes from a controller that has been replaced."""
        return (
            controller_epoch < self.controller_epoch and self._behaviours.zookeeper.controller_epoch_fencing
        )

    def handle_stop_replica(self, exchange: Exchange[protocol.StopReplicaRequest]) -> None:
        """Stop fetching partitions; delete replicas if requested, after pending ISR writes."""
        request = exchange.request
        if request.delete_partitions and self._hosted.hold_back(
            dict.fromkeys(request.partitions), self.handle_stop_replica, exchange
        ):
            return
        offline = []
        for name in request.partitions:
            self._fetchers.remove(name)
            if request.delete_partitions and not self._delete_replica(name):
                offline.append(name)
        self._respond(exchange, protocol.ControlResponse(request.api, errors.NONE, tuple(offline)))

    def _delete_replica(self, name: str) -> bool:
        """Delete a replica and its log, and reject the requests that wait for it.

        Modelled on ``stopPartitions``. Return False if the log stays because its directory has
        failed. The controller then gets KAFKA_STORAGE_ERROR (``HostedPartition.Offline``).
        """
        if self.logs.is_offline(name) or (self.logs.has(name) and not self.logs.can_write(name)):
            return False
        partition = self.partitions.get(name)
        if partition is not None:
            self._fetchers.remove(name)
            partition.mark_deleted()
            self._try_waiting_requests([name])
            self._notify_coordinators([name])
            self._hosted.remove(partition)
        if self.logs.has(name):
            self.logs.delete(name)
        return True

    def delete_replicas(self, names: Collection[str]) -> None:
        """Delete the replicas of topics that were deleted (``stopPartitions``)."""
        for name in names:
            if name in self.partitions or self.logs.has(name):
                self._delete_replica(name)

    def configure(self, changed: str | None) -> None:
        """Follow the changed settings of a topic, or with None of brokers.

        See ``TopicConfigHandler.updateLogConfig`` and ``DynamicLogConfig.updateLogsConfig``.
        """
        for name, partition in self.partitions.items():
            topic = name.rpartition("-")[0]
            if changed is None or topic == changed:
                config = self._topic_config(topic)
                partition.configure(config)
                self.logs.configure(name, config)
                self._mark_throttled(name, config)
                self._hosted.hosted.hosted_partition(name).check()

    def _is_newer(self, partition: Partition, state: protocol.LeaderAndIsrPartitionState) -> bool:
        if state.leader_and_isr.leader_epoch > partition.leader_epoch:
            return True
        return (
            not self._behaviours.zookeeper.leader_epoch_fencing
            and state.leader_and_isr.leader_epoch != partition.leader_epoch
        )

    def _is_newer_metadata(self, partition: Partition, state: protocol.LeaderAndIsrPartitionState) -> bool:
        """Return whether a state of the metadata log is not older than the partition's own.

        A state that removes this replica always counts. A state with the same partition epoch
        counts too: the metadata log repeats what a leader knows already from the answer to its
        AlterPartition. If the leader has sent another AlterPartition meanwhile, it then drops that
        request, and ignores the answer (``Partition.makeLeader``).
        """
        is_older = state.leader_and_isr.partition_epoch < partition.partition_epoch
        return not is_older or not partition.has_state or self._broker not in state.replicas

    def _get_or_create_partition(self, name: str) -> Partition:
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
                self._on_isr_altered,
                self._config.replica_lag_time_max_us,
                topic_config.min_insync_replicas,
                self._may_join_isr,
                topic_config.unclean_leader_election,
                self._isr_writes,
                self._config.replica_lag_max_messages,
                timestamp_before_max_us=topic_config.timestamp_before_max_us,
                timestamp_after_max_us=topic_config.timestamp_after_max_us,
            )
            partition.hw_completes_fetches = self.fetching.hw_completes_fetches
            self._hosted.add(partition)
        return partition

    def _follow(self, partition: Partition) -> None:
        self._fetchers.remove(partition.name)
        if self._switches.follower_truncation == HIGH_WATERMARK:
            partition.truncate_to(partition.log.high_watermark, HIGH_WATERMARK_TRUNCATION)
        self._fetchers.add(partition)

    # ISR

    def _handle_isr_written(self, partition: Partition, _hw_rose: bool) -> None:
        """Handle the end of an ISR write: release the requests that waited for it."""
        if self._hosted.is_shut_down:
            return  # The log is already closed.
        hosted = self._hosted.hosted.hosted_partition(partition.name)
        hosted.check_fetches()
        hosted.check_produces()
        hosted.check_deletions()
        blocked, partition.blocked_requests = partition.blocked_requests, ()
        for handle_again in blocked:
            handle_again()

    def _is_alive(self, broker: int) -> bool:
        return broker in self._metadata.live_brokers


def _request_key(exchange: Exchange[protocol.ProduceRequest]) -> tuple[int, int]:
    return exchange.connection.id, exchange.correlation_id


def _watch(delayed: DelayedProduce, acks: dict[str, PendingAck]) -> None:
    """Let the purgatory try a produce again whenever one of its partitions changes."""
    for ack in acks.values():
        ack.hosted.watch_produce(delayed)


def _complete_append(on_complete: AppendCallback, acks: dict[str, PendingAck]) -> None:
    on_complete(acks)
