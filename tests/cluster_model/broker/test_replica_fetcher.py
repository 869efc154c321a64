"""A follower truncates and fetches as its release does. The test plays the leader."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.broker.append_locks import AppendLocks
from harrow.cluster_model.broker.fetch_session import HostedPartitions
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.replica_fetcher import ReplicaFetcher
from harrow.cluster_model.clients.fetch_session_handler import FetchSessionHandler
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.protocol import (
    EARLIEST_TIMESTAMP,
    NO_EPOCH,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    ListOffsetsResponse,
    OffsetsForLeaderEpochResponse,
    PartitionData,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, broker_config, topic_config
from tests.cluster_model.fakes import MS, SECOND, FakeHost, Sent, batch, write_log

P, Q = "t-0", "t-1"
UNDEFINED = (-1, -1)


class UnusedIsrChanges:
    def start(self) -> None:
        """Start no periodic task."""

    def submit(self, *_: Any) -> None:
        raise AssertionError("a follower writes no ISR")


class RecordingLogs(LogManager):
    """Records truncations and appends."""

    truncated: list[tuple[str, int, str]]
    grown: list[str]

    def truncate(self, partition: str, offset: int, reason: str) -> None:
        self.truncated.append((partition, offset, reason))
        super().truncate(partition, offset, reason)

    def on_append(self, log: UnifiedLog) -> None:
        self.grown.append(log.name)
        super().on_append(log)


class Follower:
    """Broker 1 with replicas that follow broker 0."""

    unclean = False

    def __init__(
        self, release: str = "2.4", *, settings: Mapping[str, Value] = MappingProxyType({}), **switches: Any
    ) -> None:
        self.host = FakeHost("broker-1")
        self.config = broker_config(release, settings)
        self.behaviours = RELEASES[release].behaviours.with_switches(**switches)
        self.disk = Disk()
        topic = topic_config({}, self.config)
        self.logs = RecordingLogs(1, self.host, self.disk, self.config, lambda _: topic, self.behaviours)
        self.truncated = self.logs.truncated = []
        self.grown = self.logs.grown = []
        self.partitions: dict[str, Partition] = {}
        self.append_locks = AppendLocks(self.host, self.disk)
        self.fetcher = ReplicaFetcher(
            *(1, 0, self.host, self.config, self.behaviours.replication, NO_EPOCH, self.append_locks),
            HostedPartitions(),
        )

    # Steps

    def replica(self, name: str, *epochs_and_values: tuple[int, str], hw: int = 0) -> Partition:
        write_log(self.disk, name, *epochs_and_values)
        partition = Partition(
            name,
            1,
            self.host,
            self.logs,
            self.behaviours.replication,
            UnusedIsrChanges(),
            lambda *_: None,
            10 * SECOND,
            1,
            lambda *_: True,
            unclean_leader_election=self.unclean,
        )
        partition.log.high_watermark = hw
        self.partitions[name] = partition
        return partition

    def follow(self, name: str, epoch: int) -> None:
        """Follow a leader as ReplicaManager does on a LeaderAndIsr."""
        partition = self.partitions[name]
        if partition.make_follower(LeaderAndIsrPartitionState(1, LeaderAndIsr(0, epoch, (0, 1), 0), (0, 1))):
            self.fetcher.remove(name)
            self.fetcher.add(partition)

    def requests(self) -> list[tuple[str, dict[str, Any]]]:
        return [(sent.body.api, stated(sent.body)) for sent in self.host.requests()]

    def answer_epochs(self, **answers: tuple[str, int, int]) -> None:
        sent = self.host.take("OffsetsForLeaderEpoch")
        sent.answer(OffsetsForLeaderEpochResponse({name.replace("_", "-"): f for name, f in answers.items()}))

    def answer_epoch(self, epoch: int, end_offset: int, error: str = errors.NONE) -> None:
        self.answer_epochs(t_0=(error, epoch, end_offset))

    def answer_fetch(
        self, *values: str, hw: int = 0, error: str = errors.NONE, epoch: int = 1, at: int = -1
    ) -> None:
        """Answer the fetch of t-0 with one batch of these values, or none."""
        sent = self.host.take("Fetch")
        offset = sent.body.partitions[P].offset if at < 0 else at
        batches = (batch(*values, at=offset, leader_epoch=epoch),) if values else ()
        sent.answer(FetchResponse({P: FetchedPartition(error, hw, batches)}))

    def log(self, name: str = P) -> str:
        return "".join(value for stored in self.partitions[name].log.batches for value in stored.values)


def follower_with(
    *epochs_and_values: tuple[int, str], hw: int = 0, release: str = "2.4", epoch: int = 5, **switches: Any
) -> Follower:
    follower = Follower(release, **switches)
    follower.replica(P, *epochs_and_values, hw=hw)
    follower.follow(P, epoch)
    return follower


FOUR = ((0, "a"), (0, "b"), (1, "c"), (1, "d"))


# Truncation


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        # ReplicaManager does the truncation to the HW itself.
        ("0.10.2", [("Fetch", {P: (4, -1)})]),
        ("0.11", [("OffsetsForLeaderEpoch", {P: (-1, 1)})]),
        ("2.0", [("OffsetsForLeaderEpoch", {P: (-1, 1)})]),
        ("2.4", [("OffsetsForLeaderEpoch", {P: (5, 1)})]),  # with the current leader epoch (KIP-320)
    ],
)
def test_a_new_follower_requests_epochs_or_fetches_first(release: str, expected: list[Any]) -> None:
    assert follower_with(*FOUR, hw=1, release=release).requests() == expected


def test_the_mutant_without_truncation_fetches_at_once() -> None:
    follower = follower_with(*FOUR, hw=1, follower_truncation="none")
    assert follower.requests() == [("Fetch", {P: (4, 5)})]
    assert follower.truncated == []


@pytest.mark.parametrize("release", ["0.11", "2.4"])
def test_a_log_without_epochs_is_truncated_to_its_high_watermark(release: str) -> None:
    follower = Follower(release)
    partition = follower.replica(P, *FOUR, hw=3)
    partition.log.epochs.entries.clear()
    follower.follow(P, 5)
    assert follower.truncated == [(P, 3, "high watermark")]
    assert [api for api, _ in follower.requests()] == ["Fetch"]


@pytest.mark.parametrize(
    ("release", "answer", "cut_to", "asks_again"),
    [
        # KIP-101: the end offset as the leader answers it, without an epoch.
        ("0.11", (-1, 3), 3, False),
        ("0.11", (-1, 4), 4, False),
        ("0.11", (-1, 9), 4, False),
        ("0.11", (-1, 2), 2, False),
        # KIP-279: the same epoch, the smaller of both ends.
        ("2.0", (1, 3), 3, False),
        ("2.0", (1, 4), 4, False),
        ("2.4", (1, 9), 4, False),
        ("2.4", (1, 2), 2, False),
        # An older epoch that both logs have: the smaller of its ends in both.
        ("2.4", (0, 2), 2, False),
        ("2.4", (0, 1), 1, False),
        ("2.4", (0, 3), 2, False),
        # The leader does not name an epoch.
        ("2.4", (-1, 3), 3, False),
        # Undefined: the high watermark.
        ("0.11", UNDEFINED, 1, False),
        ("2.0", UNDEFINED, 1, False),
        ("2.4", UNDEFINED, 1, False),
    ],
)
def test_a_follower_truncates_according_to_the_leaders_answer(
    release: str, answer: tuple[int, int], cut_to: int, asks_again: bool
) -> None:
    follower = follower_with(*FOUR, hw=1, release=release)
    follower.answer_epoch(*answer)
    reason = "high watermark" if answer == UNDEFINED else "leader epoch"
    assert follower.truncated == [(P, cut_to, reason)]
    assert follower.log() == "abcd"[:cut_to]
    ((api, partitions),) = follower.requests()
    assert (api == "OffsetsForLeaderEpoch") == asks_again
    assert partitions[P][0] == cut_to


def test_an_unknown_epoch_is_requested_again_after_a_truncation() -> None:
    """KIP-279: after fast leader changes the logs may diverge in more than one epoch."""
    follower = follower_with((0, "a"), (0, "b"), (2, "c"), (4, "d"), epoch=6)
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (6, 4)})]
    follower.answer_epoch(3, 9)
    assert follower.log() == "abc"
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (6, 2)})]
    follower.answer_epoch(1, 5)
    assert follower.log() == "ab"
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (6, 0)})]
    follower.answer_epoch(0, 1)
    assert follower.log() == "a"
    assert follower.requests() == [("Fetch", {P: (1, 6)})]


def test_an_answered_epoch_below_the_whole_log_truncates_everything() -> None:
    """`endOffsetForEpoch` returns the requested epoch itself, so its start counts (2.4)."""
    follower = follower_with((3, "a"), (3, "b"), epoch=6)
    follower.answer_epoch(1, 1)
    assert follower.log() == ""
    assert follower.requests() == [("Fetch", {P: (0, 6)})]


def test_before_kafka_10706_a_last_epoch_without_records_is_requested_forever() -> None:
    """KAFKA-10706."""
    for switch in (False, True):
        follower = Follower(truncation_drops_empty_last_epoch=switch)
        partition = follower.replica(P, (0, "a"), (0, "b"))
        partition.log.epochs.assign(2, 2)
        follower.follow(P, 4)
        follower.answer_epoch(1, 2)
        expected = ("Fetch", {P: (2, 4)}) if switch else ("OffsetsForLeaderEpoch", {P: (4, 2)})
        if switch:
            assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (4, 0)})]
            follower.answer_epoch(0, 2)
        assert follower.requests() == [expected]


def test_epochs_are_requested_for_all_partitions_together_before_they_are_fetched() -> None:
    follower = Follower()
    follower.replica(P, *FOUR)
    follower.replica(Q, (0, "x"))
    follower.follow(P, 5)
    follower.follow(Q, 7)
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (5, 1)})]
    follower.answer_epoch(1, 3)
    assert follower.requests() == [("OffsetsForLeaderEpoch", {Q: (7, 0)})]
    follower.answer_epochs(t_1=(errors.NONE, 0, 1))
    assert follower.requests() == [("Fetch", {P: (3, 5), Q: (1, 7)})]


@pytest.mark.parametrize("error", [errors.NOT_LEADER_FOR_PARTITION, errors.UNKNOWN_LEADER_EPOCH])
def test_a_rejected_epoch_request_is_repeated_after_the_backoff(error: str) -> None:
    follower = follower_with(*FOUR)
    follower.answer_epoch(-1, -1, error)
    assert follower.requests() == []
    follower.host.advance(SECOND - 1)
    assert follower.requests() == []
    follower.host.advance(1)
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (5, 1)})]
    assert follower.truncated == []


@pytest.mark.parametrize("at", ["epochs", "fetch"])
def test_a_fenced_follower_waits_for_its_leader_and_isr(at: str) -> None:
    follower = follower_with(*FOUR)
    if at == "epochs":
        follower.answer_epoch(-1, -1, errors.FENCED_LEADER_EPOCH)
    else:
        follower.answer_epoch(1, 4)
        follower.answer_fetch(error=errors.FENCED_LEADER_EPOCH, hw=-1)
    follower.host.advance(60 * SECOND)
    assert follower.requests() == []
    follower.follow(P, 6)
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (6, 1)})]


def test_an_epoch_answer_for_an_older_leader_epoch_is_ignored() -> None:
    follower = Follower()
    follower.replica(P, *FOUR)
    follower.replica(Q, (0, "x"))
    follower.follow(Q, 5)
    follower.answer_epochs(t_1=(errors.NONE, 0, 1))
    follower.host.take("Fetch").answer(FetchResponse({Q: FetchedPartition(errors.NONE, 0)}))
    follower.follow(P, 5)
    follower.host.take("Fetch").answer(FetchResponse({Q: FetchedPartition(errors.NONE, 0)}))
    follower.follow(P, 6)
    follower.answer_epoch(0, 1)  # requested in epoch 5
    assert follower.log() == "abcd"
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (6, 1)})]


# Fetching


def test_a_follower_fetches_again_at_once_and_limits_the_leaders_hw_to_its_leo() -> None:
    follower = follower_with((1, "a"), hw=0)
    follower.answer_epoch(1, 1)
    follower.answer_fetch("b", "c", hw=1)
    log = follower.partitions[P].log
    assert (follower.log(), log.high_watermark) == ("abc", 1)
    assert follower.requests() == [("Fetch", {P: (3, 5)})]
    follower.answer_fetch(hw=9)
    assert (follower.log(), log.high_watermark) == ("abc", 3)
    follower.answer_fetch(hw=9)
    assert follower.host.events_named("hw") == [(1, P, 1), (1, P, 3)]
    assert follower.host.events_named("replicate") == [(1, P, 1, 1, -1, -1, ("b", "c"))]
    assert follower.grown == [P]


def test_a_follower_accepts_a_lower_high_watermark() -> None:
    """A new leader may have a lower high watermark than the old one had sent."""
    follower = follower_with(*FOUR, hw=4)
    follower.answer_epoch(1, 4)
    follower.answer_fetch(hw=2)
    assert follower.partitions[P].log.high_watermark == 2


def test_a_follower_learns_leader_epochs_from_batches() -> None:
    follower = follower_with((0, "a"))
    follower.answer_epoch(0, 1)
    follower.answer_fetch("b", epoch=3)
    follower.answer_fetch("c", epoch=3)
    assert follower.partitions[P].log.epochs.entries == [(0, 0), (3, 1)]


def test_a_batch_below_the_leo_stops_the_fetch_of_its_partition() -> None:
    """UnexpectedAppendOffsetException: the partition is marked as failed."""
    follower = follower_with(*FOUR)
    follower.answer_epoch(1, 4)
    follower.answer_fetch("x", "y", at=3)
    assert follower.log() == "abcd"
    follower.host.advance(60 * SECOND)
    assert follower.requests() == []


@pytest.mark.parametrize("error", [errors.NOT_LEADER_FOR_PARTITION, errors.UNKNOWN_LEADER_EPOCH])
def test_a_rejected_fetch_is_repeated_after_the_backoff(error: str) -> None:
    follower = follower_with(*FOUR)
    follower.answer_epoch(1, 4)
    follower.answer_fetch(error=error, hw=-1)
    assert follower.requests() == []
    follower.host.advance(SECOND)
    assert follower.requests() == [("Fetch", {P: (4, 5)})]


def test_a_fetch_with_a_bad_crc_appends_nothing_and_is_repeated() -> None:
    """CorruptRecordException: all batches are checked before the first is appended."""
    follower = follower_with(*FOUR)
    follower.answer_epoch(1, 4)
    for _ in range(2):
        good = (batch("x", at=4, leader_epoch=1),)
        fetched = FetchedPartition(errors.NONE, 5, good, corrupt_offset=5)
        follower.host.take("Fetch").answer(FetchResponse({P: fetched}))
        assert (follower.log(), follower.partitions[P].log.high_watermark) == ("abcd", 0)
        follower.host.advance(SECOND)
        assert follower.requests() == [("Fetch", {P: (4, 5)})]
    assert len(follower.host.events_named("corrupt_batch")) == 1
    follower.answer_fetch("x", "y")
    assert follower.log() == "abcdxy"


def test_a_delayed_partition_does_not_delay_the_others() -> None:
    follower = Follower()
    follower.replica(P, *FOUR)
    follower.replica(Q, (0, "x"))
    follower.follow(P, 5)
    follower.answer_epoch(1, 4)
    follower.answer_fetch(error=errors.NOT_LEADER_FOR_PARTITION, hw=-1)
    follower.host.advance(100 * MS)
    follower.follow(Q, 5)
    # `addPartitions` wakes the fetcher.
    assert follower.requests() == [("OffsetsForLeaderEpoch", {Q: (5, 0)})]
    follower.answer_epochs(t_1=(errors.NONE, 0, 1))
    assert follower.requests() == [("Fetch", {Q: (1, 5)})]


@pytest.mark.parametrize("lost", ["OffsetsForLeaderEpoch", "Fetch"])
def test_a_fetch_is_repeated_after_a_lost_connection_and_the_backoff(lost: str) -> None:
    follower = follower_with(*FOUR)
    if lost == "Fetch":
        follower.answer_epoch(1, 4)
    before = follower.requests()
    follower.host.take(lost).lose()
    follower.host.advance(SECOND - 1)
    assert follower.requests() == []
    follower.host.advance(1)
    assert follower.requests() == before


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [({}, 30), ({"request.timeout.ms": 5_000}, 5), ({"replica.socket.timeout.ms": 5_000}, 30)],
)
def test_a_silent_leader_times_out_after_the_brokers_request_timeout(
    settings: dict[str, Value], seconds: int
) -> None:
    """``replica.socket.timeout.ms`` ends only an attempt to connect (`BrokerBlockingSender`)."""
    follower = Follower(settings=settings)
    follower.replica(P, *FOUR)
    follower.follow(P, 5)
    follower.host.advance(seconds * SECOND - 1)
    assert not follower.host.closed
    follower.host.advance(1)
    assert len(follower.host.closed) == 1
    follower.host.advance(SECOND)
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (5, 1)})]


@pytest.mark.parametrize(("leader_leo", "remaining"), [(2, "ab"), (0, ""), (4, "abcd"), (7, "abcd")])
def test_out_of_range_truncates_the_log_to_the_leaders_end(leader_leo: int, remaining: str) -> None:
    """`fetchOffsetAndTruncate`: if the leader has caught up since, the log does not change."""
    follower = follower_with(*FOUR, release="0.10.2", out_of_range_follower="truncates")
    follower.answer_fetch(error=errors.OFFSET_OUT_OF_RANGE, hw=-1)
    assert follower.requests() == [("ListOffsets", {P: -1})]
    follower.host.take("ListOffsets").answer(ListOffsetsResponse({P: (errors.NONE, leader_leo)}))
    if leader_leo >= len(FOUR):
        request = follower.host.take("ListOffsets")
        assert request.body.timestamp == EARLIEST_TIMESTAMP
        request.answer(ListOffsetsResponse({P: (errors.NONE, 0)}))
    assert follower.log() == remaining
    assert follower.requests() == [("Fetch", {P: (len(remaining), -1)})]


@pytest.mark.parametrize(
    ("release", "unclean", "leader_leo", "outcome"),
    [
        ("0.10.2", False, 3, "refused"),
        ("0.10.2", False, 4, "abcd"),
        ("0.10.2", True, 3, "abc"),
        ("0.11", False, 3, "refused"),
        ("0.11", True, 3, "abc"),
        ("2.0", False, 3, "abc"),
        ("2.4", False, 3, "abc"),
    ],
)
def test_a_follower_ahead_of_its_leader_stops_its_broker_before_kafka_7414(
    release: str, unclean: bool, leader_leo: int, outcome: str
) -> None:
    """With unclean elections a follower may be ahead (``handleOffsetOutOfRange``)."""
    follower = Follower(release)
    follower.unclean = unclean
    follower.replica(P, *FOUR)
    follower.follow(P, 5)
    if release != "0.10.2":
        follower.answer_epoch(1, 4)
    follower.answer_fetch(error=errors.OFFSET_OUT_OF_RANGE, hw=-1)
    follower.host.take("ListOffsets").answer(ListOffsetsResponse({P: (errors.NONE, leader_leo)}))
    refused = follower.host.events_named("truncation_refused")
    if outcome == "refused":
        assert (refused, follower.host.exits) == ([(1, P, 0, 3, 4)], 1)
        follower.follow(P, 6)
        follower.host.advance(60 * SECOND)
        assert (follower.requests(), follower.log()) == ([], "abcd")
    else:
        assert (refused, follower.host.exits) == ([], 0)
        assert follower.log() == outcome


def test_a_follower_below_the_leaders_log_start_restarts_there() -> None:
    """`fetchOffsetAndTruncate`, `truncateFullyAndStartAt`."""
    follower = follower_with(*FOUR, release="0.10.2")
    follower.answer_fetch(error=errors.OFFSET_OUT_OF_RANGE, hw=-1)
    follower.host.take("ListOffsets").answer(ListOffsetsResponse({P: (errors.NONE, 9)}))
    follower.host.take("ListOffsets").answer(ListOffsetsResponse({P: (errors.NONE, 7)}))
    log = follower.partitions[P].log
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (7, 7, 7)
    assert log.epochs.entries == []
    assert follower.requests() == [("Fetch", {P: (7, -1)})]
    assert follower.host.events_named("log_started_anew") == [(1, P, 4, 7)]


@pytest.mark.parametrize(("release", "begins"), [("0.10.2", 0), ("2.4", 2)])
def test_since_kip_107_a_follower_adopts_its_leaders_log_start(release: str, begins: int) -> None:
    follower = follower_with(*FOUR, release=release)
    if release == "2.4":
        follower.answer_epoch(1, 4)
    raised = FetchedPartition(errors.NONE, 3, log_start_offset=2)
    follower.host.take("Fetch").answer(FetchResponse({P: raised}))
    assert follower.partitions[P].log.log_start_offset == begins


def test_out_of_range_is_retried_if_the_leader_reports_no_end() -> None:
    follower = follower_with(*FOUR, release="0.10.2")
    follower.answer_fetch(error=errors.OFFSET_OUT_OF_RANGE, hw=-1)
    answer = ListOffsetsResponse({P: (errors.NOT_LEADER_FOR_PARTITION, -1)})
    follower.host.take("ListOffsets").answer(answer)
    assert follower.requests() == []
    follower.host.advance(SECOND)
    assert follower.requests() == [("Fetch", {P: (4, -1)})]


def test_an_end_offset_of_an_older_leader_epoch_does_not_replace_the_truncation() -> None:
    """In Kafka the fetcher holds `partitionMapLock` during the request."""
    follower = Follower()
    follower.replica(P, *FOUR)
    follower.replica(Q, (0, "x"))
    follower.follow(Q, 5)
    follower.answer_epochs(t_1=(errors.NONE, 0, 1))
    follower.host.take("Fetch").answer(FetchResponse({Q: FetchedPartition(errors.NONE, 0)}))
    follower.follow(P, 5)
    follower.host.take("Fetch").answer(FetchResponse({Q: FetchedPartition(errors.NONE, 0)}))
    follower.answer_epoch(1, 4)
    refused = FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1)
    follower.host.take("Fetch").answer(FetchResponse({P: refused, Q: FetchedPartition(errors.NONE, 0)}))
    request = follower.host.take("ListOffsets")
    follower.follow(P, 6)
    request.answer(ListOffsetsResponse({P: (errors.NONE, 3)}))
    assert follower.log() == "abcd"
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (6, 1)})]


# One request at a time


def one_request_at_a_time(follower: Follower) -> list[Sent]:
    requests = follower.host.requests()
    assert len(requests) <= 1, "one request at a time"
    return requests


def test_a_fetch_in_flight_at_a_new_leader_epoch_is_ignored() -> None:
    follower = Follower()
    follower.replica(P, *FOUR)
    follower.replica(Q, (0, "x"))
    follower.follow(Q, 5)
    follower.answer_epochs(t_1=(errors.NONE, 0, 1))
    follower.host.take("Fetch").answer(FetchResponse({Q: FetchedPartition(errors.NONE, 0)}))
    follower.follow(P, 5)
    follower.host.take("Fetch").answer(FetchResponse({Q: FetchedPartition(errors.NONE, 0)}))
    follower.answer_epoch(1, 4)
    fetch = follower.host.take("Fetch")
    follower.follow(P, 6)
    stored = batch("e", at=4, leader_epoch=5)
    fetch.answer(
        FetchResponse({P: FetchedPartition(errors.NONE, 5, (stored,)), Q: FetchedPartition(errors.NONE, 0)})
    )
    assert follower.log() == "abcd"
    assert follower.requests() == [("OffsetsForLeaderEpoch", {P: (6, 1)})]


@pytest.mark.parametrize(
    ("release", "cut_to", "expected"),
    [
        ("0.10.2", 2, ("Fetch", {P: (2, -1), Q: (1, -1)})),  # the follower fetches from another offset now
        ("2.0", 4, ("OffsetsForLeaderEpoch", {P: (-1, 1)})),  # from the same offset, but it is truncating
    ],
)
def test_a_fetch_in_flight_when_a_replica_returns_to_this_leader_is_ignored(
    release: str, cut_to: int, expected: tuple[str, Any]
) -> None:
    follower = Follower(release)
    follower.replica(P, *FOUR, hw=cut_to)
    follower.replica(Q, (0, "x"))
    for name in (Q, P):
        follower.follow(name, 5)
    for _ in range(4):
        sent = follower.host.take()
        if P in sent.body.partitions and sent.body.api == "Fetch":
            break
        if sent.body.api == "Fetch":
            sent.answer(FetchResponse({Q: FetchedPartition(errors.NONE, 0)}))
        else:
            ends = {P: (errors.NONE, 1, 4), Q: (errors.NONE, 0, 1)}
            sent.answer(OffsetsForLeaderEpochResponse({name: ends[name] for name in sent.body.partitions}))
    # Another broker has led in between.
    follower.fetcher.remove(P)
    follower.partitions[P].log.truncate_to(cut_to)
    follower.fetcher.add(follower.partitions[P])
    stored = batch("e", at=4, leader_epoch=5)
    nothing = FetchedPartition(errors.NONE, 0)
    sent.answer(FetchResponse({P: FetchedPartition(errors.NONE, 5, (stored,)), Q: nothing}))
    assert follower.log() == "abcd"[:cut_to]
    assert follower.requests() == [expected]


def test_before_kip_320_a_new_epoch_of_the_same_leader_changes_nothing() -> None:
    follower = follower_with(*FOUR, release="2.0")
    follower.answer_epoch(1, 4)
    follower.follow(P, 6)
    follower.answer_fetch("e", hw=5)
    assert follower.log() == "abcde"
    assert follower.requests() == [("Fetch", {P: (5, -1)})]


def test_an_idle_fetcher_closes_its_connection_and_ignores_answers_in_flight() -> None:
    follower = follower_with(*FOUR)
    sent = follower.host.take()
    follower.fetcher.remove(P)
    assert follower.host.closed == [sent.connection]
    sent.answer(OffsetsForLeaderEpochResponse({P: (errors.NONE, 0, 1)}))
    assert follower.log() == "abcd"
    follower.host.advance(60 * SECOND)
    assert follower.host.requests() == []


def test_an_old_backoff_does_not_add_a_second_request() -> None:
    follower = follower_with(*FOUR)
    follower.answer_epoch(1, 4)
    follower.answer_fetch(error=errors.NOT_LEADER_FOR_PARTITION, hw=-1)
    follower.host.advance(500 * MS)
    follower.follow(P, 6)
    for _ in range(10):
        follower.host.advance(100 * MS)
        one_request_at_a_time(follower)
    follower.answer_epoch(1, 4)
    assert [sent.body.api for sent in one_request_at_a_time(follower)] == ["Fetch"]


# Truncation on fetch (KIP-595)


def follower_that_truncates_on_fetch(*epochs_and_values: tuple[int, str], hw: int = 0) -> Follower:
    return follower_with(*epochs_and_values, hw=hw, release="2.8")


def fetch_of(follower: Follower) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the partitions of the fetch in flight, and its last epochs."""
    (sent,) = follower.host.requests()
    assert isinstance(sent.body, FetchRequest)
    return stated(sent.body), last_epochs(sent.body)


