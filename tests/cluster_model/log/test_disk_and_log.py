"""Logs on a disk: append, read, truncation, flush, power loss and restart."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.cluster_model import errors
from harrow.cluster_model.log.disk import (
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    Disk,
    LogFile,
)
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.producer_state import AbortedTransaction, ProducerStates
from harrow.cluster_model.log.record_batch import ABORT, COMMIT, ControlBatch, RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release.profiles import RELEASES, Behaviours
from harrow.cluster_model.settings import broker_config, topic_config
from tests.cluster_model.fakes import SECOND, FakeHost, batch, control, disk_with, log_manager, transactional

V2_4 = RELEASES["2.4"].behaviours
PARTITION = "t-0"
PID = 1


def log_on(disk: Disk, behaviours: Behaviours = V2_4) -> UnifiedLog:
    return UnifiedLog(PARTITION, disk, behaviours)


def values(log: UnifiedLog) -> str:
    return "".join(value for stored in log.batches for value in stored.values)


def three_batches() -> tuple[Disk, UnifiedLog]:
    """Batches ab, c and def at offsets 0, 2 and 3 of epochs 0, 0 and 2, each record of 10 bytes."""
    disk = Disk()
    log = log_on(disk)
    for text, epoch in (("ab", 0), ("c", 0), ("def", 2)):
        log.append_as_leader(batch(*text, size=10 * len(text)), epoch)
    return disk, log


def test_a_leader_assigns_offsets_and_its_epoch() -> None:
    disk, log = three_batches()
    assert [(s.base_offset, s.leader_epoch, s.values) for s in log.batches] == [
        (0, 0, ("a", "b")),
        (2, 0, ("c",)),
        (3, 2, ("d", "e", "f")),
    ]
    assert log.log_end_offset == 6
    assert log.epochs.entries == disk.epoch_checkpoint(PARTITION) == [(0, 0), (2, 3)]
    result = log.append_as_leader(batch("g"), 3)
    assert result.batch is not None
    assert (result.error, result.base_offset, result.duplicate) == (errors.NONE, 6, False)
    assert result.batch.next_offset == 7


def test_a_follower_stores_a_batch_like_its_leader() -> None:
    _, leader = three_batches()
    follower = log_on(Disk())
    for stored in leader.batches:
        follower.append_as_follower(stored)
    assert follower.batches == leader.batches  # the same objects, because batches have no equality
    assert follower.log_end_offset == leader.log_end_offset
    assert follower.epochs.entries == leader.epochs.entries


@pytest.mark.parametrize(
    ("offset", "end_offset", "max_bytes", "values"),
    [
        (0, 6, 1000, ["ab", "c", "def"]),
        (1, 6, 1000, ["ab", "c", "def"]),  # from the batch that contains the offset
        (2, 6, 1000, ["c", "def"]),
        (5, 6, 1000, ["def"]),
        (6, 6, 1000, []),
        (7, 6, 1000, []),
        (0, 3, 1000, ["ab", "c"]),
        (0, 2, 1000, ["ab"]),
        (0, 0, 1000, []),
        (0, 1, 1000, []),  # a batch beyond the end offset is not read
        (2, 5, 1000, ["c"]),
        (0, 6, 30, ["ab", "c"]),
        (0, 6, 29, ["ab"]),
        (0, 6, 1, ["ab"]),  # at least one batch
        (3, 6, 1, ["def"]),
    ],
)
def test_a_read_returns_whole_batches(
    offset: int, end_offset: int, max_bytes: int, values: list[str]
) -> None:
    _, log = three_batches()
    assert ["".join(s.values) for s in log.read(offset, end_offset, max_bytes)] == values


def test_a_high_watermark_ahead_of_the_log_gives_nothing_to_read() -> None:
    disk = Disk()
    disk.write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {PARTITION: 5})
    log = log_on(disk, Behaviours().with_switches(hw_limited_to_log_end=False))
    assert (log.high_watermark, log.log_end_offset) == (5, 0)
    assert log.read(0, 5, 100) == ()
    log.append_as_leader(batch("a"), 0)
    assert log.read(1, 5, 100) == ()


@pytest.mark.parametrize(
    ("offset", "remaining", "epochs"),
    [
        (9, "abcdef", [(0, 0), (2, 3)]),
        (6, "abcdef", [(0, 0), (2, 3)]),
        (5, "abc", [(0, 0), (2, 3)]),  # a whole batch is removed, and the log ends at the offset
        (3, "abc", [(0, 0)]),
        (2, "ab", [(0, 0)]),
        (1, "", [(0, 0)]),
        (0, "", []),
    ],
)
def test_a_truncation_drops_whole_batches_and_ends_at_the_offset(
    offset: int, remaining: str, epochs: list[tuple[int, int]]
) -> None:
    end = min(offset, 6)
    disk, log = three_batches()
    log.high_watermark = 4
    log.flush()
    assert log.truncate_to(offset) == (len(remaining) < 6)
    assert values(log) == remaining
    assert log.log_end_offset == disk.log_file(PARTITION).log_end_offset == end
    assert log.epochs.entries == disk.epoch_checkpoint(PARTITION) == epochs
    assert log.high_watermark == min(4, end)
    assert log.flushed_offset == end
    appended = log.append_as_leader(batch("x"), 5)
    assert appended.base_offset == end
    assert [s.values for s in log.read(end, end + 1, 1)] == [("x",)]


@pytest.mark.parametrize(("switch", "entries"), [(False, [(0, 0), (2, 3), (4, 6)]), (True, [(0, 0), (2, 3)])])
def test_a_truncation_to_the_end_of_the_log_and_an_epoch_without_records(
    switch: bool, entries: list[tuple[int, int]]
) -> None:
    """KAFKA-10706."""
    disk, _ = three_batches()
    log = log_on(disk, V2_4.with_switches(truncation_drops_empty_last_epoch=switch))
    log.epochs.assign(4, 6)
    assert not log.truncate_to(6)
    assert log.epochs.entries == entries


def test_a_flush_returns_whether_anything_was_flushed() -> None:
    _, log = three_batches()
    assert log.flushed_offset == 0
    assert log.flush()
    assert log.flushed_offset == 6
    assert not log.flush()
    log.append_as_leader(batch("g"), 2)
    assert log.flushed_offset == 6
    assert log.flush()


@pytest.mark.parametrize("flushed", [0, 2, 3, 6])
def test_power_loss_keeps_flushed_data_and_a_process_crash_keeps_everything(flushed: int) -> None:
    disk, _ = three_batches()
    disk.log_file(PARTITION).flushed_offset = flushed
    assert values(log_on(disk)) == "abcdef"
    disk.log_file(PARTITION).lose_power()
    reopened = log_on(disk)
    assert values(reopened) == "abcdef"[:flushed]
    assert reopened.log_end_offset == reopened.flushed_offset == flushed
    # leader-epoch-checkpoint was written with fsync. Opening drops its entries beyond the log end.
    assert reopened.epochs.entries == [entry for entry in ((0, 0), (2, 3)) if entry[1] < flushed]
    assert disk.epoch_checkpoint(PARTITION) == reopened.epochs.entries


@pytest.mark.parametrize(("checkpointed", "hw"), [(None, 0), (0, 0), (2, 2), (6, 6), (9, 6)])
def test_a_restart_reads_the_high_watermark_of_the_last_checkpoint(checkpointed: int | None, hw: int) -> None:
    disk, log = three_batches()
    log.high_watermark = 5
    if checkpointed is not None:
        disk.write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {PARTITION: checkpointed, "t-1": 3})
    assert log_on(disk).high_watermark == hw


def stored_sequences(log: UnifiedLog, *sequences: int) -> list[tuple[str, int, bool]]:
    results = []
    for sequence in sequences:
        result = log.append_as_leader(batch(f"v{sequence}", producer_id=PID, sequence=sequence), 0)
        results.append((result.error, result.base_offset, result.duplicate))
    return results


def test_a_duplicate_is_answered_with_the_offset_of_the_first_copy_and_not_appended() -> None:
    log = log_on(Disk())
    stored_sequences(log, 0, 1, 2)
    assert stored_sequences(log, 1, 3, 5) == [
        (errors.NONE, 1, True),
        (errors.NONE, 3, False),
        (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, False),
    ]
    assert log.log_end_offset == 4


@pytest.mark.parametrize("how", ["truncation", "power loss", "restart"])
def test_producer_states_are_rebuilt_from_the_remaining_log(how: str) -> None:
    disk = Disk()
    log = log_on(disk)
    stored_sequences(log, 0, 1, 2, 3)
    if how == "truncation":
        log.truncate_to(2)
    elif how == "power loss":
        disk.log_file(PARTITION).flushed_offset = 2
        disk.log_file(PARTITION).lose_power()
        log = log_on(disk)
    else:
        log = log_on(disk)
    retained = 4 if how == "restart" else 2
    assert stored_sequences(log, 1, retained + 1, retained) == [
        (errors.NONE, 1, True),
        (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, False),
        (errors.NONE, retained, False),
    ]


def test_a_follower_learns_producer_states_too() -> None:
    leader, follower = log_on(Disk()), log_on(Disk())
    stored_sequences(leader, 0, 1)
    for stored in leader.batches:
        follower.append_as_follower(stored)
    assert stored_sequences(follower, 1, 2) == [(errors.NONE, 1, True), (errors.NONE, 2, False)]


def test_the_high_watermark_is_never_set_past_the_log_end() -> None:
    log = log_on(disk_with(PARTITION, (0, "a"), (0, "b")))
    assert log.update_high_watermark(9)
    assert log.high_watermark == 2
    assert not log.update_high_watermark(2)
    assert log.update_high_watermark(1)
    log.truncate_to(0)
    assert log.high_watermark == 0


# Transactions


def test_a_control_batch_takes_one_offset_and_has_no_value() -> None:
    log = log_on(Disk())
    log.append_as_leader(transactional("a", "b"), 0)
    log.append_as_leader(control(COMMIT), 0)
    log.append_as_leader(batch("c"), 0)
    assert [(stored.base_offset, stored.values, stored.is_control) for stored in log.batches] == [
        (0, ("a", "b"), False),
        (2, (), True),
        (3, ("c",), False),
    ]
    assert log.log_end_offset == 4
    assert [stored.base_offset for stored in log.read(2, 4, 1_000)] == [2, 3]
    log.truncate_to(3)
    assert log.log_end_offset == 3
    log.truncate_to(2)
    assert (log.log_end_offset, values(log)) == (2, "ab")


def test_the_last_stable_offset_is_the_high_watermark_while_no_transaction_is_open() -> None:
    log = log_on(disk_with(PARTITION, (0, "a"), (0, "b")))
    for high_watermark in (1, 2):
        log.update_high_watermark(high_watermark)
        assert log.last_stable_offset == high_watermark


@pytest.mark.parametrize("control_type", [COMMIT, ABORT])
def test_a_transaction_is_unstable_until_its_control_batch_is_below_the_high_watermark(
    control_type: str,
) -> None:
    log = log_on(Disk())
    log.append_as_leader(transactional("a", producer_id=7), 0)
    log.append_as_leader(transactional("b", producer_id=8), 0)
    log.append_as_leader(control(control_type, producer_id=7), 0)
    log.append_as_leader(control(control_type, producer_id=8), 0)
    offsets = []
    for high_watermark in range(5):
        log.update_high_watermark(high_watermark)
        offsets.append(log.last_stable_offset)
    assert offsets == [0, 0, 0, 1, 4]


def test_truncation_removes_aborted_transactions_from_the_index() -> None:
    disk = Disk()
    log = log_on(disk)
    for number, control_type in enumerate((ABORT, COMMIT, ABORT)):
        log.append_as_leader(transactional("a", producer_id=7, sequence=number), 0)
        log.append_as_leader(control(control_type, producer_id=7), 0)
    assert log.aborted_transactions(0, 6) == ((7, 0), (7, 4))
    assert log.aborted_transactions(2, 5) == ((7, 4),)
    assert log_on(disk).aborted_transactions(0, 6) == ((7, 0), (7, 4))
    log.truncate_to(5)
    assert log.aborted_transactions(0, 6) == ((7, 0),)
    log.truncate_fully_and_start_at(9)
    assert log.aborted_transactions(0, 9) == ()


@pytest.mark.parametrize(("size_bytes", "is_found"), [(100, True), (5_000, False)])
def test_a_fetch_reports_aborted_transactions_up_to_the_next_index_entry(
    size_bytes: int, is_found: bool
) -> None:
    log = log_on(Disk())
    log.append_as_leader(RecordBatch(("a",), size_bytes=100), 0)
    log.append_as_leader(RecordBatch(("b",), size_bytes=size_bytes), 0)
    log.append_as_leader(transactional("c", producer_id=7), 0)
    log.append_as_leader(control(ABORT, producer_id=7), 0)
    assert log.aborted_transactions(0, 1) == (((7, 2),) if is_found else ())
    assert log.aborted_transactions(0, 2) == ((7, 2),)


def test_a_fetch_reports_no_aborted_transactions_of_the_next_segment() -> None:
    disk = Disk()
    log = log_on(disk)
    disk.log_file(PARTITION).segment_bytes = 150
    log.append_as_leader(RecordBatch(("a",), size_bytes=100), 0)
    log.append_as_leader(RecordBatch(("b",), size_bytes=100), 0)
    log.append_as_leader(transactional("c", producer_id=7), 0)
    log.append_as_leader(control(ABORT, producer_id=7), 0)
    assert log.aborted_transactions(0, 1) == ()
    assert log.aborted_transactions(1, 1) == ((7, 2),)
    assert log.aborted_transactions(0, 2) == ((7, 2),)


def test_a_transaction_aborted_later_is_in_the_index_after_others() -> None:
    log = log_on(Disk())
    log.append_as_leader(transactional("a", producer_id=7), 0)
    log.append_as_leader(transactional("b", producer_id=8), 0)
    log.append_as_leader(control(ABORT, producer_id=8), 0)
    log.append_as_leader(control(ABORT, producer_id=7), 0)
    assert log.aborted_transactions(0, 2) == ((8, 1), (7, 0))


def test_a_replaced_coordinator_cannot_end_a_transaction_again() -> None:
    log = log_on(Disk())

    def end(coordinator_epoch: int, epoch: int = 0) -> str:
        marker = ControlBatch(
            (), 9, epoch, is_transactional=True, control_type=COMMIT, coordinator_epoch=coordinator_epoch
        )
        return log.append_as_leader(marker, 0).error

    assert end(3) == end(3) == end(4) == errors.NONE
    assert end(3) == end(3, epoch=1) == errors.TRANSACTION_COORDINATOR_FENCED
    assert end(4, epoch=1) == errors.NONE
    assert end(5, epoch=0) == errors.INVALID_PRODUCER_EPOCH
    stored = log.batches[-1]
    assert isinstance(stored, ControlBatch)
    assert (stored.base_offset, stored.next_offset, stored.coordinator_epoch) == (3, 4, 4)
    copied = pickle.loads(pickle.dumps(stored))
    assert (copied.coordinator_epoch, copied.next_offset) == (4, 4)


@pytest.mark.parametrize("behaviours", [V2_4, RELEASES["4.3"].behaviours])
def test_a_marker_of_a_newer_epoch_fences_the_producer_and_lets_the_new_one_begin(
    behaviours: Behaviours,
) -> None:
    log = log_on(Disk(), behaviours)
    log.append_as_leader(transactional("a"), 0)
    assert log.append_as_leader(control(ABORT, epoch=1), 0).error == errors.NONE
    late = log.append_as_leader(transactional("b", sequence=1), 0).error
    assert late == errors.INVALID_PRODUCER_EPOCH
    new = RecordBatch(("c",), 9, 1, 0, is_transactional=True)
    assert log.append_as_leader(new, 0).error == errors.NONE


def test_transactions_are_rebuilt_when_a_log_is_truncated_or_opened() -> None:
    disk = Disk()
    log = log_on(disk)
    log.append_as_leader(transactional("a"), 0)
    log.append_as_leader(control(COMMIT), 0)
    log.update_high_watermark(2)
    assert log.last_stable_offset == 2
    log.truncate_to(1)
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    opened = log_on(disk)
    opened.update_high_watermark(1)
    assert opened.last_stable_offset == 0


def test_a_control_batch_does_not_change_the_sequence_of_its_producer() -> None:
    log = log_on(Disk())
    log.append_as_leader(transactional("a", sequence=0), 0)
    assert log.append_as_leader(control(ABORT), 0).error == errors.NONE
    assert log.append_as_leader(control(ABORT, epoch=-1), 0).error == errors.INVALID_PRODUCER_EPOCH
    assert log.append_as_leader(transactional("b", sequence=1), 0).error == errors.NONE
    assert log.append_as_leader(transactional("a", sequence=0), 0).duplicate


# The logs of a broker


def manager_on(
    disk: Disk, *, flush_messages: int | None = None, **settings: int
) -> tuple[LogManager, FakeHost]:
    host = FakeHost()
    config = broker_config("2.4", {name.replace("_", "."): value for name, value in settings.items()})
    topic = topic_config({} if flush_messages is None else {"flush.messages": flush_messages}, config)
    manager = LogManager(1, host, disk, config, lambda _: topic, V2_4)
    manager.start()
    return manager, host


@pytest.mark.parametrize(
    ("flush_messages", "flushed"),
    [(None, [0, 0, 0, 0]), (1, [1, 2, 3, 4]), (2, [0, 2, 2, 4]), (3, [0, 0, 3, 3])],
)
def test_a_log_is_flushed_after_flush_messages(flush_messages: int | None, flushed: list[int]) -> None:
    manager, host = manager_on(Disk(), flush_messages=flush_messages)
    log = manager.open(PARTITION)
    offsets = []
    for value in "abcd":
        log.append_as_leader(batch(value), 0)
        manager.on_append(manager.log(PARTITION))
        offsets.append(log.flushed_offset)
    assert offsets == flushed
    assert [event[2] for event in host.events_named("flush")] == sorted(
        {offset for offset in flushed if offset}
    )
    manager.flush_all()
    assert log.flushed_offset == 4


def test_checkpoints_are_written_periodically_if_they_changed() -> None:
    disk = disk_with(PARTITION, (0, "a"), (0, "b"), flushed=1)
    manager, host = manager_on(disk)
    log = manager.open(PARTITION)
    log.high_watermark = 2
    host.advance(5 * SECOND - 1)
    assert disk.checkpoint(REPLICATION_OFFSET_CHECKPOINT, PARTITION) == 0
    host.advance(1)
    assert disk.checkpoint(REPLICATION_OFFSET_CHECKPOINT, PARTITION) == 2
    host.advance(55 * SECOND)
    assert disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, PARTITION) == 1
    assert host.events_named("checkpoint") == [
        (1, REPLICATION_OFFSET_CHECKPOINT, ((PARTITION, 2),)),
        (1, RECOVERY_POINT_OFFSET_CHECKPOINT, ((PARTITION, 1),)),
    ]


def test_a_checkpoint_keeps_its_entries_of_unopened_partitions() -> None:
    disk = disk_with(PARTITION, (0, "a"))
    disk.write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {"t-1": 7, PARTITION: 1})
    manager, host = manager_on(disk)
    host.advance(5 * SECOND)
    assert disk.checkpoints[REPLICATION_OFFSET_CHECKPOINT] == {"t-1": 7, PARTITION: 1}
    manager.open(PARTITION).high_watermark = 0
    host.advance(5 * SECOND)
    assert disk.checkpoints[REPLICATION_OFFSET_CHECKPOINT] == {"t-1": 7, PARTITION: 0}


def test_a_replaced_checkpoint_gets_the_high_watermarks_of_all_open_logs_again() -> None:
    manager, host = manager_on(disk := disk_with(PARTITION, (0, "a")))
    manager.open(PARTITION).high_watermark = 1
    host.advance(5 * SECOND)
    disk.write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {"t-1": 7})
    host.advance(5 * SECOND)
    assert disk.checkpoints[REPLICATION_OFFSET_CHECKPOINT] == {"t-1": 7, PARTITION: 1}


def test_a_log_that_is_deleted_and_opened_again_is_in_the_next_checkpoint() -> None:
    manager, host = manager_on(disk := disk_with(PARTITION, (0, "a")))
    manager.open(PARTITION)
    host.advance(5 * SECOND)
    manager.delete(PARTITION)
    manager.open(PARTITION)
    host.advance(5 * SECOND)
    assert disk.checkpoints[REPLICATION_OFFSET_CHECKPOINT] == {PARTITION: 0}


def test_a_truncation_lowers_the_recovery_point_at_once() -> None:
    disk = disk_with(PARTITION, (0, "a"), (0, "b"), (1, "c"), flushed=3)
    manager, host = manager_on(disk)
    manager.open(PARTITION)
    host.advance(60 * SECOND)
    assert disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, PARTITION) == 3
    manager.truncate(PARTITION, 1, "leader epoch")
    assert disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, PARTITION) == 1


def test_opening_and_truncation_are_traced() -> None:
    disk = disk_with(PARTITION, (0, "a"), (0, "b"), (1, "c"))
    disk.write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {PARTITION: 1})
    manager, host = manager_on(disk)
    manager.open(PARTITION)
    manager.truncate(PARTITION, 3, "nothing to cut")
    manager.truncate(PARTITION, 2, "leader epoch")
    assert host.events_named("recover") == [(1, PARTITION, 3, 1)]
    assert host.events_named("truncate") == [(1, PARTITION, 3, 2, "leader epoch")]


def test_a_shutdown_flushes_everything_and_the_next_start_removes_the_clean_shutdown_file() -> None:
    host, disk = FakeHost(), Disk()
    manager = log_manager(1, host, disk, Behaviours())
    manager.start()
    for partition in ("t-0", "t-1"):
        log = manager.open(partition)
        log.append_as_leader(batch("a", "b"), 0)
        log.update_high_watermark(1)
    manager.shutdown()
    assert [disk.log_file(partition).flushed_offset for partition in ("t-0", "t-1")] == [2, 2]
    assert disk.checkpoints == {
        REPLICATION_OFFSET_CHECKPOINT: {"t-0": 1, "t-1": 1},
        RECOVERY_POINT_OFFSET_CHECKPOINT: {"t-0": 2, "t-1": 2},
    }
    assert disk.clean_shutdown_file
    log_manager(1, host, disk, Behaviours()).start()
    assert not disk.clean_shutdown_file


def state_of(states: ProducerStates) -> object:
    """Return the whole producer state of a log."""
    return (
        {
            producer_id: (entry.producer_epoch, entry.last_sequence, list(entry.batches))
            for producer_id, entry in states.entries.items()
        },
        states.ongoing_transactions,
        states.unreplicated_transactions,
    )


APPENDS = st.tuples(st.sampled_from([1, 2, 9]), st.sampled_from(["plain", "transactional", COMMIT, ABORT]))
CUTS = st.integers(min_value=1, max_value=60)
OPENS = st.just("open")


@given(st.lists(APPENDS | CUTS | OPENS, max_size=120), st.booleans())
def test_incremental_producer_state_equals_a_replay_of_the_whole_log(
    steps: list[tuple[int, str] | int | str], follows_log: bool
) -> None:
    behaviours = V2_4.with_switches(truncation_rebuilds_producer_state=follows_log, sequence_check=False)
    disk = Disk()
    log = log_on(disk, behaviours)
    for number, step in enumerate(steps):
        if isinstance(step, tuple):
            producer_id, kind = step
            if kind in (COMMIT, ABORT):
                log.append_as_leader(control(kind, producer_id=producer_id), 0)
            else:
                is_transactional = kind == "transactional"
                log.append_as_leader(
                    RecordBatch(("a", "b"), producer_id, 0, 2 * number, is_transactional=is_transactional), 0
                )
            continue
        if isinstance(step, int):
            log.truncate_to(max(0, log.log_end_offset - step))
        else:
            log = log_on(disk, behaviours)
        if step == "open" or follows_log:
            index: list[AbortedTransaction] = []
            whole = ProducerStates(behaviours, index)
            whole.rebuild(log.batches, [])
            assert state_of(log.producers) == state_of(whole)
            assert not follows_log or disk.log_file(PARTITION).aborted_transactions == index


def test_a_rebuild_of_producer_state_reads_each_batch_once() -> None:
    disk = Disk()
    for opened in range(1, 31):
        log = log_on(disk)
        for number in range(10 * opened - 10, 10 * opened):
            log.append_as_leader(batch("a", producer_id=PID, sequence=number), 0)
    assert [snapshot.offset for snapshot in disk.log_file(PARTITION).producer_snapshots] == [
        *range(220, 300, 10)
    ]
    log.truncate_to(255)
    assert [snapshot.offset for snapshot in disk.log_file(PARTITION).producer_snapshots] == [
        220,
        230,
        240,
        250,
        255,
    ]


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 50))
def test_a_batch_is_found_by_offset_in_a_log_with_holes(kept: list[bool], offset: int) -> None:
    file = LogFile()
    for base_offset, is_kept in enumerate(kept):
        if is_kept:
            file.append(batch("a").stored_at(base_offset, 0))
    bases = [base_offset for base_offset, is_kept in enumerate(kept) if is_kept]
    first = sum(base < offset for base in bases)
    assert file.place_at(offset) == file.place_from(offset) == first
    assert file.place_of(offset) == (first if offset in bases else None)
