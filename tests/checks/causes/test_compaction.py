"""Records that compaction may remove, derived from keys and logs and not from broker reports."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from harrow.checks.causes.compaction import compaction_of, holes, is_superseded
from harrow.checks.index import Index
from harrow.checks.promise import ACKS_1, DISK_FAILURE, FLUSH_INTERVAL, UNCLEAN_ELECTION
from harrow.checks.rules.duplicate import RULE as DUPLICATE
from harrow.checks.rules.inconsistent_offsets import RULE as INCONSISTENT
from harrow.checks.rules.lost_write import RULE
from harrow.checks.rules.unseen import RULE as UNSEEN
from harrow.cluster_model.settings import Value, broker_config, topic_config
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from tests.checks.evidence_builder import RunBuilder

PARTITION = "t-0"
SETTINGS: Mapping[str, Value] = {"cleanup.policy": "compact", "delete.retention.ms": 5_000}


def write_keyed(run: RunBuilder, producer: int, value: str, key: str, *, tombstone: bool = False) -> None:
    write_keyed_at(run, producer, value, key, 0, 1, tombstone=tombstone)


def write_keyed_at(
    run: RunBuilder, producer: int, value: str, key: str, *brokers: int, tombstone: bool = False
) -> None:
    run.event(
        "keyed_send", client="producer-0", partition=PARTITION, value=value, key=key, tombstone=tombstone
    )
    run.write(producer, value, *brokers)


def clean_log(run: RunBuilder, broker: int, to_offset: int, *removed: int) -> None:
    run.event(
        "log_cleaned",
        broker=broker,
        partition=PARTITION,
        from_offset=0,
        to_offset=to_offset,
        removed=removed,
        bytes_left=70,
    )


def index_of(run: RunBuilder) -> Index:
    evidence = run.evidence()
    config = topic_config(SETTINGS, broker_config("2.4", {}))
    partition_index = replace(evidence.partitions[PARTITION], on_broker=dict.fromkeys((0, 1, 2), config))
    return Index(replace(evidence, partitions={PARTITION: partition_index}))


def run_with_two_records_of_a_key(
    *, second: str = "m1", key: str = "a", tombstone: bool = False
) -> RunBuilder:
    """Return a run where leader 0 and follower 1 have m0 of key a and a second record."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    write_keyed(run, producer, "m0", "a")
    write_keyed(run, producer, second, key, tombstone=tombstone)
    return run


def replace_with_marker(run: RunBuilder, broker: int, offset: int) -> None:
    """Replace the record at an offset of a final log with a marker."""
    run.logs[PARTITION][broker][offset] = ("<commit>", 0)


def test_a_record_compacted_for_a_later_one_of_its_key_is_superseded() -> None:
    run = run_with_two_records_of_a_key()
    run.at(9)
    for broker in (0, 1):
        clean_log(run, broker, 2, 0)
        replace_with_marker(run, broker, 0)
    run.read_to_end(0)
    index = index_of(run)
    assert is_superseded(index, PARTITION, "m0")
    assert list(RULE.find(index)) == []


def test_the_log_of_an_elected_leader_that_never_led_does_not_count() -> None:
    run = run_with_two_records_of_a_key()
    run.at(8)
    election = {"controller": 3, "partition": PARTITION, "leader": 1, "leader_epoch": 1, "isr": (0, 1)}
    run.event("election", **election, unclean=False, reason="preferred leader")
    run.at(9)
    clean_log(run, 0, 2, 0)
    replace_with_marker(run, 0, 0)
    run.read_to_end(0)
    index = index_of(run)
    assert is_superseded(index, PARTITION, "m0")
    assert list(RULE.find(index)) == []


def test_a_record_compacted_without_a_later_one_of_its_key_is_lost() -> None:
    run = run_with_two_records_of_a_key(key="b")
    run.at(9)
    for broker in (0, 1):
        clean_log(run, broker, 2, 0)
        replace_with_marker(run, broker, 0)
    run.read_to_end(0)
    index = index_of(run)
    assert not is_superseded(index, PARTITION, "m0")
    (finding,) = RULE.find(index)
    assert finding.permitted_by is None
    assert finding.chain[-1].kind.name == "compacted-without-later-record"


