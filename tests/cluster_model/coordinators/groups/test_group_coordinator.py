"""The group coordinator and single requests: its states, refusals and failovers."""

from dataclasses import replace
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.coordinators.groups.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from harrow.cluster_model.coordinators.internal_topics import internal_topic, partition_for
from harrow.cluster_model.coordinators.protocol import (
    CONSUMER_TYPE,
    NO_GENERATION,
    NO_INSTANCE,
    NO_MEMBER,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    Subscription,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from harrow.cluster_model.events import GroupStateChanged, OffsetsExpired
from harrow.cluster_model.log.record_batch import ABORT, COMMIT, RecordBatch
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, broker_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import CONSUMER_OFFSETS, BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.trace import select

SETTINGS: dict[str, Value] = {"offsets.topic.num.partitions": 1}
RANGE = (("range", Subscription(("t",))),)
SESSION_US = 10 * US_PER_SECOND
REBALANCE_US = 60 * US_PER_SECOND
PARTITION = f"{CONSUMER_OFFSETS}-0"


WITHOUT_VERIFICATION = {"transaction_verification": False}
"""The tests have no transaction coordinator that could verify a transaction (KIP-890)."""


class Application:
    """Sends requests to the current coordinator, each over its own connection."""

    def __init__(
        self, release: str = "3.9", behaviours: dict[str, Any] | None = None, **settings: Value
    ) -> None:
        options = {**SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}}
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(
                TopicSpec(name="t", partitions=2, replication_factor=3),
                internal_topic(CONSUMER_OFFSETS, broker_config(release, options)),
            ),
            settings=options,
        )
        switches = RELEASES[release].behaviours.with_switches(**(behaviours or {}))
        self.cluster = Cluster(spec, release, switches, Choices.from_seed(0))
        self.cluster.start()

    @property
    def coordinator(self) -> int:
        state = self.cluster.partition_state(PARTITION)
        assert state is not None
        return state.leader

    def send(self, request: Any, broker: int | None = None) -> list[Any]:
        answers: list[Any] = []
        broker = self.coordinator if broker is None else broker
        client = NetworkClient(
            self.cluster.host(Process("app")), f"broker-{broker}", "client", REBALANCE_US * 5
        )
        client.send(request, lambda answer, _: answers.append(answer))
        return answers

    def wait(self, seconds: float = 0.1) -> None:
        simulator = self.cluster.simulator
        simulator.run_until(simulator.now_us + int(seconds * US_PER_SECOND))

    def ask(self, request: Any, broker: int | None = None, seconds: float = 0.1) -> Any:
        answers = self.send(request, broker)
        self.wait(seconds)
        return answers[0]

    def join(self, member: str = NO_MEMBER, instance: str = NO_INSTANCE, protocols: Any = RANGE) -> list[Any]:
        """Join, with a member id from the coordinator if the release requires one."""
        request = JoinGroupRequest("g", SESSION_US, REBALANCE_US, member, instance, protocols)
        if (
            member == NO_MEMBER
            and instance == NO_INSTANCE
            and self.cluster.behaviours.groups.member_id_required
        ):
            answer = self.ask(request)
            assert answer.error == errors.MEMBER_ID_REQUIRED
            request.member = answer.member
        return self.send(request)

    def member(self, instance: str = NO_INSTANCE) -> Any:
        """Add the only member of a new group with its partitions; return the answer to its join."""
        answers = self.join(instance=instance)
        self.wait(3.2)
        joined = answers[0]
        synced = self.ask(
            SyncGroupRequest("g", joined.generation, joined.member, instance, {joined.member: ("t-0",)})
        )
        assert (synced.error, synced.partitions) == (errors.NONE, ("t-0",))
        return joined

    def commit(self, generation: int, member: str, offset: int, instance: str = NO_INSTANCE) -> str:
        request = OffsetCommitRequest("g", generation, member, instance, {"t-0": offset})
        answer = self.ask(request)
        return str(answer.partitions["t-0"])

    def committed(self, *, require_stable: bool = False) -> tuple[str, int]:
        answer = self.ask(OffsetFetchRequest("g", ("t-0",), require_stable))
        result: tuple[str, int] = answer.partitions["t-0"]
        return result

    def states(self) -> list[tuple[str, int]]:
        return [
            (event.state, event.generation) for event in select(self.cluster.trace.events, GroupStateChanged)
        ]


