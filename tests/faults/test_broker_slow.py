"""`broker_slow` makes each request occupy a thread of the broker for longer."""

from itertools import pairwise

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model import events
from harrow.cluster_model.trace import select
from harrow.faults.brokers import BrokerSlow
from harrow.faults.effects import SlowBroker, Undo
from tests.faults.test_faults import FakeEnvironment

CAMPAIGN = """
name: slow
kafka: "{kafka}"
settings: {{acks: 1, num.io.threads: {threads}, replica.lag.time.max.ms: 30s, linger.ms: 0}}
cluster: {{brokers: 3, controller: 2, topics: [{{name: t, assignment: [[0, 1, 2]]}}]}}
workload:
  duration: 30s
  producers: [{{name: p, rate: 4/s}}, {{name: q, rate: 4/s}}, {{name: r, rate: 4/s}}, {{name: s, rate: 4/s}}]
faults: [{{at: 5s, do: {{broker_slow: {fault}}}}}]
"""


def plan(fault: str, threads: int = 8, kafka: str = "2.4") -> Plan:
    (loaded,) = load_text(CAMPAIGN.format(fault=fault, threads=threads, kafka=kafka), "slow.yaml").plans
    return loaded


def appended_s(result: RunResult, begin_s: float, end_s: float) -> list[float]:
    times = [at / 1e6 for at in (e.at_us for e in select(result.evidence.trace, events.BatchAppended))]
    return [at for at in times if begin_s < at < end_s]


def test_a_slow_broker_has_fast_links() -> None:
    environment = FakeEnvironment()
    fault = BrokerSlow(broker=1, delay=9)
    assert fault.effects(environment) == [SlowBroker(1, 9)]
    assert fault.end(environment) == [Undo(SlowBroker(1, 9))]
    assert not BrokerSlow(broker=2).applies(environment)


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
def test_requests_of_different_clients_share_a_single_io_thread(kafka: str) -> None:
    """A thread takes one request after the other, from clients and from fetching followers."""
    fault = "{broker: 0, delay: 500ms, duration: 15s}"
    of_one = appended_s(run_plan(plan(fault, 1, kafka), 0), 6, 19)
    of_many = appended_s(run_plan(plan(fault, 50, kafka), 0), 6, 19)
    assert 0 < len(of_one) <= 13 / 0.5
    # A connection waits only for its own request, so later records are sent with the next one.
    assert len(of_many) > 2 * len(of_one)
    assert min(later - earlier for earlier, later in pairwise(of_one)) > 0.499


def test_a_slow_broker_keeps_its_session() -> None:
    trace = run_plan(plan("{broker: 0, delay: 3s, duration: 20s}", 1), 0).evidence.trace
    assert not list(select(trace, events.SessionExpired))


def test_a_slow_broker_recovers_at_the_end_of_the_fault_but_not_by_a_restart() -> None:
    result = run_plan(plan("{broker: 0, delay: 500ms, duration: 5s}", 1), 0)
    assert len(appended_s(result, 15, 25)) > 100
    assert result.verdict.status in ("held", "permitted")


def test_healing_ends_a_slow_broker() -> None:
    result = run_plan(plan("{broker: 0, delay: 2s}", 1), 0)
    assert result.verdict.status in ("held", "permitted")


def test_delays_of_several_faults_on_one_broker_add_up() -> None:
    once = "{broker: 0, delay: 1s, duration: 5s}"
    twice = f"{once}}}}}, {{at: 5s, do: {{broker_slow: {once}"
    assert (
        0
        < len(appended_s(run_plan(plan(twice, 50), 0), 6, 10))
        < len(appended_s(run_plan(plan(once, 50), 0), 6, 10))
    )