def test_compaction_on_a_follower_takes_no_record_from_consumers() -> None:
    run = run_with_two_records_of_a_key()
    run.at(9)
    clean_log(run, 1, 2, 0)
    copies = index_of(run).partition(PARTITION).by_value["m0"]
    assert compaction_of(index_of(run), PARTITION, copies) is None


def test_a_compacted_record_is_lost_if_its_replacement_is_truncated() -> None:
    """Broker 0 compacts m0 for m1, then truncates m1 as a follower of broker 1."""
    run = run_with_two_records_of_a_key()
    run.at(9)
    clean_log(run, 0, 2, 0)
    run.elect(1, 1, (0, 1))
    for broker in (0, 1):
        run.truncate(broker, 1)
    run.elect(0, 2, (0, 1))
    replace_with_marker(run, 0, 0)
    run.read_to_end(0)
    index = index_of(run)
    assert not is_superseded(index, PARTITION, "m0")
    findings = {finding.value: finding for finding in RULE.find(index)}
    assert "superseded-by-lost-record" in [link.kind.name for link in findings["m0"].chain]
    assert findings["m0"].permitted_by is None


def test_the_cleaner_removes_a_record_only_for_later_records_within_its_range() -> None:
    run = run_with_two_records_of_a_key()
    write_keyed(run, run.producer(), "m2", "a")
    run.at(9)
    clean_log(run, 0, 2, 0)
    index = index_of(run)
    taken = compaction_of(index, PARTITION, index.partition(PARTITION).by_value["m0"])
    assert taken is not None
    assert taken.later is not None
    assert taken.later.value == "m1"


def test_a_compacted_offset_is_a_hole_after_its_record_is_removed() -> None:
    run = run_with_two_records_of_a_key()
    run.at(9)
    clean_log(run, 0, 2, 0)
    index = index_of(run)
    assert holes(index, PARTITION, range(2), 10 * US_PER_SECOND) == {0}
    assert holes(index, PARTITION, range(2), 8 * US_PER_SECOND) == set()
    assert holes(index, PARTITION, range(1, 2), 10 * US_PER_SECOND) == set()


@pytest.mark.parametrize(
    ("at_s", "kind", "permitted_by"),
    [
        (9, "tombstone-expired", "delete.retention.ms"),
        (4, "tombstone-removed-too-early", None),
    ],
)
def test_an_unread_tombstone_may_be_removed_after_delete_retention_ms(
    at_s: int, kind: str, permitted_by: str | None
) -> None:
    run = run_with_two_records_of_a_key(second="gone", tombstone=True)
    run.at(at_s)
    for broker in (0, 1):
        clean_log(run, broker, 2, 0, 1)
        replace_with_marker(run, broker, 0)
        replace_with_marker(run, broker, 1)
    run.read_to_end(0)
    findings = {finding.value: finding for finding in RULE.find(index_of(run))}
    assert findings["gone"].chain[-1].kind.name == kind
    assert findings["gone"].permitted_by == permitted_by


def test_a_tombstone_that_expires_only_by_a_wrong_clock_is_removed_by_clock_skew() -> None:
    run = run_with_two_records_of_a_key(second="gone", tombstone=True)
    run.event("clock_stepped", process="broker-0", by_us=100_000_000, skew_us=100_000_000)
    run.at(4)
    for broker in (0, 1):
        clean_log(run, broker, 2, 0, 1)
        replace_with_marker(run, broker, 0)
        replace_with_marker(run, broker, 1)
    run.read_to_end(0)
    findings = {finding.value: finding for finding in RULE.find(index_of(run))}
    assert findings["gone"].chain[-1].kind.name == "tombstone-expired-by-wrong-clock"
    assert findings["gone"].permitted_by == "clock skew"


def test_an_expired_tombstone_still_supersedes_earlier_records() -> None:
    run = run_with_two_records_of_a_key(second="gone", tombstone=True)
    run.at(9)
    for broker in (0, 1):
        clean_log(run, broker, 2, 0)
        clean_log(run, broker, 2, 1)
    assert is_superseded(index_of(run), PARTITION, "m0")