@pytest.mark.parametrize("release", ["0.10.2", "0.11", "2.0", "2.4", "3.9", "4.3"])
def test_a_group_gets_a_generation_and_its_members_their_partitions(release: str) -> None:
    app = Application(release)
    first = app.join()
    app.wait(0.05)
    second = app.join()
    app.wait(6.5)
    leader, follower = first[0], second[0] if second else None
    if follower is None or leader.generation != follower.generation:
        # Without the delay, the first member has a generation of its own, and joins again.
        leader = app.join(leader.member)
        app.wait()
        leader, follower = leader[0], second[0]
    assert leader.leader == leader.member == follower.leader
    assert [name for name, _, _ in leader.members] == [leader.member, follower.member]
    assert follower.members == ()
    plan = {leader.member: ("t-0",), follower.member: ("t-1",)}
    waits = app.send(SyncGroupRequest("g", follower.generation, follower.member, NO_INSTANCE))
    app.wait()
    assert not waits
    assert app.ask(SyncGroupRequest("g", leader.generation, leader.member, NO_INSTANCE, plan)).partitions == (
        "t-0",
    )
    assert waits[0].partitions == ("t-1",)
    assert app.states()[-1] == (STABLE, leader.generation)


def test_an_empty_group_waits_for_more_members_and_longer_as_they_join() -> None:
    app = Application()
    first = app.join()
    app.wait(2.5)
    second = app.join()
    app.wait(2.5)
    assert not first
    app.wait(1.5)
    assert first[0].generation == second[0].generation == 1


def test_since_2_2_a_consumer_gets_a_member_id_before_it_joins() -> None:
    request = JoinGroupRequest("g", SESSION_US, REBALANCE_US, NO_MEMBER, NO_INSTANCE, RANGE)
    assert Application("2.4").ask(request).error == errors.MEMBER_ID_REQUIRED
    assert not Application("2.0").send(request)


def test_during_a_rebalance_heartbeats_report_it_and_commits_are_accepted() -> None:
    app = Application()
    member = app.member()
    heartbeat = HeartbeatRequest("g", 1, member.member, NO_INSTANCE)
    assert app.ask(heartbeat).error == errors.NONE
    app.join()
    app.wait()
    assert app.ask(heartbeat).error == errors.REBALANCE_IN_PROGRESS
    assert app.commit(1, member.member, 5) == errors.NONE
    assert app.committed() == (errors.NONE, 5)
    rejoined = app.join(member.member)
    app.wait()
    assert rejoined[0].generation == 2
    assert app.states()[-1] == (COMPLETING_REBALANCE, 2)
    assert app.commit(1, member.member, 6) == errors.ILLEGAL_GENERATION
    assert app.commit(2, member.member, 6) == errors.REBALANCE_IN_PROGRESS
    assert app.commit(2, "unknown", 6) == errors.UNKNOWN_MEMBER_ID
    assert app.committed() == (errors.NONE, 5)


def test_the_mutant_accepts_commits_of_another_generation() -> None:
    app = Application(behaviours={"generations_fence_commits": False})
    app.member()
    assert app.commit(0, "unknown", 6) == errors.NONE
    assert app.committed() == (errors.NONE, 6)


def test_a_consumer_that_is_no_member_may_commit_while_the_group_is_empty() -> None:
    app = Application()
    assert app.commit(NO_GENERATION, NO_MEMBER, 3) == errors.NONE
    assert app.commit(0, "m", 3) == errors.UNKNOWN_MEMBER_ID
    member = app.member()
    assert app.commit(NO_GENERATION, NO_MEMBER, 4) == errors.UNKNOWN_MEMBER_ID
    app.ask(LeaveGroupRequest("g", member.member))
    assert app.commit(NO_GENERATION, NO_MEMBER, 4) == errors.NONE


