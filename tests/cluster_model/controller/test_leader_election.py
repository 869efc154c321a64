"""A controller elects leaders; first the cases of Kafka's PartitionLeaderElectionAlgorithmsTest."""

import pytest

from harrow.cluster_model.controller.leader_election import (
    elect_for_controlled_shutdown,
    elect_for_offline,
    elect_preferred,
    without_replica,
)
from harrow.cluster_model.protocol import LeaderAndIsr
from tests.campaigns.run.cluster_harness import ClusterHarness

Isr = tuple[int, ...]
EPOCH, VERSION = 7, 42


def state(leader: int, isr: Isr) -> LeaderAndIsr:
    return LeaderAndIsr(leader, EPOCH, isr, VERSION)


def outcome_of(new: LeaderAndIsr | None) -> tuple[int, Isr] | None:
    """Return (leader, ISR); every change raises the leader epoch and is written over the version
    that was read."""
    if new is None:
        return None
    assert (new.leader_epoch, new.partition_epoch) == (EPOCH + 1, VERSION)
    return new.leader, new.isr


@pytest.mark.parametrize(
    ("assignment", "isr", "live", "unclean", "elected"),
    [
        ((2, 4), (2, 4), {4}, False, (4, (4,))),
        ((2, 4), (2,), {4}, False, None),
        ((2, 4), (2,), {4}, True, (4, (4,))),
        # In the order of the assignment, not of the ISR.
        ((1, 2, 3), (3, 2), {2, 3}, False, (2, (3, 2))),
        ((3, 1, 2), (1, 2, 3), {1, 2, 3}, False, (3, (1, 2, 3))),
        # A live replica outside the ISR is not elected, even if unclean elections are enabled.
        ((1, 2, 3), (3,), {2, 3}, True, (3, (3,))),
        # Dead brokers leave the ISR.
        ((1, 2, 3), (1, 2, 3), {2}, False, (2, (2,))),
        ((1, 2, 3), (1, 2, 3), set(), False, None),
        ((1, 2, 3), (1, 2, 3), set(), True, None),
        # Unclean: the first live replica in the assignment becomes the whole ISR.
        ((1, 2, 3), (1,), {3, 2}, True, (2, (2,))),
        # A broker without a replica is not elected.
        ((1, 2), (1, 2), {9}, True, None),
        ((1, 2), (), {2}, False, None),
    ],
)
def test_the_first_live_replica_in_the_isr_replaces_a_lost_leader(
    assignment: Isr, isr: Isr, live: set[int], unclean: bool, elected: tuple[int, Isr] | None
) -> None:
    for old_leader in (-1, assignment[0]):
        new = elect_for_offline(state(old_leader, isr), assignment, frozenset(live), unclean=unclean)
        assert outcome_of(new) == elected


@pytest.mark.parametrize(
    ("leader", "isr", "live", "elected"),
    [
        (4, (2, 4), {2, 4}, (2, (2, 4))),
        (4, (4, 2), {2, 4}, (2, (4, 2))),
        (4, (2,), set(), None),
        (4, (4,), {2, 4}, None),
        (4, (2, 4), {4}, None),
        (4, (), set(), None),
        (2, (2, 4), {2, 4}, None),  # the preferred replica already leads
    ],
)
def test_the_preferred_replica_leads_only_if_it_is_live_and_in_the_isr(
    leader: int, isr: Isr, live: set[int], elected: tuple[int, Isr] | None
) -> None:
    assert outcome_of(elect_preferred(state(leader, isr), (2, 4), frozenset(live))) == elected


def test_from_1_1_to_2_3_a_leading_preferred_replica_is_elected_again() -> None:
    def elected(leader: int, live: set[int], *, re_elects: bool) -> object:
        return outcome_of(
            elect_preferred(state(leader, (2, 4)), (2, 4), frozenset(live), re_elects=re_elects)
        )

    assert elected(2, {2, 4}, re_elects=False) is None
    assert elected(2, {2, 4}, re_elects=True) == elected(4, {2, 4}, re_elects=False)
    assert elected(2, {4}, re_elects=True) is None


@pytest.mark.parametrize(
    ("leader", "isr", "offline", "remaining"),
    [
        (0, (0, 1, 2), 1, (0, (0, 2))),
        (0, (0, 1, 2), 0, (-1, (1, 2))),
        (0, (0,), 0, (-1, (0,))),  # the last member stays, so that it can lead again
        (-1, (2,), 2, (-1, (2,))),
    ],
)
def test_an_offline_replica_leaves_the_isr_unless_it_is_the_last_member(
    leader: int, isr: Isr, offline: int, remaining: tuple[int, Isr]
) -> None:
    assert outcome_of(without_replica(state(leader, isr), offline)) == remaining


def test_a_new_controller_removes_dead_brokers_from_the_isrs() -> None:
    harness = ClusterHarness(controller=2)
    harness.cluster.crash_broker(2, power_loss=False)
    # Its session is over after 6 to 8 s; the leader would take it out of the ISR after 10 to 15 s.
    harness.run(9_500_000)
    assert harness.cluster.controller() in {0, 1}
    state = harness.cluster.partition_state("t-0")
    assert state is not None
    assert state.isr == (0, 1)


@pytest.mark.parametrize(
    ("assignment", "isr", "live", "shutting_down", "elected"),
    [
        ((2, 4), (2, 4), {2, 4}, {2}, (4, (4,))),
        ((2, 4), (2,), {2, 4}, {2}, None),
        ((2, 4), (2, 4), {2, 4}, {2, 4}, None),
        # In the order of the assignment; all that shut down leave the ISR.
        ((1, 2, 3, 4), (4, 3, 2, 1), {1, 2, 3, 4}, {1, 2}, (3, (4, 3))),
        # A member of the ISR that is not alive cannot lead, and stays: nobody has asked for it to
        # be taken out.
        ((1, 2, 3), (1, 2, 3), {1, 3}, {1}, (3, (2, 3))),
    ],
)
def test_in_a_controlled_shutdown_another_isr_member_leads_if_there_is_one(
    assignment: Isr, isr: Isr, live: set[int], shutting_down: set[int], elected: tuple[int, Isr] | None
) -> None:
    new = elect_for_controlled_shutdown(
        state(isr[0], isr), assignment, frozenset(live), frozenset(shutting_down)
    )
    assert outcome_of(new) == elected
