"""Implements a producer, with batches, requests in flight, retries and idempotence.

Modelled on ``KafkaProducer.java``, ``Sender.java``, ``RecordAccumulator.java`` and the parts of
``TransactionManager.java`` that need no transactions. The application and the sender thread are one
actor, so a batch is sent as soon as that is permitted.
"""

from collections.abc import Callable, Collection
from typing import final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.exponential_backoff import ExponentialBackoff
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.clients.partitioner import Partitioner
from harrow.cluster_model.clients.producer_batch import ProducerBatch
from harrow.cluster_model.clients.producer_sequences import (
    EXPIRED,
    FATAL_SEQUENCE_ERRORS,
    EpochBumps,
    ProducerSequences,
)
from harrow.cluster_model.events import AppendedBatchGivenUp, KeyedRecordSent, SendFailed, SentAgain
from harrow.cluster_model.history import INVOKE, SEND, History
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RECORD_OVERHEAD_BYTES
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import ProducerConfig
from harrow.cluster_model.sim.host import Host


@final
class PartitionBatches:
    """The batches of a partition that have no outcome yet: queued, or in flight."""

    __slots__ = ("in_flight", "is_waiting", "name", "queue")

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: list[ProducerBatch] = []
        self.in_flight: list[ProducerBatch] = []
        # Whether the partition is in the sender's list of partitions with batches to send.
        self.is_waiting = False


@final
class Node:
    """A broker as the sender sees it: its connection, and its number of produces in flight."""

    __slots__ = ("broker", "connection", "in_flight")

    def __init__(self, broker: int, connection: NetworkClient) -> None:
        self.broker = broker
        self.connection = connection
        self.in_flight = 0


