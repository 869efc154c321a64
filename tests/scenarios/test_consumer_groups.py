"""Groups with assignment by the coordinator (KIP-848) and their member applications."""

from collections import Counter
from typing import Any

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD
from harrow.cluster_model.events import (
    CommitFailed,
    Event,
    GroupOffsetFound,
    MemberReconciled,
    MembershipLost,
    PartitionsAssigned,
    PartitionsRevoked,
    RecordsProcessed,
    RequestRejected,
    TargetAssigned,
)
from harrow.cluster_model.history import OK
from harrow.cluster_model.trace import select
from tests.scenarios.test_groups import acked, processed

FAULTY = """
settings:
  acks: all
  group.id: g
  auto.offset.reset: earliest
  offsets.topic.num.partitions: 1
  group.protocol: consumer
  group.remote.assignor: {assignor}
  group.consumer.session.timeout.ms: 6s
  group.consumer.min.session.timeout.ms: 6s
  group.consumer.heartbeat.interval.ms: 1s
  group.consumer.min.heartbeat.interval.ms: 1s
  max.poll.interval.ms: 12s
kafka: "{kafka}"
cluster: {{brokers: 3, topics: [{{name: t, partitions: 4, replication_factor: 3}}]}}
workload:
  duration: 25s
  producers: [{{rate: 4/s, stop: 20s, settings: {{enable.idempotence: true}}}}]
  consumers:
    - {{name: a, commit: {commit}, poll_interval: 300ms}}
    - {{name: b, commit: {commit}, poll_interval: 300ms, start: 4s}}
    - {{name: c, commit: {commit}, poll_interval: 300ms, start: 45s}}
faults:
  - {{at: 8s, do: {{client_crash: {{client: a, restart_after: 2s}}}}}}
  - {{at: 12s, do: {{client_{fault}: {{client: b, duration: 9s}}}}}}
  - {{at: 17s, do: {{broker_crash: {{broker: 0, restart_after: 3s}}}}}}
script: [{{at: 75s}}]
"""
CASES = [("4.0", "uniform", "zombie"), ("4.3", "range", "zombie"), ("4.3", "uniform", "pause")]

SMALL = """
settings: {{acks: all, group.id: g, auto.offset.reset: earliest, offsets.topic.num.partitions: 1, group.protocol: consumer{more}}}
kafka: "4.3"
cluster: {{brokers: 3, topics: [{{name: t, partitions: 2, replication_factor: 3}}]}}
workload:
  duration: {duration}
  producers: [{{rate: 5/s}}]
  consumers: {consumers}
"""


def run(text: str, seed: int = 0) -> RunResult:
    return run_plan(load_text(text, "groups.yaml").plans[0], seed)


def small(consumers: str, duration: str = "20s", more: str = "") -> RunResult:
    return run(SMALL.format(consumers=consumers, duration=duration, more=more))


def events(result: RunResult, kind: type[Event]) -> list[Any]:
    return list(select(result.evidence.trace, kind))


@pytest.mark.parametrize(("kafka", "assignor", "fault"), CASES)
def test_commits_after_processing_skip_no_record(kafka: str, assignor: str, fault: str) -> None:
    result = run(FAULTY.format(kafka=kafka, assignor=assignor, fault=fault, commit="after"))
    assert result.verdict.status == HELD
    assert not acked(result) - set(processed(result))


@pytest.mark.parametrize(("kafka", "assignor", "fault"), CASES)
def test_commits_before_processing_repeat_no_record(kafka: str, assignor: str, fault: str) -> None:
    result = run(FAULTY.format(kafka=kafka, assignor=assignor, fault=fault, commit="before"))
    assert result.verdict.status == HELD
    assert max(processed(result).values()) == 1


def test_a_member_with_automatic_commits_commits_a_partition_before_it_revokes_it() -> None:
    result = small("[{name: a}, {name: b, start: 7s}]")
    assert max(processed(result).values()) == 1
    (revoked,) = events(result, PartitionsRevoked)
    offsets = {
        event.partition: event.offset for event in events(result, GroupOffsetFound) if event.client == "b"
    }
    read = {
        event.partition: event.end_offset
        for event in events(result, RecordsProcessed)
        if event.client == "a" and event.at_us < revoked.at_us
    }
    assert revoked.partitions == tuple(offsets) == ("t-1",)
    assert offsets["t-1"] == read["t-1"] > 0


