"""The replay of the replicas' logs from the trace."""

from checks.copies import Copy, PartitionCopies, copies_by_partition
from tests.unit.checks.evidence_builder import RunBuilder


def replay(run: RunBuilder) -> PartitionCopies:
    return copies_by_partition(run.trace)["t-0"]


def state(copy: Copy) -> tuple[int, int, bool, bool, bool]:
    return (copy.broker, copy.offset, copy.appended, copy.committed, copy.gone is not None)


def test_copies_are_told_apart_by_broker_and_offset() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1")
    run.replicate(1, "m0", "m1")
    run.raise_hw(1, 0)
    copies = replay(run)
    assert [state(copy) for copy in copies.by_value["m0"]] == [
        (0, 0, True, True, False),
        (1, 0, False, False, False),
    ]
    assert [state(copy) for copy in copies.by_value["m1"]] == [
        (0, 1, True, False, False),
        (1, 1, False, False, False),
    ]


def test_what_takes_a_copy_is_kept() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1", "m2", "m3")
    run.lose_power(0, 3)
    run.truncate(0, 2)
    run.event("recover", broker=0, partition="t-0", leo=1, hw=0)
    (m0,), (m1,), (m2,), (m3,) = replay(run).by_value.values()
    assert m0.gone is None
    assert [copy.gone[1][1] for copy in (m1, m2, m3) if copy.gone] == [
        "recover",
        "truncate",
        "unflushed_lost",
    ]
    assert [copy.lost_with_power for copy in (m0, m1, m2, m3)] == [False, False, False, True]


def test_an_append_below_the_known_end_replaces_what_was_there() -> None:
    """A trace that says nothing of the truncation still says that the offset is taken."""
    run = RunBuilder()
    run.append(0, "m0", "m1")
    run.logs["t-0"][0].pop()
    run.append(0, "x")
    copies = replay(run)
    assert copies.by_value["m1"][0].gone is not None
    assert copies.by_value["m0"][0].gone is None


def test_truncation_takes_the_high_watermark_along() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1")
    run.raise_hw(2, 0)
    run.truncate(0, 1)
    run.append(0, "m2")
    assert not replay(run).by_value["m2"][0].committed
    run.raise_hw(2, 0)
    assert replay(run).by_value["m2"][0].committed


def test_a_recovered_high_watermark_takes_nothing_back() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1")
    run.raise_hw(1, 0)
    run.event("recover", broker=0, partition="t-0", leo=2, hw=0)
    copies = replay(run)
    assert copies.by_value["m0"][0].committed
    assert not copies.by_value["m1"][0].committed


def test_a_copy_is_there_from_its_append_to_its_end() -> None:
    run = RunBuilder()
    run.stop(1)
    run.append(0, "m0")
    run.stop(1)
    run.truncate(0, 0)
    run.stop(1)
    (copy,) = replay(run).by_value["m0"]
    assert [copy.is_there(position) for position in (0, 2, 4)] == [False, True, False]


def test_the_isr_is_that_of_the_leader_at_the_moment() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.event("isr", broker=0, partition="t-0", leader_epoch=0, isr=(0,), change="shrink")
    run.elect(1, 1, (1, 0))
    copies = replay(run)
    assert copies.isr_at(0, 1) is None
    assert copies.isr_at(0, 2) == (0, 1)
    assert copies.isr_at(0, 9) == (0,)
    assert copies.isr_at(1, 9) == (1, 0)
