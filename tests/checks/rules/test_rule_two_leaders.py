"""two-leaders: one leader in each leader epoch."""

from tests.checks.evidence_builder import RunBuilder


def test_held_with_a_leader_for_each_epoch() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.elect(1, 1, (1,))
    run.elect(0, 2, (0, 1))
    result = run.judge("two-leaders")
    assert (result.status, result.promise) == ("held", "leader epoch")


def test_held_when_a_leader_restarts_in_its_epoch() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.stop(0)
    run.lead(0, 0, (0, 1))
    assert run.judge("two-leaders").status == "held"


def test_held_for_the_same_epoch_of_two_partitions() -> None:
    run = RunBuilder()
    run.elect(0, 3, (0, 1), partition="t-0")
    run.elect(1, 3, (0, 1), partition="t-1")
    assert run.judge("two-leaders").status == "held"


def test_violated_by_two_brokers_in_one_epoch() -> None:
    run = RunBuilder()
    run.elect(0, 4, (0, 1))
    run.elect(1, 4, (1,))
    run.lead(1, 4, (1,))
    result = run.judge("two-leaders")
    assert result.status == "violated"
    (finding,) = result.findings
    assert finding.partition == "t-0"
    assert [(link.event, link.broker) for link in finding.chain] == [
        ("elected", 0),
        ("became-leader", 0),
        ("elected", 1),
        ("became-leader", 1),
        ("conclusion", None),
    ]