def test_a_leaving_member_is_replaced_at_once_and_a_dead_one_after_its_session() -> None:
    app = Application()
    member = app.member()
    other = app.join()
    rejoined = app.join(member.member)
    app.wait()
    plan = {member.member: ("t-0",), other[0].member: ("t-1",)}
    app.ask(SyncGroupRequest("g", 2, rejoined[0].member, NO_INSTANCE, plan))
    app.ask(SyncGroupRequest("g", 2, other[0].member, NO_INSTANCE))
    app.ask(LeaveGroupRequest("g", other[0].member))
    assert app.states()[-1] == (PREPARING_REBALANCE, 2)
    alone = app.join(member.member)
    app.wait()
    assert [name for name, _, _ in alone[0].members] == [member.member]
    app.ask(SyncGroupRequest("g", 3, member.member, NO_INSTANCE, {member.member: ("t-0", "t-1")}))
    assert app.states()[-1] == (STABLE, 3)
    app.wait(9.5)
    assert app.states()[-1] == (STABLE, 3)
    app.wait(1)
    assert app.states()[-1] == (EMPTY, 4)


def test_a_member_that_does_not_rejoin_is_removed_after_the_rebalance_timeout() -> None:
    app = Application()
    member = app.member()
    other = app.join()
    for _ in range(12):
        app.ask(HeartbeatRequest("g", 1, member.member, NO_INSTANCE), seconds=5)
    app.wait()
    assert other[0].generation == 2
    assert [name for name, _, _ in other[0].members] == [other[0].member]
    assert app.ask(HeartbeatRequest("g", 1, member.member, NO_INSTANCE)).error == errors.UNKNOWN_MEMBER_ID


def test_a_static_member_that_returns_gets_its_partitions_and_fences_its_former_session() -> None:
    app = Application()
    former = app.member(instance="one")
    returned = app.join(instance="one")
    app.wait()
    assert returned[0].generation == 1
    assert returned[0].skip_assignment
    assert returned[0].member != former.member
    synced = app.ask(SyncGroupRequest("g", 1, returned[0].member, "one"))
    assert synced.partitions == ("t-0",)
    assert app.ask(HeartbeatRequest("g", 1, former.member, "one")).error == errors.FENCED_INSTANCE_ID
    assert app.commit(1, former.member, 3, "one") == errors.FENCED_INSTANCE_ID
    assert app.commit(1, returned[0].member, 3, "one") == errors.NONE


@pytest.mark.parametrize(
    ("release", "known_id", "unknown_id"),
    [
        ("2.4", errors.FENCED_INSTANCE_ID, errors.UNKNOWN_SERVER_ERROR),
        ("2.8", errors.FENCED_INSTANCE_ID, errors.UNKNOWN_SERVER_ERROR),
        ("3.9", errors.NONE, errors.NONE),
    ],
)
def test_up_to_2_8_a_pending_member_cannot_leave_with_an_instance_id(
    release: str, known_id: str, unknown_id: str
) -> None:
    app = Application(release)
    app.member(instance="one")

    def leave(instance: str) -> str:
        answer = app.ask(JoinGroupRequest("g", SESSION_US, REBALANCE_US, NO_MEMBER, NO_INSTANCE, RANGE))
        assert answer.error == errors.MEMBER_ID_REQUIRED
        return str(app.ask(LeaveGroupRequest("g", answer.member, instance)).error)

    assert (leave("one"), leave("two")) == (known_id, unknown_id)
    assert app.states()[-1] == (STABLE, 1)


@pytest.mark.parametrize("seconds", [5, 2_000])
def test_a_session_timeout_outside_of_the_brokers_limits_is_refused(seconds: int) -> None:
    app = Application()
    request = JoinGroupRequest("g", seconds * US_PER_SECOND, REBALANCE_US, NO_MEMBER, NO_INSTANCE, RANGE)
    assert app.ask(request).error == errors.INVALID_SESSION_TIMEOUT


def test_members_without_a_common_assignor_cannot_form_a_group() -> None:
    app = Application()
    app.member()
    request = JoinGroupRequest(
        "g", SESSION_US, REBALANCE_US, NO_MEMBER, NO_INSTANCE, (("sticky", RANGE[0][1]),)
    )
    assert app.ask(request).error == errors.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("missing", [{"protocols": ()}, {"protocol_type": ""}], ids=str)
