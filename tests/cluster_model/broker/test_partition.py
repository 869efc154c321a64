"""A partition on one broker (Partition.scala, Replica.scala): HW, ISR, acks=all, leader epochs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.broker.partition import EXPAND, SHRINK, Partition
from harrow.cluster_model.broker.replica import UNKNOWN_OFFSET, Replica
from harrow.cluster_model.log.record_batch import COMMIT, NO_PRODUCER_ID
from harrow.cluster_model.log.unified_log import UnexpectedAppendOffset
from harrow.cluster_model.protocol import (
    LOG_END,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import NO_LIMIT_US, Value
from tests.cluster_model.fakes import SECOND, FakeHost, batch, control, disk_with, log_manager, transactional

PARTITION = "t-0"
LAG_US = 10 * SECOND
LAG_MESSAGES = 4
LEADER = 0


class IsrWrites:
    """Records ISR writes. A test answers them."""

    def __init__(self, led: "LedPartition") -> None:
        self.led = led
        self.writes: list[tuple[tuple[int, ...], str]] = []
        self.answers: list[Callable[[int | None], None]] = []

    def start(self) -> None:
        """Start no periodic task."""

    def submit(
        self,
        partition: str,
        state: LeaderAndIsr,
        controller_epoch: int,
        on_altered: Callable[[int | None], None],
        broker_epochs: Mapping[int, int],
    ) -> None:
        led = self.led.partition
        assert led.isr_write_in_flight
        written = (partition, state.leader, state.leader_epoch, state.partition_epoch, controller_epoch)
        assert written == (PARTITION, LEADER, led.leader_epoch, led.partition_epoch, led.controller_epoch)
        self.writes.append((state.isr, EXPAND if len(state.isr) > len(led.isr) else SHRINK))
        self.answers.append(on_altered)


class LedPartition:
    """Broker 0 with a partition that it leads."""

    def __init__(
        self,
        isr: tuple[int, ...] = (0, 1, 2),
        *,
        leo: int = 0,
        hw: int = 0,
        min_isr: int = 1,
        release: str = "2.4",
        replicas: tuple[int, ...] = (0, 1, 2),
        topic: Mapping[str, Value] = MappingProxyType({}),
        **switches: Any,
    ) -> None:
        self.host = FakeHost()
        self.store = IsrWrites(self)
        self.rose: list[bool] = []
        self.replicas = replicas
        self.unregistered: set[int] = set()
        self.sent = 0
        behaviours = RELEASES[release].behaviours.with_switches(**switches)
        disk = disk_with(PARTITION, *((0, f"old{n}") for n in range(leo)))
        logs = log_manager(LEADER, self.host, disk, behaviours, topic)
        self.partition = Partition(
            PARTITION,
            LEADER,
            self.host,
            logs,
            behaviours.replication,
            self.store,
            lambda _, rose: self.rose.append(rose),
            LAG_US,
            min_isr,
            lambda broker, _: broker not in self.unregistered,
            unclean_leader_election=False,
            lag_max_messages=LAG_MESSAGES,
        )
        self.partition.log.high_watermark = hw
        self.lead(isr, epoch=1)

    @property
    def hw(self) -> int:
        return self.partition.log.high_watermark

    def state(
        self, leader: int, isr: tuple[int, ...], epoch: int, version: int = 0
    ) -> LeaderAndIsrPartitionState:
        return LeaderAndIsrPartitionState(1, LeaderAndIsr(leader, epoch, isr, version), self.replicas)

    def lead(self, isr: tuple[int, ...], epoch: int) -> bool:
        return self.partition.make_leader(self.state(LEADER, isr, epoch))

    def append(self, count: int = 1, acks: int = 1) -> str:
        values = [f"m{self.sent + n}" for n in range(count)]
        self.sent += count
        return self.partition.append_as_leader(batch(*values), acks)[0].error

    def fetch(self, **offsets: int) -> bool:
        """Fetch from offset 3 as broker 1 for ``r1=3``."""
        leo, replicas = self.partition.log.log_end_offset, self.partition.remote_replicas
        rose = [
            self.partition.update_follower(replicas[int(name[1:])], at, leo) for name, at in offsets.items()
        ]
        return True in rose

    def written(self, version: int | None = 7) -> bool:
        """Answer the last ISR write with the znode's new version, or None to refuse it."""
        self.store.answers[-1](version)
        return self.rose[-1]


# Becoming leader and follower


