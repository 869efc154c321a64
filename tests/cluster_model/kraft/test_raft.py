"""The quorum of KRaft (KafkaRaftClient.java): elections, replication, what is committed."""

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harrow.cluster_model.kraft.protocol import VoteRequest
from harrow.cluster_model.kraft.raft import RaftClient, Role
from tests.cluster_model.kraft.quorum import MS, SECOND, Quorum


def elected(quorum: Quorum) -> int:
    quorum.run(10 * SECOND)
    leader = quorum.leader()
    assert leader is not None
    return leader.node


@pytest.mark.parametrize("voters", [1, 2, 3, 5])
@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_quorum_elects_a_leader_and_all_learn_what_it_commits(voters: int, pre_vote: bool) -> None:
    quorum = Quorum(voters, observers=2, pre_vote=pre_vote)
    elected(quorum)
    for number in range(3):
        assert quorum.append(number)
        quorum.run(SECOND)
    assert all(quorum.numbers(node.id) == [0, 1, 2] for node in quorum.nodes)


def test_a_quorum_of_one_leads_at_once() -> None:
    quorum = Quorum(1)
    assert quorum.leader() is not None
    assert quorum.simulator.now_us == 0


def test_when_the_leader_dies_the_others_elect_one_in_a_later_epoch() -> None:
    quorum = Quorum()
    first = elected(quorum)
    before = quorum.leader()
    assert before is not None
    epoch = before.epoch
    quorum.append(1)
    quorum.run(SECOND)
    quorum.crash(first)
    second = elected(quorum)
    after = quorum.leader()
    assert after is not None
    assert second != first
    assert after.epoch > epoch
    assert quorum.numbers(second) == [1]
    quorum.start(first)
    quorum.append(2)
    quorum.run(5 * SECOND)
    assert quorum.numbers(first) == [1, 2]


def test_a_minority_elects_nobody_and_commits_nothing() -> None:
    quorum = Quorum(5)
    leader = elected(quorum)
    for node in [node for node in range(5) if node != leader][:3]:
        quorum.crash(node)
    quorum.append(1)
    quorum.run(20 * SECOND)
    assert quorum.leader() is None
    assert quorum.numbers(leader) == []


def cut_off(quorum: Quorum, minority: set[int]) -> None:
    for one in minority:
        for other in {node.id for node in quorum.nodes} - minority:
            quorum.cut(one, other)
            quorum.cut(other, one)


def raft_of(quorum: Quorum, node: int) -> RaftClient:
    raft = quorum.nodes[node].raft
    assert raft is not None
    return raft


@pytest.mark.parametrize("check_quorum", [False, True])
@pytest.mark.parametrize("voters", [3, 5])
def test_from_3_7_on_a_leader_that_no_majority_fetches_from_resigns(voters: int, check_quorum: bool) -> None:
    """KAFKA-15489: after one and a half of the fetch timeout, not before."""
    quorum = Quorum(voters, check_quorum=check_quorum)
    leader = elected(quorum)
    # With one beside it, in a quorum of five.
    cut_off(quorum, {leader, (leader + 1) % voters} if voters == 5 else {leader})
    raft = raft_of(quorum, leader)
    quorum.run(2 * SECOND)
    assert raft.is_leader
    quorum.run(1600 * MS)
    assert raft.is_leader != check_quorum
    quorum.run(8 * SECOND)
    assert elected(quorum) != leader
    assert raft.is_leader != check_quorum
    quorum.heal()
    quorum.run(SECOND)
    assert not raft.is_leader


@pytest.mark.parametrize("voters", [3, 5])
@pytest.mark.parametrize("pre_vote", [False, True])
def test_what_a_minority_that_was_cut_off_has_appended_gives_way_to_what_the_others_commit(
    voters: int, pre_vote: bool
) -> None:
    quorum = Quorum(voters, pre_vote=pre_vote)
    leader = elected(quorum)
    cut_off(quorum, {leader, (leader + 1) % voters} if voters == 5 else {leader})
    quorum.append(1)
    quorum.run(10 * SECOND)
    assert quorum.numbers(leader) == []
    quorum.append(2)
    quorum.run(SECOND)
    quorum.heal()
    quorum.run(10 * SECOND)
    assert {tuple(quorum.numbers(node)) for node in range(voters)} == {(2,)}


