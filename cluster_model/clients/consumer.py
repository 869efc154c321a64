"""A consumer of partitions or topics: fetches, positions, polls (``KafkaConsumer.java``, ``Fetcher.java``)."""

from collections import deque
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.fetch_session_handler import FetchSessionHandler
from harrow.cluster_model.events import CorruptBatchFetched, OffsetReset, ReadReplicaCleared
from harrow.cluster_model.history import History
from harrow.cluster_model.settings import ConsumerConfig
from harrow.cluster_model.sim.host import Host


class ReadReplica(NamedTuple):
    """A follower that a partition is read from, and the leader epoch in which its leader has said so."""

    broker: int
    leader_epoch: int


EARLIEST: Final = "earliest"
LATEST: Final = "latest"
NO_POSITION: Final = -1
"""Where a partition that a topic has got is before its end has been asked for."""


class Consumer:
    """Reads its partitions from their beginnings on; each poll that returns records is in the history.

    ``seekToBeginning`` would ask for the log start first. Here a partition is taken to begin at 0, and its log start is asked for
    where that is out of range, whatever ``auto.offset.reset`` says.

    Partitions that *topics* get later it reads from when it learns of them, with new metadata, from where ``auto.offset.reset`` says:
    with ``latest`` it misses what is there by then (KAFKA-12261). One that subscribes has them assigned by a rebalance then.

    With ``client.rack`` it reads a partition from the replica that its leader prefers for that rack (KIP-392), for
    ``metadata.max.age.ms``, or until that fails.

    One fetch to each broker at a time. ``position`` is the next offset of each partition;
    ``end_seen`` is the high watermark of the last answer. ``sends_leader_epoch`` is KIP-320.
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
        errors_clear_read_replica: bool = True,
        later: Collection[int] = (),
    ) -> None:
        self._host = host
        self._process = process
        self._config = config
        self._history = history
        self._poll_interval_us = poll_interval_us
        self._sends_leader_epoch = sends_leader_epoch
        self._skips_corrupt = skips_corrupt
        self._topics = frozenset(topics)
        # Without a rack it says nothing of racks, so that only leaders answer it.
        self._rack = config.client_rack or None
        self._errors_clear_read_replica = errors_clear_read_replica
        # Which replicas partitions are read from that are not read from their leaders.
        self._read_replicas: dict[str, ReadReplica] = {}
        self._metadata = ClientMetadata(
            host, brokers, config, self._metadata_updated, bootstrap=bootstrap, later=later
        )
        self.position: dict[str, int] = dict.fromkeys(partitions, 0)
        # Of which it has read nothing yet.
        self._at_beginning: dict[str, None] = dict.fromkeys(partitions)
        self.end_seen: dict[str, int] = {}
        # Up to where compaction has left nothing, of partitions that were read up to the last record.
        self._hole_end: dict[str, int] = {}
        self._delayed_until_us: dict[str, int] = {}
        self._resetting: dict[str, None] = {}
        # Where each partition was found corrupt last.
        self._corrupt: dict[str, int] = {}
        # What is fetched of each broker, of which broker each partition is, and what may have to be fetched otherwise.
        self._sessions = {broker: FetchSessionHandler() for broker in brokers}
        self._fetched_from: dict[str, int] = {}
        self._changed: dict[str, None] = dict.fromkeys(partitions)
        self._fetching: dict[int, None] = {}
        self._buffer: deque[tuple[str, int, str]] = deque()
        self._poll_scheduled = False
        self._last_poll_us = host.clock.now_us
        self._wake_armed = False

    def start(self) -> None:
        """Ask for metadata; fetching begins with the answer."""
        self._metadata.start()

    def clock_stepped(self, by_us: int) -> None:
        """The machine's clock has jumped, by which requests time out and backoffs end (``NetworkClient``)."""
        self._host.skew_us += by_us
        self._delayed_until_us = {
            partition: until_us - by_us for partition, until_us in self._delayed_until_us.items()
        }
        self._metadata.clock_stepped(by_us)

    # Fetching

    def _metadata_updated(self) -> None:
        if self._read_replicas:
            self._leave_replicas_of_other_leaders()
        for name in self._metadata.new_partitions(self._topics):
            if name not in self.position and self._config.auto_offset_reset in (EARLIEST, LATEST):
                self._add_partition(name)
        self._changed.update(dict.fromkeys(self.position))
        self._fetch()

    def _add_partition(self, partition: str) -> None:
        """Read a partition that a topic has got; with `none` the application gets a NoOffsetForPartitionException instead."""
        if self._config.auto_offset_reset == EARLIEST:
            self.position[partition] = 0
            self._at_beginning[partition] = None
        else:
            self.position[partition] = NO_POSITION

    def _fetch(self) -> None:
        """Send a fetch to every broker that something is read from and that has none in flight."""
        waits = self._assign_changed() if self._changed else False
        for leader, session in self._sessions.items():
            if leader in self._fetching:
                if session.has_changed():
                    self._metadata.connections[leader].stop_repeating()
                continue
            if not session.has_partitions():
                continue
            connection = self._metadata.connections[leader]
            if not connection.is_usable():
                # Where it is throttled, the end of that is waited for.
                waits = waits or not connection.is_throttled
                continue
            self._fetching[leader] = None
            request = session.request(
                protocol.CONSUMER_REPLICA_ID,
                self._config.fetch_max_wait_us,
                self._config.max_partition_fetch_bytes,
            )
            request.rack = self._rack
            connection.send(request, self._fetched, leader, session.repetition(request))
        if waits:
            self._fetch_later()
        if waits or self._changed:
            # Any answer may be the one after which it can be fetched.
            for leader in self._fetching:
                self._metadata.connections[leader].stop_repeating()

    def _assign_changed(self) -> bool:
        """Fetch what has changed of the leader that it has now, or of another replica; return whether something is to be left alone a while."""
        now_us = self._host.clock.now_us
        changed, self._changed = self._changed, {}
        waits = False
        for partition in changed:
            leader = None
            if partition in self._resetting:
                pass
            elif self._delayed_until_us.get(partition, now_us) > now_us:
                self._changed[partition] = None
                waits = True
            else:
                self._delayed_until_us.pop(partition, None)
                leader = self._metadata.leader(partition)
                if leader is None:
                    self._changed[partition] = None
                    self._metadata.request_update()
                elif self.position[partition] == NO_POSITION:
                    waits = not self._ask_for_end(leader, partition) or waits
                    leader = None
                elif partition in self._read_replicas:
                    leader = self._select_read_replica(partition, leader)
            before = self._fetched_from.get(partition)
            if before is not None and before != leader:
                del self._fetched_from[partition]
                self._sessions[before].remove(partition)
            if leader is not None:
                self._fetched_from[partition] = leader
                self._sessions[leader].put(partition, self.position[partition], self._epoch_of(partition))
        return waits

    def _epoch_of(self, partition: str) -> int:
        """Return the leader epoch that a request says (``Fetcher.prepareFetchRequests``, KIP-320).

        A leader of the past refuses it, instead of calling the position out of range.
        """
        return (
            self._metadata.leader_epochs.get(partition, protocol.NO_EPOCH)
            if self._sends_leader_epoch
            else protocol.NO_EPOCH
        )

    def _fetch_later(self) -> None:
        if not self._wake_armed:
            self._wake_armed = True
            self._host.set_timer(self._config.retry_backoff_us, self._wake)

    def _wake(self, _: None) -> None:
        self._wake_armed = False
        self._fetch()

    def _throttled(self, _: None) -> None:
        """A broker hears this consumer again."""
        self._fetch()

    def _fetched(self, response: protocol.FetchResponse | None, leader: int) -> None:
        del self._fetching[leader]
        session = self._sessions[leader]
        if response is not None and response.throttle_us:
            self._metadata.connections[leader].throttle(response.throttle_us)
            self._host.set_timer(response.throttle_us, self._throttled)
        if response is None:
            self._not_answered(session)
        elif session.handle_response(response):
            for partition, fetched in response.partitions.items():
                asked = session.asked.get(partition)
                if asked is None or self.position[partition] != asked[0]:
                    continue
                if fetched.error != errors.NONE:
                    self._refused(leader, partition, fetched)
                elif fetched.preferred_read_replica is not None:
                    self._read_from(partition, fetched.preferred_read_replica)
                else:
                    self._take(partition, fetched)
                    if fetched.corrupt_offset >= 0:
                        self._refuse_corrupt(leader, partition, fetched.corrupt_offset)
            self._schedule_poll()
        self._fetch()

    def _not_answered(self, session: FetchSessionHandler) -> None:
        session.handle_error()
        self._metadata.request_update()
        if self._read_replicas and self._errors_clear_read_replica:
            for partition in session.asked:
                self._clear_read_replica(partition, errors.NETWORK_EXCEPTION)
        self._delay(session.asked)

    def _refused(self, server: int, partition: str, fetched: protocol.FetchedPartition) -> None:
        error = fetched.error
        if error == errors.OFFSET_OUT_OF_RANGE:
            if not self._clear_read_replica(partition, error):
                self._out_of_range(server, partition)
            return
        self._metadata.request_update()
        if self._read_replicas and self._leaves_read_replica(error):
            self._clear_read_replica(partition, error)
        if self._metadata.update_leader(partition, fetched.current_leader):
            self._changed[partition] = None
        else:
            self._delay((partition,))

    def _take(self, partition: str, fetched: protocol.FetchedPartition) -> None:
        """Keep what was fetched for the next polls; the next fetch begins behind it."""
        self.end_seen[partition] = fetched.hw
        if not fetched.batches and fetched.corrupt_offset < 0 and fetched.hw > self.position[partition]:
            self._hole_end[partition] = fetched.hw
        elif self._hole_end:
            self._hole_end.pop(partition, None)
        if self._at_beginning:
            self._at_beginning.pop(partition, None)
        for batch in fetched.batches:
            keyed = batch.keyed
            records = enumerate(batch.values, batch.base_offset) if keyed is None else batch.records()
            for offset, value in records:
                if offset >= self.position[partition]:
                    self._buffer.append((partition, offset, value))
            self._move_to(partition, batch.next_offset)

    # Reading from followers

    def _read_from(self, partition: str, replica: int) -> None:
        """Read a partition from the replica that its leader prefers (``updatePreferredReadReplica``), for a while."""
        known = self._read_replicas.get(partition)
        if known is None or known.broker != replica:
            leader_epoch = self._metadata.leader_epochs.get(partition, protocol.NO_EPOCH)
            chosen = self._read_replicas[partition] = ReadReplica(replica, leader_epoch)
            lease_us = self._config.metadata_max_age_us + 1
            self._host.set_timer(lease_us, self._expire_read_replica, (partition, chosen))
        self._changed[partition] = None

    def _expire_read_replica(self, expiring: tuple[str, "ReadReplica"]) -> None:
        partition, chosen = expiring
        if self._read_replicas.get(partition) is chosen:
            self._clear_read_replica(partition, "expired")
            self._fetch()

    def _select_read_replica(self, partition: str, leader: int) -> int:
        """Return where to fetch a partition that has a preferred read replica: there, unless metadata has no such broker (``selectReadReplica``)."""
        replica = self._read_replicas[partition].broker
        if replica in self._metadata.live_brokers and replica in self._sessions:
            return replica
        self._clear_read_replica(partition, "offline")
        self._changed.pop(partition, None)
        if self._errors_clear_read_replica:
            self._metadata.request_update()
        return leader

    def _leave_replicas_of_other_leaders(self) -> None:
        """Go by what a leader says in its own leader epoch alone (``maybeValidatePosition``)."""
        epochs = self._metadata.leader_epochs
        for partition, chosen in tuple(self._read_replicas.items()):
            if epochs.get(partition) != chosen.leader_epoch:
                self._clear_read_replica(partition, "new leader")

    def _leaves_read_replica(self, error: str) -> bool:
        """Return whether an error has a consumer leave a follower: from KAFKA-14379 on any that has it ask for metadata.

        With KAFKA_STORAGE_ERROR it always does, for the metadata that it gets then has that replica as offline. One that does not know a
        leader epoch yet will hear of it.
        """
        return error != errors.UNKNOWN_LEADER_EPOCH and (
            self._errors_clear_read_replica or error == errors.KAFKA_STORAGE_ERROR
        )

    def _clear_read_replica(self, partition: str, reason: str) -> bool:
        """Ask the leader again where to read a partition; return whether it was read from another replica."""
        chosen = self._read_replicas.pop(partition, None)
        if chosen is None:
            return False
        self._host.emit(ReadReplicaCleared, self._host.name, partition, chosen.broker, reason)
        self._changed[partition] = None
        return True

    def _refuse_corrupt(self, leader: int, partition: str, offset: int) -> None:
        """Stay before a batch with a wrong CRC (``check.crcs``): poll throws, until somebody seeks past it.

        The application here asks for it again, which helps once another replica leads. One that *skips_corrupt* seeks past
        the record, as the exception advises, and so past one after the other of the batch.
        """
        if self._corrupt.get(partition) != offset:
            self._corrupt[partition] = offset
            self._host.emit(CorruptBatchFetched, self._host.name, leader, partition, offset)
        if self._skips_corrupt:
            self._move_to(partition, max(self.position[partition], offset) + 1)
        else:
            self._delay((partition,))

    def _move_to(self, partition: str, offset: int) -> None:
        self.position[partition] = offset
        self._changed[partition] = None

    def _delay(self, partitions: Iterable[str]) -> None:
        until_us = self._host.clock.now_us + self._config.retry_backoff_us
        for partition in partitions:
            self._delayed_until_us[partition] = until_us
            self._changed[partition] = None

    def _out_of_range(self, leader: int, partition: str) -> None:
        """The position is past the log's end, or before its start: go where ``auto.offset.reset`` says."""
        policy = EARLIEST if partition in self._at_beginning else self._config.auto_offset_reset
        if policy not in (EARLIEST, LATEST):
            # The application gets an OffsetOutOfRangeException and stays where it is.
            self._delay((partition,))
            return
        self._changed[partition] = None
        if self._rack is not None:
            # It may be a follower that has refused the position; where to go says the leader.
            known = self._metadata.leader(partition)
            if known is None or not self._metadata.connections[known].is_usable():
                self._metadata.request_update()
                self._delay((partition,))
                return
            leader = known
        self._ask_for_offset(leader, partition, policy)

    def _ask_for_end(self, leader: int, partition: str) -> bool:
        """Ask where a partition ends, from where on it is read; return False if its leader cannot be asked now."""
        if self._metadata.connections[leader].is_usable():
            self._ask_for_offset(leader, partition, LATEST)
            return True
        self._changed[partition] = None
        return False

    def _ask_for_offset(self, leader: int, partition: str, policy: str) -> None:
        self._resetting[partition] = None
        request = protocol.ListOffsetsRequest(
            protocol.CONSUMER_REPLICA_ID,
            {partition: self._epoch_of(partition)},
            timestamp=protocol.EARLIEST_TIMESTAMP if policy == EARLIEST else protocol.LATEST_TIMESTAMP,
        )
        self._metadata.connections[leader].send(request, self._reset, partition)

    def _reset(self, response: protocol.ListOffsetsResponse | None, partition: str) -> None:
        del self._resetting[partition]
        self._changed[partition] = None
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
        """Have the application poll when there is something, at its own pace."""
        if self._buffer and not self._poll_scheduled:
            self._poll_scheduled = True
            due_us = self._last_poll_us + self._poll_interval_us - self._host.clock.now_us
            self._host.set_timer(max(due_us, 0), self._poll)

    def _poll(self, _: None) -> None:
        self._poll_scheduled = False
        now_us = self._host.clock.now_us
        records: dict[str, list[tuple[int, str]]] = {}
        for _index in range(min(len(self._buffer), self._config.max_poll_records)):
            partition, offset, value = self._buffer.popleft()
            records.setdefault(partition, []).append((offset, value))
        self._history.polled(self._process, records, self._last_poll_us, now_us)
        self._last_poll_us = now_us
        self._schedule_poll()

    def has_read_to_end(self) -> bool:
        """Return whether everything below the high watermarks last seen has been polled."""
        return not self._buffer and all(
            partition in self.end_seen
            and max(position, self._hole_end.get(partition, position)) >= self.end_seen[partition]
            for partition, position in self.position.items()
        )

    def reached(self, partition: str) -> int | None:
        """Return the offset up to which there is nothing more to read: the position, or the end of a hole behind it."""
        position = self.position.get(partition)
        return None if position is None else max(position, self._hole_end.get(partition, position))
