"""Clients of the model report the records that they consumed."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.events import FetchDelayed, FetchExpired, MessageDelivered
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

CLUSTER = """
name: two-readers
cluster: {brokers: 1, topics: [{name: t, partitions: 2}]}
workload:
  duration: 5s
  producers: [{name: producer-0}]
  consumers:
    - {name: first, partitions: [t-0]}
    - {name: second, partitions: [t-1]}
"""

WAITS = """
name: waits
cluster: {{brokers: 2, topics: [{{name: t, replication_factor: 2}}]}}
workload: {{duration: 5s, consumers: [{{}}]}}
script:
  - when: {{event: {event}}}
    do: {{broker_pause: {{broker: 1, duration: 1s}}}}
"""


def test_a_consumer_has_consumed_only_the_records_that_it_read_itself() -> None:
    (plan,) = load_text(CLUSTER, "two.yaml").plans
    target = ModelTarget(plan, Choices.from_seed(0), ())
    target.start()
    target.clients.start()
    sender = target.clients.sender("producer-0")
    sender.send("a", "t-0")
    sender.send("b", "t-1")
    target.advance(3 * US_PER_SECOND)
    first, second = (target.clients._clients[name] for name in ("first", "second"))
    assert [value in client.consumed() for client in (first, second) for value in "ab"] == [
        True,
        False,
        False,
        True,
    ]
    assert target.clients.is_consumed("a")
    assert not target.clients.is_consumed("c")


@pytest.mark.parametrize("event", [FetchDelayed.name, FetchExpired.name, MessageDelivered.name])
def test_an_event_that_a_condition_waits_for_is_in_the_trace(event: str) -> None:
    """By default the trace has only the first fetch that finds nothing."""
    (plan,) = load_text(WAITS.format(event=event), "waits.yaml").plans
    trace = run_plan(plan, 0).evidence.trace
    times = [
        line[0] for line in trace if line[1] == event and 2 * US_PER_SECOND < line[0] < 5 * US_PER_SECOND
    ]
    assert len(times) > 5