@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize("voters", [3, 5])
def test_successors_stand_for_election_in_the_order_that_the_resigning_leader_prefers(
    voters: int, pre_vote: bool
) -> None:
    """EndQuorumEpoch: at once, then after 1/2^(n-1) of controller.quorum.election.backoff.max.ms, doubled each time."""
    quorum = Quorum(voters, pre_vote=pre_vote)
    leader = elected(quorum)
    successors = tuple(node for node in range(voters) if node != leader)
    waits = [raft_of(quorum, node)._election_backoff_us(successors) for node in successors]
    shortest_us = 1_000 * MS >> (len(successors) - 1)
    assert waits == [0, *(shortest_us // MS * MS << place for place in range(len(successors) - 1))]
    assert raft_of(quorum, successors[0])._election_backoff_us(successors[1:]) == SECOND
    raft_of(quorum, leader).resign()
    quorum.run(SECOND)
    after = quorum.leader()
    assert after is not None
    assert after.node in successors[:2]


def test_a_resignation_that_was_lost_is_said_again() -> None:
    quorum = Quorum()
    leader = elected(quorum)
    cut_off(quorum, {leader})
    quorum.network.reset(f"controller-{leader}", f"controller-{(leader + 1) % 3}")
    quorum.network.reset(f"controller-{leader}", f"controller-{(leader + 2) % 3}")
    raft_of(quorum, leader).resign()
    quorum.run(100 * MS)
    assert quorum.leader() is None
    quorum.network.restore_all()
    quorum.run(300 * MS)
    assert quorum.leader() is not None, "the others have waited for their fetch timeout"


def test_a_leader_that_stops_goes_on_until_there_is_another() -> None:
    """GracefulShutdown: it votes until then; five seconds are the most."""
    quorum = Quorum(2)
    leader = elected(quorum)
    ended: list[int] = []
    raft_of(quorum, leader).shutdown(lambda: ended.append(quorum.simulator.now_us))
    assert not ended
    quorum.run(200 * MS)
    after = quorum.leader()
    assert after is not None
    assert after.node != leader
    assert ended


def test_a_leader_that_stops_and_has_no_successor_waits_for_five_seconds() -> None:
    quorum = Quorum()
    leader = elected(quorum)
    for other in {0, 1, 2} - {leader}:
        quorum.crash(other)
    ended: list[int] = []
    raft_of(quorum, leader).shutdown(lambda: ended.append(1))
    quorum.run(4_900 * MS)
    assert not ended
    quorum.run(200 * MS)
    assert ended


def test_a_follower_that_stops_ends_at_once() -> None:
    quorum = Quorum()
    leader = elected(quorum)
    ended: list[int] = []
    raft_of(quorum, (leader + 1) % 3).shutdown(lambda: ended.append(1))
    assert ended


def test_who_has_voted_waits_for_an_election_timeout_from_then_on() -> None:
    """QuorumState.transitionToUnattachedVotedState: the candidate gets time to win."""
    quorum = Quorum()
    leader = elected(quorum)
    quorum.crash(leader)
    voter = raft_of(quorum, (leader + 1) % 3)
    voter._transition_to_unattached(voter.epoch)
    quorum.run(900 * MS)
    request = VoteRequest(voter.epoch + 1, (leader + 2) % 3, voter.log.last_epoch, voter.log.end_offset)
    quorum.pause((leader + 2) % 3)
    assert voter._handle_vote(request).granted
    quorum.run(990 * MS)
    assert voter.role is Role.UNATTACHED


def test_an_observer_whose_leader_is_gone_asks_the_others_who_leads() -> None:
    quorum = Quorum(observers=1, pre_vote=True)
    leader = elected(quorum)
    quorum.crash(leader)
    while quorum.leader() is None:
        quorum.run(20 * MS)
    quorum.run(100 * MS)
    after, observer = quorum.leader(), raft_of(quorum, 3)
    assert after is not None
    assert (observer.role, observer.leader) == (Role.FOLLOWER, after.node)


@pytest.mark.parametrize("observers", [0, 10])
def test_an_idle_quorum_costs_no_more_than_a_look_at_each_timeout(observers: int) -> None:
    quorum = Quorum(observers=observers)
    elected(quorum)
    steps = 0
    end_us = quorum.simulator.now_us + 60 * SECOND
    while quorum.simulator.step(end_us):
        steps += 1
    # Each follower looks every one and a half seconds at the most, and the leader every three.
    assert steps <= 40 * (2 + observers) + 20 + 5
    assert len({raft_of(quorum, node.id).leader for node in quorum.nodes}) == 1


def test_a_voter_votes_once_in_an_epoch_although_it_restarts() -> None:
    quorum = Quorum()
    elected(quorum)
    voted = [node.log.voted_for for node in quorum.nodes]
    for node in range(3):
        quorum.crash(node)
        quorum.start(node)
    assert [node.log.voted_for for node in quorum.nodes] == voted


@pytest.mark.parametrize(("pre_vote", "deposes"), [(False, True), (True, False)])
def test_without_pre_vote_a_voter_that_was_cut_off_deposes_the_leader_when_it_is_back(
    pre_vote: bool, deposes: bool
) -> None:
    """KIP-996."""
    quorum = Quorum(pre_vote=pre_vote)
    leader = elected(quorum)
    lonely = (leader + 1) % 3
    for other in {0, 1, 2} - {lonely}:
        quorum.cut(lonely, other)
        quorum.cut(other, lonely)
    quorum.run(15 * SECOND)
    before = quorum.leader()
    assert before is not None
    epoch = before.epoch
    quorum.heal()
    quorum.run(10 * SECOND)
    after = quorum.leader()
    assert after is not None
    assert (after.epoch > epoch) == deposes


def test_a_leader_that_resigns_is_succeeded_by_who_has_the_most_at_once() -> None:
    quorum = Quorum()
    leader = elected(quorum)
    raft = quorum.nodes[leader].raft
    assert raft is not None
    raft.resign()
    quorum.run(100 * MS)
    after = quorum.leader()
    assert after is not None
    assert after.node != leader
    assert raft.role is Role.FOLLOWER


@pytest.mark.parametrize(("tells", "at_once"), [(False, False), (True, True)])
def test_followers_hear_of_a_commit_with_the_next_record_or_half_a_second_later(
    tells: bool, at_once: bool
) -> None:
    """KIP-1166."""
    quorum = Quorum(observers=1, tells_hw=tells)
    elected(quorum)
    quorum.append(1)
    quorum.run(20 * MS)
    assert (quorum.numbers(3) == [1]) == at_once
    quorum.run(600 * MS)
    assert quorum.numbers(3) == [1]


steps = st.one_of(
    st.tuples(st.just("append")),
    st.tuples(st.just("run"), st.sampled_from([1, 20, 300, 1_500, 4_000])),
    st.tuples(st.sampled_from(["crash", "start", "pause", "resume", "resign", "stop"]), st.integers(0, 4)),
    st.tuples(st.just("cut"), st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.just("heal")),
    st.tuples(st.sampled_from(["snapshot", "clean", "lose_disk"]), st.integers(0, 4)),
)


@pytest.mark.soak(size=20, test=2, soak=200)
@settings(max_examples=20)
@given(
    voters=st.sampled_from([1, 2, 3, 5]),
    observers=st.integers(0, 1),
    pre_vote=st.booleans(),
    check_quorum=st.booleans(),
    taken=st.lists(steps, max_size=40),
    seed=st.integers(0, 2**16),
)
def test_one_leader_an_epoch_and_nothing_committed_is_ever_lost_with_snapshots_or_without(
    voters: int, observers: int, pre_vote: bool, check_quorum: bool, taken: list[tuple[Any, ...]], seed: int
) -> None:
    quorum = Quorum(voters, observers, seed, pre_vote=pre_vote, check_quorum=check_quorum)
    quorum.run(3 * SECOND)
    number = 0
    for step in taken:
        name, *arguments = step
        if name == "append":
            number += 1
            quorum.append(number)
        elif name == "run":
            quorum.run(arguments[0] * MS)
        elif all(argument < voters + observers for argument in arguments):
            getattr(quorum, name)(*arguments)
    quorum.heal()
    quorum.run(20 * SECOND)
    assert quorum.append(0), "there is no leader again"
    quorum.run(2 * SECOND)
    event(f"{len(quorum.chosen)} records")
    event(f"{sum(len(node.fetched) for node in quorum.nodes)} snapshots fetched")
    assert all(quorum.numbers(node.id)[-1:] == [0] for node in quorum.nodes)
