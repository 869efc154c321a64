"""Service levels of transactions, rebalances and reads."""

from typing import Any

import pytest

from harrow.checks.evidence import ConsumerSettings
from harrow.checks.index import Index
from harrow.checks.service.levels import ServiceLevels, service_levels
from harrow.cluster_model.history import OK, TXN
from tests.checks.evidence_builder import RunBuilder


def measure(run: RunBuilder) -> ServiceLevels:
    return service_levels(Index(run.evidence()), explained=False)


def test_a_transaction_lasts_from_its_first_send_to_its_commit() -> None:
    run = RunBuilder()
    producer = run.producer(acks="all")
    run.elect(0, 0, (0, 1))
    run.transaction(producer, OK, "a", "b")
    run.transaction(producer, "fail", "c", "d")
    run.transaction(producer, "info", "e", "f")
    levels = measure(run).transactions
    assert levels is not None
    begun, ended = (
        next(op.time_us for op in run.history.operations if op.f == TXN and op.type == type_)
        for type_ in ("invoke", OK)
    )
    assert (levels.count, levels.max_us) == (1, ended - begun)


def test_a_transaction_of_one_record_counts() -> None:
    run = RunBuilder()
    producer = run.producer(acks="all")
    run.elect(0, 0, (0, 1))
    for value in ("a", "b"):
        run.transaction(producer, OK, value)
    run.transaction(producer, OK, "c", "d")
    levels = measure(run).transactions
    assert levels is not None
    assert levels.count == 3


def test_a_run_without_transactions_and_groups_has_no_levels_for_them() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.write(run.producer(), "m0", 0, 1)
    levels = measure(run)
    assert (levels.transactions, levels.rebalances, levels.unread) == (None, None, None)


def report_group_state(
    run: RunBuilder, name: str, group: str = "g", members: tuple[str, ...] = ("a",)
) -> None:
    fields: dict[str, Any] = {"generation": 1, "reason": "test"}
    run.event("group_state", broker=0, group=group, state=name, members=members, **fields)


@pytest.mark.parametrize(
    ("states", "expected_s"),
    [
        (["Stable"], []),
        (["PreparingRebalance", "CompletingRebalance", "Stable"], [2]),
        # A second preparation before the end continues the rebalance.
        (["PreparingRebalance", "CompletingRebalance", "PreparingRebalance", "Stable"], [3]),
        (["PreparingRebalance", "Stable", "PreparingRebalance", "Stable"], [1, 1]),
        (["PreparingRebalance"], []),
        (["PreparingRebalance", "Empty", "Stable"], []),
        # With KIP-848.
        (["Assigning", "Reconciling", "Stable"], [2]),
        (["Reconciling", "Stable", "Reconciling", "Assigning", "Stable"], [1, 2]),
    ],
)
def test_a_rebalance_lasts_until_the_group_is_stable(states: list[str], expected_s: list[float]) -> None:
    run = RunBuilder()
    for second, name in enumerate(states):
        run.at(second)
        report_group_state(run, name, members=() if name == "Empty" else ("a",))
    levels = measure(run).rebalances
    assert (0 if levels is None else levels.count) == len(expected_s)
    assert levels is None or levels.max_us == max(expected_s) * 1_000_000


def send_acked(run: RunBuilder, producer: int, second: float, offset: int, partition: str = "t-0") -> None:
    value = f"{partition}:{offset}"
    run.at(second - 0.2)
    run.send(producer, value, partition)
    run.ok(producer, value, offset, partition)


def poll(run: RunBuilder, second: float, *offsets: int, partition: str = "t-0") -> None:
    run.at(second - 0.1)
    run.poll(*((offset, f"{partition}:{offset}") for offset in offsets), partition=partition)


def test_an_unread_period_lasts_from_an_ack_beyond_every_poll_to_the_next_poll() -> None:
    run = RunBuilder()
    producer = run.producer()
    send_acked(run, producer, 1, 0)
    poll(run, 2, 0)
    send_acked(run, producer, 5, 1)
    send_acked(run, producer, 6, 2)
    poll(run, 9, 1)
    poll(run, 10, 2)
    send_acked(run, producer, 30, 3)
    levels = measure(run).unread
    assert levels is not None
    assert (levels.partition, levels.start_us, levels.end_us) == ("t-0", 5_000_000, 9_000_000)


def test_a_partition_without_consumers_has_no_unread_period() -> None:
    run = RunBuilder()
    producer = run.producer()
    send_acked(run, producer, 1, 0, "u-0")
    send_acked(run, producer, 2, 0)
    poll(run, 3, 0)
    poll(run, 50, 0)
    levels = measure(run).unread
    assert levels is not None
    assert (levels.partition, levels.length_us) == ("t-0", 1_000_000)


def test_lag_counts_up_to_the_end_of_all_acked_records_whatever_the_order_of_their_acks() -> None:
    run = RunBuilder()
    producer = run.producer()
    for second, offset in enumerate((2, 1, 3, 0), 1):
        send_acked(run, producer, second, offset)
    poll(run, 9, 0)
    reader = measure(run).consumers["consumer"]
    assert (reader.lag, reader.lag_max) == (3, 4)


