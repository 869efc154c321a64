"""Serves fetches of followers and consumers, and requests for the ends of partitions and epochs.

Modelled on ``ReplicaManager.fetchMessages`` and ``readFromLog``, ``FetchSession.scala`` and
``Partition.fetchRecords``.
"""

from typing import Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.broker.client_quota_manager import ClientQuotaManager
from harrow.cluster_model.broker.delayed_requests import DelayedFetch
from harrow.cluster_model.broker.fetch_session import CachedPartition, FetchSession, FetchSessionCache
from harrow.cluster_model.broker.hosted_replicas import HostedReplicas
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.rate import NO_LIMIT
from harrow.cluster_model.broker.replica_selector import may_have_read_replica, preferred_read_replica
from harrow.cluster_model.broker.replication_quota_manager import ReplicationQuotaManager
from harrow.cluster_model.events import (
    EpochEndAnswered,
    FetchDelayed,
    FetchExpired,
    FetchFenced,
    FollowerFetched,
    ReadReplicaPreferred,
    RecordsServed,
    ReplicaThrottled,
)
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release.replication import LEADER_EPOCH, WITH_SELECTOR
from harrow.cluster_model.release.switch import ALWAYS
from harrow.cluster_model.settings import LONG_MAX, NO_SELECTOR, BrokerConfig
from harrow.cluster_model.sim.connection import Connection, Exchange

_BOOTSTRAP_MAX_US: Final = 10**9
"""Longer than a cluster takes to start.

Clusters start before time zero, so with this constant added every start time is positive.
"""
_EPOCH_ERRORS: Final = (errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH)
_LEADER_RESULTS: Final = (errors.NONE, errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH)
"""The possible results of the check of a fetch's leader epoch on a leader."""