def test_a_record_lost_with_a_leaders_disk_is_superseded_if_the_successor_compacted_it() -> None:
    run = run_with_two_records_of_a_key()
    run.at(9)
    clean_log(run, 1, 2, 0)
    run.lose_disk(0)
    run.elect(1, 1, (1,))
    replace_with_marker(run, 1, 0)
    run.read_to_end(1)
    index = index_of(run)
    assert is_superseded(index, PARTITION, "m0")
    assert list(RULE.find(index)) == []


def test_a_record_is_superseded_through_a_chain_of_replacements() -> None:
    """Broker 0 compacts m0 for m1 and m1 for m2.

    Broker 2 copies only m2 and succeeds broker 1, which has all three.
    """
    run = RunBuilder((0, 1, 2))
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    for value in ("m0", "m1", "m2"):
        write_keyed(run, producer, value, "a")
    run.at(9)
    clean_log(run, 0, 2, 0)
    clean_log(run, 0, 3, 1)
    run.logs[PARTITION][2] = [("<commit>", 0), ("<commit>", 0)]
    run.replicate(2, "m2")
    run.elect(1, 1, (1, 2))
    run.elect(2, 2, (2,))
    for offset in (0, 1):
        replace_with_marker(run, 0, offset)
    run.read_to_end(2)
    index = index_of(run)
    assert all(is_superseded(index, PARTITION, value) for value in ("m0", "m1"))
    assert list(RULE.find(index)) == []


def run_with_a_reassigned_offset(how: str) -> Index:
    """Return a run where m0 is compacted for m1, and offset 0 is later assigned to m2."""
    run = RunBuilder(unclean_leader_election=how == "unclean")
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    write_keyed(run, producer, "m0", "a")
    write_keyed(run, producer, "m1", "a")
    run.at(9)
    for broker in (0, 1):
        clean_log(run, broker, 2, 0)
        replace_with_marker(run, broker, 0)
    losses = {"disk": run.lose_disk, "power": lambda broker: run.lose_power(broker, 0)}
    if how in losses:
        losses[how](1)
    else:
        run.truncate(1, 0)
    run.elect(1, 1, (1,), unclean=how == "unclean")
    write_keyed_at(run, producer, "m2", "b", 1)
    write_keyed_at(run, producer, "m3", "a", 1)
    run.read_to_end(1)
    return index_of(run)


@pytest.mark.parametrize(
    ("how", "permitted_by"),
    [
        ("disk", DISK_FAILURE),
        ("power", FLUSH_INTERVAL),
        ("unclean", UNCLEAN_ELECTION),
        ("nothing", None),
    ],
)
def test_a_broker_that_lost_its_log_end_may_assign_a_compacted_offset_again(
    how: str, permitted_by: str | None
) -> None:
    findings = {finding.offset: finding for finding in INCONSISTENT.find(run_with_a_reassigned_offset(how))}
    assert findings[0].permitted_by == permitted_by


def test_a_compacted_replacement_of_a_truncated_record_needs_no_excuse() -> None:
    """Broker 0 truncates m0 on its return, after compaction has removed the record that replaced
    it.
    """
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0,))
    run.at(1)
    write_keyed_at(run, producer, "m0", "a", 0)
    run.elect(1, 1, (1,), unclean=True)
    write_keyed_at(run, producer, "m1", "b", 1)
    write_keyed_at(run, producer, "m2", "b", 1)
    run.at(9)
    clean_log(run, 1, 2, 0)
    replace_with_marker(run, 1, 0)
    run.truncate(0, 0)
    run.read_to_end(1)
    (finding,) = INCONSISTENT.find(index_of(run))
    assert (finding.offset, finding.value, finding.permitted_by) == (0, "m0", UNCLEAN_ELECTION)


