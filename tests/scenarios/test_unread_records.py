"""Records that a group never reads.

Either no member has their partition, or the group starts to read after them.
"""

from typing import Final

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED, VIOLATED
from tests.scenarios.library_plans import proven_library_run

ADDED_PARTITION: Final = """
name: latest-on-added-partition
kafka: "{kafka}"
demand: [{demand}]
settings: {{acks: all, group.id: g, offsets.topic.num.partitions: 1}}
cluster: {{brokers: 3, topics: [{{name: t, partitions: 1, replication_factor: 3}}]}}
workload:
  duration: 60s
  producers: [{{name: p, rate: 10/s, settings: {{metadata.max.age.ms: 2s}}}}]
  consumers: [{{name: c, settings: {{auto.offset.reset: {reset}, metadata.max.age.ms: 20s{more}}}}}]
script:
  - at: {at}
    do: {{add_partitions: {{topic: t, partitions: 2}}}}
  - after: 40s
"""
"""The producer learns of the new partition before the group."""

APPLICATION: Final = """
name: application-on-added-partition
kafka: "2.8"
demand: all
settings: {acks: all, group.id: g, offsets.topic.num.partitions: 1}
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}, {name: out, replication_factor: 3}]}
workload:
  duration: 60s
  producers: [{name: p, rate: 10/s, partitions: [t-0], settings: {metadata.max.age.ms: 2s}}]
  applications:
    - name: app
      from: t
      to: out
      delivery: at_least_once
      consumer: {group.id: g, auto.offset.reset: latest, metadata.max.age.ms: 20s}
script:
  - at: 20s
    do: {add_partitions: {topic: t, partitions: 2}}
  - after: 40s
"""

SLOW_APPLICATION: Final = """
name: slow-application
kafka: "3.6"
settings: {{acks: all, session.timeout.ms: 6s, heartbeat.interval.ms: 2s, metadata.max.age.ms: 5s, request.timeout.ms: 3s,
  delivery.timeout.ms: 6s, max.poll.records: 1, auto.offset.reset: earliest}}
cluster: {{brokers: 3, topics: [{{name: t, replication_factor: 3}}]}}
workload:
  duration: 160s
  producers: [{{name: p, rate: 2/s, start: 1s, stop: 20s}}]
  {reader}
"""


def run(text: str, seed: int = 0) -> RunResult:
    return run_plan(load_text(text, "unread.yaml").plans[0], seed)


def added_partition(
    *, kafka: str = "2.8", demand: str = "", reset: str = "latest", at: str = "20s", more: str = ""
) -> RunResult:
    return run(ADDED_PARTITION.format(kafka=kafka, demand=demand, reset=reset, at=at, more=more))


def test_a_group_may_skip_records_if_it_starts_at_the_end_of_an_added_partition() -> None:
    result = proven(added_partition())
    skipped = result.verdict.rules["rebalance-skip"]
    assert (result.verdict.status, skipped.status) == (PERMITTED, PERMITTED)
    assert {finding.permitted_by for finding in skipped.findings} == {"auto.offset.reset=latest"}
    # The producer learns of the partition within two seconds, the group within 20. Half of the ten
    # records per second go to the new partition.
    assert 80 <= len(skipped.findings) <= 100
    ways = {(way.text, way.held) for finding in skipped.findings for way in finding.prevented_by}
    assert {("auto.offset.reset=earliest", True), ("auto.offset.reset=none", True)} <= ways
    # No later release alone prevents the skip.
    assert {text for text, held in ways if held and text.startswith("Kafka")} == set()


def test_a_demand_forbids_the_skip() -> None:
    result = added_partition(demand="rebalance-skip")
    assert result.verdict.rules["rebalance-skip"].status == VIOLATED


def test_a_group_that_starts_at_the_beginning_skips_nothing() -> None:
    assert added_partition(demand="rebalance-skip", reset="earliest").verdict.status == HELD


@pytest.mark.parametrize(("at", "status"), [("20s", HELD), ("21s", PERMITTED)])
def test_with_assignment_by_brokers_a_group_is_late_by_at_most_a_heartbeat(at: str, status: str) -> None:
    """The member sends a heartbeat every five seconds, which tells it of new partitions."""
    assert added_partition(kafka="4.3", at=at, more=", group.protocol: consumer").verdict.status == status


def test_effects_of_records_that_an_application_skipped_are_missing() -> None:
    result = run(APPLICATION)
    assert result.verdict.rules["lost-effect"].status == VIOLATED


@pytest.mark.parametrize(
    "reader",
    [
        "consumers: [{name: c, poll_interval: 100s, settings: {group.id: g}}]",
        "applications: [{name: one, from: t, delivery: idempotent_sink, work: 100s}]",
    ],
)
def test_a_slow_application_that_polls_in_time_is_not_stuck(reader: str) -> None:
    result = run(SLOW_APPLICATION.format(reader=reader))
    assert result.verdict.rules["unconsumed"].status == HELD


def test_a_partition_without_a_member_stays_unread() -> None:
    result = proven_library_run("unread-partition[base]")
    (finding,) = result.verdict.rules["unconsumed"].findings
    assert (finding.partition, finding.offset, dict(finding.details)["records"]) == ("t-1", 0, 15)
    assert [(way.name, way.held) for way in finding.prevented_by] == [
        ("KIP-814", True),
        ("kafka", True),
    ]
