"""Replica assignment; the tables are those of Kafka's AdminTest, AdminZkClientTest and
AdminRackAwareTest."""

import pytest

from harrow.cluster_model.controller.assignment import _alternate_racks, assign_replicas

Assignment = tuple[tuple[int, ...], ...]

TEN_ON_FIVE: Assignment = (
    (0, 1, 2),
    (1, 2, 3),
    (2, 3, 4),
    (3, 4, 0),
    (4, 0, 1),
    (0, 2, 3),
    (1, 3, 4),
    (2, 4, 0),
    (3, 0, 1),
    (4, 1, 2),
)

RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
THREE_RACKS = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}


def test_followers_of_a_brokers_partitions_are_spread_over_the_other_brokers() -> None:
    assert assign_replicas(range(5), 10, 3) == TEN_ON_FIVE


def test_neighbours_in_the_list_of_brokers_are_in_different_racks() -> None:
    assert _alternate_racks(list(RACKS), RACKS) == [0, 3, 1, 5, 4, 2]
    without_5 = {broker: rack for broker, rack in RACKS.items() if broker != 5}
    assert _alternate_racks(list(without_5), without_5) == [0, 3, 1, 4, 2]


def test_with_racks_the_replicas_of_a_partition_are_in_different_racks() -> None:
    assert assign_replicas(list(RACKS), 7, 3, RACKS) == (
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    )


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor", "start", "shift", "assignment"),
    [
        ((0,), 2, 1, 0, 0, ((0,), (0,))),
        ((0, 1), 3, 2, 0, 0, ((0, 1), (1, 0), (0, 1))),
        ((5, 7, 9), 4, 2, 0, 0, ((5, 7), (7, 9), (9, 5), (5, 9))),
        ((0, 1, 2), 2, 2, 2, 0, ((2, 0), (0, 1))),
        ((0, 1, 2, 3), 2, 3, 0, 1, ((0, 2, 3), (1, 3, 0))),
        # In the order of the list of brokers.
        ((2, 0, 1), 3, 1, 0, 0, ((2,), (0,), (1,))),
    ],
)
def test_start_and_shift_decide_the_places_of_replicas(
    brokers: tuple[int, ...], partitions: int, factor: int, start: int, shift: int, assignment: Assignment
) -> None:
    assert assign_replicas(brokers, partitions, factor, None, start, shift) == assignment


def counts(assignment: Assignment, *, leaders_only: bool = False) -> set[int]:
    number_by_broker: dict[int, int] = {}
    for replicas in assignment:
        for broker in replicas[:1] if leaders_only else replicas:
            number_by_broker[broker] = number_by_broker.get(broker, 0) + 1
    return set(number_by_broker.values())


TWELVE = {broker: f"rack{1 + broker % 3}" for broker in range(12)}


@pytest.mark.parametrize(
    ("racks", "partitions", "factor", "start", "even_leaders", "even_replicas"),
    [
        (THREE_RACKS, 6, 3, 2, True, True),  # testAssignmentWithRackAware
        (THREE_RACKS, 13, 3, 0, False, False),  # …WithUnevenReplicas
        ({**THREE_RACKS, 1: "rack1"}, 12, 3, 0, True, False),  # …WithUnevenRacks
        (THREE_RACKS, 12, 2, 0, True, True),  # testAssignmentWith2ReplicasRackAware
        ({b + 6: rack for b, rack in THREE_RACKS.items()}, 12, 2, 0, True, True),  # testRackAwareExpansion
        (THREE_RACKS, 6, 2, 0, True, True),  # …With2ReplicasRackAwareWith6Partitions
        ({0: "rack1", 1: "rack2", 4: "rack3"}, 3, 2, 0, True, True),  # …With6PartitionsAnd3Brokers
        (TWELVE, 96, 3, 0, True, True),  # testLargeNumberPartitionsAssignment
    ],
)
def test_each_replica_is_in_a_rack_of_its_own(
    racks: dict[int, str], partitions: int, factor: int, start: int, even_leaders: bool, even_replicas: bool
) -> None:
    assignment = assign_replicas(list(racks), partitions, factor, racks, start)
    assert [len({racks[b] for b in replicas}) for replicas in assignment] == [factor] * partitions
    if even_leaders:
        assert counts(assignment, leaders_only=True) == {partitions // len(racks)}
    if even_replicas:
        assert counts(assignment) == {partitions * factor // len(racks)}


@pytest.mark.parametrize(
    ("racks", "factor", "start", "racks_used"),
    [
        ({**THREE_RACKS, 5: "rack2"}, 5, 0, 3),  # testMoreReplicasThanRacks
        ({**THREE_RACKS, 5: "rack2"}, 2, 0, 2),  # testLessReplicasThanRacks
        (dict.fromkeys(range(6), "rack1"), 3, 0, 1),  # testSingleRack
        ({0: "a", 1: "b", 2: "c", 3: "a", 4: "a"}, 4, 2, 3),  # testSkipBrokerWithReplicaAlreadyAssigned
    ],
)
def test_no_broker_gets_two_replicas_of_a_partition(
    racks: dict[int, str], factor: int, start: int, racks_used: int
) -> None:
    assignment = assign_replicas(list(racks), 6, factor, racks, start)
    assert [len(set(replicas)) for replicas in assignment] == [factor] * 6
    assert {len({racks[b] for b in replicas}) for replicas in assignment} == {racks_used}


def test_brokers_without_a_rack_are_one_more_rack() -> None:
    known = {0: "a", 1: "a", 2: "b"}
    all_named = {**known, 3: "c", 4: "c"}
    assert assign_replicas(range(5), 10, 3, known) == assign_replicas(
        range(5), 10, 3, {**all_named, 3: "", 4: ""}
    )
    for replicas in assign_replicas(range(5), 10, 3, known):
        assert {all_named[broker] for broker in replicas} == {"a", "b", "c"}


def test_brokers_in_one_rack_take_turns_as_leaders() -> None:
    assignment = assign_replicas(range(6), 6, 3, dict.fromkeys(range(6), "rack1"))
    assert counts(assignment, leaders_only=True) == {1}
