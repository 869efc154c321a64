"""Explaining a finding takes work in proportion to the length of its story."""

import sys
from types import FrameType
from typing import Any, Final

from harrow.cluster_model.events import REGISTRATION
from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from tests.checks.evidence_builder import RunBuilder

FEW: Final = 40
MANY: Final = 160
GROWTH_MAX: Final = 1.5
"""The permitted growth of the work per failover when a story grows fourfold: lookups grow a little.
"""


def lost_record_after(failovers: int) -> RunBuilder:
    """Return a run that loses an acked record after so many crashes and failovers of its leader."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "m0", 0, 1)
    for epoch in range(1, failovers + 1):
        leader, successor = (epoch - 1) % 2, epoch % 2
        run.event("fault", fault="broker_crash", phase="", strike=epoch, details=(("broker", leader),))
        run.stop(leader)
        run.at(run.now_us / 1_000_000 + 6)
        run.event("session_expired", broker=leader, ephemerals=(REGISTRATION,))
        run.elect(successor, epoch, (successor,))
        run.event("broker_started", broker=leader)
        run.event("fault_ended", fault="broker_crash", strike=epoch, details=(("broker", leader),))
        run.event("isr", broker=successor, partition="t-0", leader_epoch=epoch, isr=(0, 1), change="expand")
    run.truncate(0, 0, LEADER_EPOCH_TRUNCATION)
    run.truncate(1, 0, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(0)
    return run


def lines_run(failovers: int) -> int:
    """Return how many lines of Python it takes to judge a run and to build the chain."""
    run, lines = lost_record_after(failovers), 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        (finding,) = run.judge("lost-write").findings
        assert len(finding.chain) > failovers
    finally:
        sys.settrace(before)
    return lines


def test_four_times_the_failovers_take_four_times_the_work() -> None:
    lines_run(2)
    few, many = lines_run(FEW), lines_run(MANY)
    assert many <= GROWTH_MAX * few * MANY / FEW