def test_a_group_has_no_members_without_a_type_or_an_assignor(missing: dict[str, Any]) -> None:
    app = Application()
    request = replace(
        JoinGroupRequest("g", SESSION_US, REBALANCE_US, NO_MEMBER, NO_INSTANCE, RANGE), **missing
    )
    assert app.ask(request).error == errors.INCONSISTENT_GROUP_PROTOCOL


def test_a_refused_member_does_not_change_the_type_of_an_empty_group() -> None:
    app = Application()
    member = app.member().member
    app.ask(LeaveGroupRequest("g", member))
    request = JoinGroupRequest("g", SESSION_US, REBALANCE_US, member, NO_INSTANCE, RANGE)
    assert app.ask(replace(request, protocol_type="connect")).error == errors.UNKNOWN_MEMBER_ID
    (group,) = app.ask(DescribeGroupsRequest(("g",))).groups
    assert (group.state, group.protocol_type) == (EMPTY, CONSUMER_TYPE)


@pytest.mark.parametrize(
    ("release", "assignor"), [("2.4", "roundrobin"), ("3.9", "roundrobin"), ("4.3", "range")]
)
@pytest.mark.parametrize("prefers", [("range", "roundrobin"), ("roundrobin", "range")])
def test_a_tie_between_assignors_is_decided_by_the_coordinators_hash_table(
    release: str, assignor: str, prefers: tuple[str, str]
) -> None:
    app = Application(release)
    subscription = Subscription(("t",))
    first = app.join(protocols=tuple((name, subscription) for name in prefers))
    second = app.join(protocols=tuple((name, subscription) for name in reversed(prefers)))
    app.wait(6.5)
    assert [first[0].protocol, second[0].protocol] == [assignor, assignor]


@pytest.mark.parametrize("release", ["0.11", "2.4", "3.9"])
def test_a_successor_knows_the_generation_and_the_committed_offsets(release: str) -> None:
    app = Application(release, group_max_session_timeout_ms=1_800_000)
    answers = app.join()
    app.wait(3.2)
    member = answers[0].member
    app.ask(SyncGroupRequest("g", 1, member, NO_INSTANCE, {member: ("t-0",)}))
    assert app.commit(1, member, 7) == errors.NONE
    first = app.coordinator
    app.cluster.crash_broker(first, power_loss=False)
    for _ in range(200):
        app.wait(0.1)
        if app.coordinator not in (first, -1):
            break
    app.wait(0.5)
    assert app.committed() == (errors.NONE, 7)
    assert app.ask(HeartbeatRequest("g", 1, member, NO_INSTANCE)).error == errors.NONE
    assert app.commit(0, member, 8) == errors.ILLEGAL_GENERATION
    other = next(broker for broker in range(3) if broker not in (first, app.coordinator))
    assert app.ask(HeartbeatRequest("g", 1, member, NO_INSTANCE), other).error == errors.NOT_COORDINATOR


def _end(app: Application, producer_id: int, control: str) -> None:
    """End a transaction, like a leader that gets a marker (WriteTxnMarkers)."""
    leader = app.cluster.brokers[app.coordinator]
    marker = RecordBatch((), producer_id, 0, is_transactional=True, control_type=control)
    leader.replicas.append_records({PARTITION: marker}, -1, US_PER_SECOND, lambda _: None)
    leader.groups.transaction_completed(0, producer_id, committed=control == COMMIT)


@pytest.mark.parametrize("release", ["2.4", "3.9"])
@pytest.mark.parametrize("control", [COMMIT, ABORT])
def test_offsets_of_a_transaction_take_effect_with_its_marker(release: str, control: str) -> None:
    app = Application(release, WITHOUT_VERIFICATION)
    app.commit(NO_GENERATION, NO_MEMBER, 1)
    answer = app.ask(TxnOffsetCommitRequest("id", "g", 7, 0, {"t-0": 9}))
    assert answer.partitions == {"t-0": errors.NONE}
    assert app.committed() == (errors.NONE, 1)
    assert app.committed(require_stable=True)[0] == errors.UNSTABLE_OFFSET_COMMIT
    _end(app, 7, control)
    expected = (errors.NONE, 9 if control == COMMIT else 1)
    assert app.committed(require_stable=True) == expected
    app.cluster.crash_broker(app.coordinator, power_loss=False)
    app.wait(30)
    assert app.committed(require_stable=True) == expected


