"""The coordinator of groups with KIP-848: assignments, fencing, commits and failovers."""

from dataclasses import replace
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.coordinators.groups.consumer_group import (
    ASSIGNING,
    EMPTY,
    RECONCILING,
    STABLE,
)
from harrow.cluster_model.coordinators.protocol import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_GENERATION,
    NO_INSTANCE,
    NO_MEMBER,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from harrow.cluster_model.events import GroupStateChanged, MemberReconciled, TargetAssigned
from harrow.cluster_model.settings import Value
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.trace import select
from tests.cluster_model.coordinators.groups.test_group_coordinator import PARTITION, RANGE, Application

REBALANCE_US = 60 * US_PER_SECOND
BOTH_PARTITIONS = ("t-0", "t-1")
SESSION_S = 45
COMMITS = 60
CLASSIC_JOIN = JoinGroupRequest("g", 10 * US_PER_SECOND, REBALANCE_US, NO_MEMBER, NO_INSTANCE, RANGE)


class Members(Application):
    """Sends heartbeats of named members, each with its last epoch.

    Groups begin in epoch 0, as before 4.3, so that an epoch counts the changes of the group.
    """

    def __init__(
        self, release: str = "4.3", behaviours: dict[str, Any] | None = None, **settings: Value
    ) -> None:
        super().__init__(release, {"group_epoch_starts_at_one": False, **(behaviours or {})}, **settings)
        self.epochs: dict[str, int] = {}

    def heartbeat(
        self,
        member: str,
        epoch: int | None = None,
        *,
        owned: tuple[str, ...] | None = None,
        instance: str = NO_INSTANCE,
        assignor: str | None = None,
        group: str = "g",
    ) -> ConsumerGroupHeartbeatResponse:
        epoch = self.epochs.get(member, JOIN_EPOCH) if epoch is None else epoch
        request = ConsumerGroupHeartbeatRequest(
            group, member, epoch, instance, owned=owned, assignor=assignor
        )
        if epoch == JOIN_EPOCH:
            request = replace(request, rebalance_timeout_us=REBALANCE_US, topics=("t",), owned=())
        answer: ConsumerGroupHeartbeatResponse = self.ask(request)
        if answer.error == errors.NONE:
            self.epochs[member] = answer.epoch
        return answer

    def pair(self) -> None:
        """Add two members with one partition each, in epoch 2."""
        self.heartbeat("a")
        self.wait(1)
        self.heartbeat("b")
        self.heartbeat("a")
        self.heartbeat("a", owned=("t-0",))
        assert self.heartbeat("b").assignment == ("t-1",)
        assert self.epochs == {"a": 2, "b": 2}

    def commit_of(self, member: str, epoch: int, offset: int = 1, partition: str = "t-0") -> str:
        answer = self.ask(OffsetCommitRequest("g", epoch, member, NO_INSTANCE, {partition: offset}))
        return str(answer.partitions[partition])

    def group_states(self) -> list[tuple[str, int]]:
        events = select(self.cluster.trace.events, GroupStateChanged)
        return [(event.state, event.generation) for event in events]


@pytest.mark.parametrize("release", ["4.0", "4.3"])
def test_the_first_member_gets_all_partitions_at_once(release: str) -> None:
    app = Members(release)
    answer = app.heartbeat("a")
    assert (answer.error, answer.epoch, answer.assignment) == (errors.NONE, 1, BOTH_PARTITIONS)
    assert answer.heartbeat_interval_us == 5 * US_PER_SECOND
    assert app.group_states() == [(STABLE, 1)]


def test_offsets_of_topics_that_no_member_reads_expire() -> None:
    app = Members("4.3", offsets_retention_minutes=1, offsets_retention_check_interval_ms=30_000)
    app.heartbeat("a")
    for partition in ("t-0", "u-0"):
        assert app.commit_of("a", 1, 7, partition) == errors.NONE
    for _ in range(25):
        app.heartbeat("a")
        app.wait(4)
    answer = app.ask(OffsetFetchRequest("g", ("t-0", "u-0"), False, "a", 1))
    assert answer.partitions == {"t-0": (errors.NONE, 7), "u-0": (errors.NONE, -1)}


