"""Implements a consumer without a group (``KafkaConsumer.java``, ``Fetcher.java``)."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.fetch_session_handler import FetchSessionHandler
from harrow.cluster_model.events import CorruptBatchFetched, OffsetReset, ReadReplicaCleared
from harrow.cluster_model.history import History
from harrow.cluster_model.log.record_batch import ABORT, RecordBatch
from harrow.cluster_model.settings import READ_COMMITTED, ConsumerConfig
from harrow.cluster_model.sim.host import Host


class ReadReplica(NamedTuple):
    """A follower from which a consumer reads, and the leader epoch in which it was chosen."""

    broker: int
    leader_epoch: int


EARLIEST: Final = "earliest"
LATEST: Final = "latest"
NO_POSITION: Final = -1
"""The position in a partition that is to be read from its end, until the end is known."""


def without_aborted(fetched: protocol.FetchedPartition) -> list[RecordBatch]:
    """Return the batches without those of aborted transactions, for read_committed.

    An aborted transaction extends from its first offset to its marker. The same response may also
    contain committed transactions of the same producer (``CompletedFetch.nextFetchedRecord``).
    """
    pending = sorted(fetched.aborted, key=_first_offset, reverse=True)
    aborted: dict[int, None] = {}
    visible: list[RecordBatch] = []
    for batch in fetched.batches:
        while pending and pending[-1][1] < batch.next_offset:
            aborted[pending.pop()[0]] = None
        if batch.control_type == ABORT:
            aborted.pop(batch.producer_id, None)
        if not (batch.is_transactional and batch.producer_id in aborted):
            visible.append(batch)
    return visible


def _first_offset(transaction: tuple[int, int]) -> int:
    return transaction[1]


class Consumer:
    """Reads partitions from the beginning, and writes each poll with records to the history.

    Kafka's ``seekToBeginning`` requests the log start first. The model starts at offset 0, and
    requests the log start only if 0 is out of range, whatever ``auto.offset.reset`` says.

    When metadata lists a partition that was added to *topics*, the consumer reads it from where
    ``auto.offset.reset`` says. With ``latest`` it misses records that were written earlier
    (KAFKA-12261). A consumer that subscribes gets an added partition by a rebalance.

    With ``client.rack`` the consumer reads a partition from the replica that the leader prefers for
    that rack (KIP-392), for ``metadata.max.age.ms`` or until a fetch from that replica fails.

    One fetch at a time is in flight to each broker. ``position`` has the next offset of each
    partition, and ``high_watermarks`` the high watermark in its last answer. With
    *sends_leader_epoch* requests carry the leader epoch (KIP-320).
    """

    def __init__(
        self,
        host: Host,
        process: int,
        brokers: tuple[int, ...],
        partitions: tuple[str, ...],
        config: ConsumerConfig,
        history: History,
        poll_interval_us: int,
        bootstrap: tuple[int, ...] = (),
        *,
        sends_leader_epoch: bool = True,
        skips_corrupt: bool = False,
        topics: Collection[str] = (),
        fetch_error_clears_read_replica: bool = True,
        later: Collection[int] = (),
    ) -> None:
        self._host = host
        self._process = process
        self._config = config
        self._fetch_max_wait_us = config.fetch_max_wait_us
        self._max_partition_fetch_bytes = config.max_partition_fetch_bytes
        self._max_poll_records = config.max_poll_records
        self._history = history
        self._poll_interval_us = poll_interval_us
        self._sends_leader_epoch = sends_leader_epoch
        self._skips_corrupt = skips_corrupt
        self._isolation_level = (
            protocol.READ_COMMITTED if config.isolation_level == READ_COMMITTED else protocol.READ_UNCOMMITTED
        )
        self._topics = frozenset(topics)
        self._on_fetch_response = self._handle_fetch_response  # Bound once, not for each request.
        # Without a rack the requests carry None, so that only leaders serve the consumer.
        self._rack = config.client_rack or None
        self._fetch_error_clears_read_replica = fetch_error_clears_read_replica
        # The followers that serve partitions instead of their leaders.
        self._read_replicas: dict[str, ReadReplica] = {}
        self._metadata = ClientMetadata(
            host, brokers, config, self._metadata_updated, bootstrap=bootstrap, later=later
        )
        self.position: dict[str, int] = dict.fromkeys(partitions, 0)
        # Partitions from which the consumer has read nothing yet.
        self._at_beginning: dict[str, None] = dict.fromkeys(partitions)
        self.high_watermarks: dict[str, int] = {}
        # With read_committed: the last stable offset of each partition in its last answer.
        self._stable_end: dict[str, int] = {}
        # If compaction has removed the last records of a log: its end, once all others are read.
        self._hole_end: dict[str, int] = {}
        self._delayed_until_us: dict[str, int] = {}
        self._resetting: dict[str, None] = {}
        # The last corrupt offset of each partition.
        self._corrupt: dict[str, int] = {}
        # The fetch session with each broker, the broker that serves each partition, and the
        # partitions for which the next fetch may have to differ from the last.
        self._sessions = {broker: FetchSessionHandler() for broker in brokers}
        self._fetched_from: dict[str, int] = {}
        self._changed_partitions: dict[str, None] = dict.fromkeys(partitions)
        self._fetching: dict[int, None] = {}
        # The fetched records that have not been polled: partitions with offsets and values.
        self._buffer: list[tuple[str, list[tuple[int, str]]]] = []
        self._poll_scheduled = False
        self._last_poll_us = host.clock.now_us
        self._is_wake_set = False

    def start(self) -> None:
        """Request metadata; fetching begins with the answer."""
        self._metadata.start()

    def on_clock_step(self, by_us: int) -> None:
        """Shift timeouts and backoffs after the machine's clock jumped (``NetworkClient``)."""
        self._host.skew_us += by_us
        self._delayed_until_us = {
            partition: until_us - by_us for partition, until_us in self._delayed_until_us.items()
        }
        self._metadata.on_clock_step(by_us)

    # Fetching

    def _metadata_updated(self) -> None:
        if self._read_replicas:
            self._clear_stale_read_replicas()
        for name in self._metadata.new_partitions(self._topics):
            if name not in self.position and self._config.auto_offset_reset in (EARLIEST, LATEST):
                self._start_added_partition(name)
        self._changed_partitions.update(dict.fromkeys(self.position))
        self._fetch()

    def _start_added_partition(self, partition: str) -> None:
        """Start to read a partition that was added to a topic.

        With ``auto.offset.reset=none`` this is not called, because the application gets a
        NoOffsetForPartitionException instead.
        """
        if self._config.auto_offset_reset == EARLIEST:
            self.position[partition] = 0
            self._at_beginning[partition] = None
        else:
            self.position[partition] = NO_POSITION

    def _fetch(self) -> None:
        """Send a fetch to every broker that serves a partition and has no fetch in flight."""
        waits = self._assign_changed() if self._changed_partitions else False
        for broker, session in self._sessions.items():
            if broker in self._fetching:
                if session.has_changed():
                    self._metadata.connections[broker].stop_repeating()
                continue
            if not session.has_partitions():
                continue
            connection = self._metadata.connections[broker]
            if not connection.is_usable():
                # The end of a throttle has its own timer, so this broker needs no other.
                waits = waits or not connection.is_throttled
                continue
            self._fetching[broker] = None
            request = session.request(
                protocol.CONSUMER_REPLICA_ID,
                self._fetch_max_wait_us,
                self._max_partition_fetch_bytes,
                self._isolation_level,
            )
            request.rack = self._rack
            connection.send(request, self._on_fetch_response, broker, session.next_request(request))
        if waits:
            self._fetch_later()
        if waits or self._changed_partitions:
            # Any answer may make another fetch possible, so no fetch may repeat itself.
            for broker in self._fetching:
                self._metadata.connections[broker].stop_repeating()

    def _assign_changed(self) -> bool:
        """Assign changed partitions to their leader or read replica.

        Return whether a partition has to wait.
        """
        now_us = self._host.clock.now_us
        changed, self._changed_partitions = self._changed_partitions, {}
        waits = False
        for partition in changed:
            broker = None
            if partition in self._resetting:
                pass
            elif self._delayed_until_us.get(partition, now_us) > now_us:
                self._changed_partitions[partition] = None
                waits = True
            else:
                self._delayed_until_us.pop(partition, None)
                broker = self._metadata.leader(partition)
                if broker is None:
                    self._changed_partitions[partition] = None
                    self._metadata.request_update()
                elif self.position[partition] == NO_POSITION:
                    waits = not self._request_end(broker, partition) or waits
                    broker = None
                elif partition in self._read_replicas:
                    broker = self._select_read_replica(partition, broker)
            former = self._fetched_from.get(partition)
            if former is not None and former != broker:
                del self._fetched_from[partition]
                self._sessions[former].remove(partition)
            if broker is not None:
                self._fetched_from[partition] = broker
                self._sessions[broker].set_position(
                    partition, self.position[partition], self._epoch_of(partition)
                )
        return waits

    def _epoch_of(self, partition: str) -> int:
        """Return the leader epoch for a request (``Fetcher.prepareFetchRequests``, KIP-320).

        A former leader refuses a request with a newer epoch. Without the epoch it might answer that
        the position is out of range.
        """
        return (
            self._metadata.leader_epochs.get(partition, protocol.NO_EPOCH)
            if self._sends_leader_epoch
            else protocol.NO_EPOCH
        )

    def _fetch_later(self) -> None:
        if not self._is_wake_set:
            self._is_wake_set = True
            self._host.set_timer(self._config.retry_backoff_us, self._wake)

    def _wake(self, _: None) -> None:
        self._is_wake_set = False
        self._fetch()

    def _fetch_after_throttle(self, _: None) -> None:
        """Fetch again after the throttle of a broker."""
        self._fetch()

    def _handle_fetch_response(self, response: protocol.FetchResponse | None, broker: int) -> None:
        del self._fetching[broker]
        session = self._sessions[broker]
        if response is not None and response.throttle_us:
            self._metadata.connections[broker].throttle(response.throttle_us)
            self._host.set_timer(response.throttle_us, self._fetch_after_throttle)
        if response is None:
            self._handle_lost_fetch(session)
        elif session.handle_response(response):
            for partition, fetched in response.partitions.items():
                requested = session.requested.get(partition)
                if requested is None or self.position.get(partition) != requested.offset:
                    continue
                if fetched.error != errors.NONE:
                    self._handle_fetch_error(broker, partition, fetched)
                elif fetched.preferred_read_replica is not None:
                    self._read_from(partition, fetched.preferred_read_replica)
                else:
                    self._buffer_fetched(partition, fetched)
                    if fetched.corrupt_offset >= 0:
                        self._refuse_corrupt(broker, partition, fetched.corrupt_offset)
            self._schedule_poll()
        self._fetch()

    def _handle_lost_fetch(self, session: FetchSessionHandler) -> None:
        session.handle_error()
        self._metadata.request_update()
        if self._read_replicas and self._fetch_error_clears_read_replica:
            for partition in session.requested:
                self._clear_read_replica(partition, errors.NETWORK_EXCEPTION)
        self._delay(session.requested)

    def _handle_fetch_error(self, broker: int, partition: str, fetched: protocol.FetchedPartition) -> None:
        error = fetched.error
        if error == errors.OFFSET_OUT_OF_RANGE:
            if not self._clear_read_replica(partition, error):
                self._reset_position(broker, partition)
            return
        self._metadata.request_update()
        if self._read_replicas and self._must_leave_read_replica(error):
            self._clear_read_replica(partition, error)
        if self._metadata.update_leader(partition, fetched.current_leader):
            self._changed_partitions[partition] = None
        else:
            self._delay((partition,))

    def _buffer_fetched(self, partition: str, fetched: protocol.FetchedPartition) -> None:
        """Buffer fetched records for the next polls, and advance the position."""
        self.high_watermarks[partition] = fetched.hw
        if self._isolation_level == protocol.READ_COMMITTED:
            self._stable_end[partition] = fetched.last_stable_offset
        if not fetched.batches and fetched.corrupt_offset < 0 and fetched.hw > self.position[partition]:
            # With read_committed the cause may also be an open transaction.
            self._hole_end[partition] = (
                fetched.last_stable_offset if self._isolation_level == protocol.READ_COMMITTED else fetched.hw
            )
        elif self._hole_end:
            self._hole_end.pop(partition, None)
        if self._at_beginning:
            self._at_beginning.pop(partition, None)
        batches = without_aborted(fetched) if fetched.aborted else fetched.batches
        for batch in batches:
            self._buffer_records(partition, batch)
            self._move_to(partition, batch.next_offset)
        if fetched.aborted and fetched.batches:
            self._move_to(partition, fetched.batches[-1].next_offset)

    def _buffer_records(self, partition: str, batch: RecordBatch) -> None:
        position = self.position[partition]
        records: list[tuple[int, str]] = []
        if batch.keyed is not None:
            records += [(offset, value) for offset, value in batch.records() if offset >= position]
        else:
            offset = batch.base_offset
            for value in batch.values:
                if offset >= position:
                    records.append((offset, value))
                offset += 1
        if records:
            self._buffer.append((partition, records))

    # Reading from followers

    def _read_from(self, partition: str, replica: int) -> None:
        """Read a partition from the replica that its leader prefers, until a lease expires.

        See ``updatePreferredReadReplica``.
        """
        current = self._read_replicas.get(partition)
        if current is None or current.broker != replica:
            leader_epoch = self._metadata.leader_epochs.get(partition, protocol.NO_EPOCH)
            read_replica = self._read_replicas[partition] = ReadReplica(replica, leader_epoch)
            lease_us = self._config.metadata_max_age_us + 1
            self._host.set_timer(lease_us, self._expire_read_replica, (partition, read_replica))
        self._changed_partitions[partition] = None

    def _expire_read_replica(self, expiring: tuple[str, "ReadReplica"]) -> None:
        partition, read_replica = expiring
        if self._read_replicas.get(partition) is read_replica:
            self._clear_read_replica(partition, "expired")
            self._fetch()

    def _select_read_replica(self, partition: str, leader: int) -> int:
        """Return the read replica, or *leader* if the former is offline (``selectReadReplica``)."""
        replica = self._read_replicas[partition].broker
        if replica in self._metadata.live_brokers and replica in self._sessions:
            return replica
        self._clear_read_replica(partition, "offline")
        self._changed_partitions.pop(partition, None)
        if self._fetch_error_clears_read_replica:
            self._metadata.request_update()
        return leader

    def _clear_stale_read_replicas(self) -> None:
        """Drop read replicas that an older leader chose (``maybeValidatePosition``)."""
        epochs = self._metadata.leader_epochs
        for partition, read_replica in tuple(self._read_replicas.items()):
            if epochs.get(partition) != read_replica.leader_epoch:
                self._clear_read_replica(partition, "new leader")

    def _must_leave_read_replica(self, error: str) -> bool:
        """Return whether the consumer stops reading from a follower after an error.

        Since KAFKA-14379 it stops after every error that triggers a metadata request. In every
        release it stops after KAFKA_STORAGE_ERROR, because the next metadata lists that replica as
        offline. It continues after UNKNOWN_LEADER_EPOCH, because the follower will soon learn of
        that epoch.
        """
        return error != errors.UNKNOWN_LEADER_EPOCH and (
            self._fetch_error_clears_read_replica or error == errors.KAFKA_STORAGE_ERROR
        )

    def _clear_read_replica(self, partition: str, reason: str) -> bool:
        """Read a partition from its leader; return whether a follower has served it so far."""
        read_replica = self._read_replicas.pop(partition, None)
        if read_replica is None:
            return False
        self._host.emit(ReadReplicaCleared, self._host.name, partition, read_replica.broker, reason)
        self._changed_partitions[partition] = None
        return True

    def _refuse_corrupt(self, broker: int, partition: str, offset: int) -> None:
        """Do not read past a batch with a wrong CRC (``check.crcs``).

        In Kafka ``poll`` throws an exception until the application seeks past the batch. The
        model's application polls again, which succeeds once another replica leads. With
        *skips_corrupt* it seeks past the corrupt record, as the exception advises. It then gets
        the same exception for the next record, until it has skipped the whole batch.
        """
        if self._corrupt.get(partition) != offset:
            self._corrupt[partition] = offset
            self._host.emit(CorruptBatchFetched, self._host.name, broker, partition, offset)
        if self._skips_corrupt:
            self._move_to(partition, max(self.position[partition], offset) + 1)
        else:
            self._delay((partition,))

    def _move_to(self, partition: str, offset: int) -> None:
        self.position[partition] = offset
        self._changed_partitions[partition] = None

    def _delay(self, partitions: Iterable[str]) -> None:
        until_us = self._host.clock.now_us + self._config.retry_backoff_us
        for partition in partitions:
            self._delayed_until_us[partition] = until_us
            self._changed_partitions[partition] = None

    def _reset_position(self, leader: int, partition: str) -> None:
        """Reset a position that is outside of the log, as ``auto.offset.reset`` says."""
        policy = EARLIEST if partition in self._at_beginning else self._config.auto_offset_reset
        if policy not in (EARLIEST, LATEST):
            # The application gets an OffsetOutOfRangeException and keeps its position.
            self._delay((partition,))
            return
        self._changed_partitions[partition] = None
        if self._rack is not None:
            # A follower may have refused the position, but only the leader can reset it.
            current_leader = self._metadata.leader(partition)
            if current_leader is None or not self._metadata.connections[current_leader].is_usable():
                self._metadata.request_update()
                self._delay((partition,))
                return
            leader = current_leader
        self._request_offset(leader, partition, policy)

    def _request_end(self, leader: int, partition: str) -> bool:
        """Request the end of a partition, as its position.

        Return False if the leader is unavailable.
        """
        if self._metadata.connections[leader].is_usable():
            self._request_offset(leader, partition, LATEST)
            return True
        self._changed_partitions[partition] = None
        return False

    def _request_offset(self, leader: int, partition: str, policy: str) -> None:
        self._resetting[partition] = None
        request = protocol.ListOffsetsRequest(
            protocol.CONSUMER_REPLICA_ID,
            {partition: self._epoch_of(partition)},
            isolation_level=self._isolation_level,
            timestamp=protocol.EARLIEST_TIMESTAMP if policy == EARLIEST else protocol.LATEST_TIMESTAMP,
        )
        self._metadata.connections[leader].send(request, self._handle_offset_response, partition)

    def _handle_offset_response(self, response: protocol.ListOffsetsResponse | None, partition: str) -> None:
        self._resetting.pop(partition, None)
        if partition not in self.position:
            return  # The partition was revoked meanwhile.
        self._changed_partitions[partition] = None
        if response is None and self.position[partition] == NO_POSITION:
            self._metadata.request_update()
            self._delay((partition,))
        if response is not None:
            error, offset = response.partitions[partition]
            if error == errors.NONE:
                if partition not in self._at_beginning:
                    policy = self._config.auto_offset_reset
                    position = self.position[partition]
                    self._host.emit(OffsetReset, self._host.name, partition, position, offset, policy)
                self._move_to(partition, offset)
            else:
                self._metadata.request_update()
                self._delay((partition,))
        self._fetch()

    # Polling

    def _schedule_poll(self) -> None:
        """If there are records, schedule the application's next poll at its own pace."""
        if self._buffer and not self._poll_scheduled:
            self._poll_scheduled = True
            due_us = self._last_poll_us + self._poll_interval_us - self._host.clock.now_us
            self._host.set_timer(max(due_us, 0), self._poll)

    def _poll(self, _: None) -> None:
        self._poll_scheduled = False
        now_us = self._host.clock.now_us
        self._history.record_poll(self._process, self._take_poll_records(), self._last_poll_us, now_us)
        self._last_poll_us = now_us
        self._schedule_poll()

    def _take_poll_records(self) -> dict[str, list[tuple[int, str]]]:
        """Remove the records of one poll from the buffer (``max.poll.records``)."""
        buffered, self._buffer = self._buffer, []
        room = self._max_poll_records
        polled: dict[str, list[tuple[int, str]]] = {}
        for position, (partition, records) in enumerate(buffered):
            if not room:
                self._buffer += buffered[position:]
                break
            taken = records if len(records) <= room else records[:room]
            room -= len(taken)
            if partition in polled:
                polled[partition] += taken
            elif taken:
                polled[partition] = taken
            if taken is not records:
                self._buffer.append((partition, records[len(taken) :]))
        return polled

    def has_read_to_end(self) -> bool:
        """Return whether all records below the last known high watermarks have been polled."""
        return not self._buffer and all(
            partition in self.high_watermarks
            and max(position, self._hole_end.get(partition, position)) >= self.high_watermarks[partition]
            for partition, position in self.position.items()
        )

    def is_held_up(self, partition: str) -> bool:
        """Return whether an open transaction keeps the consumer from reading a partition further.

        If so, the consumer has read up to the last stable offset, and the high watermark is higher.
        """
        stable_end = self._stable_end.get(partition)
        return stable_end == self.position.get(partition) and stable_end != self.high_watermarks.get(
            partition
        )

    def read_end(self, partition: str) -> int | None:
        """Return the offset up to which a partition is read; None if the consumer does not read it.

        This is the position, or the end of the log if compaction has removed the records between.
        """
        position = self.position.get(partition)
        return None if position is None else max(position, self._hole_end.get(partition, position))
