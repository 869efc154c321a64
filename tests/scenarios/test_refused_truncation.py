"""How a broker stops, by release, if its log is ahead of its leader's and may not be truncated."""

from dataclasses import replace

import pytest

from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import INCONCLUSIVE
from harrow.cluster_model import events
from harrow.cluster_model.release.replication import HANGS, SHUTS_DOWN
from harrow.cluster_model.trace import select
from tests.scenarios.library_plans import library_plans


def run(reaction: str, seed: int) -> RunResult:
    plan = library_plans()["log-truncation-not-allowed[base]"]
    return run_plan(replace(plan, behaviours={**plan.behaviours, "out_of_range_follower": reaction}), seed)


def ends_of_broker_0(result: RunResult) -> list[str]:
    """Return the causes of broker 0's stops since it first refused to truncate."""
    trace = result.evidence.trace
    began_us = next(select(trace, events.TruncationRefused)).at_us
    return [
        event.cause
        for event in select(trace, events.BrokerStopped)
        if event.broker == 0 and event.at_us >= began_us
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_broker_of_0_10_2_hangs_and_stays_registered_until_it_is_killed(seed: int) -> None:
    result = run(HANGS, seed)
    trace = result.evidence.trace
    first, *again = select(trace, events.TruncationRefused)
    healed_us = next(select(trace, events.Healed)).at_us
    lost = [event for event in select(trace, events.SessionExpired) if event.at_us > first.at_us]
    assert all(event.at_us > healed_us for event in lost)
    # The repair at the end kills broker 0 and starts it again, and it hangs again.
    assert ends_of_broker_0(result) == [events.KILLED]
    assert again
    assert result.verdict.status == INCONCLUSIVE
    assert result.verdict.reasons == ("broker 0 had not stopped at the end",)


@pytest.mark.parametrize("seed", range(5))
def test_a_broker_of_0_11_shuts_down(seed: int) -> None:
    result = run(SHUTS_DOWN, seed)
    causes = ends_of_broker_0(result)
    assert set(causes) == {events.SHUT_DOWN}
    # The repair at the end started broker 0 again, and it shut down again.
    assert len(causes) == 2
    closed = [event.broker for event in select(result.evidence.trace, events.SessionClosed)]
    assert closed.count(0) == 2