def stated(request: Any) -> dict[str, Any]:
    """Return what a request states about its partitions: a fetch states offsets and epochs."""
    if not isinstance(request, FetchRequest):
        return dict(request.partitions)
    return {name: (data.offset, data.leader_epoch) for name, data in request.partitions.items()}


def last_epochs(request: FetchRequest) -> dict[str, int]:
    return {name: data.last_epoch for name, data in request.partitions.items() if data.last_epoch >= 0}


def answer_diverging(follower: Follower, epoch: int, end_offset: int) -> None:
    diverging = FetchedPartition(errors.NONE, 4, diverging=(epoch, end_offset))
    follower.host.take("Fetch").answer(FetchResponse({P: diverging}))


def test_since_kip_595_a_new_follower_fetches_at_once_with_its_last_epoch() -> None:
    assert fetch_of(follower_that_truncates_on_fetch(*FOUR, hw=1)) == ({P: (4, 5)}, {P: 1})


def test_since_kip_595_an_empty_log_is_fetched_without_an_epoch() -> None:
    assert fetch_of(follower_that_truncates_on_fetch()) == ({P: (0, 5)}, {})


@pytest.mark.parametrize(
    ("epoch", "end_offset", "remaining", "next_fetch"),
    [
        (1, 3, "abc", ({P: (3, 5)}, {P: 1})),
        (0, 2, "ab", ({P: (2, 5)}, {P: 0})),
        (0, 1, "a", ({P: (1, 5)}, {P: 0})),
        (0, 0, "", ({P: (0, 5)}, {})),
    ],
)
def test_a_follower_truncates_at_the_divergence_and_ignores_data_and_hw(
    epoch: int, end_offset: int, remaining: str, next_fetch: Any
) -> None:
    follower = follower_that_truncates_on_fetch(*FOUR)
    answer_diverging(follower, epoch, end_offset)
    assert follower.log() == remaining
    assert follower.partitions[P].log.high_watermark == 0
    assert fetch_of(follower) == next_fetch