@pytest.mark.parametrize(
    ("release", "error"),
    [("2.4", errors.NONE), ("3.6", errors.NONE), ("3.9", errors.COORDINATOR_NOT_AVAILABLE)],
)
def test_up_to_3_6_offsets_are_accepted_in_an_unknown_transaction(release: str, error: str) -> None:
    """A group coordinator verifies transactions since 3.7 (KAFKA-15784), leaders since 3.6.

    Here there is no coordinator that could verify one.
    """
    app = Application(release)
    assert app.ask(TxnOffsetCommitRequest("id", "g", 7, 0, {"t-0": 9})).partitions == {"t-0": error}


def test_a_successor_knows_the_offsets_of_an_open_transaction() -> None:
    app = Application(behaviours=WITHOUT_VERIFICATION)
    app.ask(TxnOffsetCommitRequest("id", "g", 7, 0, {"t-0": 9}))
    app.cluster.crash_broker(app.coordinator, power_loss=False)
    app.wait(30)
    assert app.committed() == (errors.NONE, -1)
    assert app.committed(require_stable=True)[0] == errors.UNSTABLE_OFFSET_COMMIT


def test_a_transactional_commit_of_a_former_member_is_fenced() -> None:
    app = Application(behaviours=WITHOUT_VERIFICATION)
    member = app.member()
    request = TxnOffsetCommitRequest("id", "g", 7, 0, {"t-0": 9}, 0, member.member)
    assert app.ask(request).partitions == {"t-0": errors.ILLEGAL_GENERATION}
    request.generation = 1
    assert app.ask(request).partitions == {"t-0": errors.NONE}


@pytest.mark.parametrize(("release", "expires"), [("2.0", True), ("2.4", False)])
def test_up_to_2_0_offsets_of_a_group_with_members_expire(release: str, expires: bool) -> None:
    app = Application(
        release,
        offsets_retention_minutes=1,
        offsets_retention_check_interval_ms=30_000,
        group_max_session_timeout_ms=1_800_000,
    )
    answers = app.join()
    app.wait(3.2)
    member = answers[0].member
    app.ask(SyncGroupRequest("g", 1, member, NO_INSTANCE, {member: ("t-0",)}))
    app.commit(1, member, 7)
    for _ in range(12):
        app.ask(HeartbeatRequest("g", 1, member, NO_INSTANCE), seconds=9)
    assert app.committed() == (errors.NONE, -1 if expires else 7)
    app.ask(LeaveGroupRequest("g", member))
    app.wait(100)
    assert app.committed() == (errors.NONE, -1)
    assert len(list(select(app.cluster.trace.events, OffsetsExpired))) == 1


def with_short_retention() -> Application:
    return Application(
        offsets_retention_minutes=1,
        offsets_retention_check_interval_ms=30_000,
        group_max_session_timeout_ms=1_800_000,
    )


def test_offsets_of_an_empty_group_expire_together_regardless_of_their_commit_times() -> None:
    app = with_short_retention()
    member = app.member().member
    app.commit(1, member, 7)
    app.ask(LeaveGroupRequest("g", member))
    app.wait(40)
    # A commit without a member, like that of an administrator who resets the group.
    assert app.commit(NO_GENERATION, NO_MEMBER, 5) == errors.NONE
    app.wait(55)
    assert app.committed() == (errors.NONE, -1)


def test_offsets_of_a_group_that_never_had_members_expire_by_commit_time() -> None:
    app = with_short_retention()
    app.commit(NO_GENERATION, NO_MEMBER, 5)
    app.wait(40)
    app.commit(NO_GENERATION, NO_MEMBER, 6)
    app.wait(55)
    assert app.committed() == (errors.NONE, 6)
    app.wait(50)
    assert app.committed() == (errors.NONE, -1)


def test_offsets_of_topics_that_no_member_reads_expire_while_a_group_has_members() -> None:
    app = with_short_retention()
    member = app.member().member
    request = OffsetCommitRequest("g", 1, member, NO_INSTANCE, {"t-0": 7, "u-0": 9})
    assert app.ask(request).partitions == {"t-0": errors.NONE, "u-0": errors.NONE}
    for _ in range(12):
        app.ask(HeartbeatRequest("g", 1, member, NO_INSTANCE), seconds=9)
    answer = app.ask(OffsetFetchRequest("g", ("t-0", "u-0"), False))
    assert answer.partitions == {"t-0": (errors.NONE, 7), "u-0": (errors.NONE, -1)}