class Producer:
    """One session of a producer, from its start to its end."""

    def __init__(
        self,
        host: Host,
        process: int,
        brokers: tuple[int, ...],
        partitions: tuple[str, ...],
        config: ProducerConfig,
        behaviours: Behaviours,
        history: History,
        record_bytes: int,
        topics: Collection[str] = (),
        later: Collection[int] = (),
    ) -> None:
        self._host = host
        self._process = process
        self._config = config
        self._behaviours = behaviours
        # Settings that are read several times for each request have attributes of their own.
        self._acks = config.acks
        self._is_idempotent = config.idempotence
        self._max_in_flight = config.max_in_flight
        self._linger_us = config.linger_us
        self._batch_size_bytes = config.batch_size_bytes
        self._request_timeout_us = config.request_timeout_us
        self._transactional_id = config.transactional_id
        self._adds_partitions = bool(config.transactional_id) and behaviours.transactions.transactions_v2
        self._has_delivery_timeout = behaviours.clients.delivery_timeout
        self._learns_leader_from_error = behaviours.clients.current_leader_in_error_response
        self._keeps_expired_memory = behaviours.clients.expired_batch_keeps_buffer
        self._history = history
        self._record_bytes = record_bytes + RECORD_OVERHEAD_BYTES
        self._metadata = ClientMetadata(
            host,
            brokers,
            config,
            self._metadata_updated,
            oldest_fails_first=behaviours.clients.oldest_request_fails_first,
            later=later,
        )
        # Topics to whose partitions the producer writes, including partitions added later.
        self._topics = frozenset(topics)
        self._backoff = ExponentialBackoff(
            config.retry_backoff_us, config.retry_backoff_max_us, host.choices.network
        )
        self._partitioner = Partitioner(
            partitions,
            host.choices.workload,
            sticky=behaviours.clients.sticky_partitioner,
            leads_nearby=self._leads_nearby if config.is_rack_aware else None,
        )
        self._partitions = {name: PartitionBatches(name) for name in partitions}
        # Partitions with batches to send. The sender drops a partition that has none left.
        self._partitions_to_send: list[PartitionBatches] = []
        self._nodes = {
            broker: Node(broker, connection) for broker, connection in self._metadata.connections.items()
        }
        # Only for the mutant `expired-memory-reused`: the request that carries each batch, and for
        # each batch that expired in flight the time, the partition and the request.
        self._carriers: dict[ProducerBatch, protocol.ProduceRequest] = {}
        self._freed_memory: list[tuple[int, str, protocol.ProduceRequest]] = []
        sequences = EpochBumps if behaviours.clients.producer_bumps_epoch else ProducerSequences
        self._sequences = sequences(
            keeps_abandoned_sequence=behaviours.clients.abandoned_batch_keeps_sequence
        )
        # These are bound once, not for each request.
        self._outstanding = self._outstanding_batches
        self._on_response = self._handle_response
        # The kind of operation in the history to which a send belongs: a send or a transaction.
        self._operation = SEND
        # Whether batches are sent without lingering.
        self._skips_linger = False
        self._is_id_requested = False
        self._wake_at_us: int | None = None
        self._expiry_timer_set = False
        # Incremented on every clock jump, so that older timers are ignored.
        self._clock_steps = 0
        self._is_running = False
        self._must_run_again = False
        self._on_flushed: Callable[[], None] | None = None
        self.unfinished = 0
        self.failures = 0

    def start(self) -> None:
        """Request metadata, and a producer id if idempotent."""
        self._metadata.start()
        self._run()

    # The application's side

    def send(
        self, value: str, partition: str | None = None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        """Accept a record. The history gets its outcome later."""
        if partition is not None:
            name = partition
        else:
            name = self._partitioner.partition() if key is None else self._partitioner.partition_of(key)
        now_us = self._host.clock.now_us
        if key is not None:
            self._host.emit(KeyedRecordSent, self._host.name, name, value, key, tombstone)
        self._history.add(self._process, INVOKE, self._operation, ((SEND, name, value),), now_us)
        self.unfinished += 1
        partition_batches = self._partitions.get(name)
        if partition_batches is None:
            # A record may name a partition that the partitioner would not choose.
            partition_batches = self._partitions[name] = PartitionBatches(name)
        queue = partition_batches.queue
        batch = queue[-1] if queue else None
        if batch is None or not self._has_room(batch):
            batch = ProducerBatch(name, now_us)
            queue.append(batch)
            self._await_sender(partition_batches)
        if key is not None:
            batch.keys[len(batch.values)] = key, tombstone
        batch.values.append(value)
        batch.max_timestamp_us = now_us
        batch.size_bytes += self._record_bytes
        if not self._expiry_timer_set:
            self._set_expiry_timer()
        self._run()

    def _leads_nearby(self, partition: str) -> bool:
        """Return whether the leader of a partition is known to be in the producer's rack."""
        leader = self._metadata.leader(partition)
        return leader is not None and self._metadata.racks.get(leader) == self._config.client_rack

    def _has_room(self, batch: ProducerBatch) -> bool:
        """Return whether a batch can take another record: it is not full, and was never sent."""
        return (
            batch.attempts == 0
            and not batch.has_sequence()
            and batch.size_bytes + self._record_bytes <= self._batch_size_bytes
        )

    def flush(self, on_flushed: Callable[[], None]) -> None:
        """Send lingering batches; call *on_flushed* when all records have outcomes (``flush``)."""
        self._on_flushed = on_flushed
        self._skips_linger = True
        self._run()
        self._check_flushed()

    def _check_flushed(self) -> None:
        on_flushed = self._on_flushed
        if on_flushed is not None and not self.unfinished:
            self._on_flushed = None
            self._skips_linger = False
            on_flushed()

    def abandon(self) -> None:
        """Report a crash of the application: unsent records failed, others may be in the logs."""
        now_us = self._host.clock.now_us
        for partition in self._partitions.values():
            for batch in (*partition.in_flight, *partition.queue):
                if not batch.is_done:
                    batch.is_done = True
                    for value in batch.values:
                        self._history.record_failure(
                            self._process,
                            partition.name,
                            value,
                            now_us,
                            "CRASHED",
                            definite=batch.attempts == 0,
                        )
        self.unfinished = 0

    # The sender's side

    def _metadata_updated(self) -> None:
        for name in self._metadata.new_partitions(self._topics):
            self._partitioner.add(name)
        self._run()

    def _run(self) -> None:
        """Send all batches that may be sent. A nested call makes the sender run once more."""
        if self._is_running:
            self._must_run_again = True
            return
        self._is_running = True
        while True:
            self._must_run_again = False
            self._run_once()
            if not self._must_run_again:
                break
        self._is_running = False

    def _await_sender(self, partition: PartitionBatches) -> None:
        if not partition.is_waiting:
            partition.is_waiting = True
            self._partitions_to_send.append(partition)

    def _run_once(self) -> None:
        now_us = self._host.clock.now_us
        if self._is_idempotent:
            self._sequences.settle(self._outstanding)
            if self._sequences.producer_id == NO_PRODUCER_ID:
                self._request_producer_id()
                return
        if not self._partitions_to_send:
            return
        wake_at_us: int | None = None
        for partition in self._partitions_to_send.copy():
            while partition.queue:
                ready_at_us = self._ready_at_us(partition, now_us)
                if ready_at_us is None:
                    break
                if ready_at_us > now_us:
                    wake_at_us = ready_at_us if wake_at_us is None else min(wake_at_us, ready_at_us)
                    break
                self._send_first(partition)
            else:
                partition.is_waiting = False
                self._partitions_to_send.remove(partition)
        if wake_at_us is not None and (self._wake_at_us is None or wake_at_us < self._wake_at_us):
            self._wake_at_us = wake_at_us
            self._host.set_timer(wake_at_us - now_us, self._wake, wake_at_us)

    def _wake(self, at_us: int) -> None:
        """Run after a batch's backoff or linger time, or a reconnect backoff, is over."""
        if self._wake_at_us == at_us:
            self._wake_at_us = None
            self._run()

    def _ready_at_us(self, partition: PartitionBatches, now_us: int) -> int | None:
        """Return when the first batch may be sent; None if that depends on another event."""
        queue, in_flight = partition.queue, partition.in_flight
        batch = queue[0]
        leader = self._metadata.leader(partition.name)
        if leader is None:
            self._metadata.request_update()
            return None
        node = self._nodes[leader]
        if node.in_flight >= self._max_in_flight:
            return None
        if self._max_in_flight == 1 and in_flight:
            return None
        if self._is_idempotent and not self._sequences.may_send(batch, in_flight):
            return None
        connection = node.connection
        ready_at_us = now_us if connection.is_usable() else connection.usable_at_us
        if batch.in_retry and not self._has_another_leader(batch):
            return max(ready_at_us, batch.retry_at_us)
        is_full = len(queue) > 1 or batch.size_bytes + self._record_bytes > self._batch_size_bytes
        return (
            ready_at_us
            if is_full or self._skips_linger
            else max(ready_at_us, batch.created_us + self._linger_us)
        )

    def _has_another_leader(self, batch: ProducerBatch) -> bool:
        """Return whether the partition has a new leader since a batch was refused.

        See ``hasLeaderChangedForTheOngoingRetry``.
        """
        leader_epoch = self._metadata.leader_epochs.get(batch.partition, protocol.NO_EPOCH)
        return self._learns_leader_from_error and leader_epoch > batch.leader_epoch

    def _send_first(self, partition: PartitionBatches) -> None:
        name, batch = partition.name, partition.queue.pop(0)
        leader = self._metadata.leader(name)
        assert leader is not None
        if self._is_idempotent:
            self._sequences.assign(batch)
        if batch.attempts == 0:
            self._partitioner.batch_completed(name)
        batch.attempts += 1
        batch.leader_epoch = self._metadata.leader_epochs.get(name, protocol.NO_EPOCH)
        if batch.attempts > 1:
            self._host.emit(
                SentAgain, self._host.name, batch.partition, leader, batch.attempts, tuple(batch.values)
            )
        request = protocol.ProduceRequest(
            self._acks,
            self._request_timeout_us,
            {name: batch.record_batch(self._host.skew_us)},
            self._transactional_id,
            self._adds_partitions,
        )
        node = self._nodes[leader]
        if not self._keeps_expired_memory:
            self._share_memory(batch, request)
        if self._acks == 0:
            node.connection.send_without_answer(request)
            self._report_acks(batch, None)
            return
        partition.in_flight.append(batch)
        node.in_flight += 1
        node.connection.send(request, self._on_response, (node, batch))

    # Answers

    def _handle_response(
        self, response: protocol.ProduceResponse | None, context: tuple[Node, ProducerBatch]
    ) -> None:
        node, batch = context
        node.in_flight -= 1
        error, offset = errors.NETWORK_EXCEPTION, -1
        if response is not None:
            error, offset = response.partitions[batch.partition]
            if response.throttle_us:
                node.connection.throttle(response.throttle_us)
        if error != errors.NONE:
            self._host.emit(
                SendFailed,
                self._host.name,
                batch.partition,
                node.broker,
                batch.attempts,
                error,
                tuple(batch.values),
            )
            if error in errors.INVALID_METADATA:
                self._metadata.request_update()
            if response is not None:
                self._metadata.update_leader(batch.partition, response.current_leaders.get(batch.partition))
        self._carriers.pop(batch, None)
        partition = self._partitions[batch.partition]
        if batch in partition.in_flight:
            partition.in_flight.remove(batch)
        if not self._expiry_timer_set and partition.queue:
            self._set_expiry_timer()
        if not batch.is_done:
            self._complete(batch, error, offset)
        elif error == errors.NONE:
            # The batch was already reported as expired, but now its sequence is settled.
            self._sequences.on_ack(batch)
        self._run()

    def _complete(self, batch: ProducerBatch, error: str, offset: int) -> None:
        if error in (errors.NONE, errors.DUPLICATE_SEQUENCE_NUMBER):
            self._sequences.on_ack(batch)
            self._report_acks(batch, offset if error == errors.NONE else None)
            return
        if error in errors.MAYBE_APPENDED:
            batch.maybe_appended = True
        if self._can_retry(batch, error):
            batch.in_retry = True
            batch.retry_at_us = self._host.clock.now_us + self._backoff.backoff_us(batch.attempts - 1)
            self._requeue(batch)
        else:
            self._fail(batch, error)

    def _can_retry(self, batch: ProducerBatch, error: str) -> bool:
        now_us = self._host.clock.now_us
        if batch.attempts > self._config.retries or self._is_past_delivery_timeout(batch, now_us):
            return False
        if self._is_idempotent and not self._sequences.is_current(batch):
            return False
        if error in errors.RETRIABLE:
            return True
        return error in FATAL_SEQUENCE_ERRORS and self._sequences.may_retry(batch, error)

    def _requeue(self, batch: ProducerBatch) -> None:
        """Put a batch back into the queue (``reenqueue``).

        Without a sequence number it becomes the first, otherwise the numbers decide.
        """
        partition = self._partitions[batch.partition]
        queue = partition.queue
        self._await_sender(partition)
        if not self._expiry_timer_set:
            self._expiry_timer_set = True
            self._host.set_timer(self._request_timeout_us, self._expire_batches, self._clock_steps)
        if not batch.has_sequence():
            queue.insert(0, batch)
            return
        position = 0
        while position < len(queue) and queue[position].has_sequence():
            if queue[position].base_sequence > batch.base_sequence:
                break
            position += 1
        queue.insert(position, batch)

    def _report_acks(self, batch: ProducerBatch, offset: int | None) -> None:
        batch.is_done = True
        now_us = self._host.clock.now_us
        for index, value in enumerate(batch.values):
            self.unfinished -= 1
            position = None if offset is None or offset < 0 else offset + index
            self._history.record_ack(self._process, batch.partition, position, value, now_us)
        if self._on_flushed is not None:
            self._check_flushed()

    def _fail(self, batch: ProducerBatch, error: str) -> None:
        batch.is_done = True
        now_us = self._host.clock.now_us
        self.failures += 1
        for value in batch.values:
            self.unfinished -= 1
            self._history.record_failure(
                self._process, batch.partition, value, now_us, error, definite=not batch.maybe_appended
            )
        if self._is_idempotent and batch.has_sequence():
            self._free_sequence(batch, error)
        if self._on_flushed is not None:
            self._check_flushed()

    def _free_sequence(self, batch: ProducerBatch, error: str) -> None:
        """Settle the sequence numbers of a batch that the producer gives up."""
        retries_left = batch.attempts <= self._config.retries
        others = self._other_batches(batch)
        if others and retries_left and batch.maybe_appended and error != EXPIRED:
            self._host.emit(
                AppendedBatchGivenUp, self._host.name, batch.partition, error, tuple(batch.values)
            )
        self._sequences.on_batch_failure(batch, error, retries_left=retries_left, others=others)

    def _outstanding_batches(self, partition: str) -> list[ProducerBatch]:
        """Return the unsettled batches with a sequence of the current producer id, in order."""
        partition_batches = self._partitions[partition]
        batches = (*partition_batches.in_flight, *partition_batches.queue)
        current = self._sequences.producer_id
        outstanding = [batch for batch in batches if batch.has_sequence() and batch.producer_id == current]
        return sorted(outstanding, key=_base_sequence)

    def _other_batches(self, batch: ProducerBatch) -> list[ProducerBatch]:
        partition = self._partitions[batch.partition]
        return [*partition.in_flight, *[b for b in partition.queue if b.has_sequence()]]

    # Expiry

    def _is_past_delivery_timeout(self, batch: ProducerBatch, now_us: int) -> bool:
        if not self._has_delivery_timeout:
            return False
        return now_us - batch.created_us >= self._config.delivery_timeout_us

    def _expires_at_us(self, batch: ProducerBatch) -> int:
        """Return when the producer gives up a batch.

        Since KIP-91 ``delivery.timeout.ms`` decides. Earlier producers gave up a queued batch
        ``request.timeout.ms`` after it could have been sent.
        """
        if self._has_delivery_timeout:
            return batch.created_us + self._config.delivery_timeout_us
        since_us = batch.retry_at_us if batch.in_retry else batch.created_us + self._linger_us
        return since_us + self._request_timeout_us

    def _set_expiry_timer(self) -> None:
        """Set a timer for the oldest batch. Later batches expire later."""
        partitions = self._partitions.values()
        pending = [p.queue[0] for p in partitions if p.queue and not self._blocks_expiry(p)]
        if self._has_delivery_timeout:
            pending += [p.in_flight[0] for p in partitions if p.in_flight]
        self._expiry_timer_set = bool(pending)
        if pending:
            now_us = self._host.clock.now_us
            expires_us = min(self._expires_at_us(batch) for batch in pending)
            self._host.set_timer(max(expires_us - now_us, 1), self._expire_batches, self._clock_steps)

    def _blocks_expiry(self, partition: PartitionBatches) -> bool:
        """Return whether a batch in flight keeps queued batches from expiring (before KIP-91)."""
        return self._max_in_flight == 1 and bool(partition.in_flight) and not self._has_delivery_timeout

    def on_clock_step(self, by_us: int) -> None:
        """Shift all timeouts and backoffs after the machine's clock jumped.

        Batches and requests use that clock (``RecordAccumulator``, ``NetworkClient``). Kafka's
        sender notices a jump at the next answer, or when it next checks its batches.
        """
        self._host.skew_us += by_us
        for partition in self._partitions.values():
            for batch in (*partition.in_flight, *partition.queue):
                batch.on_clock_step(by_us)
        self._metadata.on_clock_step(by_us)
        self._clock_steps += 1
        self._host.set_timer(0, self._expire_batches, self._clock_steps)

    def _expire_batches(self, clock_steps: int) -> None:
        if clock_steps != self._clock_steps:
            return
        now_us = self._host.clock.now_us
        for partition in self._partitions.values():
            queue = partition.queue
            while queue and not self._blocks_expiry(partition) and self._expires_at_us(queue[0]) <= now_us:
                self._expire(queue.pop(0))
            if self._has_delivery_timeout:
                in_flight = partition.in_flight
                for batch in [b for b in in_flight if self._is_past_delivery_timeout(b, now_us)]:
                    in_flight.remove(batch)
                    batch.maybe_appended = True
                    if batch in self._carriers:
                        self._freed_memory.append((now_us, partition.name, self._carriers.pop(batch)))
                    self._expire(batch)
        self._set_expiry_timer()
        self._run()

    def _share_memory(self, batch: ProducerBatch, request: protocol.ProduceRequest) -> None:
        """Overwrite an expired batch with a newer batch that got its memory (KAFKA-19012).

        A request with the expired batch may still be in flight. The method belongs to a mutant:
        Kafka 2.8 to 4.1 overwrites only the part of a request that a full socket has not accepted
        yet.
        """
        for index, (since_us, name, carrier) in enumerate(self._freed_memory):
            if batch.created_us >= since_us:
                carrier.batches[name] = batch.record_batch(self._host.skew_us)
                del self._freed_memory[index]
                break
        self._carriers[batch] = request

    def _expire(self, batch: ProducerBatch) -> None:
        """Fail a batch with a timeout.

        The sequence of a retried batch stays unresolved until the other batches are answered.
        """
        self._fail(batch, EXPIRED)

    # Producer id

    def _request_producer_id(self) -> None:
        if self._is_id_requested:
            return
        self._is_id_requested = True
        connection = self._metadata.least_loaded()
        if connection is None:
            self._host.set_timer(self._metadata.usable_in_us(), self._request_id_again)
        else:
            connection.send(protocol.InitProducerIdRequest(), self._handle_producer_id)

    def _handle_producer_id(self, response: protocol.InitProducerIdResponse | None, _: None) -> None:
        if response is None or response.error != errors.NONE:
            self._host.set_timer(self._config.retry_backoff_us, self._request_id_again)
            return
        self._is_id_requested = False
        self._sequences.producer_id = response.producer_id
        self._run()

    def _request_id_again(self, _: None) -> None:
        self._is_id_requested = False
        self._run()


def _base_sequence(batch: ProducerBatch) -> int:
    return batch.base_sequence
