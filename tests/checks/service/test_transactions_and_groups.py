"""How long transactions and rebalances take, and for how long nobody reads what is there."""

from typing import Any

import pytest

from harrow.checks.evidence import ConsumerSettings
from harrow.checks.index import Index
from harrow.checks.service.levels import ServiceLevels, service_levels
from harrow.cluster_model.history import OK, TXN
from tests.checks.evidence_builder import RunBuilder


def levels_of(run: RunBuilder) -> ServiceLevels:
    return service_levels(Index(run.evidence()), explained=False)


def test_a_transaction_takes_from_its_first_send_to_the_answer_that_it_is_committed() -> None:
    run = RunBuilder()
    producer = run.producer(acks="all")
    run.elect(0, 0, (0, 1))
    run.transaction(producer, OK, "a", "b")
    run.transaction(producer, "fail", "c", "d")
    run.transaction(producer, "info", "e", "f")
    found = levels_of(run).transactions
    assert found is not None
    begun, ended = (
        next(op.time_us for op in run.history.operations if op.f == TXN and op.type == type_)
        for type_ in ("invoke", OK)
    )
    assert (found.count, found.max_us) == (1, ended - begun)


def test_a_transaction_of_one_record_counts_like_others() -> None:
    run = RunBuilder()
    producer = run.producer(acks="all")
    run.elect(0, 0, (0, 1))
    for value in ("a", "b"):
        run.transaction(producer, OK, value)
    run.transaction(producer, OK, "c", "d")
    found = levels_of(run).transactions
    assert found is not None
    assert found.count == 3


def test_a_run_without_transactions_and_groups_has_no_figures_of_them() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.write(run.producer(), "m0", 0, 1)
    found = levels_of(run)
    assert (found.transactions, found.rebalances, found.unread) == (None, None, None)


def state(run: RunBuilder, name: str, group: str = "g", members: tuple[str, ...] = ("a",)) -> None:
    fields: dict[str, Any] = {"generation": 1, "reason": "test"}
    run.event("group_state", broker=0, group=group, state=name, members=members, **fields)


@pytest.mark.parametrize(
    ("states", "expected_s"),
    [
        (["Stable"], []),
        (["PreparingRebalance", "CompletingRebalance", "Stable"], [2]),
        # It is prepared anew before it has ended: the group has rebalanced all the while.
        (["PreparingRebalance", "CompletingRebalance", "PreparingRebalance", "Stable"], [3]),
        (["PreparingRebalance", "Stable", "PreparingRebalance", "Stable"], [1, 1]),
        (["PreparingRebalance"], []),
        (["PreparingRebalance", "Empty", "Stable"], []),
        # With KIP-848.
        (["Assigning", "Reconciling", "Stable"], [2]),
        (["Reconciling", "Stable", "Reconciling", "Assigning", "Stable"], [1, 2]),
    ],
)
def test_a_rebalance_takes_until_the_group_is_stable(states: list[str], expected_s: list[float]) -> None:
    run = RunBuilder()
    for second, name in enumerate(states):
        run.at(second)
        state(run, name, members=() if name == "Empty" else ("a",))
    found = levels_of(run).rebalances
    assert (0 if found is None else found.count) == len(expected_s)
    assert found is None or found.max_us == max(expected_s) * 1_000_000


def acked(run: RunBuilder, producer: int, second: float, offset: int, partition: str = "t-0") -> None:
    value = f"{partition}:{offset}"
    run.at(second - 0.2)
    run.send(producer, value, partition)
    run.ok(producer, value, offset, partition)


def polled(run: RunBuilder, second: float, *offsets: int, partition: str = "t-0") -> None:
    run.at(second - 0.1)
    run.poll(*((offset, f"{partition}:{offset}") for offset in offsets), partition=partition)


def test_nobody_reads_from_an_ack_that_is_ahead_of_all_polls_to_the_next_poll() -> None:
    run = RunBuilder()
    producer = run.producer()
    acked(run, producer, 1, 0)
    polled(run, 2, 0)
    acked(run, producer, 5, 1)
    acked(run, producer, 6, 2)
    polled(run, 9, 1)
    polled(run, 10, 2)
    acked(run, producer, 30, 3)
    found = levels_of(run).unread
    assert found is not None
    assert (found.partition, found.start_us, found.end_us) == ("t-0", 5_000_000, 9_000_000)


