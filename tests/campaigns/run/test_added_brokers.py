"""A broker that joins a cluster later is unknown until then, and gets no partitions by itself."""

from itertools import pairwise

import pytest

from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD
from harrow.cluster_model import events
from harrow.cluster_model.trace import select
from tests.campaigns.language.campaign_texts import plan

CLUSTER = """
name: x
kafka: "{kafka}"
settings: {{acks: all, min.insync.replicas: 2}}
cluster:
  brokers: [{{id: 0}}, {{id: 1}}, {{id: 2}}, {{id: 3, joins: {joins}}}]
  topics: [{{name: t, partitions: 4, replication_factor: 3}}]
workload: {{duration: 20s, producers: [{{rate: 20/s}}]}}
"""
KAFKA = ("2.4", "3.9", "4.3")


def text(kafka: str = "2.4", joins: str = "10s", more: str = "") -> str:
    return CLUSTER.format(kafka=kafka, joins=joins) + more


@pytest.mark.parametrize("kafka", KAFKA)
def test_an_added_broker_registers_when_it_joins_and_has_no_partitions(kafka: str) -> None:
    result = run_plan(plan(text(kafka)), 0)
    assert result.verdict.status == HELD
    trace = result.evidence.trace
    assert [event.at_us for event in select(trace, events.BrokerStarted) if event.broker == 3] == [10_000_000]
    assert [event.at_us > 10_000_000 for event in select(trace, events.BrokerRegistered) if event.broker == 3]
    assert all(3 not in settings.replicas for settings in result.evidence.partitions.values())
    assert not [event for event in select(trace, events.BecameFollower) if event.broker == 3]


def test_faults_and_healing_ignore_a_broker_that_has_not_joined() -> None:
    faults = "faults: [{every: 1s, do: {broker_crash: {broker: any, restart_after: 500ms}}}, {at: 5s, do: {broker_restart: {broker: 3}}}]"
    result = run_plan(plan(text(joins="never", more=faults)), 0)
    starts = [event for event in select(result.evidence.trace, events.BrokerStarted) if event.broker == 3]
    assert starts == []
    struck = {
        dict(event.details).get("broker") for event in select(result.evidence.trace, events.FaultStruck)
    }
    assert struck == {0, 1, 2}


@pytest.mark.parametrize("joins", ["never", "30s"])
def test_a_broker_that_has_not_joined_does_not_count_as_out_of_service(joins: str) -> None:
    more = "blast_radius: {brokers: 1}\nfaults: [{every: 2s, do: {broker_crash: {broker: any, restart_after: 500ms}}}]"
    result = run_plan(plan(text(joins=joins, more=more)), 1)
    crashes = [
        e.at_us for e in select(result.evidence.trace, events.BrokerStopped) if e.cause == events.KILLED
    ]
    assert crashes
    assert all(later - earlier >= 500_000 for earlier, later in pairwise(crashes))


def test_clients_learn_of_an_added_broker_from_metadata() -> None:
    more = "script: [{at: 9s, when: {no_event: {message: {receiver: broker-3}}}}]"
    result = run_plan(plan(text(more=more)), 0)
    assert not result.missed
    assert result.verdict.status == HELD


def test_a_script_starts_an_added_broker_once() -> None:
    more = "script: [{at: 3s, do: [{add_broker: 3}, {add_broker: 3}, {add_broker: 0}]}]"
    result = run_plan(plan(text(joins="never", more=more)), 0)
    started = [event for event in select(result.evidence.trace, events.BrokerStarted) if event.at_us > 0]
    assert [(event.at_us, event.broker) for event in started] == [(3_000_000, 3)]


def test_healing_starts_a_zookeeper_server_that_is_down() -> None:
    more = "script: [{at: 3s, do: {broker_crash: {broker: zookeeper-1}}}, {at: 4s, do: {broker_restart: {broker: zookeeper-1}}}]"
    result = run_plan(plan(text(more=more)), 0)
    assert not result.missed
    assert result.verdict.status == HELD