def test_a_group_belongs_to_the_partition_of_its_id() -> None:
    """The document with this example names partition 11, which is an error."""
    assert partition_for("console-consumer-49366", 50) == 19


@pytest.mark.parametrize(("release", "waits"), [("3.9", False), ("4.0", True)])
@pytest.mark.parametrize("leaves", [True, False])
def test_since_4_0_an_answer_waits_until_earlier_writes_are_committed(
    release: str, *, waits: bool, leaves: bool
) -> None:
    app = Application(release)
    member = app.member()
    leave = LeaveGroupRequest("g", member.member, NO_INSTANCE)
    heartbeat = HeartbeatRequest("g", member.generation, member.member, NO_INSTANCE)
    followers = [broker for broker in range(3) if broker != app.coordinator]
    for broker in followers:
        app.cluster.pause_broker(broker)
    app.send(OffsetCommitRequest("g", member.generation, member.member, NO_INSTANCE, {"t-0": 7}))
    app.wait(0.1)
    answers = app.send(leave if leaves else heartbeat)
    app.wait(1)
    assert [answer.error for answer in answers] == ([] if waits else [errors.NONE])
    for broker in followers:
        app.cluster.resume_broker(broker)
    app.wait(1)
    assert [answer.error for answer in answers] == [errors.NONE]


def test_a_coordinator_answers_even_if_its_isr_is_too_small_for_acks_all() -> None:
    app = Application("4.0", min_insync_replicas=2)
    member = app.member()
    app.wait(2)
    for broker in range(3):
        if broker != app.coordinator:
            app.cluster.crash_broker(broker, power_loss=False)
    heartbeat = HeartbeatRequest("g", member.generation, member.member, NO_INSTANCE)
    for _ in range(5):
        app.wait(3)
        assert app.ask(heartbeat).error == errors.NONE
    assert app.cluster.brokers[app.coordinator].replicas.partitions[PARTITION].isr == (app.coordinator,)
    assert app.committed(require_stable=True) == (errors.NONE, -1)


def test_since_4_0_a_commit_stored_after_its_timeout_takes_effect() -> None:
    app = Application("4.0")
    member = app.member()
    followers = [broker for broker in range(3) if broker != app.coordinator]
    for broker in followers:
        app.cluster.pause_broker(broker)
    commit = OffsetCommitRequest("g", member.generation, member.member, NO_INSTANCE, {"t-0": 7})
    assert app.ask(commit, seconds=5.1).partitions["t-0"] == errors.REQUEST_TIMED_OUT
    for broker in followers:
        app.cluster.resume_broker(broker)
    app.wait(1)
    assert app.committed(require_stable=True) == (errors.NONE, 7)


@pytest.mark.parametrize(
    "request_",
    [DeleteGroupsRequest(("g",)), OffsetDeleteRequest("g", {"t-0": None})],
    ids=["group", "offsets"],
)
def test_a_deletion_that_cannot_be_stored_changes_nothing(request_: Any) -> None:
    app = Application(min_insync_replicas=2, replica_lag_time_max_ms=1_000)
    assert app.commit(NO_GENERATION, NO_MEMBER, 7) == errors.NONE
    for follower in sorted({0, 1, 2} - {app.coordinator}):
        app.cluster.crash_broker(follower, power_loss=False)
    app.wait(30)
    answer = app.ask(request_, seconds=30)
    assert errors.NONE not in {getattr(answer, "error", ""), *getattr(answer, "groups", {}).values()}
    assert app.committed() == (errors.NONE, 7)


def test_offsets_are_deleted_while_a_consumer_group_rebalances() -> None:
    app = Application()
    assert app.commit(NO_GENERATION, NO_MEMBER, 7) == errors.NONE
    app.join(protocols=(("range", Subscription(("other",))),))
    app.wait()
    assert app.ask(OffsetDeleteRequest("g", {"t-0": None})).partitions == {"t-0": errors.NONE}
    assert app.committed() == (errors.NONE, -1)