def test_an_unknown_epoch_truncates_to_the_end_of_a_smaller_one_and_fetches_from_there() -> None:
    follower = follower_that_truncates_on_fetch((0, "a"), (2, "b"), (4, "c"))
    answer_diverging(follower, 3, 3)
    assert (follower.log(), fetch_of(follower)) == ("ab", ({P: (2, 5)}, {P: 2}))


def follower_of_reelected_leader(release: str) -> Follower:
    """Return a follower whose leader moves to epoch 7 before it answers a fetch of epoch 5."""
    follower = Follower(release)
    follower.replica(P, *FOUR)
    follower.replica(Q, (0, "x"))
    follower.follow(Q, 5)
    follower.follow(P, 5)
    follower.host.take("Fetch").answer(FetchResponse({}))
    (fetch_in_flight,) = follower.requests()
    assert fetch_in_flight == ("Fetch", {P: (4, 5), Q: (1, 5)})
    follower.follow(P, 7)
    return follower


@pytest.mark.parametrize(("release", "taken"), [("2.8", True), ("3.6", True), ("3.9", False), ("4.3", False)])
def test_since_kafka_18991_an_answer_of_an_older_epoch_of_the_leader_truncates_nothing(
    release: str, *, taken: bool
) -> None:
    follower = follower_of_reelected_leader(release)
    answer_diverging(follower, 1, 3)
    assert follower.log() == ("abc" if taken else "abcd")
    assert fetch_of(follower)[0][P] == (3 if taken else 4, 7)
    (noted,) = follower.host.events_named("fetch_outdated")
    assert noted == (1, P, 0, 5, 7, taken)


