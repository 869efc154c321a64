"""Copies the logs of leaders to a follower: truncates each log, and then fetches continuously.

Modelled on ``AbstractFetcherThread.scala``. A broker has one fetcher for each other broker that
leads, and each fetcher has one request in flight at a time. A partition is truncated before it is
fetched (KIP-101, KIP-279), or when the leader answers a fetch with the point where the logs diverge
(KIP-595).
"""

from typing import Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.broker.append_locks import AppendLocks
from harrow.cluster_model.broker.fetch_session import HostedPartition, HostedPartitions
from harrow.cluster_model.broker.partition import KafkaStorageError, Partition
from harrow.cluster_model.broker.rate import NO_LIMIT
from harrow.cluster_model.broker.replication_quota_manager import ReplicationQuotaManager
from harrow.cluster_model.clients.fetch_session_handler import FetchSessionHandler
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.events import (
    CorruptBatchFetched,
    FetcherFailed,
    FollowerThrottled,
    OutdatedFetchAnswered,
    TruncationRefused,
)
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.leader_epoch_cache import UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
from harrow.cluster_model.log.unified_log import (
    HIGH_WATERMARK_TRUNCATION,
    LEADER_EPOCH_TRUNCATION,
    OUT_OF_RANGE_TRUNCATION,
    UnexpectedAppendOffset,
)
from harrow.cluster_model.release.replication import (
    HANGS,
    HIGH_WATERMARK,
    NO_TRUNCATION,
    TRUNCATES,
    ReplicationSwitches,
)
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.host import Host

REPLICATION_LISTENER: Final = "replication"


@dataclass(slots=True)
class FetchState:
    """The state of a partition that a fetcher follows.

    ``leader_epoch`` is the epoch in requests (KIP-320). ``needs_truncation`` says whether the log
    must be truncated before the partition is fetched. ``corrupt_offset`` is the base offset of the
    last batch with a wrong CRC. ``lag`` is the leader's high watermark minus the log end of the
    follower. A follower with a positive lag is behind; before the first answer it counts as behind.
    """

    hosted: HostedPartition
    partition: Partition
    leader_epoch: int
    fetch_offset: int
    needs_truncation: bool
    delayed_until_us: int = 0
    corrupt_offset: int = -1
    lag: int = 1