def test_an_append_by_a_deposed_leader_does_not_reassign_an_offset() -> None:
    """Broker 1, unaware that broker 0 was elected, appends m0 at the offset of m1.

    Broker 0 compacts m1 later.
    """
    run = RunBuilder()
    producer = run.producer(acks="1")
    run.elect(1, 0, (0, 1))
    run.elect(0, 1, (0,))
    run.at(1)
    write_keyed_at(run, producer, "m1", "a", 0)
    run.event("keyed_send", client="producer-0", partition=PARTITION, value="m0", key="b", tombstone=False)
    run.send(producer, "m0")
    run.epochs[PARTITION] = 0
    run.append(1, "m0")
    run.acknowledge(1, 0, "m0")
    run.ok(producer, "m0", 0)
    run.epochs[PARTITION] = 1
    write_keyed_at(run, producer, "m2", "a", 0)
    run.at(9)
    clean_log(run, 0, 2, 0)
    replace_with_marker(run, 0, 0)
    run.truncate(1, 0)
    run.read_to_end(0)
    (finding,) = INCONSISTENT.find(index_of(run))
    assert (finding.offset, finding.value, finding.permitted_by) == (0, "m0", ACKS_1)


def write_unacked(run: RunBuilder, producer: int, value: str, key: str, *brokers: int) -> None:
    """Commit a record on the brokers without an answer to its producer."""
    run.event("keyed_send", client="producer-0", partition=PARTITION, value=value, key=key, tombstone=False)
    run.send(producer, value)
    leader, *followers = brokers
    run.append(leader, value)
    for broker in followers:
        run.replicate(broker, value)
    run.raise_hw(len(run.logs[PARTITION][leader]), *brokers)
    run.unknown(producer, value)


def run_truncated_by_a_flaw(excuse: str) -> Index:
    """Return a run where broker 1 truncates committed records, leads, and assigns offset 0
    again. No other broker lost a record at offset 0.
    """
    run = RunBuilder((0, 1, 2), unclean_leader_election=excuse == "unclean")
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    write_keyed_at(run, producer, "m0", "a", 0, 1, 2)
    write_unacked(run, producer, "m1", "a", 0, 1, 2)
    run.at(9)
    for broker in (0, 1):
        clean_log(run, broker, 2, 0)
        replace_with_marker(run, broker, 0)
    if excuse == "disk":
        run.lose_disk(2)
    elif excuse == "unclean":
        run.elect(0, 1, (0,), unclean=True)
    run.truncate(1, 0)
    run.elect(1, 2, (0, 1))
    run.truncate(0, 0)
    write_keyed_at(run, producer, "m2", "b", 1, 0)
    write_keyed_at(run, producer, "m3", "a", 1, 0)
    run.read_to_end(1)
    return index_of(run)


@pytest.mark.parametrize("excuse", ["none", "disk", "unclean"])
def test_neither_an_uninvolved_disk_nor_a_complete_unclean_leader_excuses_a_reassigned_offset(
    excuse: str,
) -> None:
    findings = {finding.offset: finding for finding in INCONSISTENT.find(run_truncated_by_a_flaw(excuse))}
    assert findings[0].permitted_by is None


@pytest.mark.parametrize("cleaned_first", [True, False])
def test_an_earlier_append_does_not_excuse_the_loss_of_the_acked_append(*, cleaned_first: bool) -> None:
    """A second append of m0 after m1 is acked.

    Broker 1 truncates it by a flaw and compacts the first m0 for m1.
    """
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.event("keyed_send", client="producer-0", partition=PARTITION, value="m0", key="a", tombstone=False)
    run.send(producer, "m0")
    run.append(0, "m0")
    run.replicate(1, "m0")
    write_keyed_at(run, producer, "m1", "a", 0, 1)
    run.append(0, "m0")
    run.replicate(1, "m0")
    run.raise_hw(3, 0, 1)
    run.acknowledge(0, 2, "m0")
    run.ok(producer, "m0", 2)
    run.at(9)
    if cleaned_first:
        clean_log(run, 1, 2, 0)
    run.truncate(1, 2)
    if not cleaned_first:
        clean_log(run, 1, 2, 0)
    replace_with_marker(run, 1, 0)
    run.lose_disk(0)
    run.elect(1, 1, (1,))
    run.read_to_end(1)
    (finding,) = RULE.find(index_of(run))
    assert (finding.offset, finding.permitted_by) == (2, None)