@pytest.mark.parametrize("release", ["2.8", "4.3"])
def test_a_fence_for_an_older_epoch_does_not_stop_the_current_fetch(release: str) -> None:
    """`onPartitionFenced` compares the epoch of the request (KAFKA-9654)."""
    follower = follower_of_reelected_leader(release)
    follower.host.take("Fetch").answer(FetchResponse({P: FetchedPartition(errors.FENCED_LEADER_EPOCH, -1)}))
    follower.host.advance(SECOND)
    follower.host.take("Fetch").answer(FetchResponse({}))
    (fetch_in_flight,) = follower.requests()
    assert fetch_in_flight[1][P] == (4, 7)


def test_a_session_sends_a_partition_again_if_only_its_last_epoch_changed() -> None:
    handler = FetchSessionHandler()
    handler.set_position(P, 3, 5, 1)
    assert last_epochs(handler.request(1, 0, 0)) == {P: 1}
    handler.handle_response(FetchResponse({}, errors.NONE, 9))
    handler.set_position(P, 3, 5, 1)
    assert handler.request(1, 0, 0).partitions == {}
    handler.handle_response(FetchResponse({}, errors.NONE, 9))
    handler.set_position(P, 3, 5, 0)
    assert handler.request(1, 0, 0).partitions == {P: PartitionData(3, 5, 0)}