def test_since_4_3_a_group_begins_in_epoch_1_and_its_first_member_in_epoch_2() -> None:
    app = Members(behaviours={"group_epoch_starts_at_one": True})
    answer = app.heartbeat("a")
    assert (answer.epoch, answer.assignment) == (2, BOTH_PARTITIONS)
    assert app.group_states() == [(STABLE, 2)]


def test_a_partition_is_assigned_once_its_former_owner_has_confirmed_the_revocation() -> None:
    app = Members()
    app.heartbeat("a")
    app.wait(1)
    joined = app.heartbeat("b")
    assert (joined.epoch, joined.assignment) == (2, ())
    answer = app.heartbeat("a")
    assert (answer.epoch, answer.assignment) == (1, ("t-0",))
    # The member does not name its partitions, so it still owns all of them.
    assert app.heartbeat("a").epoch == 1
    assert app.heartbeat("a", owned=BOTH_PARTITIONS).epoch == 1
    assert app.heartbeat("b").assignment is None
    acked = app.heartbeat("a", owned=("t-0",))
    assert (acked.epoch, acked.assignment) == (2, None)
    assert app.heartbeat("b").assignment == ("t-1",)
    assert app.group_states() == [(STABLE, 1), (RECONCILING, 2), (STABLE, 2)]


def test_a_static_member_keeps_its_instance_id_without_naming_it_in_each_heartbeat() -> None:
    app = Members(group_consumer_assignors="range")
    app.heartbeat("b", instance="i")
    app.heartbeat("b")
    app.wait(1)
    app.heartbeat("a")
    # The static member comes first, although its member id is the higher one.
    assert app.heartbeat("b").assignment == ("t-0",)


@pytest.mark.parametrize("is_next_target", [True, False])
def test_a_member_that_unsubscribes_gives_up_partitions_before_the_next_target_assignment(
    is_next_target: bool,
) -> None:
    app = Members(behaviours={"assignment_follows_subscription": is_next_target})
    app.heartbeat("a")
    other = ConsumerGroupHeartbeatRequest("g", "a", 1, topics=("u",))
    answer = app.ask(other)
    assert (answer.epoch, answer.assignment) == (1, () if is_next_target else None)
    # The member owns no partition, and waits for the next target assignment.
    assert app.heartbeat("a", owned=()).epoch == 1
    app.wait(1)
    assert app.heartbeat("a", owned=()).epoch == 2


def test_a_rebalance_does_not_wait_for_members_without_partitions_to_revoke() -> None:
    app = Members()
    app.pair()
    app.wait(1)
    assert app.heartbeat("c").epoch == 3
    # One of three members gets nothing. The others enter the new epoch with their next heartbeats.
    assert (app.heartbeat("a").epoch, app.heartbeat("b").epoch) == (3, 3)


def test_the_mutant_assigns_a_partition_that_another_member_owns() -> None:
    app = Members(behaviours={"partitions_revoked_before_reassignment": False})
    app.heartbeat("a")
    app.wait(1)
    assert app.heartbeat("b").assignment == ("t-1",)


@pytest.mark.parametrize(("release", "epochs"), [("4.0", [1, 2, 3]), ("4.3", [1, 3])])
def test_since_4_3_target_assignments_are_a_second_apart(release: str, epochs: list[int]) -> None:
    app = Members(release)
    app.heartbeat("a")
    joined = app.heartbeat("b")
    assert joined.epoch == (2 if release == "4.0" else 1)
    app.wait(1)
    app.heartbeat("c")
    assert [event.epoch for event in select(app.cluster.trace.events, TargetAssigned)] == epochs