@pytest.mark.parametrize(("key", "is_lost"), [("a", False), ("b", True)])
def test_a_resent_record_is_superseded_at_its_acked_offset_despite_an_earlier_append(
    key: str, *, is_lost: bool
) -> None:
    """An unclean election loses m0; its retry is acked and compacted.

    Broker 1 still has the first append and leads for a while.
    """
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(1, 0, (1,))
    run.event("keyed_send", client="producer-0", partition=PARTITION, value="m0", key="a", tombstone=False)
    run.send(producer, "m0")
    run.append(1, "m0")
    run.stop(1)
    run.elect(0, 1, (0,), unclean=True)
    write_keyed_at(run, producer, "x", "x", 0)
    run.append(0, "m0")
    run.raise_hw(2, 0)
    run.acknowledge(0, 1, "m0")
    run.ok(producer, "m0", 1)
    write_keyed_at(run, producer, "m1", key, 0)
    run.at(9)
    clean_log(run, 0, 3, 1)
    replace_with_marker(run, 0, 1)
    run.stop(0)
    run.elect(1, 2, (1,), unclean=True)
    run.stop(1)
    run.elect(0, 3, (0,), unclean=True)
    run.truncate(1, 0)
    run.read_to_end(0)
    index = index_of(run)
    assert is_superseded(index, PARTITION, "m0", 1) is not is_lost
    assert [finding.value for finding in RULE.find(index)] == (["m0"] if is_lost else [])


def test_an_ack_with_a_wrong_offset_is_a_violation() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    write_keyed_at(run, producer, "x", "b", 0, 1)
    run.event("keyed_send", client="producer-0", partition=PARTITION, value="m0", key="a", tombstone=False)
    run.send(producer, "m0")
    run.append(0, "m0")
    run.replicate(1, "m0")
    run.raise_hw(2, 0, 1)
    run.acknowledge(0, 1, "m0")
    run.ok(producer, "m0", 0)
    write_keyed_at(run, producer, "m1", "a", 0, 1)
    run.at(9)
    for broker in (0, 1):
        clean_log(run, broker, 3, 1)
        replace_with_marker(run, broker, 1)
    run.read_to_end(0)
    (finding,) = INCONSISTENT.find(index_of(run))
    assert (finding.offset, finding.permitted_by) == (0, None)


@pytest.mark.parametrize("key", ["a", "b"])
def test_a_consumer_need_not_read_a_record_compacted_by_policy(key: str) -> None:
    """Broker 0 has removed m0 before the final read.

    Broker 1, which still has it, is elected afterwards.
    """
    run = run_with_two_records_of_a_key(key=key)
    run.at(9)
    clean_log(run, 0, 2, 0)
    run.poll((1, "m1"))
    run.read_back.add(PARTITION)
    run.elect(1, 1, (0, 1))
    assert [finding.value for finding in UNSEEN.find(index_of(run))] == ([] if key == "a" else ["m0"])