class ReplicaFetcher:
    """Fetches the partitions of one leader broker."""

    def __init__(
        self,
        broker: int,
        leader: int,
        host: Host,
        config: BrokerConfig,
        switches: ReplicationSwitches,
        broker_epoch: int,
        append_locks: AppendLocks,
        hosted: HostedPartitions,
    ) -> None:
        self._append_locks = append_locks
        self._hosted = hosted
        self._broker = broker
        self._broker_epoch = broker_epoch
        self._leader = leader
        self._host = host
        self._config = config
        self._switches = switches
        self._truncates_by_epoch = switches.follower_truncation not in (HIGH_WATERMARK, NO_TRUNCATION)
        self._truncates_on_fetch = self._truncates_by_epoch and switches.truncation_on_fetch
        self._completes_fetches = switches.follower_hw_advance_answers_consumers
        self._sends_log_start = switches.log_start_follows_leader
        self._fetch_wait_max_us = config.replica_fetch_wait_max_us
        self._fetch_max_bytes = config.replica_fetch_max_bytes
        self.has_refused = False
        """Whether the fetcher has refused to truncate, so that the broker exits.

        Such a fetcher sends no more requests.
        """
        self._states: dict[str, FetchState] = {}
        # Partitions that are not fetched now, because their logs must be truncated first, or
        # because they wait after an error.
        self._truncating_states: dict[str, FetchState] = {}
        self._delayed_states: dict[str, FetchState] = {}
        # Partitions that wait because the replication quota of the broker is exceeded.
        self._throttled_states: dict[str, FetchState] = {}
        self.quota: ReplicationQuotaManager | None = None
        """The quota that all fetchers of the broker share; None until a partition is throttled."""
        self._session = FetchSessionHandler()
        # Whether a request is in flight, or its answer is still being handled.
        self._is_busy = False
        self._on_fetch_response = self._handle_fetch_response  # Bound once, not for each request.
        # The response whose records are being written to a slow disk.
        self._response_being_written: protocol.FetchResponse | None = None
        self._wake_at_us: int | None = None
        # ``replica.socket.timeout.ms`` ends only an attempt to connect (``BrokerBlockingSender``).
        self._client = NetworkClient(
            host, f"broker-{leader}", REPLICATION_LISTENER, config.request_timeout_us
        )

    def dismantle(self) -> None:
        """Drop the positions of all partitions (`Cluster.dismantle`)."""
        self._states.clear()
        self._session.dismantle()

    def add(self, partition: Partition) -> None:
        """Begin to follow a partition's leader. In some releases the log is truncated first."""
        self._client.stop_repeating()
        log = partition.log
        # A log without epochs is truncated to its high watermark in every release.
        needs_truncation = self._truncates_by_epoch and not (
            self._truncates_on_fetch and log.epochs.latest_epoch() != UNDEFINED_EPOCH
        )
        state = FetchState(
            self._hosted.hosted_partition(partition.name),
            partition,
            partition.leader_epoch if self._switches.fetch_leader_epoch_fencing else protocol.NO_EPOCH,
            log.high_watermark if needs_truncation else log.log_end_offset,
            needs_truncation=needs_truncation,
        )
        self._drop(partition.name)
        self._states[partition.name] = state
        if needs_truncation:
            self._truncating_states[partition.name] = state
        else:
            self._add_to_session(state)
        self._work()

    def remove(self, name: str) -> None:
        """Stop following a partition. A fetcher without partitions closes its connection."""
        if self._drop(name) and not self._states:
            self._client.close()
            self._session = FetchSessionHandler()
            self._is_busy = False
            self._response_being_written = None

    def _drop(self, name: str) -> bool:
        if self._states.pop(name, None) is None:
            return False
        self._client.stop_repeating()
        self._truncating_states.pop(name, None)
        self._delayed_states.pop(name, None)
        self._throttled_states.pop(name, None)
        self._session.remove(name)
        return True

    def shutdown(self) -> None:
        """Stop following all partitions. Records in later responses are not appended."""
        self._states.clear()
        self._truncating_states.clear()
        self._delayed_states.clear()
        self._throttled_states.clear()
        self._session = FetchSessionHandler()
        self._response_being_written = None
        self._client.close()

    def _work(self) -> None:
        """Send the next request, unless one is in flight or every partition has to wait."""
        if self._is_busy or self.has_refused or not self._states:
            return
        if self._delayed_states:
            self._end_delays()
        epochs = self._epochs_to_look_up() if self._truncating_states else {}
        if self.quota is not None:
            self._omit_throttled(self.quota)
        if epochs:
            self._is_busy = True
            request = protocol.OffsetsForLeaderEpochRequest(self._broker, epochs)
            self._client.send(request, self._handle_epoch_ends, epochs)
        elif self._session.has_partitions():
            self._is_busy = True
            fetch = self._session.request(self._broker, self._fetch_wait_max_us, self._fetch_max_bytes)
            fetch.replica_epoch = self._broker_epoch
            # The fetch may repeat itself, unless the next request has to be a different one.
            has_all = not self._truncating_states and not self._delayed_states and not self._throttled_states
            self._client.send(
                fetch,
                self._on_fetch_response,
                None,
                self._session.next_request(fetch) if has_all else None,
            )
        else:
            until_us = [state.delayed_until_us for state in self._delayed_states.values()]
            if self._throttled_states:
                # Kafka backs off likewise without active partitions (``maybeFetch``).
                until_us.append(self._host.clock.now_us + self._config.replica_fetch_backoff_us)
            self._wait_until(min(until_us))

    def _epochs_to_look_up(self) -> dict[str, tuple[int, int]]:
        """Return the leader epochs of logs to truncate; truncate those without any at once."""
        epochs: dict[str, tuple[int, int]] = {}
        for state in tuple(self._truncating_states.values()):
            if state.partition.name in self._delayed_states:
                continue
            latest = state.partition.log.epochs.latest_epoch()
            if latest == UNDEFINED_EPOCH:
                self._truncate_to(state, state.fetch_offset, HIGH_WATERMARK_TRUNCATION)
            else:
                epochs[state.partition.name] = (state.leader_epoch, latest)
        return epochs

    def _omit_throttled(self, quota: ReplicationQuotaManager) -> None:
        """Leave out throttled partitions that lag, while the quota is exceeded.

        Modelled on ``shouldFollowerThrottle``.
        """
        for name, state in self._states.items():
            if state.needs_truncation or name in self._delayed_states:
                continue
            if state.lag > 0 and quota.is_throttled(name) and quota.is_exceeded:
                if name not in self._throttled_states:
                    self._throttled_states[name] = state
                    self._session.remove(name)
                    self._host.emit(FollowerThrottled, self._broker, name, self._leader, state.fetch_offset)
            elif self._throttled_states.pop(name, None) is not None:
                self._add_to_session(state)

    def _end_delays(self) -> None:
        now_us = self._host.clock.now_us
        for name, state in tuple(self._delayed_states.items()):
            if state.delayed_until_us <= now_us:
                del self._delayed_states[name]
                if not state.needs_truncation:
                    self._add_to_session(state)

    def _add_to_session(self, state: FetchState) -> None:
        """Add a partition's current position to the next fetch, unless it is throttled."""
        if self._throttled_states and state.partition.name in self._throttled_states:
            return
        log = state.partition.log
        last_epoch = log.epochs.latest_epoch() if self._truncates_on_fetch else protocol.NO_EPOCH
        log_start = log.log_start_offset if self._sends_log_start else 0
        self._session.set_position(
            state.partition.name, state.fetch_offset, state.leader_epoch, last_epoch, log_start
        )

    def _wait_until(self, at_us: int) -> None:
        if self._wake_at_us is None or at_us < self._wake_at_us:
            self._wake_at_us = at_us
            self._host.set_timer(at_us - self._host.clock.now_us, self._wake, at_us)

    def _wake(self, at_us: int) -> None:
        if self._wake_at_us == at_us:
            self._wake_at_us = None
            self._work()

    def _delay(self, state: FetchState) -> None:
        state.delayed_until_us = self._host.clock.now_us + self._config.replica_fetch_backoff_us
        self._delayed_states[state.partition.name] = state
        self._session.remove(state.partition.name)

    def _delay_all(self) -> None:
        for state in self._states.values():
            self._delay(state)

    # Truncation

    def _handle_epoch_ends(
        self, response: protocol.OffsetsForLeaderEpochResponse | None, requested: dict[str, tuple[int, int]]
    ) -> None:
        self._is_busy = False
        if response is None:
            self._delay_all()
        else:
            for name, (error, epoch, end_offset) in response.partitions.items():
                state = self._states.get(name)
                # If a new leader epoch has begun in the meantime, the fetcher asks again.
                if state is None or not state.needs_truncation or state.leader_epoch != requested[name][0]:
                    continue
                if error == errors.FENCED_LEADER_EPOCH:
                    self._drop(name)
                elif error != errors.NONE:
                    self._delay(state)
                else:
                    self._truncate_by_epoch(state, epoch, end_offset)
        self._work()

    def _truncate_by_epoch(self, state: FetchState, leader_epoch: int, end_offset: int) -> None:
        """Truncate a log according to the leader's answer (``getOffsetTruncationState``)."""
        log = state.partition.log
        if end_offset == UNDEFINED_EPOCH_OFFSET:
            self._truncate_to(state, state.fetch_offset, HIGH_WATERMARK_TRUNCATION)
            return
        if leader_epoch == UNDEFINED_EPOCH:
            self._truncate_to(state, min(end_offset, log.log_end_offset), LEADER_EPOCH_TRUNCATION)
            return
        own_epoch, own_end = log.epochs.end_offset_for(leader_epoch, log.log_end_offset)
        if own_end == UNDEFINED_EPOCH_OFFSET:
            self._truncate_to(state, min(end_offset, log.log_end_offset), LEADER_EPOCH_TRUNCATION)
        elif own_epoch != leader_epoch:
            # This log does not have the leader's epoch. Truncate to the end of the largest smaller
            # epoch, and ask again (KIP-279) or fetch from there (KIP-595).
            if state.needs_truncation:
                state.partition.truncate_to(min(own_end, log.log_end_offset), LEADER_EPOCH_TRUNCATION)
                state.hosted.note_news()
            else:
                self._truncate_to(state, min(own_end, log.log_end_offset), LEADER_EPOCH_TRUNCATION)
        else:
            offset = min(own_end, end_offset, log.log_end_offset)
            self._truncate_to(state, offset, LEADER_EPOCH_TRUNCATION)

    def _truncate_to(self, state: FetchState, offset: int, reason: str) -> None:
        state.partition.truncate_to(offset, reason)
        state.hosted.note_news()
        state.fetch_offset = state.partition.log.log_end_offset
        state.needs_truncation = False
        self._truncating_states.pop(state.partition.name, None)
        if state.partition.name not in self._delayed_states:
            self._add_to_session(state)

    # Fetching

    def _handle_fetch_response(self, response: protocol.FetchResponse | None, _: None) -> None:
        """Handle a response; on a slow disk, only once its records could be written."""
        wait_us = 0
        if response is not None and self._append_locks.are_slow:
            wait_us = self._append_locks.begin_fetched_appends(
                [
                    (self._states[name].partition.log, fetched.batches)
                    for name, fetched in response.partitions.items()
                    if self._is_appended(name, fetched)
                ]
            )
        if wait_us:
            self._response_being_written = response
            self._host.set_timer(wait_us, self._process_written, response)
        else:
            self._process(response)

    def _is_appended(self, name: str, fetched: protocol.FetchedPartition) -> bool:
        """Return whether to append the records of a response: they are current and not corrupt."""
        return bool(fetched.batches) and fetched.corrupt_offset < 0 and self._current_state(name) is not None

    def _current_state(self, name: str) -> FetchState | None:
        """Return the state of a partition if the response still matches it, else None.

        The partition may have been removed, added again or truncated since the request.
        """
        state = self._states.get(name)
        if state is None or state.needs_truncation:
            return None
        requested = self._session.requested.get(name)
        if requested is None or requested.offset != state.fetch_offset:
            return None
        # The same leader may lead again in a later epoch (KAFKA-18991).
        is_outdated = requested.leader_epoch != state.leader_epoch
        return None if is_outdated and self._switches.stale_fetch_response_ignored else state

    def _process_written(self, response: protocol.FetchResponse) -> None:
        # Otherwise the fetcher has stopped following in the meantime.
        if self._response_being_written is response:
            self._response_being_written = None
            self._process(response)

    def _process(self, response: protocol.FetchResponse | None) -> None:
        self._is_busy = False
        if response is None:
            self._session.handle_error()
            self._delay_all()
        elif self._session.handle_response(response):
            replicated = [
                state.hosted
                for name, fetched in response.partitions.items()
                if (state := self._apply(name, fetched)) is not None
            ]
            for hosted in replicated:
                # Consumers of a follower have something to read when its high watermark moves
                # (KIP-392).
                if self._completes_fetches:
                    hosted.check_fetches()
                else:
                    hosted.note_news()
        self._work()

    def _apply(self, name: str, fetched: protocol.FetchedPartition) -> FetchState | None:
        """Apply the answer for a partition; return its state if its end for readers has moved."""
        state, requested = self._states.get(name), self._session.requested.get(name)
        if (
            state is None
            or requested is None
            or state.needs_truncation
            or requested.offset != state.fetch_offset
        ):
            return None
        if requested.leader_epoch != state.leader_epoch:
            if fetched.error == errors.NONE:
                self._report_outdated(state, requested.leader_epoch)
            if self._switches.stale_fetch_response_ignored:
                return None
        if fetched.diverging is not None:
            self._truncate_by_epoch(state, *fetched.diverging)
        elif fetched.corrupt_offset >= 0:
            self._refuse_corrupt(state, fetched.corrupt_offset)
        elif fetched.error != errors.NONE:
            self._handle_error(state, fetched.error)
        elif self._append(state, fetched):
            return state
        return None

    def _report_outdated(self, state: FetchState, leader_epoch: int) -> None:
        """Report an answer to a fetch at the current position, but in another leader epoch."""
        is_applied = not self._switches.stale_fetch_response_ignored
        self._host.emit(
            OutdatedFetchAnswered,
            self._broker,
            state.hosted.name,
            self._leader,
            leader_epoch,
            state.leader_epoch,
            is_applied,
        )

    def _append(self, state: FetchState, fetched: protocol.FetchedPartition) -> bool:
        """Append fetched records. Return whether the partition's end for readers has moved."""
        partition = state.partition
        log = partition.log
        log_start = log.log_start_offset
        try:
            end_moved = partition.append_as_follower(fetched.batches, fetched.hw, fetched.log_start_offset)
        except UnexpectedAppendOffset as unexpected:
            self._fail(state, unexpected.base_offset)
            return False
        except KafkaStorageError:
            # The partition has failed and is about to go offline with its log directory.
            self._drop(partition.name)
            return False
        state.lag = fetched.hw - log.log_end_offset
        if self.quota is not None:
            self.quota.record(partition.name, sum([batch.size_bytes for batch in fetched.batches]))
        if fetched.batches or log.log_start_offset != log_start:
            state.fetch_offset = log.log_end_offset
            self._add_to_session(state)
        return end_moved

    def on_log_start_raised(self, name: str) -> None:
        """Tell the leader in the next fetch that this replica's log start has risen."""
        state = self._states.get(name)
        if state is not None and not state.needs_truncation and name not in self._delayed_states:
            self._client.stop_repeating()
            self._add_to_session(state)

    def _refuse_corrupt(self, state: FetchState, offset: int) -> None:
        """Append no batch of a response, not even those before the corrupt batch, and retry later.

        ``Log.analyzeAndValidateRecords`` checks all batches before it appends the first, and the
        fetcher continues (``AbstractFetcherThread``, CorruptRecordException). The replica makes no
        progress until it has another leader.
        """
        if state.corrupt_offset != offset:
            state.corrupt_offset = offset
            self._host.emit(
                CorruptBatchFetched, f"broker-{self._broker}", self._leader, state.partition.name, offset
            )
        self._delay(state)

    def _fail(self, state: FetchState, base_offset: int) -> None:
        """Stop fetching a partition until its next LeaderAndIsr.

        The leader's batch does not begin at the end of this log, so the two logs have diverged.
        Since 2.3 Kafka marks the partition as failed. Before 2.3 the whole fetcher thread ended.
        """
        name, leo = state.partition.name, state.partition.log.log_end_offset
        self._host.emit(FetcherFailed, self._broker, name, base_offset, leo)
        self._drop(name)

    def _handle_error(self, state: FetchState, error: str) -> None:
        if (
            error == errors.FENCED_LEADER_EPOCH
            and self._session.requested[state.partition.name].leader_epoch == state.leader_epoch
        ):
            # The LeaderAndIsr of the new epoch will start the fetch again.
            self._drop(state.partition.name)
            return
        self._delay(state)
        if error == errors.OFFSET_OUT_OF_RANGE and not self._is_busy:
            self._is_busy = True
            request = protocol.ListOffsetsRequest(self._broker, {state.partition.name: state.leader_epoch})
            self._client.send(request, self._handle_end_offsets, state)

    def _handle_end_offsets(self, response: protocol.ListOffsetsResponse | None, state: FetchState) -> None:
        """Truncate if the leader's log ends before this log, else request the leader's log start.

        Modelled on ``fetchOffsetAndTruncate``.
        """
        self._is_busy = False
        name = state.partition.name
        if response is None:
            self._delay_all()
        elif self._states.get(name) is state:  # The partition may have been added again in the meantime.
            error, end_offset = response.partitions[name]
            if error == errors.NONE and self._refuses(state.partition, end_offset):
                self._refuse(state.partition, end_offset)
            elif error == errors.NONE and end_offset >= state.partition.log.log_end_offset:
                self._is_busy = True
                request = protocol.ListOffsetsRequest(
                    self._broker, {name: state.leader_epoch}, timestamp=protocol.EARLIEST_TIMESTAMP
                )
                self._client.send(request, self._handle_start_offset, state)
                return
            elif error == errors.NONE:
                self._delayed_states.pop(name, None)
                self._truncate_to(state, end_offset, OUT_OF_RANGE_TRUNCATION)
        self._work()

    def _handle_start_offset(self, response: protocol.ListOffsetsResponse | None, state: FetchState) -> None:
        """Restart at the leader's log start if this log ends earlier, else continue to fetch."""
        self._is_busy = False
        name = state.partition.name
        if response is None:
            self._delay_all()
        elif self._states.get(name) is state:
            error, start_offset = response.partitions[name]
            if error == errors.NONE:
                self._delayed_states.pop(name, None)
                if start_offset > state.partition.log.log_end_offset:
                    state.partition.truncate_fully_and_start_at(start_offset)
                    state.hosted.note_news()
                state.fetch_offset = state.partition.log.log_end_offset
                self._add_to_session(state)
        self._work()

    def _refuses(self, partition: Partition, end_offset: int) -> bool:
        """Return whether to refuse a truncation that only an unclean election would explain.

        The broker refuses the truncation if unclean elections are disabled for the topic.
        """
        return (
            self._switches.out_of_range_follower != TRUNCATES
            and not partition.unclean_leader_election
            and end_offset < partition.log.log_end_offset
        )

    def _refuse(self, partition: Partition, end_offset: int) -> None:
        """Stop the broker, because a truncation would lose records that the leader does not have.

        In 0.10.2 the process hangs: the thread of the fetcher waits for the process to end, and the
        process waits for that thread.
        """
        self.has_refused = True
        self.shutdown()
        leo = partition.log.log_end_offset
        self._host.emit(TruncationRefused, self._broker, partition.name, self._leader, end_offset, leo)
        self._host.exit()