def test_a_new_leader_starts_its_epoch_at_its_leo_and_knows_no_follower_position() -> None:
    led = LedPartition(leo=4, hw=2)
    partition = led.partition
    assert (partition.leader_epoch, partition.leader_epoch_start, partition.isr) == (1, 4, (0, 1, 2))
    assert partition.log.epochs.entries == [(0, 0), (1, 4)]
    assert [r.log_end_offset for r in partition.remote_replicas.values()] == [UNKNOWN_OFFSET] * 2
    assert led.hw == 2
    assert led.host.events_named("leader") == [(LEADER, PARTITION, 1, 4, (0, 1, 2))]


@pytest.mark.parametrize(("release", "entries"), [("0.11", [(0, 0)]), ("2.0", [(0, 0), (1, 4)])])
def test_a_leader_epoch_gets_its_entry_on_election_or_with_the_first_append(
    release: str, entries: list[tuple[int, int]]
) -> None:
    led = LedPartition(leo=4, release=release)
    assert led.partition.log.epochs.entries == entries
    led.append()
    assert led.partition.log.epochs.entries == [(0, 0), (1, 4)]


def test_a_new_leader_alone_in_the_isr_commits_its_whole_log() -> None:
    led = LedPartition((0,), leo=4, hw=2)
    assert led.hw == 4
    assert led.host.events_named("hw") == [(LEADER, PARTITION, 4)]


def test_a_reelected_leader_keeps_the_positions_of_its_followers() -> None:
    led = LedPartition()
    led.append(5)
    led.fetch(r1=3, r2=5)
    assert led.hw == 3
    assert led.lead((0, 2), epoch=2)
    assert led.hw == 5
    assert {r.broker: r.log_end_offset for r in led.partition.remote_replicas.values()} == {1: 3, 2: 5}
    assert led.partition.leader_epoch_start == 5


def test_a_leader_that_was_a_follower_in_between_drops_the_positions() -> None:
    led = LedPartition()
    led.append(5)
    led.fetch(r1=5, r2=5)
    led.partition.make_follower(led.state(1, (0, 1, 2), 2))
    led.lead((0, 1, 2), epoch=3)
    led.append()
    assert led.hw == 5
    assert {r.log_end_offset for r in led.partition.remote_replicas.values()} == {UNKNOWN_OFFSET}


@pytest.mark.parametrize(
    ("release", "old", "new", "is_change"),
    [
        ("2.4", (1, 1), (2, 2), True),
        ("2.4", (1, 1), (1, 2), True),  # since KIP-320 a new epoch is a change
        ("2.4", (1, 1), (1, 1), False),
        ("2.0", (1, 1), (2, 2), True),
        ("2.0", (1, 1), (1, 2), False),
        ("0.10.2", (1, 1), (1, 5), False),
        ("0.10.2", (1, 1), (2, 5), True),
    ],
)
def test_a_new_leader_or_since_kip_320_a_new_epoch_is_a_change_to_a_follower(
    release: str, old: tuple[int, int], new: tuple[int, int], is_change: bool
) -> None:
    led = LedPartition(release=release)
    led.partition.make_follower(led.state(old[0], (0, 1, 2), old[1]))
    assert led.partition.make_follower(led.state(new[0], (0, 1, 2), new[1], version=9)) == is_change
    partition = led.partition
    assert (partition.leader, partition.leader_epoch, partition.isr, partition.partition_epoch) == (
        *new,
        (),
        9,
    )


