"""What retention has promised: told from settings, ages and sizes, whatever reason a broker gives."""

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
P = "t-0"
US = 1_000_000


def deleted(reason: str, settings: Mapping[str, Value], *, left: int = 100, read: bool = False) -> Index:
    """Return a run in which m0, sent at 1 s, is deleted at 11 s, and m1 is not."""
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
        run.event("log_start", broker=broker, partition=P, offset=1, reason=reason, bytes_left=left)
    return judged(run, settings)


def judged(run: RunBuilder, settings: Mapping[str, Value]) -> Index:
    evidence = run.evidence()
    defaults = broker_config("2.4", {})
    config = topic_config(settings, defaults)
    of_partition = replace(evidence.partitions[P], on_broker={0: config, 1: config})
    return Index(replace(evidence, partitions={P: of_partition}))


def found(index: Index, value: str = "m0") -> Deletion | None:
    return deletion_of(index, P, index.partition(P).by_value[value], 1 * US)


@pytest.mark.parametrize(
    ("reason", "settings", "wanted"),
    [
        (RETENTION_MS, {RETENTION_MS: 9_000}, Deletion(RETENTION_MS, was_due=True)),
        (RETENTION_MS, {RETENTION_MS: 11_000}, Deletion(RETENTION_MS, was_due=False)),
        (RETENTION_MS, {RETENTION_MS: -1}, Deletion(RETENTION_MS, was_due=False)),
        (RETENTION_BYTES, {RETENTION_BYTES: 100}, Deletion(RETENTION_BYTES, was_due=True)),
        (RETENTION_BYTES, {RETENTION_BYTES: 101}, Deletion(RETENTION_MS, was_due=False)),
        # A reason that the settings do not bear out is not believed; another one that they do is.
        (RETENTION_BYTES, {RETENTION_MS: 9_000}, Deletion(RETENTION_MS, was_due=True)),
        (RETENTION_MS, {RETENTION_BYTES: 100}, Deletion(RETENTION_BYTES, was_due=True)),
    ],
)
def test_a_deletion_was_due_when_the_settings_promised_no_more(
    reason: str, settings: Mapping[str, Value], wanted: Deletion
) -> None:
    assert found(deleted(reason, settings)) == wanted


@pytest.mark.parametrize(
    ("asked", "reason", "wanted"),
    [
        (1, DELETE_RECORDS, Deletion(DELETE_RECORDS, was_due=True)),
        (1, RETENTION_MS, Deletion(DELETE_RECORDS, was_due=True)),
        (0, DELETE_RECORDS, Deletion(DELETE_RECORDS, was_due=False)),
        (None, DELETE_RECORDS, Deletion(DELETE_RECORDS, was_due=False)),
    ],
)
def test_what_an_administrator_has_deleted_is_what_is_below_the_offset_that_he_named(
    asked: int | None, reason: str, wanted: Deletion
) -> None:
    run = with_m0()
    if asked is not None:
        run.event("delete_records_obeyed", broker=0, partition=P, offset=asked)
    expired(run, 0, reason)
    assert found(judged(run, {RETENTION_MS: -1})) == wanted


def test_a_request_excuses_nothing_that_was_stored_after_it() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.event("delete_records_obeyed", broker=0, partition=P, offset=9)
    run.at(1)
    run.write(producer, "m0", 0, 1)
    expired(run, 0, DELETE_RECORDS)
    assert found(judged(run, {RETENTION_MS: -1})) == Deletion(DELETE_RECORDS, was_due=False)


def test_a_record_that_is_still_there_was_not_deleted() -> None:
    assert found(deleted(RETENTION_MS, {RETENTION_MS: 1}), "m1") is None


def test_a_follower_that_begins_where_its_leader_does_decides_on_nothing() -> None:
    index = deleted(LEADER_LOG_START, {RETENTION_MS: 1})
    assert found(index) is None
    assert all(copy.removed and copy.removed.cause == RETENTION for copy in index.partition(P).by_value["m0"])


def expired(run: RunBuilder, broker: int, reason: str = RETENTION_MS) -> None:
    run.event("log_start", broker=broker, partition=P, offset=1, reason=reason, bytes_left=100)


