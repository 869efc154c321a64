"""Deletions that retention permits, derived from settings, ages and sizes and not from broker
reports.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from harrow.checks.causes.retention import Deletion, deletion_of, is_read_and_expired
from harrow.checks.index import Index
from harrow.checks.promise import CLOCK_SKEW
from harrow.checks.replay.partition_state import RETENTION
from harrow.checks.rules.history_rules import HISTORY_RULES
from harrow.cluster_model.log.unified_log import (
    DELETE_RECORDS,
    LEADER_LOG_START,
    RETENTION_BYTES,
    RETENTION_MS,
)
from harrow.cluster_model.settings import Value, broker_config, topic_config
from tests.checks.evidence_builder import RunBuilder

POLL_SKIP = next(rule for rule in HISTORY_RULES if rule.name == "poll-skip")
PARTITION = "t-0"
US = 1_000_000


def run_with_deletion(
    reason: str, settings: Mapping[str, Value], *, left: int = 100, read: bool = False
) -> Index:
    """Return a run where m0, sent at 1 s, is deleted at 11 s, and m1 is not."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    run.write(producer, "m0", 0, 1)
    run.write(producer, "m1", 0, 1)
    if read:
        run.poll((0, "m0"))
    run.at(11)
    for broker in (0, 1):
        run.event("log_start", broker=broker, partition=PARTITION, offset=1, reason=reason, bytes_left=left)
    return index_of(run, settings)


def index_of(run: RunBuilder, settings: Mapping[str, Value]) -> Index:
    evidence = run.evidence()
    defaults = broker_config("2.4", {})
    config = topic_config(settings, defaults)
    partition_index = replace(evidence.partitions[PARTITION], on_broker={0: config, 1: config})
    return Index(replace(evidence, partitions={PARTITION: partition_index}))


def deletion(index: Index, value: str = "m0") -> Deletion | None:
    return deletion_of(index, PARTITION, index.partition(PARTITION).by_value[value], 1 * US)


@pytest.mark.parametrize(
    ("reason", "settings", "expected"),
    [
        (RETENTION_MS, {RETENTION_MS: 9_000}, Deletion(RETENTION_MS, was_due=True)),
        (RETENTION_MS, {RETENTION_MS: 11_000}, Deletion(RETENTION_MS, was_due=False)),
        (RETENTION_MS, {RETENTION_MS: -1}, Deletion(RETENTION_MS, was_due=False)),
        (RETENTION_BYTES, {RETENTION_BYTES: 100}, Deletion(RETENTION_BYTES, was_due=True)),
        (RETENTION_BYTES, {RETENTION_BYTES: 101}, Deletion(RETENTION_MS, was_due=False)),
        # Settings decide: a reason that contradicts them is replaced by one that they support.
        (RETENTION_BYTES, {RETENTION_MS: 9_000}, Deletion(RETENTION_MS, was_due=True)),
        (RETENTION_MS, {RETENTION_BYTES: 100}, Deletion(RETENTION_BYTES, was_due=True)),
    ],
)
def test_a_deletion_was_due_when_the_settings_promised_no_more(
    reason: str, settings: Mapping[str, Value], expected: Deletion
) -> None:
    assert deletion(run_with_deletion(reason, settings)) == expected


@pytest.mark.parametrize(
    ("requested_offset", "reason", "expected"),
    [
        (1, DELETE_RECORDS, Deletion(DELETE_RECORDS, was_due=True)),
        (1, RETENTION_MS, Deletion(DELETE_RECORDS, was_due=True)),
        (0, DELETE_RECORDS, Deletion(DELETE_RECORDS, was_due=False)),
        (None, DELETE_RECORDS, Deletion(DELETE_RECORDS, was_due=False)),
    ],
)
def test_an_administrator_deletes_only_records_below_the_requested_offset(
    requested_offset: int | None, reason: str, expected: Deletion
) -> None:
    run = run_with_m0()
    if requested_offset is not None:
        run.event("delete_records_obeyed", broker=0, partition=PARTITION, offset=requested_offset)
    raise_log_start(run, 0, reason)
    assert deletion(index_of(run, {RETENTION_MS: -1})) == expected


def test_a_delete_records_request_does_not_excuse_records_appended_after_it() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.event("delete_records_obeyed", broker=0, partition=PARTITION, offset=9)
    run.at(1)
    run.write(producer, "m0", 0, 1)
    raise_log_start(run, 0, DELETE_RECORDS)
    assert deletion(index_of(run, {RETENTION_MS: -1})) == Deletion(DELETE_RECORDS, was_due=False)


def test_a_record_in_every_log_has_no_deletion() -> None:
    assert deletion(run_with_deletion(RETENTION_MS, {RETENTION_MS: 1}), "m1") is None


def test_a_follower_that_copies_its_leaders_log_start_decides_no_deletion() -> None:
    index = run_with_deletion(LEADER_LOG_START, {RETENTION_MS: 1})
    assert deletion(index) is None
    assert all(
        copy.removed and copy.removed.cause == RETENTION for copy in index.partition(PARTITION).by_value["m0"]
    )