def test_a_member_chooses_the_assignor_if_the_broker_supports_it() -> None:
    app = Members(group_consumer_assignors="range")
    assert app.heartbeat("a", assignor="uniform").error == errors.UNSUPPORTED_ASSIGNOR
    app.heartbeat("a", assignor="range")
    assert [event.assignor for event in select(app.cluster.trace.events, TargetAssigned)] == ["range"]


@pytest.mark.parametrize(("release", "epochs"), [("4.3", [1, 1, 1, 1]), ("4.4", [1, 1, 2, 2])])
def test_since_4_4_a_group_assigns_when_most_members_prefer_another_assignor(
    release: str, epochs: list[int]
) -> None:
    """KAFKA-20434. Without preferences the broker's first assignor counts."""
    app = Members(release, group_consumer_assignment_interval_ms=0, group_consumer_assignors="range,uniform")
    assignors = (None, "range", "uniform", "uniform")
    assert [app.heartbeat("a", assignor=assignor).epoch for assignor in assignors] == epochs
    used = [event.assignor for event in select(app.cluster.trace.events, TargetAssigned)]
    assert used == ["range", "uniform"][: epochs[-1]]


def test_a_tie_between_assignors_goes_to_the_first_in_a_java_hash_table() -> None:
    app = Members(group_consumer_assignment_interval_ms=0)
    for member, assignor in [("a", "range"), ("b", "range"), ("c", "uniform"), ("d", "uniform")]:
        app.heartbeat(member, assignor=assignor)
    used = [event.assignor for event in select(app.cluster.trace.events, TargetAssigned)]
    assert used == ["range", "range", "range", "uniform"]


@pytest.mark.parametrize(("release", "assignment"), [("4.3", ()), ("4.4", BOTH_PARTITIONS)])
def test_since_4_4_the_first_member_of_an_emptied_group_does_not_wait_for_the_assignment_interval(
    release: str, assignment: tuple[str, ...]
) -> None:
    """KAFKA-20442."""
    app = Members(release)
    app.heartbeat("a")
    app.heartbeat("a", LEAVE_EPOCH)
    assert app.heartbeat("b").assignment == assignment


@pytest.mark.parametrize(
    ("release", "while_member", "after_leaving"),
    [
        ("4.3", errors.UNRELEASED_INSTANCE_ID, errors.UNKNOWN_MEMBER_ID),
        ("4.4", errors.NONE, errors.UNRELEASED_INSTANCE_ID),
    ],
)
def test_since_4_4_a_member_with_a_new_instance_id_releases_its_former_one(
    release: str, while_member: str, after_leaving: str
) -> None:
    app = Members(release)
    app.heartbeat("a", instance="one")
    app.heartbeat("a", JOIN_EPOCH, instance="two")
    assert app.heartbeat("b", instance="one").error == while_member
    app.heartbeat("a", LEAVE_EPOCH, instance="two")
    assert app.heartbeat("c", instance="one").error == after_leaving


# Leaving and fencing


def test_the_partitions_of_a_leaving_member_go_to_the_others() -> None:
    app = Members()
    app.pair()
    app.wait(1)
    assert app.heartbeat("b", LEAVE_EPOCH).error == errors.NONE
    assert app.group_states()[-1] == (ASSIGNING, 3)
    assert app.heartbeat("a").assignment == BOTH_PARTITIONS
    assert app.heartbeat("b", 2).error == errors.UNKNOWN_MEMBER_ID
    app.heartbeat("a", LEAVE_EPOCH)
    assert app.group_states()[-1][0] == EMPTY


def test_a_member_without_heartbeats_is_removed_after_its_session() -> None:
    app = Members()
    app.pair()
    app.wait(SESSION_S - 2)
    assert app.heartbeat("a").assignment is None
    app.wait(3)
    assert app.heartbeat("a").assignment == BOTH_PARTITIONS
    assert app.heartbeat("b").error == errors.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_revoke_within_its_rebalance_timeout_is_removed() -> None:
    app = Members()
    app.heartbeat("a")
    app.wait(1)
    app.heartbeat("b")
    assert app.heartbeat("a").assignment == ("t-0",)
    for _ in range(7):
        assert app.heartbeat("a", owned=BOTH_PARTITIONS).error == app.heartbeat("b").error == errors.NONE
        app.wait(9)
    assert app.heartbeat("a", owned=BOTH_PARTITIONS).error == errors.UNKNOWN_MEMBER_ID
    assert app.heartbeat("b").assignment == BOTH_PARTITIONS


