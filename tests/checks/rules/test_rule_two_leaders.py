"""two-leaders: each leader epoch has at most one leader."""

from tests.checks.evidence_builder import RunBuilder


def test_one_leader_in_each_epoch_keeps_the_promise() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.elect(1, 1, (1,))
    run.elect(0, 2, (0, 1))
    result = run.judge("two-leaders")
    assert (result.status, result.promise) == ("held", "leader epoch")


def test_a_leader_may_restart_in_its_epoch() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.stop(0)
    run.lead(0, 0, (0, 1))
    assert run.judge("two-leaders").status == "held"


def test_two_partitions_may_have_the_same_leader_epoch() -> None:
    run = RunBuilder()
    run.elect(0, 3, (0, 1), partition="t-0")
    run.elect(1, 3, (0, 1), partition="t-1")
    assert run.judge("two-leaders").status == "held"


def test_two_leaders_in_one_epoch_are_a_violation() -> None:
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