def test_the_permission_to_lose_a_replacement_covers_the_compacted_record() -> None:
    """Broker 0 loses its disk with m0 and m1.

    Broker 1 has only m1, and truncates it after an unclean election.
    """
    run = RunBuilder((0, 1, 2), unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.at(1)
    for value in ("m0", "m1"):
        write_keyed(run, producer, value, "a")
    run.at(9)
    clean_log(run, 1, 2, 0)
    run.lose_disk(0)
    run.elect(2, 1, (2,), unclean=True)
    run.truncate(1, 0)
    run.read_to_end(2)
    findings = {finding.value: finding.permitted_by for finding in RULE.find(index_of(run))}
    assert findings == {"m0": UNCLEAN_ELECTION, "m1": UNCLEAN_ELECTION}


def test_the_loss_of_a_first_append_permits_a_duplicate_that_was_compacted_later() -> None:
    """An unclean election loses m0. A retry appends it again, and compaction removes it for m1."""
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer(idempotence=True)
    run.elect(0, 0, (0,))
    run.at(1)
    write_keyed_at(run, producer, "x", "x", 0)
    run.event("keyed_send", client="producer-0", partition=PARTITION, value="m0", key="a", tombstone=False)
    run.send(producer, "m0")
    run.append(0, "m0")
    run.raise_hw(2, 0)
    run.poll((0, "x"), (1, "m0"))
    run.elect(1, 1, (1,), unclean=True)
    run.append(1, "m0")
    run.raise_hw(1, 1)
    run.acknowledge(1, 0, "m0")
    run.ok(producer, "m0", 0)
    run.poll((0, "m0"))
    write_keyed_at(run, producer, "m1", "a", 1)
    run.truncate(0, 0)
    run.at(9)
    clean_log(run, 1, 2, 0)
    replace_with_marker(run, 1, 0)
    run.read_to_end(1)
    findings = {finding.value: finding.permitted_by for finding in DUPLICATE.find(index_of(run))}
    assert findings == {"m0": UNCLEAN_ELECTION}


def judge_compaction_for_a_lost_record(*, unclean: bool) -> dict[str | int | None, str | None]:
    """Judge a run where m0 is compacted for m1, m1 is lost, and a retry appends m0 again."""
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer(idempotence=True)
    run.elect(0, 0, (0,))
    run.at(1)
    write_keyed_at(run, producer, "x", "x", 0)
    run.event("keyed_send", client="producer-0", partition=PARTITION, value="m0", key="a", tombstone=False)
    run.send(producer, "m0")
    run.append(0, "m0")
    write_keyed_at(run, run.producer(), "m1", "a", 0)
    run.poll((0, "x"), (1, "m0"), (2, "m1"))
    run.at(9)
    clean_log(run, 0, 3, 1)
    run.elect(1, 1, (1,), unclean=unclean)
    run.append(1, "m0")
    run.truncate(0, 0)
    run.replicate(0, "m0", epoch=1)
    run.raise_hw(1, 0, 1)
    run.acknowledge(1, 0, "m0")
    run.ok(producer, "m0", 0)
    run.poll((0, "m0"))
    run.read_to_end(1)
    return {finding.value: finding.permitted_by for finding in DUPLICATE.find(index_of(run))}


def test_the_loss_of_a_replacement_permits_a_second_append_of_the_compacted_record() -> None:
    assert judge_compaction_for_a_lost_record(unclean=True) == {"m0": UNCLEAN_ELECTION}
    assert judge_compaction_for_a_lost_record(unclean=False) == {"m0": None}


def test_an_unclean_election_that_restores_a_replaced_record_permits_its_offset() -> None:
    """m1 replaces m0, which was never committed.

    An unclean election of the broker with m0 restores it.
    """
    run = RunBuilder(brokers=(0, 1), unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.event("keyed_send", client="producer-0", partition=PARTITION, value="m0", key="b", tombstone=False)
    run.send(producer, "m0")
    run.append(0, "m0")
    run.elect(1, 1, (1,))
    write_keyed_at(run, producer, "m1", "a", 1)
    write_keyed_at(run, producer, "m2", "a", 1)
    run.poll((0, "m1"), (1, "m2"))
    clean_log(run, 1, 2, 0)
    run.elect(0, 2, (0,), unclean=True)
    run.truncate(1, 0)
    run.replicate(1, "m0", epoch=0)
    run.raise_hw(1, 0, 1)
    run.poll((0, "m0"))
    write_keyed(run, producer, "m3", "b")
    write_keyed(run, producer, "m4", "a")
    for broker in (0, 1):
        clean_log(run, broker, 3, 0)
        replace_with_marker(run, broker, 0)
    run.read_to_end(0)
    (finding,) = (each for each in INCONSISTENT.judge(index_of(run)).findings if each.offset == 0)
    assert finding.permitted_by == UNCLEAN_ELECTION


def test_a_compaction_by_an_unaware_former_leader_counts_once_it_leads_again() -> None:
    """After the election of broker 1, broker 0 appends m0 and m1 and compacts m0 for m1.

    Broker 0 is then elected again.
    """
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.elect(1, 1, (1,), unclean=True)
    run.epochs[PARTITION] = 0
    write_keyed_at(run, producer, "m0", "a", 0)
    write_keyed_at(run, producer, "m1", "a", 0)
    clean_log(run, 0, 2, 0)
    replace_with_marker(run, 0, 0)
    run.elect(0, 2, (0,), unclean=True)
    run.read_to_end(0)
    index = index_of(run)
    assert is_superseded(index, PARTITION, "m0")
    assert RULE.judge(index).status == "held"