def test_a_member_with_a_wrong_epoch_is_fenced() -> None:
    app = Members()
    app.pair()
    assert app.heartbeat("a", 3).error == errors.FENCED_MEMBER_EPOCH
    assert app.heartbeat("a", 1, owned=BOTH_PARTITIONS).error == errors.FENCED_MEMBER_EPOCH
    # The answer with epoch 2 may have been lost.
    assert app.heartbeat("a", 1, owned=("t-0",)).epoch == 2
    assert app.heartbeat("unknown", 2).error == errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("release", "error"), [("4.0", errors.FENCED_MEMBER_EPOCH), ("4.3", errors.NONE)])
def test_since_kafka_19233_a_fenced_member_may_rejoin_at_once(release: str, error: str) -> None:
    app = Members(release)
    app.pair()
    app.wait(1)
    app.heartbeat("c")
    app.heartbeat("a")
    answer = app.heartbeat("a", JOIN_EPOCH)
    assert answer.error == error
    if error == errors.NONE:
        assert (answer.epoch, answer.assignment) == (3, ("t-0",))


# Static members


def test_a_static_member_that_returns_gets_its_partitions_back() -> None:
    app = Members()
    app.heartbeat("a", instance="one")
    app.wait(1)
    assert app.heartbeat("a", LEAVE_STATIC_EPOCH, instance="one").epoch == LEAVE_STATIC_EPOCH
    app.wait(SESSION_S - 5)
    returned = app.heartbeat("again", instance="one")
    assert (returned.epoch, returned.assignment) == (1, BOTH_PARTITIONS)
    assert len(list(select(app.cluster.trace.events, TargetAssigned))) == 1
    assert app.heartbeat("a", 1, instance="one").error == errors.FENCED_INSTANCE_ID


@pytest.mark.parametrize("release", ["4.0", "4.3"])
def test_a_member_that_becomes_static_has_no_partitions_until_the_next_target(release: str) -> None:
    """The coordinator looks up its target by an instance id that it does not know yet."""
    app = Members(release)
    app.heartbeat("a")
    app.wait(1)
    app.heartbeat("b")
    static_member = app.heartbeat("a", JOIN_EPOCH, instance="one")
    assert (static_member.epoch, static_member.assignment) == (2, ())
    assert app.heartbeat("b").assignment == ("t-1",)
    assert app.heartbeat("a", instance="one").assignment is None
    app.wait(1)
    app.heartbeat("b", LEAVE_EPOCH)
    assert app.heartbeat("a", instance="one").assignment == BOTH_PARTITIONS


def test_a_member_that_replaces_a_static_one_gets_its_own_former_partitions_in_the_next_heartbeat() -> None:
    """By then the coordinator has written that these partitions are free."""
    app = Members(group_consumer_assignment_interval_ms=0, group_consumer_assignors="range")
    assert app.heartbeat("a", instance="two").assignment == BOTH_PARTITIONS
    assert app.heartbeat("b", instance="one").assignment == ()
    app.heartbeat("b", LEAVE_STATIC_EPOCH, instance="one")
    assert app.heartbeat("a", JOIN_EPOCH, instance="one").assignment == ()
    assert app.heartbeat("a", instance="one").assignment == ("t-0",)


def test_a_static_member_that_has_not_left_blocks_others_with_its_instance_id() -> None:
    app = Members()
    app.heartbeat("a", instance="one")
    assert app.heartbeat("again", instance="one").error == errors.UNRELEASED_INSTANCE_ID
    app.wait(SESSION_S + 1)
    assert app.heartbeat("again", instance="one").assignment == BOTH_PARTITIONS


