"""All replicas of a broker: produce, fetch, leadership, ISR, checkpoints (``ReplicaManager.scala``)."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

from harrow.cluster_model import errors, events, protocol
from harrow.cluster_model.broker.append_locks import AppendLocks, Steps
from harrow.cluster_model.broker.client_quota_manager import ClientQuotaManager
from harrow.cluster_model.broker.delayed_requests import (
    DelayedDeleteRecords,
    DelayedProduce,
    OperationTimer,
    PendingAck,
)
from harrow.cluster_model.broker.fetch_session import (
    FetchSession,
)
from harrow.cluster_model.broker.fetching import Fetching
from harrow.cluster_model.broker.hosted_replicas import HostedReplicas
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.replica_fetcher import ReplicaFetcherManager
from harrow.cluster_model.broker.transaction_verification import TransactionVerification, Verified
from harrow.cluster_model.controller.control_plane import AlterPartitionManager
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
from harrow.cluster_model.topology import is_internal

_UNVERIFIED: Final = (
    errors.CONCURRENT_TRANSACTIONS,
    errors.NETWORK_EXCEPTION,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
)
"""Why it is not known whether a partition is in a transaction: producers try NOT_ENOUGH_REPLICAS again (``handleProduceAppend``)."""
_NO_GUARD: Final = -1


AppendCompleted = Callable[[dict[str, PendingAck]], None]
"""Told of each partition the error and the base offset of what was appended."""


class ReplicaManager:
    """The partitions of one broker since its last start."""

    # Of more than 30 attributes CPython makes a dictionary for each object, and looks up everything more slowly.
    __slots__ = (
        "_alter_partition_manager",
        "_behaviours",
        "_broker",
        "_config",
        "_delete_purgatory",
        "_fetch_watchers",
        "_fetchers",
        "_host",
        "_hosted",
        "_is_shutting_down",
        "_isr_suspects",
        "_isr_writes",
        "_metadata",
        "_produce_purgatory",
        "_respond",
        "_switches",
        "_topic_config",
        "_transaction_switches",
        "_verification",
        "_verified",
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
        self._fetch_watchers = hosted.fetches
        self._produce_purgatory = hosted.produces
        self._delete_purgatory = hosted.deletions
        self.fetching = Fetching(hosted, config, fetch_quota)
        self.controller_epoch = 0
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
        self._is_shutting_down = False
        self.logs.on_dir_failure = self.handle_log_dir_failure
        self.logs.on_log_start = self._log_start_raised
        self.on_unblocked: Callable[[Exchange[protocol.ProduceRequest]], None] = self.handle_produce
        """What handles a request to append that has waited for an ISR to be written, while the disk is slow."""
        self.on_log_dir_failure: Callable[[tuple[str, ...]], None] = lambda _: None
        self.on_leadership_change: Callable[[Partition, bool], None] = lambda _partition, _leads: None
        """Told when a partition of an internal topic is led here in another epoch, or is not led here any more."""

    def start(self) -> None:
        """Begin the periodic tasks."""
        self._alter_partition_manager.start()
        self.logs.start()
        self._hosted.start()

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
        self._hosted.is_shut_down = True
        self._fetchers.shutdown()
        self._verification.close()
        self._hosted.stop_timers()
        if self.hangs:
            self.logs.stop()
        else:
            self.logs.shutdown()

    def connection_closed(self, connection: Connection) -> None:
        """Forget a connection that is gone."""
        self._hosted.connection_closed(connection)
        self.fetching.connection_closed(connection)

    # Produce

    def handle_produce(self, exchange: Exchange[protocol.ProduceRequest]) -> None:
        """Append, and answer as acks says."""
        request = exchange.request
        if self._hosted.blocked(request.batches, self.handle_produce, exchange):
            return
        if request.transactional_id:
            if not self._is_verified(exchange):
                return
            acks = {name: self._append_of_transaction(exchange, name) for name in request.batches}
            self._verified.pop(_key(exchange), None)
        else:
            acks = {name: self._append(name, batch, request.acks) for name, batch in request.batches.items()}
        self._answer_produce(exchange, acks)
        # Followers are woken after this request has its place in the purgatory: what
        # they fetch now may complete it.
        for name in request.batches:
            self._fetch_watchers.check(name)

    def produce_steps(self, exchange: Exchange[protocol.ProduceRequest]) -> Steps:
        """Append while the disk is slow: one batch after the other, of which those that are refused wait for no disk."""
        request = exchange.request
        if self._hosted.blocked(request.batches, self.on_unblocked, exchange):
            return
        if request.transactional_id and not self._is_verified(exchange):
            return
        locks, acks = self.append_locks, {}
        for name, batch in request.batches.items():
            if name in self.partitions:
                yield from locks.begin_append(name)
                partition = self.partitions.get(name)
                if partition is not None and partition.may_append(batch, request.acks):
                    yield from locks.write(name)
                acks[name] = self._append_of_transaction(exchange, name)
                locks.end_append(name)
                self._fetch_watchers.check(name)
            else:
                acks[name] = self._append(name, batch, request.acks)
        self._verified.pop(_key(exchange), None)
        self._answer_produce(exchange, acks)

    def _answer_produce(
        self, exchange: Exchange[protocol.ProduceRequest], acks: dict[str, PendingAck]
    ) -> None:
        """Answer as acks says, at once or when the followers have what was appended."""
        request = exchange.request
        if request.acks == -1 and any(ack.pending for ack in acks.values()):
            deadline_us = self._host.clock.now_us + request.timeout_us
            delayed = DelayedProduce(exchange, deadline_us, acks, self.partitions, self._complete_produce)
            if not delayed.try_complete():
                self._produce_purgatory.watch(delayed, list(acks))
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

    def _is_verified(self, exchange: Exchange[protocol.ProduceRequest]) -> bool:
        """Return whether the partitions of a produce are known to be in its transaction; else ask, and handle it again then.

        Of a partition in which the transaction is open already, the coordinator need not be asked.
        """
        key, request = _key(exchange), exchange.request
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
            self.on_unblocked(exchange)

        self._verification.verify(request.transactional_id, *producer, tuple(guards), verified)
        return False

    def _has_to_be_verified(self, partition: Partition, batch: RecordBatch) -> bool:
        return (
            batch.is_transactional
            and partition.is_leader()
            and not partition.log.producers.is_in_transaction(batch.producer_id, batch.producer_epoch)
        )

    def _append_of_transaction(self, exchange: Exchange[protocol.ProduceRequest], name: str) -> PendingAck:
        """Append a batch of a produce, unless it begins a transaction of which the coordinator does not know."""
        request = exchange.request
        batch, partition = request.batches[name], self.partitions.get(name)
        if (
            request.transactional_id
            and self._transaction_switches.transaction_verification
            and partition is not None
        ):
            error, guard = self._verified.get(_key(exchange), {}).get(name, (errors.NONE, _NO_GUARD))
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
        if self._hosted.blocked(batches, self.append_records, batches, acks, timeout_us, on_complete):
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
            on_complete(self._hosted.error_without_replica(name))
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
            return PendingAck(self._hosted.error_without_replica(name), -1, -1)
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
        self._hosted.suspect_isr(name)
        required_offset = result.base_offset + record_count(batch.values)
        if result.duplicate and not self._switches.duplicate_waits_for_hw:
            required_offset = 0
        return PendingAck(result.error, result.base_offset, required_offset)

    def _complete_produce(
        self, exchange: Exchange[protocol.ProduceRequest], acks: dict[str, PendingAck]
    ) -> None:
        request = exchange.request
        for name, ack in acks.items():
            if ack.error != errors.NONE:
                self._hosted.reject("Produce", name, exchange.connection.client.name, ack.error)
            elif request.acks != 0:
                values = request.batches[name].values
                self._host.emit(
                    events.BatchAcknowledged, self._broker, name, ack.base_offset, request.acks, values
                )
        if request.acks != 0:
            answer = protocol.ProduceResponse({n: (a.error, a.base_offset) for n, a in acks.items()})
            for name, ack in acks.items():
                leader = self._hosted.current_leader(name, ack.error)
                if leader is not None:
                    answer.current_leaders[name] = leader
            self._respond(exchange, answer)
        elif any(ack.error != errors.NONE for ack in acks.values()):
            # No client waits for an answer; closing the connection makes the client look for the leader.
            self._host.close_by_server(exchange.connection)
        else:
            self._respond(exchange, None)

    # Throttled replication

    def throttle_replication(self, rate: int | None) -> None:
        """Have throttled partitions replicated at another rate, None for without limit: an administrator has said so."""
        self.fetching.throttle(rate)
        self._fetchers.throttle(rate)

    def _mark_throttled(self, name: str, topic_config: TopicConfig) -> None:
        """Note which replicas of a partition's topic are throttled (``TopicConfigHandler.updateThrottledList``)."""
        topic = name.rpartition("-")[0]
        if topic_config.leader_throttled_replicas:
            self.fetching.mark_throttled(topic, topic_config.leader_throttled_replicas)
        if topic_config.follower_throttled_replicas:
            self._fetchers.mark_throttled(topic, topic_config.follower_throttled_replicas)

    # Deleting records

    def delete_records(
        self, name: str, offset: int, timeout_us: int, respond: Callable[[str, int, int], None]
    ) -> None:
        """Delete what a leader has below an offset, and answer when all live replicas have done so (KIP-107).

        *respond* is given the error, the offset that was meant, and below which one nothing is left.
        """
        if self._hosted.blocked({name: None}, self.delete_records, name, offset, timeout_us, respond):
            return
        partition = self.partitions.get(name)
        if partition is None:
            respond(self._hosted.error_without_replica(name), offset, NO_OFFSET)
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
            return self._hosted.error_without_replica(name), NO_OFFSET
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

    def handle_leader_and_isr(self, exchange: Exchange[protocol.LeaderAndIsrRequest]) -> None:
        """Become leader or follower of partitions, unless the controller is an old one."""
        request = exchange.request
        if self.is_stale_controller(request.controller_epoch):
            self._hosted.reject(
                "LeaderAndIsr", "", exchange.connection.client.name, errors.STALE_CONTROLLER_EPOCH
            )
            self._respond(exchange, protocol.ControlResponse(request.api, errors.STALE_CONTROLLER_EPOCH))
            return
        if self._hosted.blocked(request.partition_states, self.handle_leader_and_isr, exchange):
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
        self._respond(exchange, protocol.ControlResponse(request.api, errors.NONE, offline))

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
        self._hosted.suspect_isr(partition.name)

    def _check_waiting(self, partitions: Collection[str]) -> None:
        """Look at the requests that wait for something of partitions that have changed."""
        for name in partitions:
            self._hosted.check(name)

    def is_stale_controller(self, controller_epoch: int) -> bool:
        """Return whether a control request comes from a controller that has been succeeded."""
        return (
            controller_epoch < self.controller_epoch and self._behaviours.zookeeper.controller_epoch_fencing
        )

    def handle_stop_replica(self, exchange: Exchange[protocol.StopReplicaRequest]) -> None:
        """Stop fetching, and delete what is no longer assigned here; while an ISR is being written that waits for it."""
        request = exchange.request
        if request.delete_partitions and self._hosted.blocked(
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
            partition.answers_by_hw = self.fetching.answers_by_hw
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
        if self._hosted.is_shut_down:
            return  # The log is closed to the requests that have waited.
        self._fetch_watchers.check(partition.name)
        self._produce_purgatory.check(partition.name)
        self._delete_purgatory.check(partition.name)
        blocked, partition.blocked = partition.blocked, []
        for handle_again in blocked:
            handle_again()

    # Small parts

    def _is_alive(self, broker: int) -> bool:
        return broker in self._metadata.live_brokers


def _key(exchange: Exchange[protocol.ProduceRequest]) -> tuple[int, int]:
    return exchange.connection.id, exchange.correlation_id


def _complete_append(on_complete: AppendCompleted, acks: dict[str, PendingAck]) -> None:
    on_complete(acks)