def raise_log_start(run: RunBuilder, broker: int, reason: str = RETENTION_MS) -> None:
    run.event("log_start", broker=broker, partition=PARTITION, offset=1, reason=reason, bytes_left=100)


def run_with_m0() -> RunBuilder:
    """Return a run where broker 0 leads, and both brokers have m0, sent at 1 s."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    run.write(producer, "m0", 0, 1)
    return run


@pytest.mark.parametrize("leader", [0, 1])
def test_a_deletion_by_a_follower_excuses_no_loss(leader: int) -> None:
    run = run_with_m0()
    run.elect(leader, 1, (leader,))
    run.truncate(leader, 0)
    run.at(11)
    raise_log_start(run, 1 - leader)
    assert deletion(index_of(run, {RETENTION_MS: 9_000})) is None


def test_a_record_in_the_leaders_log_has_no_deletion() -> None:
    run = run_with_m0()
    run.at(11)
    raise_log_start(run, 1)
    assert deletion(index_of(run, {RETENTION_MS: 9_000})) is None


def test_a_follower_that_deleted_a_record_removes_it_when_it_is_elected() -> None:
    run = run_with_m0()
    run.at(11)
    raise_log_start(run, 1)
    run.elect(1, 1, (1,))
    assert deletion(index_of(run, {RETENTION_MS: 9_000})) == Deletion(RETENTION_MS, was_due=True)


def test_a_deletion_by_a_former_leader_does_not_excuse_a_later_loss() -> None:
    run = run_with_m0()
    run.elect(1, 1, (1,))
    run.at(11)
    raise_log_start(run, 0)
    run.truncate(1, 0)
    assert deletion(index_of(run, {RETENTION_MS: 9_000})) is None


def test_a_deletion_belongs_to_the_former_leader_if_the_new_one_only_followed_it() -> None:
    run = run_with_m0()
    run.event("follower", broker=1, partition=PARTITION, leader_epoch=0, leader=0)
    run.at(11)
    raise_log_start(run, 0)
    run.event(
        "election",
        controller=0,
        partition=PARTITION,
        leader=1,
        leader_epoch=1,
        isr=(1,),
        unclean=False,
        reason="test",
    )
    raise_log_start(run, 1, LEADER_LOG_START)
    assert deletion(index_of(run, {RETENTION_MS: 9_000})) == Deletion(RETENTION_MS, was_due=True)


def run_with_reverted_log_start(*, requested_offset: int, starts_at_new_log_start: bool) -> RunBuilder:
    """Return a run where broker 0 deletes m0 and restores it with an earlier log start.

    Broker 1, which has no copy, succeeds it.
    """
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.event("follower", broker=1, partition=PARTITION, leader_epoch=0, leader=0)
    run.at(1)
    run.write(producer, "m0", 0)
    run.event("delete_records_obeyed", broker=0, partition=PARTITION, offset=requested_offset)
    raise_log_start(run, 0, DELETE_RECORDS)
    if starts_at_new_log_start:
        run.event("log_started_anew", broker=1, partition=PARTITION, leo=0, offset=1)
    run.stop(0)
    run.event("log_start_reverted", broker=0, partition=PARTITION, from_offset=1, to_offset=0)
    run.elect(1, 1, (1,))
    raise_log_start(run, 0, LEADER_LOG_START)
    return run


@pytest.mark.parametrize(
    ("requested_offset", "starts_at_new_log_start", "expected"),
    [
        (1, True, Deletion(DELETE_RECORDS, was_due=True)),
        (0, True, Deletion(DELETE_RECORDS, was_due=False)),
        # A broker that lacks the record for another reason did not take it from the log start.
        (1, False, None),
    ],
)
def test_a_deletion_stands_if_the_successor_started_its_log_above_the_restored_record(
    *, requested_offset: int, starts_at_new_log_start: bool, expected: Deletion | None
) -> None:
    assert (
        deletion(
            index_of(
                run_with_reverted_log_start(
                    requested_offset=requested_offset, starts_at_new_log_start=starts_at_new_log_start
                ),
                {RETENTION_MS: -1},
            )
        )
        == expected
    )


@pytest.mark.parametrize(
    ("requested_offset", "position", "is_restored", "is_permitted"),
    [
        (2, 1, True, True),
        # No request covered this record.
        (1, 1, True, False),
        # The consumer was sent past another record.
        (2, 2, True, False),
        # A record that stays deleted has another cause.
        (2, 1, False, False),
    ],
)
def test_a_consumer_may_skip_a_restored_record_that_was_deleted_at_its_reset(
    *, requested_offset: int, position: int, is_restored: bool, is_permitted: bool
) -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    for value in ("m0", "m1"):
        run.write(producer, value, 0, 1)
    run.poll((0, "m0"), isolation_level="read_uncommitted")
    (consumer,) = run.consumers
    run.event("delete_records_obeyed", broker=0, partition=PARTITION, offset=requested_offset)
    run.event("log_start", broker=0, partition=PARTITION, offset=2, reason=DELETE_RECORDS, bytes_left=0)
    run.event(
        "offset_reset", client="consumer", partition=PARTITION, position=position, offset=2, policy="latest"
    )
    run.write(producer, "m2", 0, 1)
    run.history.record_poll(consumer, {PARTITION: [(2, "m2")]}, run.tick(), run.tick())
    if is_restored:
        run.event("log_start_reverted", broker=0, partition=PARTITION, from_offset=2, to_offset=0)
        run.read_to_end(0)
    else:
        run.poll((0, "m0"), (1, "m1"), (2, "m2"))
        run.logs[PARTITION][0][:2] = [("<commit>", 0)] * 2
    skipped = POLL_SKIP.find(index_of(run, {RETENTION_MS: -1}))
    assert [finding.value for finding in skipped] == ([] if is_permitted else ["m2"])


@pytest.mark.parametrize(
    ("read", "retention_ms", "is_permitted"), [(True, 1, True), (False, 1, False), (True, 60_000, False)]
)
def test_a_record_deleted_on_time_after_it_was_read_is_not_lost(
    read: bool, retention_ms: int, is_permitted: bool
) -> None:
    index = run_with_deletion(RETENTION_MS, {RETENTION_MS: retention_ms}, read=read)
    assert is_read_and_expired(index, PARTITION, "m0", 1 * US) == is_permitted


# Clocks that jump


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("broker-0", 2_000)], Deletion(CLOCK_SKEW, was_due=True, broker=0, lead_us=2_000 * US)),
        ([("p", -2_000)], Deletion(CLOCK_SKEW, was_due=True, broker=0, lead_us=2_000 * US)),
        (
            [("broker-0", 1_500), ("p", -500)],
            Deletion(CLOCK_SKEW, was_due=True, broker=0, lead_us=2_000 * US),
        ),
        # The lead is too short, the clock is another broker's, or it was corrected.
        ([("broker-0", 900)], Deletion(RETENTION_MS, was_due=False)),
        ([("broker-1", 2_000)], Deletion(RETENTION_MS, was_due=False)),
        ([("broker-0", 2_000), ("broker-0", 0)], Deletion(RETENTION_MS, was_due=False)),
    ],
)
def test_a_record_that_expires_only_by_wrong_clocks_is_deleted_by_clock_skew(
    steps: list[tuple[str, int]], expected: Deletion
) -> None:
    run = run_with_m0()
    for process, skew_s in steps:
        run.event("clock_stepped", process=process, by_us=1, skew_us=skew_s * US)
    raise_log_start(run, 0, RETENTION_MS)
    assert deletion(index_of(run, {RETENTION_MS: 1_000_000})) == expected


def test_a_record_that_is_old_enough_by_the_true_time_needs_no_clock_skew() -> None:
    run = run_with_m0()
    run.event("clock_stepped", process="broker-0", by_us=1, skew_us=2_000 * US)
    run.at(11)
    raise_log_start(run, 0, RETENTION_MS)
    assert deletion(index_of(run, {RETENTION_MS: 1_000})) == Deletion(RETENTION_MS, was_due=True)


def run_with_lost_disk(*, deleted_first: bool) -> RunBuilder:
    """Return a run where leader 0 loses its disk with m0.

    Its successor, broker 1, deletes m0 before or after.
    """
    run = run_with_m0()
    if deleted_first:
        run.at(11)
        raise_log_start(run, 1)
    run.at(12)
    run.lose_disk(0)
    if not deleted_first:
        run.at(13)
        raise_log_start(run, 1)
    run.at(14)
    run.elect(1, 1, (1,))
    return run


@pytest.mark.parametrize("deleted_first", [True, False])
def test_a_record_lost_with_a_leaders_disk_is_deleted_if_the_successor_deleted_it(
    *, deleted_first: bool
) -> None:
    index = index_of(run_with_lost_disk(deleted_first=deleted_first), {RETENTION_MS: 9_000})
    assert deletion(index) == Deletion(RETENTION_MS, was_due=True, broker=-1)


def test_a_record_that_the_successor_lost_with_its_disk_was_not_deleted() -> None:
    run = run_with_m0()
    run.at(12)
    run.lose_disk(1)
    run.lose_disk(0)
    run.elect(1, 1, (1,))
    assert deletion(index_of(run, {RETENTION_MS: 9_000})) is None


def test_an_elected_broker_that_never_leads_removes_no_record() -> None:
    """Broker 1 has lost m0 and dies before it leads; broker 0 deletes m0 meanwhile, and leads
    again.
    """
    run = run_with_m0()
    run.lose_disk(1)
    election = {"controller": 3, "partition": PARTITION, "leader": 1, "leader_epoch": 1, "isr": (1,)}
    run.event("election", **election, unclean=False, reason="preferred leader")
    run.at(11)
    raise_log_start(run, 0)
    run.elect(0, 2, (0,))
    assert deletion(index_of(run, {RETENTION_MS: 9_000})) == Deletion(RETENTION_MS, was_due=True)