def with_m0() -> RunBuilder:
    """Return a run in which broker 0 leads, and both brokers have m0, sent at 1 s."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    run.write(producer, "m0", 0, 1)
    return run


@pytest.mark.parametrize("leader", [0, 1])
def test_a_deletion_by_a_replica_that_does_not_lead_excuses_no_loss(leader: int) -> None:
    run = with_m0()
    run.elect(leader, 1, (leader,))
    run.truncate(leader, 0)
    run.at(11)
    expired(run, 1 - leader)
    assert found(judged(run, {RETENTION_MS: 9_000})) is None


def test_a_record_that_the_leader_still_has_was_not_deleted() -> None:
    run = with_m0()
    run.at(11)
    expired(run, 1)
    assert found(judged(run, {RETENTION_MS: 9_000})) is None


def test_a_member_of_the_isr_that_deleted_a_record_first_takes_it_with_its_election() -> None:
    run = with_m0()
    run.at(11)
    expired(run, 1)
    run.elect(1, 1, (1,))
    assert found(judged(run, {RETENTION_MS: 9_000})) == Deletion(RETENTION_MS, was_due=True)


def test_a_deletion_by_a_former_leader_does_not_excuse_a_later_loss() -> None:
    run = with_m0()
    run.elect(1, 1, (1,))
    run.at(11)
    expired(run, 0)
    run.truncate(1, 0)
    assert found(judged(run, {RETENTION_MS: 9_000})) is None


def test_who_was_elected_while_it_followed_a_deletion_has_it_from_its_leader() -> None:
    run = with_m0()
    run.event("follower", broker=1, partition=P, leader_epoch=0, leader=0)
    run.at(11)
    expired(run, 0)
    run.event(
        "election",
        controller=0,
        partition=P,
        leader=1,
        leader_epoch=1,
        isr=(1,),
        unclean=False,
        reason="test",
    )
    expired(run, 1, LEADER_LOG_START)
    assert found(judged(run, {RETENTION_MS: 9_000})) == Deletion(RETENTION_MS, was_due=True)


def came_back(*, asked: int, begins_anew: bool) -> RunBuilder:
    """Return a run in which broker 0 deletes m0, begins its log with m0 again, and is succeeded by broker 1, which had none of it."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.event("follower", broker=1, partition=P, leader_epoch=0, leader=0)
    run.at(1)
    run.write(producer, "m0", 0)
    run.event("delete_records_obeyed", broker=0, partition=P, offset=asked)
    expired(run, 0, DELETE_RECORDS)
    if begins_anew:
        run.event("log_started_anew", broker=1, partition=P, leo=0, offset=1)
    run.stop(0)
    run.event("log_start_reverted", broker=0, partition=P, from_offset=1, to_offset=0)
    run.elect(1, 1, (1,))
    expired(run, 0, LEADER_LOG_START)
    return run


@pytest.mark.parametrize(
    ("asked", "begins_anew", "wanted"),
    [
        (1, True, Deletion(DELETE_RECORDS, was_due=True)),
        (0, True, Deletion(DELETE_RECORDS, was_due=False)),
        # Who has nothing of it for another reason has not taken it from where the log began.
        (1, False, None),
    ],
)
def test_a_record_that_came_back_with_an_earlier_log_start_goes_with_who_began_where_it_had_been_deleted(
    *, asked: int, begins_anew: bool, wanted: Deletion | None
) -> None:
    assert found(judged(came_back(asked=asked, begins_anew=begins_anew), {RETENTION_MS: -1})) == wanted


@pytest.mark.parametrize(
    ("asked", "position", "comes_back", "is_fine"),
    [
        (2, 1, True, True),
        # Nobody had asked for so much.
        (1, 1, True, False),
        # The consumer was sent past another record.
        (2, 2, True, False),
        # Of what stays deleted another cause tells.
        (2, 1, False, False),
    ],
)
def test_a_consumer_may_skip_a_record_that_was_deleted_at_its_reset_but_came_back(
    *, asked: int, position: int, comes_back: bool, is_fine: bool
) -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    for value in ("m0", "m1"):
        run.write(producer, value, 0, 1)
    run.poll((0, "m0"), isolation_level="read_uncommitted")
    (consumer,) = run.consumers
    run.event("delete_records_obeyed", broker=0, partition=P, offset=asked)
    run.event("log_start", broker=0, partition=P, offset=2, reason=DELETE_RECORDS, bytes_left=0)
    run.event("offset_reset", client="consumer", partition=P, position=position, offset=2, policy="latest")
    run.write(producer, "m2", 0, 1)
    run.history.polled(consumer, {P: [(2, "m2")]}, run.tick(), run.tick())
    if comes_back:
        run.event("log_start_reverted", broker=0, partition=P, from_offset=2, to_offset=0)
        run.read_to_end(0)
    else:
        run.poll((0, "m0"), (1, "m1"), (2, "m2"))
        run.logs[P][0][:2] = [("<commit>", 0)] * 2
    skipped = POLL_SKIP.find(judged(run, {RETENTION_MS: -1}))
    assert [finding.value for finding in skipped] == ([] if is_fine else ["m2"])