class ReplicaFetcherManager:
    """The fetchers of one broker: one for each broker that leads a partition."""

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        switches: ReplicationSwitches,
        append_locks: AppendLocks,
        hosted: HostedPartitions,
    ) -> None:
        self._append_locks = append_locks
        self._hosted = hosted
        self._broker = broker
        self._host = host
        self._config = config
        self._switches = switches
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._quota: ReplicationQuotaManager | None = None
        self._throttled_rate = config.follower_throttled_rate
        self.broker_epoch = protocol.NO_EPOCH
        """The broker epoch that fetches carry (KIP-903), `NO_EPOCH` if they carry none."""

    @property
    def hangs(self) -> bool:
        """Whether a fetcher that has refused to truncate makes the shutdown hang."""
        return self._switches.out_of_range_follower == HANGS and any(
            fetcher.has_refused for fetcher in self._fetchers.values()
        )

    def add(self, partition: Partition) -> None:
        """Begin to follow a partition's leader."""
        fetcher = self._fetchers.get(partition.leader)
        if fetcher is None:
            fetcher = ReplicaFetcher(
                self._broker,
                partition.leader,
                self._host,
                self._config,
                self._switches,
                self.broker_epoch,
                self._append_locks,
                self._hosted,
            )
            fetcher.quota = self._quota
            self._fetchers[partition.leader] = fetcher
        fetcher.add(partition)

    def remove(self, name: str) -> None:
        """Stop following a partition."""
        for fetcher in self._fetchers.values():
            fetcher.remove(name)

    def mark_throttled(self, topic: str, replicas: str) -> None:
        """Set which replicas of a topic are throttled as followers (``updateThrottledList``)."""
        if self._quota is None:
            self._quota = ReplicationQuotaManager(
                self._broker, self._host.clock, self._config, self._switches
            )
            self._quota.bound = self._throttled_rate
            for fetcher in self._fetchers.values():
                fetcher.quota = self._quota
        self._quota.mark_throttled(topic, replicas)

    def throttle(self, rate: int | None) -> None:
        """Set the rate for throttled partitions in bytes per second; None means no limit."""
        self._throttled_rate = NO_LIMIT if rate is None else rate
        if self._quota is not None:
            self._quota.bound = self._throttled_rate

    def on_log_start_raised(self, name: str) -> None:
        """Tell the leader of a partition that this replica's log start has risen (KIP-107)."""
        if self._switches.log_start_follows_leader:
            for fetcher in self._fetchers.values():
                fetcher.on_log_start_raised(name)

    def shutdown(self) -> None:
        """Stop following all partitions."""
        for fetcher in self._fetchers.values():
            fetcher.shutdown()

    def dismantle(self) -> None:
        """Drop the positions of all partitions (`Cluster.dismantle`)."""
        for fetcher in self._fetchers.values():
            fetcher.dismantle()
