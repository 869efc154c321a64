"""What groups promise to the applications that are their members, whatever happens to these and to brokers."""

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


def faulty(kafka: str, assignor: str, fault: str, commit: str) -> str:
    more = f"partition.assignment.strategy: {assignor}"
    return BASE.format(more=more, kafka=kafka, fault=fault, commit=commit)


@pytest.mark.parametrize(("kafka", "assignor", "fault"), CASES)
def test_who_commits_after_processing_leaves_nothing_out(kafka: str, assignor: str, fault: str) -> None:
    result = run(faulty(kafka, assignor, fault, "after"))
    assert result.verdict.status == HELD
    assert not acked(result) - set(processed(result))


@pytest.mark.parametrize(("kafka", "assignor", "fault"), CASES)
def test_who_commits_before_processing_processes_nothing_twice(kafka: str, assignor: str, fault: str) -> None:
    result = run(faulty(kafka, assignor, fault, "before"))
    assert result.verdict.status == HELD
    assert max(processed(result).values()) == 1


@pytest.mark.parametrize(("kafka", "assignor", "fault"), CASES[::2])
def test_in_a_generation_each_partition_has_one_reader(kafka: str, assignor: str, fault: str) -> None:
    result = run(faulty(kafka, assignor, fault, "auto"))
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


def test_who_polls_too_seldom_leaves_its_group_and_cannot_commit() -> None:
    result = run(
        SMALL.format(
            more=", max.poll.interval.ms: 4s",
            duration="20s",
            consumers="[{commit: after, poll_interval: 7s}]",
        )
    )
    lost = [event.reason for event in select(result.evidence.trace, MembershipLost)]
    assert "max.poll.interval.ms" in lost
    assert list(select(result.evidence.trace, CommitFailed))
    assert any(event.lost for event in select(result.evidence.trace, PartitionsRevoked))


def test_of_two_with_one_instance_id_the_former_ends() -> None:
    consumers = "[{name: former, settings: {group.instance.id: one}}, {name: latter, start: 10s, settings: {group.instance.id: one}}]"
    result = run(SMALL.format(more="", duration="20s", consumers=consumers))
    lost = [(event.client, event.reason) for event in select(result.evidence.trace, MembershipLost)]
    assert lost == [("former", "FENCED_INSTANCE_ID")]


def test_who_has_partitions_of_its_own_only_commits() -> None:
    consumers = "[{name: a, partitions: [t-1]}]"
    result = run(SMALL.format(more=", auto.commit.interval.ms: 1s", duration="10s", consumers=consumers))
    refused = {event.api for event in select(result.evidence.trace, RequestRejected)}
    assert not refused & {"OffsetCommit", "JoinGroup", "Heartbeat"}
    commits = [each for each in result.evidence.operations if each.f == COMMIT and each.type == OK]
    assert len(commits) > 5
    assert {micro[1] for each in commits for micro in each.value} == {"t-1"}


def test_a_topic_that_gets_partitions_has_its_group_rebalance() -> None:
    consumers = "[{name: a}, {name: b}]"
    text = SMALL.format(more=", metadata.max.age.ms: 2s", duration="25s", consumers=consumers)
    result = run(f"{text}script:\n  - at: 10s\n    do: {{add_partitions: {{topic: t, partitions: 3}}}}\n")
    assigned = [
        name for event in select(result.evidence.trace, PartitionsAssigned) for name in event.partitions
    ]
    assert "t-2" in assigned


def test_the_history_has_what_a_consumer_reads_and_commits() -> None:
    result = run(SMALL.format(more="", duration="15s", consumers="[{name: a}, {name: b, start: 6s}]"))
    operations = [each for each in result.evidence.operations if each.type == OK]
    subscribed: list[tuple[Any, ...]] = [each.value for each in operations if each.f == SUBSCRIBE]
    assert subscribed == [("t-0", "t-1")] * 2
    reads: dict[int, list[tuple[Any, ...]]] = {}
    for each in operations:
        if each.f == ASSIGN:
            reads.setdefault(each.process, []).append(each.value)
    assert list(reads.values()) == [[("t-0", "t-1"), (), ("t-0",)], [("t-1",)]]
    assert [each for each in operations if each.f == COMMIT]
    assert result.verdict.status == HELD