@pytest.mark.parametrize(("release", "error"), [("4.3", errors.GROUP_MAX_SIZE_REACHED), ("4.4", errors.NONE)])
def test_since_4_4_a_static_member_may_return_to_a_full_group(release: str, error: str) -> None:
    """KAFKA-20601."""
    app = Members(release, group_consumer_max_size=2)
    app.heartbeat("a", instance="one")
    app.heartbeat("b")
    assert app.heartbeat("c").error == errors.GROUP_MAX_SIZE_REACHED
    app.heartbeat("a", LEAVE_STATIC_EPOCH, instance="one")
    assert app.heartbeat("again", instance="two").error == errors.GROUP_MAX_SIZE_REACHED
    assert app.heartbeat("again", instance="one").error == error


def test_a_static_member_that_does_not_return_is_removed_after_its_session() -> None:
    app = Members()
    app.heartbeat("a", instance="one")
    app.heartbeat("a", LEAVE_STATIC_EPOCH, instance="one")
    app.wait(SESSION_S + 1)
    assert app.group_states()[-1][0] == EMPTY
    assert app.heartbeat("b", 1, instance="one").error == errors.UNKNOWN_MEMBER_ID


# Invalid requests


@pytest.mark.parametrize(
    "request_",
    [
        ConsumerGroupHeartbeatRequest(
            "g", NO_MEMBER, JOIN_EPOCH, rebalance_timeout_us=1, topics=("t",), owned=()
        ),
        ConsumerGroupHeartbeatRequest("g", "a", JOIN_EPOCH, topics=("t",), owned=()),
        ConsumerGroupHeartbeatRequest(
            "g", "a", JOIN_EPOCH, rebalance_timeout_us=1, topics=("t",), owned=("t-0",)
        ),
        ConsumerGroupHeartbeatRequest("g", "a", JOIN_EPOCH, rebalance_timeout_us=1, topics=(), owned=()),
        ConsumerGroupHeartbeatRequest("g", "a", LEAVE_STATIC_EPOCH),
        ConsumerGroupHeartbeatRequest("g", "a", -3),
    ],
)
def test_an_invalid_heartbeat_is_refused(request_: ConsumerGroupHeartbeatRequest) -> None:
    assert Members().ask(request_).error == errors.INVALID_REQUEST


def test_brokers_before_4_0_do_not_know_the_protocol() -> None:
    assert Members("3.9").heartbeat("a").error == errors.UNSUPPORTED_VERSION


def test_a_group_has_one_protocol_while_it_has_members() -> None:
    app = Members()
    app.heartbeat("a")
    assert app.ask(CLASSIC_JOIN).error == errors.INCONSISTENT_GROUP_PROTOCOL
    app.heartbeat("a", LEAVE_EPOCH)
    assert app.ask(CLASSIC_JOIN).error == errors.MEMBER_ID_REQUIRED
    joined = app.member()
    assert app.heartbeat("a", JOIN_EPOCH).error == errors.GROUP_ID_NOT_FOUND
    assert app.heartbeat("a", 1, group="none").error == errors.GROUP_ID_NOT_FOUND
    assert app.commit(joined.generation, joined.member, 5) == errors.NONE


# Commits


@pytest.mark.parametrize("release", ["4.0", "4.3"])
def test_commits_are_fenced_by_member_epochs(release: str) -> None:
    app = Members(release)
    app.pair()
    assert app.commit_of("a", 2) == errors.NONE
    assert app.commit_of("a", 3) == errors.STALE_MEMBER_EPOCH
    assert app.commit_of("unknown", 2) == errors.UNKNOWN_MEMBER_ID
    assert app.commit_of(NO_MEMBER, NO_GENERATION) == errors.UNKNOWN_MEMBER_ID
    # It has owned t-0 since epoch 1, and has revoked t-1.
    expected = errors.NONE if release == "4.3" else errors.STALE_MEMBER_EPOCH
    assert app.commit_of("a", 1) == expected
    assert app.commit_of("a", 1, partition="t-1") == errors.STALE_MEMBER_EPOCH
    assert app.commit_of("b", 1, partition="t-1") == errors.STALE_MEMBER_EPOCH
    assert app.committed() == (errors.NONE, 1)