@pytest.mark.parametrize(
    ("reader_epoch", "error"),
    [
        (-1, errors.NONE),
        (1, errors.NONE),
        (0, errors.FENCED_LEADER_EPOCH),
        (2, errors.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_leader_checks_the_leader_epoch_of_a_reader(reader_epoch: int, error: str) -> None:
    led = LedPartition()
    assert led.partition.check_epoch(reader_epoch) == error


@pytest.mark.parametrize(
    ("reader_epoch", "error"),
    [
        (-1, errors.NOT_LEADER_FOR_PARTITION),
        (2, errors.NOT_LEADER_FOR_PARTITION),
        (1, errors.FENCED_LEADER_EPOCH),
        (3, errors.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_follower_checks_the_leader_epoch_of_a_reader_first(reader_epoch: int, error: str) -> None:
    led = LedPartition()
    led.partition.make_follower(led.state(1, (), 2))
    assert led.partition.check_epoch(reader_epoch) == error


@pytest.mark.parametrize(("release", "lags"), [("2.0", False), ("2.4", True)])
def test_a_new_leader_reports_no_end_before_its_hw_reaches_its_epoch(release: str, lags: bool) -> None:
    led = LedPartition(leo=2, hw=1, release=release)
    assert led.partition.high_watermark_lags() == lags
    led.fetch(r1=2, r2=2)
    assert not led.partition.high_watermark_lags()


@pytest.mark.parametrize(("release", "position"), [("2.0", UNKNOWN_OFFSET), ("2.4", 1)])
def test_up_to_2_3_a_fetch_outside_the_log_resets_the_followers_position(release: str, position: int) -> None:
    led = LedPartition(leo=2, release=release)
    led.fetch(r1=1)
    replica = led.partition.remote_replicas[1]
    led.partition.record_failed_fetch(replica)
    assert replica.log_end_offset == position


@pytest.mark.parametrize(("checked", "isr"), [(True, (0,)), (False, (0, 1))])
def test_a_follower_without_a_registration_may_not_join_the_isr(checked: bool, isr: tuple[int, ...]) -> None:
    led = LedPartition(isr=(0,), replicas=(0, 1), isr_expansion_checks_registration=checked)
    led.unregistered.add(1)
    led.fetch(r1=0)
    assert [write for write, _ in led.store.writes] == ([] if checked else [isr])
    led.unregistered.clear()
    led.fetch(r1=0)
    assert [write for write, _ in led.store.writes] == [(0, 1)]


@pytest.mark.parametrize(("hw_checks", "hw"), [(False, 0), (True, 1)])
def test_up_to_3_5_the_hw_waits_for_an_ineligible_follower(hw_checks: bool, hw: int) -> None:
    led = LedPartition(
        isr=(0,),
        replicas=(0, 1),
        isr_expansion_checks_registration=True,
        hw_ignores_unregistered_followers=hw_checks,
    )
    led.unregistered.add(1)
    led.fetch(r1=0)
    led.append()
    assert led.hw == hw


# The high watermark


@pytest.mark.parametrize(
    ("isr", "leo", "fetched", "hw"),
    [
        ((0, 1, 2), 10, {1: 5, 2: 3}, 3),  # the slowest member decides
        ((0, 1, 2), 10, {1: 10, 2: 10}, 10),
        ((0, 1, 2), 10, {1: 10}, 0),  # one of them has never fetched
        ((0, 1), 10, {1: 5}, 5),
        ((0, 1), 10, {1: 12}, 10),  # never above the leader's own LEO
        ((0,), 10, {}, 10),
    ],
)
def test_the_hw_is_the_smallest_leo_of_the_isr(
    isr: tuple[int, ...], leo: int, fetched: dict[int, int], hw: int
) -> None:
    led = LedPartition(isr)
    led.append(leo)
    led.fetch(**{f"r{broker}": offset for broker, offset in fetched.items()})
    assert led.hw == hw


def test_the_hw_moves_one_fetch_round_after_the_data() -> None:
    led = LedPartition((0, 1), replicas=(0, 1))
    led.append()
    assert not led.fetch(r1=0)
    assert led.hw == 0
    assert led.fetch(r1=1)
    assert led.hw == 1
    assert not led.fetch(r1=1)


def test_the_hw_of_a_leader_never_falls() -> None:
    led = LedPartition((0, 1), replicas=(0, 1))
    led.append(5)
    led.fetch(r1=5)
    assert not led.fetch(r1=2)
    assert led.hw == 5
    led.append()
    assert led.hw == 5
    led.lead((0, 1, 2), epoch=2)
    assert led.hw == 5
    assert [event[-1] for event in led.host.events_named("hw")] == [5]


@pytest.mark.parametrize(("since_us", "hw"), [(LAG_US, 3), (LAG_US + 1, 6)])
def test_the_hw_waits_for_a_caught_up_replica_outside_the_isr(since_us: int, hw: int) -> None:
    """The HW must not leave behind a replica that may soon join the ISR."""
    led = LedPartition((0,), replicas=(0, 1))
    led.append(3)
    led.fetch(r1=3)
    led.written(None)  # it tried to join, but the write was refused
    assert led.hw == 3
    led.append(2)
    assert led.hw == 3
    led.host.advance(since_us)
    led.append()
    assert led.hw == hw


def test_the_hw_does_not_wait_for_a_replica_outside_the_isr_at_the_election() -> None:
    led = LedPartition((0, 2))
    led.append(4)
    led.fetch(r2=4)
    assert led.hw == 4


def test_the_mutant_whose_hw_ignores_the_isr_commits_at_once() -> None:
    led = LedPartition(hw_waits_for_whole_isr=False)
    led.append(4)
    assert led.hw == 4


@pytest.mark.parametrize(
    ("fetches", "caught_up_us"),
    [
        # (time, fetch offset, leader's LEO then); the last caught-up time is at first -1
        ([(5, 3, 3)], 5),  # at the LEO: the time of this fetch
        ([(5, 4, 3)], 5),
        ([(5, 2, 3)], -1),
        ([(5, 2, 3), (9, 3, 7)], 5),  # at the LEO of the previous fetch: the time of that fetch
        ([(5, 2, 3), (9, 3, 7), (12, 6, 9)], 5),
        ([(5, 2, 3), (9, 3, 7), (12, 7, 9)], 9),
        ([(5, 3, 3), (9, 3, 4), (12, 3, 4)], 5),  # no progress
        ([(5, 3, 3), (9, 3, 3), (12, 3, 4)], 9),
        ([(5, 3, 3), (9, 1, 3)], 5),  # it never goes back
    ],
)
def test_a_replica_is_caught_up_when_it_fetches_from_the_leo(
    fetches: list[tuple[int, int, int]], caught_up_us: int
) -> None:
    replica = Replica(1)
    replica.last_caught_up_us = -1
    replica.last_fetch_us = -1
    replica.last_fetch_leader_leo = 1_000
    for at_us, offset, leader_leo in fetches:
        replica.update_fetch_state(offset, leader_leo, at_us)
    assert replica.last_caught_up_us == caught_up_us
    assert replica.log_end_offset == fetches[-1][1]


# Shrink


@pytest.mark.parametrize(
    ("late_us", "leo", "isr"),
    [
        (LAG_US, 3, None),  # the follower is just in time
        (LAG_US + 1, 3, (0, 2)),
        (LAG_US + 1, 5, None),  # no follower at the leader's LEO is late
    ],
)
def test_a_follower_that_is_not_caught_up_in_time_leaves_the_isr(
    late_us: int, leo: int, isr: tuple[int, ...] | None
) -> None:
    led = LedPartition()
    led.append(3)
    led.fetch(r1=3, r2=3)
    led.append(2)
    led.fetch(r1=leo)
    led.host.advance(late_us)
    led.fetch(r2=5)
    if leo == 5:
        # It caught up long ago and has not fetched since.
        assert led.partition.remote_replicas[1].last_caught_up_us == 0
    led.partition.maybe_shrink_isr()
    assert led.store.writes == ([] if isr is None else [(isr, SHRINK)])


def test_late_followers_leave_the_isr_together_and_the_rest_commits() -> None:
    led = LedPartition()
    led.append(5)
    led.fetch(r1=3, r2=1)
    led.host.advance(LAG_US + 1)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == [((0,), SHRINK)]
    assert (led.hw, led.partition.isr) == (1, (0, 1, 2))
    assert led.written(version=4)
    assert (led.hw, led.partition.isr, led.partition.partition_epoch) == (5, (0,), 4)
    assert led.host.events_named("isr") == [(LEADER, PARTITION, 1, (0,), SHRINK)]


def test_up_to_0_8_a_burst_removes_followers_that_are_too_many_records_behind() -> None:
    """KIP-16: ``getOutOfSyncReplicas`` compared LEOs at the moment of the check."""
    led = LedPartition(isr_lag_counts_messages=True)
    led.fetch(r1=0, r2=0)
    led.append(LAG_MESSAGES)
    assert led.partition.maybe_shrink_isr()
    assert led.store.writes == []
    led.append()
    led.fetch(r2=1)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == [((0, 2), SHRINK)]
    by_time = LedPartition()
    by_time.fetch(r1=0, r2=0)
    by_time.append(LAG_MESSAGES + 1)
    by_time.partition.maybe_shrink_isr()
    assert by_time.store.writes == []


def test_up_to_0_8_only_a_follower_that_does_not_fetch_is_late_by_time() -> None:
    led = LedPartition(isr_lag_counts_messages=True)
    led.append(2)
    led.fetch(r1=0, r2=2)
    led.host.advance(LAG_US)
    led.append()
    led.fetch(r1=1)
    led.host.advance(1)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == [((0, 1), SHRINK)]


def test_only_a_leader_shrinks_an_isr() -> None:
    led = LedPartition()
    led.append(5)
    led.partition.make_follower(led.state(1, (0, 1, 2), 2))
    led.host.advance(2 * LAG_US)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == []


# Expand


@pytest.mark.parametrize(
    ("release", "hw", "offset", "joins"),
    [
        # LEO 6, and the epoch begins there
        ("2.4", 4, 6, True),
        ("2.4", 4, 5, False),  # at the HW, but below the start of the epoch
        ("2.4", 4, 3, False),
        ("0.11", 4, 4, True),  # before KAFKA-7128 the HW is enough
        ("0.11", 4, 3, False),
    ],
)
def test_a_follower_joins_the_isr_at_the_hw_and_the_epoch_start(
    release: str, hw: int, offset: int, joins: bool
) -> None:
    led = LedPartition((0, 2), leo=6, hw=hw, release=release)
    led.append(2)
    led.fetch(r1=offset)
    assert led.store.writes == ([((0, 2, 1), EXPAND)] if joins else [])


def test_before_kip_497_the_hw_counts_a_new_member_once_its_isr_is_written() -> None:
    led = LedPartition((0, 2))
    led.append(2)
    led.fetch(r2=2)
    led.append(2)
    led.host.advance(2 * LAG_US)
    led.fetch(r1=2)
    assert led.store.writes == [((0, 2, 1), EXPAND)]
    led.written(version=3)
    assert (led.partition.isr, led.partition.partition_epoch) == ((0, 2, 1), 3)
    led.fetch(r2=4)
    assert led.hw == 2
    led.fetch(r1=4)
    assert led.hw == 4


def test_a_leader_has_no_state_of_a_broker_without_a_replica() -> None:
    led = LedPartition()
    assert led.partition.replica_of(9) is None
    follower = led.partition.replica_of(1)
    assert follower is led.partition.remote_replicas[1]


# ISR writes in flight


def test_during_an_isr_write_neither_the_hw_nor_the_isr_changes() -> None:
    led = LedPartition((0, 1))
    led.append(2)
    led.fetch(r1=2)
    led.append(2)
    led.fetch(r2=3)
    assert led.store.writes == [((0, 1, 2), EXPAND)]
    assert not led.fetch(r1=4)
    assert led.hw == 2
    led.host.advance(LAG_US + 1)
    led.partition.maybe_shrink_isr()
    assert len(led.store.writes) == 1
    assert led.written()
    assert led.hw == 3
    led.append()
    led.partition.maybe_shrink_isr()
    assert len(led.store.writes) == 2


def test_only_one_isr_change_is_written_at_a_time() -> None:
    led = LedPartition((0,))
    led.fetch(r1=0, r2=0)
    assert led.store.writes == [((0, 1), EXPAND)]
    led.written()
    led.fetch(r2=0)
    assert led.store.writes[1:] == [((0, 1, 2), EXPAND)]


def test_a_refused_isr_write_does_not_change_the_isr() -> None:
    led = LedPartition((0, 1))
    led.append(2)
    led.fetch(r2=2)
    led.written(None)
    assert (led.partition.isr, led.partition.partition_epoch) == ((0, 1), 0)
    assert led.host.events_named("isr") == []
    assert not led.partition.isr_write_in_flight
    led.fetch(r2=2)
    assert len(led.store.writes) == 2


def test_before_kip_497_a_refused_write_drops_the_possible_new_member() -> None:
    """An earlier write may have reached ZooKeeper, whose ISR may provide the next leader."""
    for maximal_isr, hw in ((False, 3), (True, 2)):
        led = LedPartition((0, 1), maximal_isr=maximal_isr)
        led.append(2)
        led.fetch(r2=2)
        led.written(None)
        led.append()
        led.host.clock.now_us += LAG_US + 1
        led.fetch(r1=3)
        assert led.hw == hw
        assert led.partition.isr == (0, 1)


def test_a_second_refused_write_keeps_the_first_possible_member() -> None:
    led = LedPartition((0,), maximal_isr=True)
    led.append(2)
    led.fetch(r1=2)
    led.written(None)
    led.fetch(r2=2)
    led.written(None)
    led.append()
    led.host.clock.now_us += LAG_US + 1
    led.fetch(r2=3)
    led.written(None)
    assert led.hw == 2


def led_during_isr_write(isr: tuple[int, ...] = (0, 1), **options: Any) -> LedPartition:
    """Return a partition whose leader continues during an ISR write (KIP-497)."""
    return LedPartition(isr, release="2.8", **options)


def test_since_kip_497_a_joining_follower_counts_before_the_write() -> None:
    led = led_during_isr_write((0,))
    led.append(2)
    led.fetch(r1=2)
    assert (led.hw, led.partition.isr, led.partition.maximal_isr) == (2, (0,), (0, 1))
    led.append()
    led.host.clock.now_us += LAG_US + 1
    led.partition.maybe_increment_hw()
    assert led.hw == 2
    led.written()
    assert (led.hw, led.partition.isr) == (2, (0, 1))


def test_since_kip_497_a_leaving_follower_counts_until_the_write() -> None:
    led = led_during_isr_write((0, 1, 2))
    led.append(2)
    led.fetch(r1=2, r2=0)
    led.host.clock.now_us += LAG_US + 1
    led.fetch(r1=2)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == [((0, 1), SHRINK)]
    led.append()
    led.fetch(r1=3)
    assert led.hw == 0
    assert led.written()
    assert led.hw == 3


def test_since_kip_497_a_possible_member_counts_until_the_next_leader_and_isr() -> None:
    led = led_during_isr_write()
    led.fetch(r2=0)
    led.written(None)
    assert (led.partition.isr, led.partition.maximal_isr) == ((0, 1), (0, 1, 2))
    led.lead((0, 1), epoch=2)
    assert led.partition.maximal_isr == (0, 1)


def test_since_kip_497_an_answer_after_a_leader_and_isr_is_stale() -> None:
    led = led_during_isr_write()
    led.fetch(r2=0)
    led.lead((0, 1), epoch=2)
    led.store.answers[-1](9)
    assert (led.partition.isr, led.partition.partition_epoch, led.rose) == ((0, 1), 0, [])


def test_a_refused_shrink_removes_no_member() -> None:
    led = LedPartition((0, 1), maximal_isr=True)
    led.append(2)
    led.host.clock.now_us += LAG_US + 1
    led.partition.maybe_shrink_isr()
    led.written(None)
    assert led.hw == 0


def test_a_fetch_raises_the_hw_even_if_its_isr_write_is_refused() -> None:
    """`updateFollowerFetchState` tries to raise the HW after `maybeExpandIsr`."""
    led = LedPartition((0,), replicas=(0, 1))
    led.append(3)
    led.fetch(r1=3)
    led.written(None)
    led.append(2)
    assert led.hw == 3
    led.fetch(r1=5)
    assert led.written(None)
    assert led.hw == 5


# Waiting for all replicas


@pytest.mark.parametrize(
    ("isr", "min_isr", "acks", "error"),
    [
        ((0, 1), 2, -1, errors.NONE),
        ((0,), 2, -1, errors.NOT_ENOUGH_REPLICAS),
        ((0,), 2, 1, errors.NONE),
        ((0,), 2, 0, errors.NONE),
        ((0,), 1, -1, errors.NONE),
    ],
)
def test_acks_all_is_rejected_before_the_append_while_the_isr_is_too_small(
    isr: tuple[int, ...], min_isr: int, acks: int, error: str
) -> None:
    led = LedPartition(isr, min_isr=min_isr)
    assert led.append(acks=acks) == error
    assert led.partition.log.log_end_offset == (1 if error == errors.NONE else 0)
    assert len(led.host.events_named("append")) == led.partition.log.log_end_offset


def test_acks_all_fails_if_the_isr_shrinks_after_the_append() -> None:
    led = LedPartition((0, 1), min_isr=2)
    assert led.append(acks=-1) == errors.NONE
    assert led.partition.is_committed(1) == (False, errors.NONE)
    led.host.advance(LAG_US + 1)
    led.partition.maybe_shrink_isr()
    led.written()
    assert led.partition.is_committed(1) == (True, errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert led.partition.log.log_end_offset == 1


def test_acks_all_waits_for_the_hw() -> None:
    led = LedPartition((0, 1), replicas=(0, 1))
    led.append(2)
    led.fetch(r1=1)
    assert led.partition.is_committed(1) == (True, errors.NONE)
    assert led.partition.is_committed(2) == (False, errors.NONE)
    led.partition.make_follower(led.state(1, (0, 1), 2))
    assert led.partition.is_committed(2) == (True, errors.NOT_LEADER_FOR_PARTITION)


def test_the_mutant_that_acks_before_replication_does_not_wait_for_the_hw() -> None:
    led = LedPartition(ack_waits_for_hw=False)
    led.append()
    assert led.partition.is_committed(1) == (True, errors.NONE)


def test_only_a_leader_accepts_a_produce() -> None:
    led = LedPartition()
    led.partition.make_follower(led.state(1, (0, 1, 2), 2))
    assert led.append() == errors.NOT_LEADER_FOR_PARTITION
    assert led.partition.log.log_end_offset == 0


def test_an_append_is_traced_once_and_a_duplicate_is_not() -> None:
    led = LedPartition((0,))
    first = batch("a", "b", producer_id=3, sequence=0)
    result, hw_rose = led.partition.append_as_leader(first, -1)
    assert (result.error, result.base_offset, hw_rose) == (errors.NONE, 0, True)
    result, hw_rose = led.partition.append_as_leader(first, -1)
    assert (result.error, result.base_offset, result.duplicate, hw_rose) == (errors.NONE, 0, True, False)
    led.append()
    assert led.host.events_named("append") == [
        (LEADER, PARTITION, 0, 1, 3, 0, ("a", "b")),
        (LEADER, PARTITION, 2, 1, NO_PRODUCER_ID, -1, ("m0",)),
    ]


@pytest.mark.parametrize(
    ("isolation", "limited", "end"),
    [
        (LOG_END, True, 5),
        (READ_UNCOMMITTED, True, 2),
        (READ_UNCOMMITTED, False, 5),
        (READ_COMMITTED, True, 2),
    ],
)
def test_followers_read_to_the_leo_and_consumers_to_the_hw(isolation: int, limited: bool, end: int) -> None:
    led = LedPartition((0, 1), replicas=(0, 1), consumer_reads_below_hw=limited)
    led.append(5)
    led.fetch(r1=2)
    assert led.partition.readable_end(isolation) == end


def test_a_read_committed_consumer_stops_at_the_first_open_transaction() -> None:
    led = LedPartition((0, 1), replicas=(0, 1))
    led.append()
    led.partition.append_as_leader(transactional("x", "y"), acks=-1)
    led.append()
    led.fetch(r1=4)
    assert [led.partition.readable_end(level) for level in (READ_COMMITTED, READ_UNCOMMITTED)] == [1, 4]
    led.partition.append_as_leader(control(COMMIT), acks=-1)
    assert (
        led.partition.readable_end(READ_COMMITTED) == 1
    )  # The leader's failure may still lose the end of the transaction.
    led.fetch(r1=5)
    assert led.partition.readable_end(READ_COMMITTED) == 5


# The follower


def test_a_follower_takes_its_leaders_hw_up_to_its_own_leo() -> None:
    led = LedPartition(leo=1, topic={"flush.messages": 1})
    partition = led.partition
    partition.make_follower(led.state(1, (0, 1, 2), epoch=2))
    for values, leader_hw, own_hw in (("b", 9, 2), ("", 1, 1), ("cd", 3, 3)):
        at = partition.log.log_end_offset
        partition.append_as_follower((batch(*values, at=at, leader_epoch=2),) if values else (), leader_hw)
        assert led.hw == own_hw
    # Copied records are flushed before the high watermark covers them.
    follower_events = [event[1] for event in led.host.events if event[1] in ("replicate", "flush", "hw")]
    assert follower_events == ["replicate", "flush", "hw", "hw", "replicate", "flush", "hw"]


def test_a_follower_rejects_a_batch_below_its_leo() -> None:
    """``UnifiedLog.append``. A batch above the LEO is accepted, after a compaction."""
    led = LedPartition(leo=1)
    led.partition.make_follower(led.state(1, (0, 1, 2), epoch=2))
    accepted_batches, rejected_batches = batch("b", at=1, leader_epoch=2), batch("c", at=1, leader_epoch=2)
    with pytest.raises(UnexpectedAppendOffset) as refused:
        led.partition.append_as_follower((accepted_batches, rejected_batches), 2)
    assert refused.value.base_offset == 1
    assert (led.partition.log.log_end_offset, led.hw) == (2, 0)


@pytest.mark.parametrize(("release", "hw"), [("3.6", 1), ("3.9", 0)])
def test_since_3_7_the_hw_stays_while_the_isr_is_below_min_insync_replicas(release: str, hw: int) -> None:
    led = LedPartition((0,), min_isr=2, release=release)
    led.append()
    assert led.hw == hw
    led.fetch(r1=1)
    assert led.hw == hw  # Broker 1 is only in the maximal ISR.
    led.written()
    assert led.hw == 1


@pytest.mark.parametrize(("release", "error"), [("3.6", errors.NOT_ENOUGH_REPLICAS), ("3.9", errors.NONE)])
def test_since_3_7_all_replicas_in_sync_are_enough(release: str, error: str) -> None:
    led = LedPartition((0, 1), min_isr=3, replicas=(0, 1), release=release)
    assert led.append(acks=-1) == error


# Diverging logs


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (6, 3, None),
        (4, 3, None),
        (7, 3, (3, 6)),  # beyond the end of the latest epoch
        (4, 1, None),
        (5, 1, (1, 4)),  # more records of an epoch than the leader has
        (4, 2, (1, 4)),  # an epoch that the leader does not have
        (0, 0, None),
    ],
)
def test_a_leader_finds_where_a_log_diverges_from_its_last_epoch_and_offset(
    offset: int, last_epoch: int, diverging: tuple[int, int] | None
) -> None:
    led = LedPartition(release="2.8")
    led.partition.log.epochs.entries[:] = [(0, 0), (1, 2), (3, 4)]
    led.partition.log.log_end_offset = 6
    assert led.partition.divergence(offset, last_epoch) == (errors.NONE, diverging)


def test_an_epoch_above_those_of_the_leader_is_out_of_range() -> None:
    led = LedPartition(release="2.8")
    assert led.partition.divergence(0, 5) == (errors.OFFSET_OUT_OF_RANGE, None)


def test_a_reelected_leader_uses_earlier_positions_in_every_release() -> None:
    for release in RELEASES:
        led = LedPartition(isr=(0, 1, 2), leo=3, hw=2, release=release)
        led.fetch(r1=3, r2=2)
        led.lead((0, 1), epoch=3)
        assert (led.hw, led.partition.remote_replicas[1].log_end_offset) == (3, 3), release


@pytest.mark.parametrize(("release", "hw"), [("2.8", 4), ("3.6", 5)])
def test_before_3_3_the_hw_waits_for_a_follower_that_left_the_isr_before_the_reelection(
    release: str, hw: int
) -> None:
    led = LedPartition(isr=(0, 1), leo=3, hw=3, release=release)
    led.lead((0,), epoch=3)
    led.append(1)
    led.fetch(r1=3)
    led.append(1)
    assert led.hw == hw


def test_a_reelected_leader_without_positions_waits_for_a_fetch() -> None:
    led = LedPartition(isr=(0, 1, 2), leo=3, hw=2, reelected_leader_forgets_positions=True)
    led.fetch(r1=3, r2=2)
    led.lead((0, 1), epoch=3)
    assert (led.hw, led.partition.remote_replicas[1].log_end_offset) == (2, UNKNOWN_OFFSET)
    led.fetch(r1=3)
    assert led.hw == 3


# Clocks that jump (Time.milliseconds)


@pytest.mark.parametrize(("by_us", "late"), [(LAG_US + 1, [1, 2]), (LAG_US - 1, [])])
def test_after_a_clock_jump_ahead_followers_are_late_until_they_fetch(by_us: int, late: list[int]) -> None:
    led = LedPartition()
    led.fetch(r1=0, r2=0)
    led.append()
    for replica in led.partition.remote_replicas.values():
        replica.on_clock_step(by_us)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == ([((0,), SHRINK)] if late else [])


def test_a_fetch_after_a_clock_jump_counts_at_the_new_time() -> None:
    led = LedPartition()
    led.fetch(r1=0, r2=0)
    led.append()
    for replica in led.partition.remote_replicas.values():
        replica.on_clock_step(LAG_US * 100)
    led.fetch(r1=1)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == [((0, 1), SHRINK)]


def test_after_a_clock_jump_back_a_dead_follower_stays_in_the_isr_longer() -> None:
    led = LedPartition()
    led.fetch(r1=0, r2=0)
    led.append()
    led.partition.remote_replicas[2].on_clock_step(-60 * SECOND)
    led.host.advance(LAG_US + 59 * SECOND)
    led.fetch(r1=1)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == []
    led.host.advance(2 * SECOND)
    led.fetch(r1=1)
    led.partition.maybe_shrink_isr()
    assert led.store.writes == [((0, 1), SHRINK)]


@pytest.mark.parametrize(
    ("before_us", "after_us", "age_us", "error"),
    [
        (10, 10, 10, "NONE"),
        (10, 10, 11, "INVALID_TIMESTAMP"),
        (10, 10, -10, "NONE"),
        (10, 10, -11, "INVALID_TIMESTAMP"),
        (NO_LIMIT_US, 10, 10**12, "NONE"),
        (10, NO_LIMIT_US, -(10**12), "NONE"),
        (NO_LIMIT_US, NO_LIMIT_US, 10**12, "NONE"),
    ],
)
def test_a_leader_rejects_timestamps_too_far_from_its_clock(
    before_us: int, after_us: int, age_us: int, error: str
) -> None:
    """KIP-937."""
    led = LedPartition()
    partition = led.partition
    partition.timestamp_before_max_us, partition.timestamp_after_max_us = before_us, after_us
    partition.limits_timestamps = min(before_us, after_us) < NO_LIMIT_US
    led.host.skew_us = 500
    written = replace(batch("m0"), max_timestamp_us=led.host.clock.now_us + 500 - age_us)
    assert partition.may_append(written, -1) == (error == "NONE")
    assert partition.append_as_leader(written, -1)[0].error == error
    assert partition.log.log_end_offset == (1 if error == "NONE" else 0)