def test_a_partition_that_no_consumer_of_the_workload_reads_does_not_count() -> None:
    run = RunBuilder()
    producer = run.producer()
    acked(run, producer, 1, 0, "u-0")
    acked(run, producer, 2, 0)
    polled(run, 3, 0)
    polled(run, 50, 0)
    found = levels_of(run).unread
    assert found is not None
    assert (found.partition, found.length_us) == ("t-0", 1_000_000)


def test_a_consumer_is_not_behind_in_a_partition_that_it_has_given_up() -> None:
    run = RunBuilder()
    producer = run.producer()
    reader = run.history.new_process("reader")
    run.history.assigned(reader, ("t-0",), run.tick())
    acked(run, producer, 1, 0)
    run.history.polled(reader, {"t-0": [(0, "t-0:0")]}, 1_100_000, 1_100_000)
    run.history.assigned(reader, (), 1_200_000)
    for offset in range(1, 6):
        acked(run, producer, 1 + offset, offset)
    assert levels_of(run).consumers["reader"].lag == 0


def member(run: RunBuilder, name: str, *owned: str, reset: str = "earliest", group: str = "g") -> int:
    """A member of a group that subscribes to topic t; with no group a consumer that reads all of it."""
    process = run.history.new_process(name)
    run.consumers[process] = ConsumerSettings(
        name=name, read_committed=False, group=group, offset_reset=reset, topics=("t",)
    )
    if group:
        run.history.assigned(process, owned, run.tick())
    return process


@pytest.mark.parametrize("owned", [("t-0",), ()])
def test_a_partition_that_is_to_be_read_and_never_was_is_unread_and_behind(owned: tuple[str, ...]) -> None:
    run = RunBuilder()
    producer = run.producer()
    member(run, "c", *owned)
    for offset in range(3):
        acked(run, producer, 1 + offset, offset)
    acked(run, producer, 5, 0, "u-0")
    run.at(30)
    run.history.polled(run.history.new_process("reader"), {}, run.now_us, run.now_us)
    found = service_levels(Index(run.evidence()), frozenset({"reader"}), explained=False)
    assert found.unread is not None
    assert (found.unread.partition, found.unread.start_us, found.unread.end_us) == (
        "t-0",
        1_000_000,
        30_000_000,
    )
    assert (found.consumers["c"].lag, found.consumers["c"].lag_max) == (3, 3)


def test_a_partition_that_another_member_has_is_that_ones_matter() -> None:
    run = RunBuilder()
    producer = run.producer()
    member(run, "idle")
    member(run, "busy", "t-0")
    acked(run, producer, 1, 0)
    found = levels_of(run).consumers
    assert (found["idle"].lag, found["busy"].lag) == (0, 1)


def test_a_member_goes_on_from_where_its_group_has_committed() -> None:
    run = RunBuilder()
    producer = run.producer()
    first = member(run, "first", "t-0")
    for offset in range(5):
        acked(run, producer, 1 + offset, offset)
    run.history.committed(first, [("t-0", 3)], run.tick(), OK)
    run.history.assigned(first, (), run.tick())
    member(run, "second", "t-0")
    assert levels_of(run).consumers["second"].lag == 2


def test_a_consumer_that_begins_at_the_end_is_behind_from_there_on() -> None:
    run = RunBuilder()
    producer = run.producer()
    member(run, "c", "t-0", reset="latest")
    for offset in range(5):
        acked(run, producer, 1 + offset, offset)
    assert levels_of(run).consumers["c"].lag == 0
    run.at(4.5)
    run.event("offset_reset", client="c", partition="t-0", position=-1, offset=4, policy="latest")
    found = levels_of(run)
    assert found.consumers["c"].lag == 1
    assert found.unread is not None
    assert (found.unread.start_us, found.unread.end_us) == (1_000_000, 4_600_000)


def test_a_consumer_without_a_group_is_behind_in_all_that_it_is_to_read() -> None:
    run = RunBuilder()
    producer = run.producer()
    member(run, "c", group="")
    acked(run, producer, 1, 0)
    acked(run, producer, 2, 0, "u-0")
    found = levels_of(run)
    assert found.consumers["c"].lag == 1
    assert found.unread is not None
    assert found.unread.partition == "t-0"