def test_a_member_may_commit_partitions_that_it_must_still_revoke() -> None:
    app = Members()
    app.heartbeat("a")
    app.wait(1)
    app.heartbeat("b")
    app.heartbeat("a")
    assert app.commit_of("a", 1, partition="t-1") == errors.NONE


def test_a_consumer_that_is_no_member_may_commit_for_an_empty_group() -> None:
    app = Members()
    app.heartbeat("a")
    app.heartbeat("a", LEAVE_EPOCH)
    assert app.commit_of(NO_MEMBER, NO_GENERATION, 7) == errors.NONE
    assert app.committed() == (errors.NONE, 7)


def test_the_mutant_accepts_commits_of_any_epoch() -> None:
    app = Members(behaviours={"member_epochs_fence_commits": False})
    app.pair()
    assert app.commit_of("a", 1, partition="t-1") == errors.NONE
    assert app.commit_of("unknown", 9) == errors.NONE


@pytest.mark.parametrize(
    ("release", "is_known", "stale", "unknown"),
    [
        ("4.3", False, errors.ILLEGAL_GENERATION, errors.ILLEGAL_GENERATION),
        ("4.4", False, errors.ILLEGAL_GENERATION, errors.ILLEGAL_GENERATION),
        ("4.4", True, errors.STALE_MEMBER_EPOCH, errors.GROUP_ID_NOT_FOUND),
    ],
)
def test_since_4_4_a_producer_gets_a_specific_error_that_it_knows(
    release: str, is_known: bool, stale: str, unknown: str
) -> None:
    """KIP-1319."""
    # Without verification, because the transaction coordinator knows no such transaction.
    app = Members(release, behaviours={"transaction_verification": False})
    app.pair()
    request = TxnOffsetCommitRequest(
        "tx", "g", 1, 0, {"t-1": 3}, 1, "a", NO_INSTANCE, knows_group_errors=is_known
    )
    assert app.ask(request).partitions == {"t-1": stale}
    assert app.ask(replace(request, group="unknown")).partitions == {"t-1": unknown}


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("a", 2, errors.NONE),
        ("a", 1, errors.STALE_MEMBER_EPOCH),
        ("unknown", 2, errors.UNKNOWN_MEMBER_ID),
        (NO_MEMBER, NO_GENERATION, errors.NONE),
    ],
)
def test_an_offset_fetch_is_fenced_by_member_id_and_epoch(member: str, epoch: int, error: str) -> None:
    app = Members()
    app.pair()
    answer = app.ask(OffsetFetchRequest("g", ("t-0",), member=member, epoch=epoch))
    assert answer.error == error


# Failovers


@pytest.mark.parametrize("release", ["4.0", "4.3"])
def test_a_successor_knows_members_epochs_and_assignments(release: str) -> None:
    app = Members(release)
    app.pair()
    app.commit_of("a", 2, 9)
    app.wait(1)
    app.heartbeat("c")
    answer = app.heartbeat("b")
    former = app.coordinator
    app.cluster.crash_broker(former, power_loss=False)
    app.wait(20)
    assert app.coordinator != former
    assert app.heartbeat("a").error == app.heartbeat("b").error == app.heartbeat("c").error == errors.NONE
    assert app.committed() == (errors.NONE, 9)
    loaded = [
        (event.member, event.epoch, event.assigned)
        for event in select(app.cluster.trace.events, MemberReconciled)
        if event.broker == app.coordinator
    ]
    assert loaded[:3] == [("a", 2, ("t-0",)), ("b", answer.epoch, ("t-1",)), ("c", 3, ())]
    # Sessions restart on the new coordinator.
    app.wait(SESSION_S - 2)
    assert app.heartbeat("a").error == errors.NONE


