"""The quorum of KRaft (KafkaRaftClient.java): elections, replication, what is committed."""

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harrow.cluster_model.kraft.raft import Role
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


def test_a_leader_that_no_majority_fetches_from_resigns() -> None:
    """KAFKA-15489: after one and a half of the fetch timeout, not before."""
    quorum = Quorum()
    leader = elected(quorum)
    for other in {0, 1, 2} - {leader}:
        quorum.cut(leader, other)
        quorum.cut(other, leader)
    quorum.run(2 * SECOND)
    raft = quorum.nodes[leader].raft
    assert raft is not None
    assert raft.is_leader
    quorum.run(1600 * MS)
    assert not raft.is_leader


def test_what_a_cut_off_leader_has_appended_gives_way_to_its_successors() -> None:
    quorum = Quorum()
    leader = elected(quorum)
    for other in {0, 1, 2} - {leader}:
        quorum.cut(leader, other)
    quorum.append(1)
    quorum.run(10 * SECOND)
    quorum.append(2)
    quorum.run(SECOND)
    quorum.heal()
    quorum.run(10 * SECOND)
    assert {tuple(quorum.numbers(node)) for node in range(3)} == {(2,)}


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
    st.tuples(st.sampled_from(["crash", "start", "pause", "resume"]), st.integers(0, 4)),
    st.tuples(st.just("cut"), st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.just("heal")),
)


@pytest.mark.soak(size=20, test=2, soak=200)
@settings(max_examples=20)
@given(
    voters=st.sampled_from([1, 2, 3, 5]),
    observers=st.integers(0, 1),
    pre_vote=st.booleans(),
    taken=st.lists(steps, max_size=40),
    seed=st.integers(0, 2**16),
)
def test_one_leader_an_epoch_and_nothing_committed_is_ever_lost(
    voters: int, observers: int, pre_vote: bool, taken: list[tuple[Any, ...]], seed: int
) -> None:
    quorum = Quorum(voters, observers, seed, pre_vote=pre_vote)
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
    assert all(quorum.numbers(node.id)[-1:] == [0] for node in quorum.nodes)