class Fetching:
    """Serves reads from the replicas of one broker."""

    __slots__ = (
        *("_behaviours", "_broker", "_config", "_fetch_quota", "_host", "_hosted", "_isr_writes"),
        *("_leader_quota", "_leader_throttled_rate", "_metadata", "_partitions", "_respond"),
        *(
            "_ignores_previous_incarnation",
            "_keeps_diverging_leo",
            "_on_complete",
            "_on_wait",
            "_selects_read_replica",
            "_sessions",
            "_sessions_keep_epoch",
            "_switches",
            "_withholds",
            "hw_completes_fetches",
            "repeats_idle_fetches",
        ),
    )

    def __init__(
        self, hosted: HostedReplicas, config: BrokerConfig, fetch_quota: ClientQuotaManager | None
    ) -> None:
        host, behaviours = hosted.host, hosted.behaviours
        self._hosted = hosted
        self._broker = hosted.broker
        self._host = host
        self._config = config
        self._behaviours = behaviours
        self._switches = behaviours.replication
        self._respond = hosted.respond
        self._metadata = hosted.metadata
        self._partitions = hosted.partitions
        self._isr_writes = hosted.isr_writes
        self._fetch_quota = fetch_quota
        # The quota for followers of throttled partitions; None until a partition is throttled.
        self._leader_quota: ReplicationQuotaManager | None = None
        self._leader_throttled_rate = config.leader_throttled_rate
        self._sessions = FetchSessionCache(
            config.fetch_session_slots,
            hosted.hosted,
            # Kafka draws random session ids. The model counts from the broker's start time, so that
            # two incarnations of a broker have different ids.
            first_id=max(host.clock.now_us + _BOOTSTRAP_MAX_US, 1),
            bound_to_connection=not behaviours.replication.fetch_sessions,
        )
        self.hw_completes_fetches = (
            behaviours.replication.hw_advance_completes_follower_fetches == ALWAYS
            or (
                behaviours.replication.hw_advance_completes_follower_fetches == WITH_SELECTOR
                and config.replica_selector != NO_SELECTOR
            )
        )
        """Whether a follower's waiting fetch is answered when the high watermark rises."""
        self._selects_read_replica = (
            behaviours.replication.follower_fetching and config.replica_selector != NO_SELECTOR
        )
        self._sessions_keep_epoch = behaviours.replication.fetch_sessions_keep_epoch
        self._ignores_previous_incarnation = behaviours.replication.previous_incarnation_fetch_ignored
        self._keeps_diverging_leo = behaviours.replication.diverging_fetch_keeps_follower_leo
        # These are bound once, so that not every waiting fetch has bound methods of its own.
        self._on_complete = self._complete_fetch
        self._on_wait = self._watch_fetch
        self._withholds = self._is_withheld
        self.repeats_idle_fetches = True
        """Whether waiting fetches may repeat themselves: not while requests wait for threads."""

    def connection_closed(self, connection: Connection) -> None:
        """Close the session that is bound to a connection."""
        self._sessions.connection_closed(connection.id)

    def dismantle(self) -> None:
        """Break the cycles of fetch sessions (`Cluster.dismantle`)."""
        self._sessions.dismantle()

    def handle_fetch(self, exchange: Exchange[protocol.FetchRequest]) -> None:
        """Find the session of a fetch, and serve it."""
        request = exchange.request
        session = self._sessions.session_of(
            request,
            exchange.connection,
            self._host.clock.now_us,
            keeps_epoch=self._sessions_keep_epoch,
        )
        if isinstance(session, str):
            self._hosted.reject("Fetch", "", exchange.connection.client.name, session)
            self._respond(exchange, protocol.FetchResponse({}, session))
        else:
            session.replica_epoch = request.replica_epoch
            for name in request.forgotten:
                if name in self._partitions:
                    self._partitions[name].leave_session(session.replica_id, session)
            self._fetch(exchange, session)

    def _fetch(self, exchange: Exchange[protocol.FetchRequest], session: FetchSession) -> None:
        """Read, or wait in the purgatory if there is nothing to read.

        As in Kafka, an immediate answer has the high watermark from before this fetch, although
        the fetch may raise it.
        """
        request = exchange.request
        if self._isr_writes and self._hosted.hold_back(session.partitions, self._fetch, exchange, session):
            return
        # A fetch of a follower's previous incarnation does not count
        # (``Replica.updateFetchStateOrThrow``).
        counts = request.replica_id >= 0 and not (
            self._ignores_previous_incarnation
            and self._metadata.is_of_previous_incarnation(request.replica_id, session.replica_epoch)
        )
        if request.max_wait_us <= 0 or self._can_answer(session, request):
            answer = self._read(exchange, session)
            if counts:
                self._update_follower(session, request)
            self._watch_settled(session, request)
            self._respond(exchange, answer)
            return
        hw_rose = counts and self._update_follower(session, request)
        delayed = DelayedFetch(
            exchange,
            self._host.clock.now_us,
            session,
            self._on_complete,
            self._on_wait,
            None if self._leader_quota is None else self._withholds,
        )
        if request.rack and self._selects_read_replica:
            delayed.redirected = self._partitions_to_redirect(session, request.rack)
        # This fetch may have completed a produce, and the producer may then have sent the next
        # batch. So try again (``tryCompleteElseWatch``): otherwise the fetch would wait until its
        # deadline although there is a batch to read.
        if hw_rose and any(delayed.try_complete(cached) for cached in session.news.copy()):
            return
        self._watch_settled(session, request)
        session.delayed = delayed
        if session.idle is None or session.idle.is_traced:
            self._host.emit(FetchDelayed, self._broker, request.replica_id)
        session.watch()
        if (
            self.repeats_idle_fetches
            and delayed.is_repeatable()
            and self._isr_writes.keys().isdisjoint(session.partitions)
        ):
            session.idle = self._host.repeat_while_idle(delayed)
        if session.idle is None:
            self._watch_fetch(delayed)

    def _partitions_to_redirect(self, session: FetchSession, rack: str) -> tuple[CachedPartition, ...]:
        """Return the partitions of a waiting fetch that are to be read from another replica."""
        return tuple(
            [
                cached
                for cached in session.news
                if (partition := cached.hosted.partition) is not None
                and self._read_replica(partition, cached.offset, rack) is not None
            ]
        )

    def _can_answer(self, session: FetchSession, request: protocol.FetchRequest) -> bool:
        """Return whether there are records to read, an error, or another replica to read from."""
        isolation = protocol.LOG_END if request.replica_id >= 0 else request.isolation_level
        for cached in session.news:
            partition = cached.hosted.partition
            if partition is None or partition.check_fetch(cached.leader_epoch, request) != errors.NONE:
                return True
            if request.rack and self._read_replica(partition, cached.offset, request.rack) is not None:
                if self._switches.read_replica_returned_at_once:
                    return True
                continue
            if (
                (
                    cached.offset < partition.readable_end(isolation)
                    and not (partition.log.compacts and partition.is_hole(cached.offset, isolation))
                    and not (
                        self._leader_quota is not None and self._is_withheld(partition, request.replica_id)
                    )
                )
                or not partition.has_offset(cached.offset)
                or (
                    cached.last_epoch != protocol.NO_EPOCH
                    and partition.has_diverged(cached.offset, cached.last_epoch)
                )
                or (self.hw_completes_fetches and partition.has_unsent_high_watermark(request.replica_id))
            ):
                return True
        return False

    def _read(
        self, exchange: Exchange[protocol.FetchRequest], session: FetchSession
    ) -> protocol.FetchResponse:
        """Read every partition with news. Return its records or its error, unless unchanged."""
        request = exchange.request
        is_consumer = request.replica_id < 0
        if is_consumer and self._fetch_quota is not None:
            return self._read_within_quota(exchange, session, self._fetch_quota)
        answer: dict[str, protocol.FetchedPartition] = {}
        for cached in session.news:
            fetched = self._read_partition(cached, exchange, request.max_bytes)
            if is_consumer and fetched.batches:
                self._emit_served(cached, exchange, fetched)
            if cached.update_response_data(fetched):
                answer[cached.hosted.name] = fetched
        if self._leader_quota is not None and not is_consumer:
            for name, fetched in answer.items():
                self._leader_quota.record(name, sum([batch.size_bytes for batch in fetched.batches]))
        return protocol.FetchResponse(answer, errors.NONE, session.id)

    def _read_within_quota(
        self, exchange: Exchange[protocol.FetchRequest], session: FetchSession, quota: ClientQuotaManager
    ) -> protocol.FetchResponse:
        """Read no more than a consumer's quota allows in one response.

        A consumer that exceeds its quota gets no records yet. Before KIP-219 it got the records,
        but later. In the model an answer without records counts nothing for the quota. Kafka counts
        its few bytes.
        """
        request = exchange.request
        client = exchange.connection.client.name
        remaining, size_bytes = quota.largest_response(client), 0
        reads: dict[str, protocol.FetchedPartition] = {}
        for cached in session.news:
            fetched = self._read_partition(cached, exchange, min(request.max_bytes, remaining))
            partition_bytes = sum([batch.size_bytes for batch in fetched.batches])
            if partition_bytes > remaining and size_bytes:
                # Only the first batch of a response is sent even if it is too large (KIP-74).
                fetched.batches, fetched.corrupt_offset, partition_bytes = (), -1, 0
            remaining -= partition_bytes
            size_bytes += partition_bytes
            reads[cached.hosted.name] = fetched
        throttle_us = quota.record(client, size_bytes) if size_bytes else 0
        if throttle_us and self._switches.throttled_client_answered_at_once:
            quota.unrecord(client, size_bytes)
            if request.session_epoch > protocol.INITIAL_SESSION_EPOCH:
                return protocol.FetchResponse({}, errors.NONE, session.id, throttle_us)
            self._sessions.forget(session, exchange.connection)
            return protocol.FetchResponse({}, throttle_us=throttle_us)
        answer: dict[str, protocol.FetchedPartition] = {}
        for name, fetched in reads.items():
            cached = session.partitions[name]
            if fetched.batches:
                self._emit_served(cached, exchange, fetched)
            if cached.update_response_data(fetched):
                answer[name] = fetched
        return protocol.FetchResponse(answer, errors.NONE, session.id, throttle_us)

    def _emit_served(
        self,
        cached: CachedPartition,
        exchange: Exchange[protocol.FetchRequest],
        fetched: protocol.FetchedPartition,
    ) -> None:
        name, client = cached.hosted.name, exchange.connection.client.name
        self._host.emit(
            RecordsServed,
            self._broker,
            name,
            client,
            cached.offset,
            fetched.batches[-1].next_offset,
            fetched.hw,
        )

    def _is_withheld(self, partition: Partition, follower: int) -> bool:
        """Return whether a throttle keeps records from a follower now (``shouldLeaderThrottle``).

        Consumers and followers in the ISR always get records.
        """
        quota = self._leader_quota
        return (
            quota is not None
            and follower >= 0
            and follower not in partition.isr
            and quota.is_throttled(partition.name)
            and quota.is_exceeded
        )

    def _report_if_withheld(self, partition: Partition, follower: int, offset: int) -> bool:
        if not self._is_withheld(partition, follower):
            return False
        self._host.emit(ReplicaThrottled, self._broker, partition.name, follower, offset)
        return True

    def throttle(self, rate: int | None) -> None:
        """Set the rate for throttled partitions in bytes per second; None means no limit."""
        self._leader_throttled_rate = NO_LIMIT if rate is None else rate
        if self._leader_quota is not None:
            self._leader_quota.bound = self._leader_throttled_rate

    def mark_throttled(self, topic: str, replicas: str) -> None:
        """Set which replicas of a topic are throttled when this broker leads their partition."""
        if self._leader_quota is None:
            self._leader_quota = ReplicationQuotaManager(
                self._broker, self._host.clock, self._config, self._switches
            )
            self._leader_quota.bound = self._leader_throttled_rate
        self._leader_quota.mark_throttled(topic, replicas)

    def _read_partition(
        self, cached: CachedPartition, exchange: Exchange[protocol.FetchRequest], max_bytes: int
    ) -> protocol.FetchedPartition:
        request = exchange.request
        offset = cached.offset
        diverging: tuple[int, int] | None = None
        partition = cached.hosted.partition
        if partition is None:
            return self._reject(cached, exchange, self._hosted.error_without_replica(cached.hosted.name))
        error = partition.check_fetch(cached.leader_epoch, request)
        if error == errors.NONE:
            if request.rack and (answer := self._redirect(partition, offset, request.rack, exchange)):
                return answer
            if request.replica_id >= 0 and partition.replica_of(request.replica_id) is None:
                # ``followerReplicaOrThrow``
                error = errors.UNKNOWN_LEADER_EPOCH
            elif cached.last_epoch != protocol.NO_EPOCH:
                error, diverging = partition.divergence(offset, cached.last_epoch)
            if error == errors.NONE and diverging is None and not partition.has_offset(offset):
                error = errors.OFFSET_OUT_OF_RANGE
        if error != errors.NONE:
            return self._reject(cached, exchange, error)
        log = partition.log
        if diverging is not None:
            self._emit_epoch_end(partition.name, request.replica_id, cached.last_epoch, *diverging)
            return protocol.FetchedPartition(
                errors.NONE, log.high_watermark, diverging=diverging, log_start_offset=log.log_start_offset
            )
        isolation = protocol.LOG_END if request.replica_id >= 0 else request.isolation_level
        readable_end = partition.readable_end(isolation)
        stable = readable_end if isolation == protocol.READ_COMMITTED else -1
        if offset >= readable_end or (
            self._leader_quota is not None and self._report_if_withheld(partition, request.replica_id, offset)
        ):
            return protocol.FetchedPartition(
                errors.NONE,
                log.high_watermark,
                log_start_offset=log.log_start_offset,
                last_stable_offset=stable,
                aborted=self._aborted_at_end(log, offset) if offset == stable else (),
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

    def _aborted_at_end(self, log: UnifiedLog, offset: int) -> tuple[tuple[int, int], ...]:
        """Return the aborted transactions in the answer to a fetch at the last stable offset."""
        if (
            not self._behaviours.transactions.fetch_at_lso_returns_aborted_transactions
            or offset == log.log_end_offset
        ):
            return ()
        return log.aborted_transactions(offset, offset)

    def _reject(
        self, cached: CachedPartition, exchange: Exchange[protocol.FetchRequest], error: str
    ) -> protocol.FetchedPartition:
        """Report that a fetch of a partition is rejected, and return the answer with the error."""
        name, partition = cached.hosted.name, cached.hosted.partition
        sender = exchange.connection.client.name
        self._hosted.reject("Fetch", name, sender, error)
        if partition is not None and error in _EPOCH_ERRORS:
            self._host.emit(
                FetchFenced,
                *(self._broker, name, sender, cached.offset, partition.leader_epoch, cached.leader_epoch),
            )
        return protocol.FetchedPartition(error, -1, current_leader=self._hosted.current_leader(name, error))

    def _read_replica(self, partition: Partition, offset: int, rack: str) -> int | None:
        """Return from which other replica a consumer in *rack* should read; None for this replica.

        Modelled on ``findPreferredReadReplica``.
        """
        if not self._selects_read_replica or (
            partition.leader != self._broker and self._switches.only_leader_selects_read_replica
        ):
            return None
        return preferred_read_replica(partition, offset, rack, self._metadata)

    def _may_redirect(self, partition: Partition, offset: int, rack: str) -> bool:
        """Return whether a consumer may later be redirected although this partition has no news.

        For example, a dead replica in the consumer's rack may come back. If this broker is a
        follower, its positions of other replicas do not change, so what it would choose now counts.
        """
        if partition.leader != self._broker:
            return self._read_replica(partition, offset, rack) is not None
        return self._selects_read_replica and may_have_read_replica(partition, rack, self._metadata)

    def _redirect(
        self, partition: Partition, offset: int, rack: str, exchange: Exchange[protocol.FetchRequest]
    ) -> protocol.FetchedPartition | None:
        """Return the answer that redirects a consumer to another replica; None to serve it here."""
        replica = self._read_replica(partition, offset, rack)
        if replica is None:
            return None
        log, client = partition.log, exchange.connection.client.name
        self._host.emit(ReadReplicaPreferred, self._broker, partition.name, client, replica)
        return protocol.FetchedPartition(
            errors.NONE,
            log.high_watermark,
            log_start_offset=log.log_start_offset,
            preferred_read_replica=replica,
        )

    def _update_follower(self, session: FetchSession, request: protocol.FetchRequest) -> bool:
        """Update a follower's positions and log starts; return whether a high watermark rose."""
        hw_rose = False
        session.counted_us = self._host.clock.now_us
        for cached in session.news.copy():
            hosted = cached.hosted
            partition = hosted.partition
            if partition is None:
                continue
            error = partition.check_epoch(cached.leader_epoch)
            replica = partition.replica_of(session.replica_id)
            if error not in _LEADER_RESULTS or replica is None:
                continue
            leader_leo = partition.log.log_end_offset
            if error == errors.NONE and cached.last_epoch != protocol.NO_EPOCH:
                error, diverging = partition.divergence(cached.offset, cached.last_epoch)
                if diverging is not None and self._keeps_diverging_leo:
                    # The follower's log end means nothing while the logs differ.
                    self._hosted.suspect_isr(partition)
                    continue
            if error != errors.NONE or not partition.has_offset(cached.offset):
                partition.record_failed_fetch(replica)
                continue
            if cached.offset < leader_leo:
                self._hosted.suspect_isr(partition)
            self._host.emit(FollowerFetched, self._broker, hosted.name, session.replica_id, cached.offset)
            partition.mark_news_in_other_session(replica, session)
            data = request.partitions.get(hosted.name)
            log_start = None if data is None else data.log_start
            if partition.update_follower(
                replica, cached.offset, leader_leo, session.replica_epoch, log_start
            ):
                hw_rose = True
                hosted.check_produces()
                hosted.check_fetches()
            if self._isr_writes and hosted.name in self._isr_writes:
                hosted.wake_fetches()
            hosted.check_deletions()
        return hw_rose

    def _watch_settled(self, session: FetchSession, request: protocol.FetchRequest) -> None:
        """Watch partitions that have no more news, instead of checking them on every fetch."""
        if not session.is_cached:
            return
        isolation = protocol.LOG_END if request.replica_id >= 0 else request.isolation_level
        unsettled: list[CachedPartition] = []
        for cached in session.news:
            if self._is_settled(cached, session, request, isolation):
                cached.has_news = False
                cached.hosted.watch(cached)
            else:
                unsettled.append(cached)
        session.news = unsettled

    def _is_settled(
        self, cached: CachedPartition, session: FetchSession, request: protocol.FetchRequest, isolation: int
    ) -> bool:
        """Return whether the next fetch of a partition would add no information."""
        partition = cached.hosted.partition
        if partition is None:
            return False
        log = partition.log
        return (
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
                and partition.has_diverged(cached.offset, cached.last_epoch)
            )
            and (
                request.replica_id < 0
                or partition.follows_quietly(request.replica_id, cached.offset, session)
            )
        )

    def _complete_fetch(self, delayed: DelayedFetch, expired: bool) -> None:
        session = delayed.session
        if expired and (session.idle is None or session.idle.is_traced):
            self._host.emit(FetchExpired, self._broker, session.replica_id)
        answer = self._read(delayed.exchange, session)
        if not session.is_cached:
            session.unwatch()
        self._respond(delayed.exchange, answer)

    def _watch_fetch(self, delayed: DelayedFetch) -> None:
        self._hosted.watch_deadline(delayed.exchange.connection, delayed)

    # Epochs and ends

    def handle_offsets_for_leader_epoch(
        self, exchange: Exchange[protocol.OffsetsForLeaderEpochRequest]
    ) -> None:
        """Return the ends of leader epochs (KIP-101), since KIP-279 together with the epochs."""
        request = exchange.request
        if self._hosted.hold_back(request.partitions, self.handle_offsets_for_leader_epoch, exchange):
            return
        answer: dict[str, tuple[str, int, int]] = {}
        for name, (current_epoch, requested_epoch) in request.partitions.items():
            partition = self._partitions.get(name)
            if partition is None:
                answer[name] = (self._hosted.error_without_replica(name), -1, -1)
                continue
            error = partition.check_epoch(current_epoch)
            if error != errors.NONE:
                self._hosted.reject("OffsetsForLeaderEpoch", name, exchange.connection.client.name, error)
                answer[name] = (error, -1, -1)
                continue
            log = partition.log
            epoch, end_offset = log.epochs.end_offset_for(
                requested_epoch,
                log.log_end_offset,
                answers_below_first=self._switches.leader_answers_for_epochs_before_first,
            )
            if self._switches.follower_truncation == LEADER_EPOCH:
                epoch = -1
            answer[name] = (errors.NONE, epoch, end_offset)
            self._emit_epoch_end(name, request.replica_id, requested_epoch, epoch, end_offset)
        self._respond(exchange, protocol.OffsetsForLeaderEpochResponse(answer))

    def _emit_epoch_end(
        self, name: str, replica: int, requested_epoch: int, epoch: int, end_offset: int
    ) -> None:
        self._host.emit(EpochEndAnswered, self._broker, name, replica, requested_epoch, epoch, end_offset)

    def handle_list_offsets(self, exchange: Exchange[protocol.ListOffsetsRequest]) -> None:
        """Return the starts of partitions, or their ends as far as the requester may read."""
        request = exchange.request
        if self._hosted.hold_back(request.partitions, self.handle_list_offsets, exchange):
            return
        isolation = protocol.LOG_END if request.replica_id >= 0 else request.isolation_level
        answer: dict[str, tuple[str, int]] = {}
        readable: dict[str, tuple[RecordBatch, ...]] = {}
        for name, epoch in request.partitions.items():
            partition = self._partitions.get(name)
            if partition is None:
                answer[name] = (self._hosted.error_without_replica(name), -1)
                continue
            error = partition.check_epoch(epoch)
            timestamp = request.timestamps.get(name, request.timestamp)
            if error == errors.NONE and timestamp == protocol.EARLIEST_TIMESTAMP:
                answer[name] = (error, partition.log.log_start_offset)
                continue
            if error == errors.NONE and isolation != protocol.LOG_END and partition.high_watermark_lags():
                error = errors.OFFSET_NOT_AVAILABLE
            answer[name] = (error, partition.readable_end(isolation) if error == errors.NONE else -1)
            if error == errors.NONE and timestamp != protocol.LATEST_TIMESTAMP:
                log, (_, end) = partition.log, answer[name]
                readable[name] = log.read(log.log_start_offset, end, LONG_MAX)
                answer[name] = (error, -1)
        if readable:
            self._respond(exchange, protocol.TimedOffsetsResponse(answer, readable))
        else:
            self._respond(exchange, protocol.ListOffsetsResponse(answer))
