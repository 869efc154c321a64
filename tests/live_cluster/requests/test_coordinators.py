"""Sequences of requests are compared on two coordinators, both of the model in these tests."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harrow.cluster_model.release.profiles import SWITCHES, behaviours_in
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.requests.comparison import ComparedSequence, difference_kind
from harrow.live_cluster.requests.coordinators.comparison import compare_coordinators
from harrow.live_cluster.requests.coordinators.driver import (
    Answers,
    CoordinatorRequest,
    TransactionStates,
)
from harrow.live_cluster.requests.coordinators.model_coordinator import ModelCoordinator
from harrow.live_cluster.requests.coordinators.sequences import CLOSING, coordinator_sequences
from harrow.live_cluster.requests.coordinators.steps import (
    AddPartitionsStep,
    CommitStep,
    CommittedStep,
    ConsumerCommitStep,
    ConsumerCommittedStep,
    ConsumerHeartbeatStep,
    Coordinated,
    CoordinatorStep,
    EndTxnStep,
    GroupHeartbeatStep,
    InitStep,
    JoinStep,
    LeaveStep,
    ReadStep,
    RepeatStep,
    SyncStep,
    TxnCommitStep,
    TxnProduceStep,
)
from harrow.live_cluster.requests.drawing import seed_sequences
from harrow.live_cluster.requests.measures.measure import (
    COORDINATOR_SETTINGS,
    coordinator_settings,
    model_coordinator,
)

RELEASES = ("2.4.1", "3.9.2", "4.3.1", "4.4.0")


def broker(release: str = "3.9.2", **switches: Any) -> ModelCoordinator:
    behaviours = behaviours_in(release).with_switches(**switches)
    kafka_release = KafkaRelease(release)
    return ModelCoordinator(kafka_release.model_release, behaviours, coordinator_settings(kafka_release))


def compared_alike(steps: Sequence[CoordinatorStep], release: str = "3.9.2") -> ComparedSequence:
    compared = compare_coordinators(steps, broker(release), broker(release))
    assert compared.difference is None
    assert compared.steps == tuple(steps)
    return compared


def answers(steps: Sequence[CoordinatorStep], release: str = "3.9.2") -> list[dict[str, Any]]:
    return [exchange.modelled["answers"] for exchange in compared_alike(steps, release).exchanges]


CLASSIC_GROUPS = {
    "JoinGroup": {
        "NONE",
        "MEMBER_ID_REQUIRED",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_SESSION_TIMEOUT",
    },
    "SyncGroup": {
        "NONE",
        "REBALANCE_IN_PROGRESS",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
    },
    "Heartbeat": {
        "NONE",
        "REBALANCE_IN_PROGRESS",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
    },
    "LeaveGroup": {"NONE", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"},
    "OffsetCommit": {
        "NONE",
        "REBALANCE_IN_PROGRESS",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
    },
    "OffsetFetch": {"NONE"},
    "FindCoordinator": {"NONE"},
}
CONSUMER_GROUPS = {
    "ConsumerGroupHeartbeat": {
        "NONE",
        "INVALID_REQUEST",
        "UNKNOWN_MEMBER_ID",
        "FENCED_MEMBER_EPOCH",
        "FENCED_INSTANCE_ID",
        "UNRELEASED_INSTANCE_ID",
        "UNSUPPORTED_ASSIGNOR",
        "GROUP_ID_NOT_FOUND",
        "GROUP_MAX_SIZE_REACHED",
    },
    "OffsetCommit": {"NONE", "UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND"},
    "OffsetFetch": {"NONE", "UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH"},
}
TRANSACTIONS = {
    "InitProducerId": {"NONE", "CONCURRENT_TRANSACTIONS", "INVALID_TRANSACTION_TIMEOUT"},
    "AddPartitionsToTxn": {
        "NONE",
        "INVALID_PRODUCER_ID_MAPPING",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "OPERATION_NOT_ATTEMPTED",
    },
    "EndTxn": {"NONE", "INVALID_PRODUCER_ID_MAPPING", "INVALID_TXN_STATE"},
    "Produce": {"NONE", "INVALID_PRODUCER_EPOCH", "OUT_OF_ORDER_SEQUENCE_NUMBER"},
    "TxnOffsetCommit": {"NONE", "INVALID_PRODUCER_EPOCH"},
    "Fetch": {"NONE"},
    "ListOffsets": {"NONE"},
    "OffsetFetch": {"NONE"},
    "FindCoordinator": {"NONE"},
}
ZOMBIES_2_4 = {
    "AddPartitionsToTxn": {"INVALID_PRODUCER_EPOCH"},
    "AddOffsetsToTxn": {"INVALID_PRODUCER_EPOCH"},
    "EndTxn": {"INVALID_PRODUCER_EPOCH"},
}
ZOMBIES = {
    "InitProducerId": {"PRODUCER_FENCED"},
    "AddPartitionsToTxn": {"PRODUCER_FENCED"},
    "EndTxn": {"PRODUCER_FENCED"},
}
UNVERIFIED = {"AddPartitionsToTxn": {"TRANSACTION_ABORTABLE"}, "Produce": {"TRANSACTION_ABORTABLE"}}


@pytest.mark.parametrize(
    ("release", "coordinated", "reached"),
    [
        ("2.4.1", "groups", [CLASSIC_GROUPS]),
        ("4.3.1", "groups", [CLASSIC_GROUPS, CONSUMER_GROUPS]),
        ("2.4.1", "transactions", [TRANSACTIONS, ZOMBIES_2_4, {"AddOffsetsToTxn": {"NONE"}}]),
        ("3.9.2", "transactions", [TRANSACTIONS, ZOMBIES, UNVERIFIED, {"AddOffsetsToTxn": {"NONE"}}]),
        ("4.3.1", "transactions", [TRANSACTIONS, ZOMBIES, {"OffsetFetch": {"UNSTABLE_OFFSET_COMMIT"}}]),
        (
            "4.4.0",
            "transactions",
            [TRANSACTIONS, ZOMBIES, {"TxnOffsetCommit": {"GROUP_ID_NOT_FOUND", "STALE_MEMBER_EPOCH"}}],
        ),
    ],
)
def test_sequences_reach_every_coordinator_answer(
    release: str, coordinated: Coordinated, reached: list[dict[str, set[str]]]
) -> None:
    kafka_release = KafkaRelease(release)
    answered: set[tuple[str, str]] = set()
    for number in range(5):
        for steps in seed_sequences(number, coordinator_sequences(release, coordinated)):
            compared = compare_coordinators(
                steps, model_coordinator(kafka_release), model_coordinator(kafka_release)
            )
            answered |= set(compared.answered())
    expected = {(api, error) for apis in reached for api, errors in apis.items() for error in errors}
    assert expected - answered == set()


@pytest.mark.parametrize(
    ("coordinated", "switch"),
    [
        ("groups", "assignor_change_triggers_assignment"),
        ("groups", "previous_instance_id_released"),
        ("groups", "static_member_rejoins_full_group"),
        ("transactions", "specific_transactional_commit_errors"),
    ],
)
def test_sequences_reach_the_changes_of_4_4(coordinated: Coordinated, switch: str) -> None:
    kafka_release = KafkaRelease("4.4.0")
    assert any(
        compare_coordinators(
            steps, model_coordinator(kafka_release), broker("4.4.0", **{switch: False})
        ).difference
        for number in range(5)
        for steps in seed_sequences(number, coordinator_sequences("4.4.0", coordinated))
    )


@pytest.mark.parametrize("coordinated", ["groups", "transactions"])
@pytest.mark.parametrize("release", RELEASES)
def test_two_model_coordinators_do_not_differ(release: str, coordinated: Coordinated) -> None:
    kafka_release = KafkaRelease(release)
    for steps in seed_sequences(0, coordinator_sequences(release, coordinated))[:8]:
        compared = compare_coordinators(
            steps, model_coordinator(kafka_release), model_coordinator(kafka_release)
        )
        assert compared.difference is None
        assert compared.requests == len(steps)


class ShiftedIds(ModelCoordinator):
    """A broker with higher producer ids and other member ids, as if it had run for a while."""

    sequence = 7
    shift = 40

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        if 0 <= getattr(request, "producer_id", -1) < 10**9:
            init: Any = request
            request = replace(init, producer_id=init.producer_id - self.shift)
        answers = super().ask(number, request, expected)
        return {
            each: {**answer, "producer_id": answer["producer_id"] + self.shift}
            if answer.get("producer_id", -1) >= 0
            else answer
            for each, answer in answers.items()
        }

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        return {
            name: [state, producer + self.shift, epoch]  # type: ignore[operator]
            for name, (state, producer, epoch) in super().transactions(expected).items()
        }


def test_random_ids_are_compared_by_order_of_appearance() -> None:
    real = ShiftedIds("4.3", behaviours_in("4.3.1"), COORDINATOR_SETTINGS)
    steps = (
        InitStep(),
        InitStep(instance=2),
        TxnCommitStep(),
        EndTxnStep(),
        EndTxnStep(instance=2, producer="unknown"),
        InitStep(again=True),
        JoinStep(),
        JoinStep(),
    )
    compared = compare_coordinators(steps, broker("4.3.1"), real)
    assert compared.difference is None
    responses = [exchange.real["answers"] for exchange in compared.exchanges]
    assert responses[1]["2"] == {"error": "NONE", "producer_id": 1, "producer_epoch": 0}
    assert responses[6]["7"] == {"error": "MEMBER_ID_REQUIRED", "member": "m0"}
    assert responses[7]["8"]["leader"] == "m0"


def test_a_join_is_answered_when_all_members_have_joined() -> None:
    joins = [JoinStep(member=member) for member in (0, 0, 1, 1, 0)]
    responses = answers((*joins, SyncStep(member=1), SyncStep(member=0), GroupHeartbeatStep(member=1)))
    assert [sorted(each) for each in responses] == [
        ["1"],
        ["2"],
        ["3"],
        [],
        ["4", "5"],
        [],
        ["6", "7"],
        ["8"],
    ]
    assert (responses[4]["5"]["generation"], responses[4]["5"]["leader"], responses[4]["4"]["members"]) == (
        2,
        "m0",
        [],
    )
    # The leader sends the assignment of both members, one partition each.
    assert {responses[6][each]["partitions"][0] for each in ("6", "7")} == {"t-0", "t-1"}


def test_step_values_are_offsets_from_earlier_answers() -> None:
    steps = (
        JoinStep(),
        JoinStep(),
        SyncStep(),
        CommitStep(generation=-1),
        CommitStep(who="ghost"),
        CommitStep(who="none", generation=None),
        CommitStep(partitions=(0, 1)),
        CommittedStep(),
        LeaveStep(),
        CommitStep(who="none", generation=None, partitions=(1,)),
    )
    partitions = [next(iter(each.values()))["partitions"] for each in answers(steps)[3:8]]
    assert partitions[:4] == [
        {"t-0": "ILLEGAL_GENERATION"},
        {"t-0": "UNKNOWN_MEMBER_ID"},
        {"t-0": "UNKNOWN_MEMBER_ID"},
        {"t-0": "NONE", "t-1": "NONE"},
    ]
    assert partitions[4] == {"t-0": ["NONE", 4], "t-1": ["NONE", 4]}


def test_members_of_the_consumer_protocol_follow_their_assignment() -> None:
    def joins(member: int, **fields: Any) -> ConsumerHeartbeatStep:
        return ConsumerHeartbeatStep(
            member=member, does="joins", subscription=0, owned="nothing", has_timeout=True, **fields
        )

    def lives(member: int, **fields: Any) -> ConsumerHeartbeatStep:
        return ConsumerHeartbeatStep(member=member, **fields)

    steps = (
        joins(0),
        joins(1),
        lives(0),
        ConsumerCommitStep(member=0),
        lives(0, owned="told"),
        lives(1, owned="told"),
        ConsumerCommitStep(member=0, epoch=-1, partitions=(0,)),
        ConsumerCommittedStep(member=1, epoch=1),
        lives(1, epoch=1),
        joins(2),
        joins(3),
        ConsumerHeartbeatStep(member=2, does="leaves-for-a-while"),
        ConsumerHeartbeatStep(member=3, does="restarts", subscription=0, owned="nothing", has_timeout=True),
        ConsumerHeartbeatStep(member=0, does="leaves"),
        # A member that has left joins with its next heartbeat.
        lives(0),
        lives(1, does="strays"),
    )
    # A group of three is full. Before 4.4 its size is checked first, even for the instance of a
    # member.
    before = [next(iter(answer.values())) for answer in answers(steps, "4.3.1")]
    assert [before[number]["error"] for number in (10, 12)] == ["GROUP_MAX_SIZE_REACHED"] * 2
    responses = [next(iter(answer.values())) for answer in answers(steps, "4.4.0")]
    assert before[:10] == responses[:10]
    assignments = [(each["epoch"], each["assignment"]) for each in responses if each.get("consumer")]
    assert assignments[:5] == [(2, ["t-0", "t-1"]), (3, []), (2, ["t-0"]), (3, None), (3, ["t-1"])]
    assert responses[3] == {"partitions": {"t-0": "NONE"}}
    assert responses[6] == {"partitions": {"t-0": "NONE"}}
    assert (responses[7]["error"], responses[8]["error"]) == ("STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH")
    assert (responses[9]["epoch"], responses[10]["error"]) == (4, "UNRELEASED_INSTANCE_ID")
    assert (responses[11]["epoch"], responses[12]["error"], responses[12]["consumer"]) == (
        -2,
        "NONE",
        "consumer-3-1",
    )
    assert (responses[13]["epoch"], responses[14]["assignment"] is None, responses[15]["error"]) == (
        -1,
        False,
        "INVALID_REQUEST",
    )


def test_a_duplicate_request_ends_the_next_transaction_up_to_3_9() -> None:
    begun = (AddPartitionsStep(), TxnProduceStep())
    steps = (InitStep(), *begun, EndTxnStep(), *begun, RepeatStep(back=2), ReadStep())
    last = answers(steps)[-1]["8"]["fetched"]["t-0"]
    assert [batch[6] for batch in last["batches"]] == [None, "commit", None, "commit"]
    later = answers(steps, "4.3.1")
    assert later[-2]["7"]["error"] == "PRODUCER_FENCED"
    assert later[-1]["8"]["fetched"]["t-0"]["lso"] == 2


def test_sequences_mix_old_and_new_requests_where_there_are_transactions_v2() -> None:
    for release in RELEASES:
        sequences = seed_sequences(5, coordinator_sequences(release, "transactions"))
        ends = {step.is_old for steps in sequences for step in steps if isinstance(step, EndTxnStep)}
        assert ends == {False, SWITCHES["transactions_v2"].value_in(release)}
        assert all(steps[-len(CLOSING) :] == CLOSING for steps in sequences)


@pytest.mark.parametrize(
    ("switches", "steps", "kind"),
    [
        (
            {"heartbeats_accepted_while_syncing": False},
            (JoinStep(member=2), GroupHeartbeatStep(member=2)),
            "Heartbeat answers.n.error: NONE in the model, REBALANCE_IN_PROGRESS on the broker",
        ),
        (
            {"transactional_producer_epoch_checked": False},
            (InitStep(), InitStep(instance=1), EndTxnStep()),
            "EndTxn answers.n.error: PRODUCER_FENCED in the model, INVALID_TXN_STATE on the broker",
        ),
        (
            {"lso_below_open_transactions": False},
            (InitStep(), AddPartitionsStep(), TxnProduceStep(), ReadStep()),
            "Fetch answers.n.fetched.t-n.lso",
        ),
        (
            {"markers_written_to_all_partitions": False},
            (InitStep(), AddPartitionsStep(partitions=(0, 1)), EndTxnStep(), ReadStep(partition=1)),
            "Fetch answers.n.fetched.t-n.hw",
        ),
    ],
)
def test_a_different_broker_is_reported(
    switches: dict[str, Any], steps: tuple[CoordinatorStep, ...], kind: str
) -> None:
    compared = compare_coordinators(steps, broker(), broker(**switches))
    assert compared.difference is not None
    assert kind in map(str, difference_kind(compared.difference))


class OtherLeader(ModelCoordinator):
    """A coordinator that elects the last member after its leader has left."""

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        group = self._cluster.brokers[0].groups._groups.get("g")
        if group is not None and request.api == "LeaveGroup":
            group.members = dict(reversed(group.members.items()))
        return super().ask(number, request, expected)


@pytest.mark.parametrize(("leaving", "is_compared"), [(0, False), (2, True)])
def test_another_leader_after_the_leader_left_is_not_a_difference(leaving: int, is_compared: bool) -> None:
    """Any remaining member may lead once the leader has left; a leader that stays keeps leading."""
    first = [JoinStep(member=member) for member in (0, 0, 1, 1, 0, 2, 0, 1)]
    stay = [member for member in (0, 1) if member != leaving]
    rejoin = [JoinStep(member=member) for member in (*stay, *([2] if leaving != 2 else []))]
    steps: tuple[CoordinatorStep, ...] = (*first, LeaveStep(member=leaving), *rejoin)
    other = OtherLeader("3.9", behaviours_in("3.9.2"), COORDINATOR_SETTINGS)
    compared = compare_coordinators(steps, broker(), other)
    assert compared.difference is None
    assert (len(compared.steps) == len(steps)) == is_compared
