"""Laws of groups with assignment by the coordinator (KIP-848), for any actions of members."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.coordinators.coordinator_log import CoordinatorRecord
from harrow.cluster_model.coordinators.groups.consumer_group import (
    STABLE,
    ConsumerGroup,
    ConsumerGroupMember,
    Subscriber,
)
from harrow.cluster_model.coordinators.groups.consumer_group_records import (
    current_record,
    epoch_record,
    member_record,
    member_target_record,
    replay,
    target_record,
)
from harrow.cluster_model.coordinators.groups.current_assignment import next_assignment
from harrow.cluster_model.coordinators.groups.server_assignors import (
    SERVER_ASSIGNORS,
    UNIFORM,
    Members,
    MemberSpec,
    partitions_of,
)
from harrow.cluster_model.events import GroupStateChanged, RecordsProcessed, TargetAssigned
from harrow.cluster_model.history import OK
from harrow.cluster_model.trace import select

MEMBER_NAMES = ("a", "b", "c", "d")
TOPICS = {"t": 5, "u": 3}
ALL_PARTITIONS = {name for topic, count in TOPICS.items() for name in partitions_of(topic, count)}
ASSIGNORS = st.sampled_from(sorted(SERVER_ASSIGNORS))
SUBSCRIPTIONS = st.sets(st.sampled_from(sorted(TOPICS)), min_size=1).map(lambda topics: tuple(sorted(topics)))


# Assignors


def assign(assignor: str, members: Members) -> dict[str, tuple[str, ...]]:
    subscribed = {topic for member in members.values() for topic in member.topics}
    topics = {topic: count for topic, count in TOPICS.items() if topic in subscribed}
    return SERVER_ASSIGNORS[assignor](members, topics)


@given(ASSIGNORS, st.dictionaries(st.sampled_from(MEMBER_NAMES), SUBSCRIPTIONS, min_size=1))
def test_each_partition_goes_to_one_subscriber_of_its_topic(
    assignor: str, topics: dict[str, tuple[str, ...]]
) -> None:
    target = assign(assignor, {name: MemberSpec("", subscribed, ()) for name, subscribed in topics.items()})
    assigned_partitions = [partition for partitions in target.values() for partition in partitions]
    expected = {
        name
        for name in ALL_PARTITIONS
        if any(name.rpartition("-")[0] in subscribed for subscribed in topics.values())
    }
    assert sorted(assigned_partitions) == sorted(expected)
    assert all(
        partition.rpartition("-")[0] in topics[name]
        for name, partitions in target.items()
        for partition in partitions
    )


@given(st.lists(st.sampled_from(MEMBER_NAMES), min_size=1, max_size=12))
def test_uniform_is_even_and_moves_as_few_partitions_as_possible(joins_and_leaves: list[str]) -> None:
    topics = tuple(TOPICS)
    target: dict[str, tuple[str, ...]] = {}
    for name in joins_and_leaves:
        members = dict.fromkeys(target)
        if name in members and len(members) > 1:
            del members[name]
        else:
            members[name] = None
        before = {member: target.get(member, ()) for member in members}
        target = assign(UNIFORM, {m: MemberSpec("", topics, owned) for m, owned in before.items()})
        sizes = [len(partitions) for partitions in target.values()]
        assert max(sizes) - min(sizes) <= 1
        for member, partitions in target.items():
            stayed = set(before[member]) & set(partitions)
            assert len(stayed) == min(len(before[member]), len(partitions)), "a partition moved needlessly"


@given(st.dictionaries(st.sampled_from(MEMBER_NAMES), SUBSCRIPTIONS, min_size=2))
def test_range_divides_each_topic_evenly_among_its_subscribers(topics: dict[str, tuple[str, ...]]) -> None:
    target = assign("range", {name: MemberSpec("", subscribed, ()) for name, subscribed in topics.items()})
    for topic in TOPICS:
        sizes = [
            sum(name.rpartition("-")[0] == topic for name in target[reader])
            for reader, subscribed in topics.items()
            if topic in subscribed
        ]
        assert not sizes or max(sizes) - min(sizes) <= 1


# Members


class SteppedGroup:
    """A group and its members. A test decides when a member reports its partitions, and obeys."""

    def __init__(self, assignor: str, *, waits: bool = True) -> None:
        self.group = ConsumerGroup(releases_former_instances=True, topics=dict(TOPICS))
        self.assignor = assignor
        self.waits = waits
        self.owned: dict[str, tuple[str, ...]] = {}
        self.owner_by_epoch: dict[tuple[str, int], str] = {}

    def join_or_leave(self, name: str) -> None:
        if name in self.group.members:
            self.group.remove(name)
            self.owned.pop(name)
        else:
            self.group.put(ConsumerGroupMember(name, Subscriber(topics=tuple(TOPICS))))
            self.owned[name] = ()
        self.group.epoch += 1

    def assign(self) -> None:
        group = self.group
        group.target = assign(
            self.assignor,
            {
                name: MemberSpec("", member.subscriber.topics, group.target.get(name, ()))
                for name, member in group.members.items()
            },
        )
        group.target_epoch = group.epoch

    def heartbeat(self, name: str, *, reports: bool, obeys: bool) -> None:
        """Let a member send a heartbeat, *report* its partitions, and *obey* the answer."""
        member = self.group.members.get(name)
        if member is None:
            return
        if self.group.epoch > self.group.target_epoch:
            self.assign()
        before = member.current.assigned
        owned = self.owned[name] if reports else None
        target = self.group.target.get(name, ())
        current = next_assignment(self.group, member, owned, target, waits_for_owners=self.waits)
        self.group.set_current(member, current)
        for partition, epoch in current.assigned.items():
            if partition not in before:
                assert self.owner_by_epoch.setdefault((partition, epoch), name) == name
        if obeys:
            self.owned[name] = tuple(current.assigned)

    def check(self) -> None:
        owners: dict[str, str] = {}
        for name, member in self.group.members.items():
            assert member.current.epoch <= self.group.target_epoch
            assert not set(member.current.assigned) & set(member.current.revoking)
            for partition in member.current.owns():
                assert owners.setdefault(partition, name) == name, f"{partition} has two owners"
            assert set(self.owned[name]) <= set(member.current.owns()), (
                "a member reads a partition that it does not own"
            )
        assert self.group.owners == owners


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("join_or_leave", "beat")),
        st.sampled_from(MEMBER_NAMES),
        st.booleans(),
        st.booleans(),
    ),
    max_size=40,
)


@given(ASSIGNORS, STEPS)
def test_no_partition_has_two_owners_and_members_reach_their_target(
    assignor: str, steps: list[tuple[str, str, bool, bool]]
) -> None:
    stepped = SteppedGroup(assignor)
    for action, name, reports, obeys in steps:
        if action == "beat":
            stepped.heartbeat(name, reports=reports, obeys=obeys)
        else:
            stepped.join_or_leave(name)
        stepped.check()
    # Each member revokes partitions after one heartbeat, reports that with its next, and gets new
    # partitions with a third.
    for _ in range(4):
        for name in MEMBER_NAMES:
            stepped.heartbeat(name, reports=True, obeys=True)
            stepped.check()
    if stepped.group.members:
        assert stepped.group.state == STABLE
        assert {name for owned in stepped.owned.values() for name in owned} == ALL_PARTITIONS


def test_without_waiting_for_owners_a_partition_gets_two_owners() -> None:
    stepped = SteppedGroup(UNIFORM, waits=False)
    stepped.join_or_leave("a")
    stepped.heartbeat("a", reports=True, obeys=True)
    stepped.join_or_leave("b")
    stepped.heartbeat("b", reports=True, obeys=True)
    with pytest.raises(AssertionError, match="two owners"):
        stepped.check()


# Records


def records_of(group: ConsumerGroup) -> list[CoordinatorRecord]:
    return [
        epoch_record("g", group),
        target_record("g", group),
        *(member_record("g", member) for member in group.members.values()),
        *(member_target_record("g", name, partitions) for name, partitions in group.target.items()),
        *(current_record("g", member) for member in group.members.values()),
    ]


@given(STEPS, st.randoms(use_true_random=False))
def test_the_last_records_of_a_group_restore_it_in_any_order(
    steps: list[tuple[str, str, bool, bool]], order: Random
) -> None:
    stepped = SteppedGroup(UNIFORM)
    for action, name, reports, obeys in steps:
        if action == "beat":
            stepped.heartbeat(name, reports=reports, obeys=obeys)
        else:
            stepped.join_or_leave(name)
    records = records_of(stepped.group)
    order.shuffle(records)
    loaded = ConsumerGroup(releases_former_instances=True)
    for record in records:
        kind, _, rest = record.key.partition(" ")
        replay(loaded, kind, rest, record.value)
    group = stepped.group
    assert (loaded.epoch, loaded.target_epoch, loaded.topics) == (
        group.epoch,
        group.target_epoch,
        group.topics,
    )
    assert (loaded.target, loaded.owners, loaded.state) == (group.target, group.owners, group.state)
    for name, member in group.members.items():
        assert loaded.members[name].subscriber == member.subscriber
        assert loaded.members[name].current == member.current


# Runs

SWARM = """
settings:
  acks: all
  group.id: g
  group.protocol: consumer
  auto.offset.reset: earliest
  offsets.topic.num.partitions: 1
  group.consumer.session.timeout.ms: 6s
  group.consumer.min.session.timeout.ms: 6s
  group.consumer.heartbeat.interval.ms: 1s
  group.consumer.min.heartbeat.interval.ms: 1s
