"""Classic groups keep their promises while members and brokers fail."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD
from harrow.cluster_model.events import (
    CommitFailed,
    GroupAssigned,
    MembershipLost,
    PartitionsAssigned,
    PartitionsRevoked,
    RecordsProcessed,
    RequestRejected,
)
from harrow.cluster_model.history import ASSIGN, COMMIT, OK, SUBSCRIBE
from harrow.cluster_model.trace import select

BASE = """
settings:
  acks: all
  group.id: g
  auto.offset.reset: earliest
  offsets.topic.num.partitions: 1
  session.timeout.ms: 6s
  heartbeat.interval.ms: 1s
  max.poll.interval.ms: 12s
  {more}
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


def run(text: str, seed: int = 0) -> RunResult:
    return run_plan(load_text(text, "groups.yaml").plans[0], seed)


def processed(result: RunResult) -> Counter[str]:
    events = select(result.evidence.trace, RecordsProcessed)
    return Counter(value for event in events for value in event.values)


def acked(result: RunResult) -> set[str]:
    return {
        value
        for operation in result.evidence.operations
        if operation.type == OK
        for _, _, value in operation.sends()
    }


CASES = [
    ("2.4", "range", "zombie"),
    ("3.9", "roundrobin", "pause"),
    ("4.3", "cooperative-sticky", "zombie"),
]


def campaign_text(kafka: str, assignor: str, fault: str, commit: str) -> str:
    more = f"partition.assignment.strategy: {assignor}"
    return BASE.format(more=more, kafka=kafka, fault=fault, commit=commit)


@pytest.mark.parametrize(("kafka", "assignor", "fault"), CASES)
def test_commits_after_processing_skip_no_record(kafka: str, assignor: str, fault: str) -> None:
    result = run(campaign_text(kafka, assignor, fault, "after"))
    assert result.verdict.status == HELD
    assert not acked(result) - set(processed(result))


@pytest.mark.parametrize(("kafka", "assignor", "fault"), CASES)
def test_commits_before_processing_repeat_no_record(kafka: str, assignor: str, fault: str) -> None:
    result = run(campaign_text(kafka, assignor, fault, "before"))
    assert result.verdict.status == HELD
    assert max(processed(result).values()) == 1


@pytest.mark.parametrize(("kafka", "assignor", "fault"), CASES[::2])
def test_in_a_generation_each_partition_has_one_reader(kafka: str, assignor: str, fault: str) -> None:
    result = run(campaign_text(kafka, assignor, fault, "auto"))
    generations = list(select(result.evidence.trace, GroupAssigned))
    assert len(generations) > 2
    for event in generations:
        names = [name for _, partitions in event.assignments for name in partitions]
        assert len(names) == len(set(names))
    assert all(one.generation < other.generation for one, other in pairwise(generations))


SMALL = """
settings: {{acks: all, group.id: g, auto.offset.reset: earliest, offsets.topic.num.partitions: 1, session.timeout.ms: 6s{more}}}
kafka: "3.9"
cluster: {{brokers: 3, topics: [{{name: t, partitions: 2, replication_factor: 3}}]}}
workload:
  duration: {duration}
  producers: [{{rate: 2/s}}]
  consumers: {consumers}
"""


def test_a_member_that_polls_too_rarely_leaves_its_group_and_cannot_commit() -> None:
    result = run(
        SMALL.format(
            more=", max.poll.interval.ms: 4s",
            duration="20s",
            consumers="[{commit: after, poll_interval: 7s}]",
        )
    )
    losses = [event.reason for event in select(result.evidence.trace, MembershipLost)]
    assert "max.poll.interval.ms" in losses
    assert list(select(result.evidence.trace, CommitFailed))
    assert any(event.lost for event in select(result.evidence.trace, PartitionsRevoked))


def test_the_earlier_of_two_members_with_one_instance_id_is_fenced() -> None:
    consumers = "[{name: former, settings: {group.instance.id: one}}, {name: latter, start: 10s, settings: {group.instance.id: one}}]"
    result = run(SMALL.format(more="", duration="20s", consumers=consumers))
    losses = [(event.client, event.reason) for event in select(result.evidence.trace, MembershipLost)]
    assert losses == [("former", "FENCED_INSTANCE_ID")]


def test_a_consumer_with_assigned_partitions_only_commits() -> None:
    consumers = "[{name: a, partitions: [t-1]}]"
    result = run(SMALL.format(more=", auto.commit.interval.ms: 1s", duration="10s", consumers=consumers))
    refused = {event.api for event in select(result.evidence.trace, RequestRejected)}
    assert not refused & {"OffsetCommit", "JoinGroup", "Heartbeat"}
    commits = [
        operation
        for operation in result.evidence.operations
        if operation.f == COMMIT and operation.type == OK
    ]
    assert len(commits) > 5
    assert {micro[1] for commit in commits for micro in commit.value} == {"t-1"}


def test_added_partitions_cause_a_rebalance() -> None:
    consumers = "[{name: a}, {name: b}]"
    text = SMALL.format(more=", metadata.max.age.ms: 2s", duration="25s", consumers=consumers)
    result = run(f"{text}script:\n  - at: 10s\n    do: {{add_partitions: {{topic: t, partitions: 3}}}}\n")
    assigned = [
        name for event in select(result.evidence.trace, PartitionsAssigned) for name in event.partitions
    ]
    assert "t-2" in assigned


def test_the_history_has_subscriptions_assignments_and_commits() -> None:
    result = run(SMALL.format(more="", duration="15s", consumers="[{name: a}, {name: b, start: 6s}]"))
    operations = [operation for operation in result.evidence.operations if operation.type == OK]
    subscribed: list[tuple[Any, ...]] = [
        operation.value for operation in operations if operation.f == SUBSCRIBE
    ]
    assert subscribed == [("t-0", "t-1")] * 2
    reads: dict[int, list[tuple[Any, ...]]] = {}
    for operation in operations:
        if operation.f == ASSIGN:
            reads.setdefault(operation.process, []).append(operation.value)
    assert list(reads.values()) == [[("t-0", "t-1"), (), ("t-0",)], [("t-1",)]]
    assert [operation for operation in operations if operation.f == COMMIT]
    assert result.verdict.status == HELD