def test_a_busy_member_without_automatic_commits_revokes_at_once() -> None:
    result = small("[{name: a, commit: after, poll_interval: 9s}, {name: b, start: 7s, commit: after}]")
    (revoked,) = events(result, PartitionsRevoked)
    polls = [event.at_us for event in events(result, RecordsProcessed) if event.client == "a"]
    # Member a learns at 10 s, from a heartbeat, that it has to revoke. It is processing then.
    assert revoked.client == "a"
    assert revoked.at_us < 11_000_000
    assert not [at_us for at_us in polls if abs(at_us - revoked.at_us) < 500_000]
    automatic = small("[{name: a, poll_interval: 9s}, {name: b, start: 7s}]", duration="30s")
    (revoked,) = events(automatic, PartitionsRevoked)
    ends = [event.at_us for event in events(automatic, RecordsProcessed) if event.client == "a"]
    assert any(0 <= revoked.at_us - end_us < 1_000_000 for end_us in ends)


def test_no_member_commits_a_revoked_partition() -> None:
    result = small(
        "[{name: a, commit: after, poll_interval: 9s}, {name: b, start: 7s, commit: after}]", "30s"
    )
    assert not events(result, CommitFailed)
    assert (
        Counter(event.sender for event in events(result, RequestRejected) if event.api == "OffsetCommit")
        == {}
    )


def test_a_member_that_polls_too_rarely_leaves_its_group_and_rejoins_with_its_next_poll() -> None:
    result = small("[{commit: after, poll_interval: 7s}]", more=", max.poll.interval.ms: 4s")
    losses = [event.reason for event in events(result, MembershipLost)]
    assert losses[0] == "max.poll.interval.ms"
    assert len(events(result, PartitionsAssigned)) > 1
    leaving_heartbeats = [event for event in events(result, MemberReconciled) if event.epoch == -1]
    assert leaving_heartbeats[0].at_us < 10_000_000, "it did not announce that it leaves"


def test_added_partitions_are_assigned() -> None:
    text = SMALL.format(consumers="[{name: a}, {name: b}]", duration="30s", more="")
    text += "script: [{at: 12s, do: {add_partitions: {topic: t, partitions: 5}}}]\n"
    result = run(text)
    *_, last = events(result, TargetAssigned)
    assert sorted(name for _, names in last.assignments for name in names) == [f"t-{n}" for n in range(5)]
    reads = {name for event in events(result, PartitionsAssigned) for name in event.partitions}
    assert reads == {f"t-{number}" for number in range(5)}


def test_a_restarted_static_member_gets_its_partitions_back_without_a_rebalance() -> None:
    consumers = (
        "[{name: a, settings: {group.instance.id: one}}, {name: b, start: 1s, stop: 12s, settings: {group.instance.id: two}},"
        " {name: again, start: 20s, settings: {group.instance.id: two}}]"
    )
    result = small(consumers, "30s")
    assert [event.epoch for event in events(result, TargetAssigned)] == [2, 3]
    assert max(processed(result).values()) == 1


def test_a_consumer_with_the_other_protocol_cannot_join() -> None:
    result = small("[{name: a}, {name: b, start: 5s, settings: {group.protocol: classic}}]")
    losses = [(event.client, event.reason) for event in events(result, MembershipLost)]
    assert losses == [("b", "INCONSISTENT_GROUP_PROTOCOL")]
    result = small("[{name: a, start: 5s}, {name: b, settings: {group.protocol: classic}}]")
    losses = [(event.client, event.reason) for event in events(result, MembershipLost)]
    assert losses == [("a", "GROUP_ID_NOT_FOUND")]


def test_a_consumer_with_assigned_partitions_only_commits() -> None:
    result = small("[{name: a, partitions: [t-1]}]", more=", auto.commit.interval.ms: 1s")
    commits = [
        operation
        for operation in result.evidence.operations
        if operation.f == "commit" and operation.type == OK
    ]
    assert len(commits) > 5
    assert not events(result, TargetAssigned)
    assert not [event for event in events(result, RequestRejected) if event.api == "OffsetCommit"]


def test_a_release_before_4_0_lacks_the_consumer_protocol() -> None:
    text = SMALL.format(consumers="[{}]", duration="9s", more="").replace("4.3", "3.9")
    with pytest.raises(
        CampaignError, match=r"groups.yaml:2:\d+: Kafka 3.9 has no group.protocol; it came with 4.0"
    ):
        load_text(text, "groups.yaml")


def test_settings_of_the_classic_protocol_are_refused_with_the_consumer_protocol() -> None:
    text = SMALL.format(consumers="[{settings: {session.timeout.ms: 9s}}]", duration="9s", more="")
    expected = (
        r"groups.yaml:8:\d+: session.timeout.ms cannot be set with group.protocol=consumer: brokers set it"
    )
    with pytest.raises(CampaignError, match=expected):
        load_text(text, "groups.yaml")