kafka: "{kafka}"
cluster: {{brokers: 3, topics: [{{name: t, partitions: 5, replication_factor: 3}}]}}
workload:
  duration: 60s
  producers: [{{rate: 4/s, stop: 50s, settings: {{enable.idempotence: true}}}}]
  consumers: [{{name: a}}, {{name: b, commit: after}}, {{name: c, commit: after, poll_interval: 700ms}}, {{name: d, commit: after, start: 20s, stop: 40s}}]
faults:
  - {{rate: 2/m, do: {{client_crash: {{client: a, restart_after: 1s..9s}}}}}}
  - {{rate: 2/m, do: {{client_pause: {{client: b, duration: 1s..12s}}}}}}
  - {{rate: 2/m, do: {{client_zombie: {{client: c, duration: 4s..12s}}}}}}
  - {{rate: 3/m, do: {{broker_crash: {{broker: any, restart_after: 2s..9s}}}}}}
  - {{rate: 2/m, do: {{partition: {{between: [a], and: [0, 1, 2], duration: 1s..9s}}}}}}
  - {{rate: 6/m, do: {{message: {{action: delay, api: ConsumerGroupHeartbeat, kind: response, delay: 3s}}}}}}
script: [{{at: 150s}}]
"""


def acked_values(result: RunResult) -> set[str]:
    return {
        value
        for operation in result.evidence.operations
        if operation.type == OK
        for _, _, value in operation.sends()
    }


@pytest.mark.parametrize("kafka", ["4.0", "4.3"])
@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=100)
def test_under_faults_each_partition_has_one_owner_and_no_record_is_skipped(
    kafka: str, numbers: range
) -> None:
    (plan,) = load_text(SWARM.format(kafka=kafka), "groups.yaml").plans
    for seed in numbers:
        result = run_plan(plan, seed)
        rule = result.verdict.rules["one-owner-per-partition"]
        assert rule.status == "held", (seed, rule)
        assert result.verdict.status in ("held", "permitted"), seed
        trace = result.evidence.trace
        assert len(list(select(trace, TargetAssigned))) > 3
        processed = {value for event in select(trace, RecordsProcessed) for value in event.values}
        assert not acked_values(result) - processed, seed
        *_, last = select(trace, GroupStateChanged)
        assert last.state == STABLE, seed