def test_compaction_keeps_all_records_that_a_successor_needs() -> None:
    app = Members(offsets_topic_segment_bytes=400)
    app.pair()
    for _ in range(COMMITS):
        app.commit_of("a", 2)
    for _ in range(2):
        app.wait(30)
        app.heartbeat("a")
        app.heartbeat("b")
    former = app.coordinator
    log = app.cluster.brokers[former].replicas.partitions[PARTITION].log
    assert sum(len(batch.values) for batch in log.batches) < COMMITS
    app.cluster.crash_broker(former, power_loss=False)
    app.wait(20)
    assert (app.heartbeat("a", owned=("t-0",)).error, app.heartbeat("b", owned=("t-1",)).error) == (
        errors.NONE,
    ) * 2


def test_an_unreplicated_change_is_not_revealed_to_members() -> None:
    app = Members()
    followers = [broker for broker in range(3) if broker != app.coordinator]
    app.heartbeat("a")
    for broker in followers:
        app.cluster.pause_broker(broker)
    coordinator = app.coordinator
    app.wait(1)
    joined = app.send(
        ConsumerGroupHeartbeatRequest(
            "g", "b", JOIN_EPOCH, rebalance_timeout_us=REBALANCE_US, topics=("t",), owned=()
        ),
        coordinator,
    )
    app.wait(0.2)
    heartbeats = app.send(ConsumerGroupHeartbeatRequest("g", "a", 1), coordinator)
    app.wait(2)
    assert joined == heartbeats == []


def with_uncommitted_write(release: str = "4.3", behaviours: dict[str, Any] | None = None) -> Members:
    """Return a group with a member "a" and an uncommitted write of its coordinator.

    The write is the commit of another group, which the paused followers do not replicate.
    """
    app = Members(release, behaviours)
    app.heartbeat("a")
    app.wait(1)
    for broker in range(3):
        if broker != app.coordinator:
            app.cluster.pause_broker(broker)
    app.send(OffsetCommitRequest("other", NO_GENERATION, NO_MEMBER, NO_INSTANCE, {"t-0": 1}))
    app.wait(0.1)
    return app


def resume_followers(app: Members) -> None:
    for broker in range(3):
        if broker != app.coordinator:
            app.cluster.resume_broker(broker)


REQUESTS = (
    ConsumerGroupHeartbeatRequest("g", "a", 1, NO_INSTANCE),
    OffsetFetchRequest("g", ("t-0",), True, "a", 1),
)


@pytest.mark.parametrize("request_", REQUESTS)
def test_an_answer_that_depends_on_a_write_waits_until_it_is_committed(request_: Any) -> None:
    app = with_uncommitted_write()
    answers = app.send(request_)
    app.wait(1)
    assert answers == []
    resume_followers(app)
    app.wait(1)
    assert [answer.error for answer in answers] == [errors.NONE]


@pytest.mark.parametrize(
    ("request_", "error"),
    [(REQUESTS[0], errors.COORDINATOR_NOT_AVAILABLE), (REQUESTS[1], errors.NOT_COORDINATOR)],
)
def test_a_request_that_waits_for_a_write_fails_after_its_own_timeout(request_: Any, error: str) -> None:
    """A coordinator that does not know that it was replaced behaves like this permanently."""
    app = with_uncommitted_write()
    app.wait(1)
    answers = app.send(request_)
    app.wait(4.9)
    assert answers == []
    app.wait(0.2)
    assert [answer.error for answer in answers] == [error]
    later = app.send(request_)
    app.wait(0.5)
    assert later == []


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_coordinator_that_does_not_wait_for_writes_answers_from_memory(request_: Any) -> None:
    app = with_uncommitted_write(behaviours={"group_responses_wait_for_writes": False})
    assert app.ask(request_).error == errors.NONE