@pytest.mark.parametrize(
    ("read", "retention_ms", "is_fine"), [(True, 1, True), (False, 1, False), (True, 60_000, False)]
)
def test_a_record_that_was_read_and_then_deleted_on_time_is_not_lost(
    read: bool, retention_ms: int, is_fine: bool
) -> None:
    index = deleted(RETENTION_MS, {RETENTION_MS: retention_ms}, read=read)
    assert is_read_and_expired(index, P, "m0", 1 * US) == is_fine


# Clocks that jump


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        ([("broker-0", 2_000)], Deletion(CLOCK_SKEW, was_due=True, broker=0, lead_us=2_000 * US)),
        ([("p", -2_000)], Deletion(CLOCK_SKEW, was_due=True, broker=0, lead_us=2_000 * US)),
        (
            [("broker-0", 1_500), ("p", -500)],
            Deletion(CLOCK_SKEW, was_due=True, broker=0, lead_us=2_000 * US),
        ),
        # Not long enough, another broker's clock, one that is right again.
        ([("broker-0", 900)], Deletion(RETENTION_MS, was_due=False)),
        ([("broker-1", 2_000)], Deletion(RETENTION_MS, was_due=False)),
        ([("broker-0", 2_000), ("broker-0", 0)], Deletion(RETENTION_MS, was_due=False)),
    ],
)
def test_a_record_that_is_old_enough_only_by_wrong_clocks_is_deleted_by_clock_skew(
    steps: list[tuple[str, int]], wanted: Deletion
) -> None:
    run = with_m0()
    for process, skew_s in steps:
        run.event("clock_stepped", process=process, by_us=1, skew_us=skew_s * US)
    expired(run, 0, RETENTION_MS)
    assert found(judged(run, {RETENTION_MS: 1_000_000})) == wanted


def test_a_record_that_is_old_enough_by_the_true_time_needs_no_excuse() -> None:
    run = with_m0()
    run.event("clock_stepped", process="broker-0", by_us=1, skew_us=2_000 * US)
    run.at(11)
    expired(run, 0, RETENTION_MS)
    assert found(judged(run, {RETENTION_MS: 1_000})) == Deletion(RETENTION_MS, was_due=True)


def lost_its_disk(*, let_go_first: bool) -> RunBuilder:
    """Return a run in which broker 0 leads, loses its disk with m0, and is succeeded by broker 1, which deletes m0 before that or after."""
    run = with_m0()
    if let_go_first:
        run.at(11)
        expired(run, 1)
    run.at(12)
    run.lose_disk(0)
    if not let_go_first:
        run.at(13)
        expired(run, 1)
    run.at(14)
    run.elect(1, 1, (1,))
    return run


@pytest.mark.parametrize("let_go_first", [True, False])
def test_what_went_with_a_leaders_disk_is_deleted_where_its_successor_has_deleted_it(
    *, let_go_first: bool
) -> None:
    index = judged(lost_its_disk(let_go_first=let_go_first), {RETENTION_MS: 9_000})
    assert found(index) == Deletion(RETENTION_MS, was_due=True, broker=-1)


def test_what_the_successor_has_lost_with_its_disk_too_was_not_deleted() -> None:
    run = with_m0()
    run.at(12)
    run.lose_disk(1)
    run.lose_disk(0)
    run.elect(1, 1, (1,))
    assert found(judged(run, {RETENTION_MS: 9_000})) is None


def test_a_broker_that_is_elected_but_never_leads_takes_no_record() -> None:
    """Broker 1 has lost m0 and dies before it leads; broker 0 deletes m0 meanwhile, and leads again."""
    run = with_m0()
    run.lose_disk(1)
    election = {"controller": 3, "partition": P, "leader": 1, "leader_epoch": 1, "isr": (1,)}
    run.event("election", **election, unclean=False, reason="preferred leader")
    run.at(11)
    expired(run, 0)
    run.elect(0, 2, (0,))
    assert found(judged(run, {RETENTION_MS: 9_000})) == Deletion(RETENTION_MS, was_due=True)