def test_sends_are_counted_by_outcome_and_only_acks_have_a_latency() -> None:
    run = RunBuilder()
    producer = run.producer()
    for value in ("acked", "failed", "unknown", "pending"):
        run.send(producer, value)
    run.ok(producer, "acked", 0)
    run.history.record_failure(producer, "t-0", "failed", run.tick(), "RecordTooLarge", definite=True)
    run.unknown(producer, "unknown")
    levels = measure(run)
    for sends in (levels.total, *levels.partitions.values(), *levels.producers.values()):
        assert (sends.sent, sends.acked, sends.failed, sends.unknown) == (4, 1, 1, 1)
        assert sends.ack_latency is not None
        assert (sends.ack_latency.count, sends.ack_latency.max_us) == (1, 400_000)


def test_a_consumer_has_no_lag_in_a_revoked_partition() -> None:
    run = RunBuilder()
    producer = run.producer()
    reader = run.history.new_process("reader")
    run.history.record_assignment(reader, ("t-0",), run.tick())
    send_acked(run, producer, 1, 0)
    run.history.record_poll(reader, {"t-0": [(0, "t-0:0")]}, 1_100_000, 1_100_000)
    run.history.record_assignment(reader, (), 1_200_000)
    for offset in range(1, 6):
        send_acked(run, producer, 1 + offset, offset)
    assert measure(run).consumers["reader"].lag == 0


def add_consumer(run: RunBuilder, name: str, *owned: str, reset: str = "earliest", group: str = "g") -> int:
    """Add a member of a group that subscribes to topic t, or without a group a consumer that reads
    all of it.
    """
    process = run.history.new_process(name)
    run.consumers[process] = ConsumerSettings(
        name=name, read_committed=False, group=group, offset_reset=reset, topics=("t",)
    )
    if group:
        run.history.record_assignment(process, owned, run.tick())
    return process


@pytest.mark.parametrize("owned", [("t-0",), ()])
def test_a_subscribed_partition_that_was_never_read_is_unread_and_has_lag(owned: tuple[str, ...]) -> None:
    run = RunBuilder()
    producer = run.producer()
    add_consumer(run, "c", *owned)
    for offset in range(3):
        send_acked(run, producer, 1 + offset, offset)
    send_acked(run, producer, 5, 0, "u-0")
    run.at(30)
    run.history.record_poll(run.history.new_process("reader"), {}, run.now_us, run.now_us)
    levels = service_levels(Index(run.evidence()), frozenset({"reader"}), explained=False)
    assert levels.unread is not None
    assert (levels.unread.partition, levels.unread.start_us, levels.unread.end_us) == (
        "t-0",
        1_000_000,
        30_000_000,
    )
    assert (levels.consumers["c"].lag, levels.consumers["c"].lag_max) == (3, 3)


def test_the_lag_of_a_consumer_that_never_read_starts_at_the_lowest_acked_offset() -> None:
    run = RunBuilder()
    producer = run.producer()
    add_consumer(run, "c", "t-0")
    for second, offset in enumerate((7, 5, 6), 1):
        send_acked(run, producer, second, offset)
    assert measure(run).consumers["c"].lag == 3


def test_a_member_has_no_lag_in_another_members_partition() -> None:
    run = RunBuilder()
    producer = run.producer()
    add_consumer(run, "idle")
    add_consumer(run, "busy", "t-0")
    send_acked(run, producer, 1, 0)
    levels = measure(run).consumers
    assert (levels["idle"].lag, levels["busy"].lag) == (0, 1)


def test_the_lag_of_a_new_owner_starts_at_the_committed_offset() -> None:
    run = RunBuilder()
    producer = run.producer()
    first = add_consumer(run, "first", "t-0")
    for offset in range(5):
        send_acked(run, producer, 1 + offset, offset)
    run.history.record_commit(first, [("t-0", 3)], run.tick(), OK)
    run.history.record_assignment(first, (), run.tick())
    add_consumer(run, "second", "t-0")
    assert measure(run).consumers["second"].lag == 2


def test_the_lag_of_a_consumer_that_starts_at_the_end_counts_from_there() -> None:
    run = RunBuilder()
    producer = run.producer()
    add_consumer(run, "c", "t-0", reset="latest")
    for offset in range(5):
        send_acked(run, producer, 1 + offset, offset)
    assert measure(run).consumers["c"].lag == 0
    run.at(4.5)
    run.event("offset_reset", client="c", partition="t-0", position=-1, offset=4, policy="latest")
    levels = measure(run)
    assert levels.consumers["c"].lag == 1
    assert levels.unread is not None
    assert (levels.unread.start_us, levels.unread.end_us) == (1_000_000, 4_600_000)


def test_a_consumer_without_a_group_has_lag_in_its_own_topics_only() -> None:
    run = RunBuilder()
    producer = run.producer()
    add_consumer(run, "c", group="")
    send_acked(run, producer, 1, 0)
    send_acked(run, producer, 2, 0, "u-0")
    levels = measure(run)
    assert levels.consumers["c"].lag == 1
    assert levels.unread is not None
    assert levels.unread.partition == "t-0"
