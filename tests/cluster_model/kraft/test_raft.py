"""The quorum of KRaft (KafkaRaftClient.java): elections, replication, commits."""

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harrow.cluster_model.events import QuorumElectionUndecided
from harrow.cluster_model.kraft.protocol import VoteRequest
from harrow.cluster_model.kraft.raft import OBSERVER_SESSION_TIMEOUT_US, RaftClient, ReplicaProgress, Role
from harrow.cluster_model.release.kraft import AFTER_REFUSAL, CAPPED, JITTERED, WHILE_SILENT
from harrow.cluster_model.release.profiles import behaviours_in
from harrow.cluster_model.release.switch import ALWAYS, NEVER
from tests.cluster_model.kraft.quorum import MS, SECOND, Quorum


def leader_of(quorum: Quorum) -> int:
    quorum.run(10 * SECOND)
    leader = quorum.leader()
    assert leader is not None
    return leader.node


@pytest.mark.parametrize("voters", [1, 2, 3, 5])
@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_quorum_elects_a_leader_and_all_nodes_learn_its_commits(voters: int, pre_vote: bool) -> None:
    quorum = Quorum(voters, observers=2, pre_vote=pre_vote)
    leader_of(quorum)
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
    first = leader_of(quorum)
    before = quorum.leader()
    assert before is not None
    epoch = before.epoch
    quorum.append(1)
    quorum.run(SECOND)
    quorum.crash(first)
    second = leader_of(quorum)
    after = quorum.leader()
    assert after is not None
    assert second != first
    assert after.epoch > epoch
    assert quorum.numbers(second) == [1]
    quorum.start(first)
    quorum.append(2)
    quorum.run(5 * SECOND)
    assert quorum.numbers(first) == [1, 2]


def test_a_minority_elects_no_leader_and_commits_nothing() -> None:
    quorum = Quorum(5)
    leader = leader_of(quorum)
    for node in [node for node in range(5) if node != leader][:3]:
        quorum.crash(node)
    quorum.append(1)
    quorum.run(20 * SECOND)
    assert quorum.leader() is None
    assert quorum.numbers(leader) == []


def isolate(quorum: Quorum, minority: set[int]) -> None:
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
def test_from_3_7_on_a_leader_without_fetches_of_a_majority_resigns(voters: int, check_quorum: bool) -> None:
    """KAFKA-15489: the leader resigns after one and a half fetch timeouts, not earlier."""
    quorum = Quorum(voters, check_quorum=check_quorum)
    leader = leader_of(quorum)
    # In a quorum of five, together with one follower.
    isolate(quorum, {leader, (leader + 1) % voters} if voters == 5 else {leader})
    raft = raft_of(quorum, leader)
    quorum.run(2 * SECOND)
    assert raft.is_leader
    quorum.run(1600 * MS)
    assert raft.is_leader != check_quorum
    quorum.run(8 * SECOND)
    assert leader_of(quorum) != leader
    assert raft.is_leader != check_quorum
    quorum.heal()
    quorum.run(SECOND)
    assert not raft.is_leader


@pytest.mark.parametrize("voters", [3, 5])
@pytest.mark.parametrize("pre_vote", [False, True])
def test_records_of_an_isolated_minority_are_replaced_by_those_of_the_majority(
    voters: int, pre_vote: bool
) -> None:
    quorum = Quorum(voters, pre_vote=pre_vote)
    leader = leader_of(quorum)
    isolate(quorum, {leader, (leader + 1) % voters} if voters == 5 else {leader})
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
def test_successors_run_in_the_order_that_the_resigning_leader_prefers(voters: int, pre_vote: bool) -> None:
    """EndQuorumEpoch: the first at once, the second after 1/2^(n-1) of
    controller.quorum.election.backoff.max.ms.

    The delay doubles for each later one.
    """
    quorum = Quorum(voters, pre_vote=pre_vote)
    leader = leader_of(quorum)
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


def test_a_lost_resignation_is_sent_again() -> None:
    quorum = Quorum()
    leader = leader_of(quorum)
    isolate(quorum, {leader})
    quorum.network.reset(f"controller-{leader}", f"controller-{(leader + 1) % 3}")
    quorum.network.reset(f"controller-{leader}", f"controller-{(leader + 2) % 3}")
    raft_of(quorum, leader).resign()
    quorum.run(100 * MS)
    assert quorum.leader() is None
    quorum.network.restore_all()
    quorum.run(300 * MS)
    assert quorum.leader() is not None, "the others waited for their fetch timeout"


def test_a_leader_in_shutdown_stays_until_it_has_a_successor() -> None:
    """GracefulShutdown: it votes until then, for at most five seconds."""
    quorum = Quorum(2)
    leader = leader_of(quorum)
    ended: list[int] = []
    raft_of(quorum, leader).shutdown(lambda: ended.append(quorum.simulator.now_us))
    assert not ended
    quorum.run(200 * MS)
    after = quorum.leader()
    assert after is not None
    assert after.node != leader
    assert ended


def test_a_leader_in_shutdown_without_a_successor_waits_five_seconds() -> None:
    quorum = Quorum()
    leader = leader_of(quorum)
    for other in {0, 1, 2} - {leader}:
        quorum.crash(other)
    ended: list[int] = []
    raft_of(quorum, leader).shutdown(lambda: ended.append(1))
    quorum.run(4_900 * MS)
    assert not ended
    quorum.run(200 * MS)
    assert ended


def test_a_follower_in_shutdown_ends_at_once() -> None:
    quorum = Quorum()
    leader = leader_of(quorum)
    ended: list[int] = []
    raft_of(quorum, (leader + 1) % 3).shutdown(lambda: ended.append(1))
    assert ended


def test_a_voter_waits_for_a_whole_election_timeout_after_its_vote() -> None:
    """QuorumState.transitionToUnattachedVotedState gives the candidate time to win."""
    quorum = Quorum()
    leader = leader_of(quorum)
    quorum.crash(leader)
    voter = raft_of(quorum, (leader + 1) % 3)
    voter._transition_to_unattached(voter.epoch)
    quorum.run(900 * MS)
    request = VoteRequest(voter.epoch + 1, (leader + 2) % 3, voter.log.last_epoch, voter.log.end_offset)
    quorum.pause((leader + 2) % 3)
    assert voter._handle_vote(request).granted
    quorum.run(990 * MS)
    assert voter.role is Role.UNATTACHED


def test_an_observer_of_a_dead_leader_learns_the_next_from_other_voters() -> None:
    quorum = Quorum(observers=1, pre_vote=True)
    leader = leader_of(quorum)
    quorum.crash(leader)
    while quorum.leader() is None:
        quorum.run(20 * MS)
    quorum.run(100 * MS)
    after, observer = quorum.leader(), raft_of(quorum, 3)
    assert after is not None
    assert (observer.role, observer.leader) == (Role.FOLLOWER, after.node)


@pytest.mark.parametrize("is_observer", [False, True])
def test_a_leader_describes_when_a_paused_replica_last_fetched(is_observer: bool) -> None:
    quorum = Quorum(observers=2)
    leader = leader_of(quorum)
    quorum.run(2 * SECOND)
    paused, other = (3, 4) if is_observer else [voter for voter in quorum.voters if voter != leader]
    paused_us = quorum.simulator.now_us
    quorum.pause(paused)
    quorum.run(3 * SECOND)
    described = raft_of(quorum, leader).describe()
    states = {each.replica_id: each for each in (*described.voters, *described.observers)}
    assert states[leader][2:] == (quorum.simulator.now_us, quorum.simulator.now_us)
    for moment in ("fetched_us", "caught_up_us"):
        assert 0 < getattr(states[paused], moment) <= paused_us < getattr(states[other], moment)


def test_a_leader_has_not_seen_a_fetch_of_a_voter_that_died_before_its_election() -> None:
    quorum = Quorum()
    first = leader_of(quorum)
    quorum.crash(first)
    quorum.run(10 * SECOND)
    (dead,) = [each for each in raft_of(quorum, leader_of(quorum)).describe().voters if each[0] == first]
    assert dead == (first, -1, -1, -1)


def test_a_leader_forgets_an_observer_that_has_not_fetched_for_five_minutes() -> None:
    quorum = Quorum(observers=2)
    leader = raft_of(quorum, leader_of(quorum))
    quorum.run(SECOND)
    quorum.crash(3)
    quorum.run(OBSERVER_SESSION_TIMEOUT_US - SECOND)
    assert sorted(each.replica_id for each in leader.describe().observers) == [3, 4]
    quorum.run(2 * SECOND)
    assert [each.replica_id for each in leader.describe().observers] == [4]


def test_a_follower_was_caught_up_at_its_last_fetch_if_it_now_has_what_the_leader_had_then() -> None:
    state = ReplicaProgress()
    for now_us, fetch_offset, leader_end, caught_up_us in (
        (1, 0, 10, -1),
        (2, 10, 20, 1),
        (3, 20, 20, 3),
        (4, 20, 30, 3),
        (5, 25, 40, 3),
        (6, 39, 50, 3),
        (7, 50, 60, 6),
    ):
        state.update(now_us, fetch_offset, leader_end)
        assert (state.fetched_us, state.caught_up_us) == (now_us, caught_up_us)


@pytest.mark.parametrize("observers", [0, 10])
def test_an_idle_quorum_costs_only_a_check_at_each_timeout(observers: int) -> None:
    quorum = Quorum(observers=observers)
    leader_of(quorum)
    steps = 0
    end_us = quorum.simulator.now_us + 60 * SECOND
    while quorum.simulator.step(end_us):
        steps += 1
    # Each follower checks at most every one and a half seconds, and the leader every three.
    assert steps <= 40 * (2 + observers) + 20 + 5
    assert len({raft_of(quorum, node.id).leader for node in quorum.nodes}) == 1


def test_a_voter_keeps_its_vote_over_a_restart() -> None:
    quorum = Quorum()
    leader_of(quorum)
    voted = [node.log.voted_for for node in quorum.nodes]
    for node in range(3):
        quorum.crash(node)
        quorum.start(node)
    assert [node.log.voted_for for node in quorum.nodes] == voted


@pytest.mark.parametrize(("pre_vote", "deposes"), [(False, True), (True, False)])
def test_without_pre_vote_an_isolated_voter_deposes_the_leader_when_it_returns(
    pre_vote: bool, deposes: bool
) -> None:
    """KIP-996."""
    quorum = Quorum(pre_vote=pre_vote)
    leader = leader_of(quorum)
    isolated = (leader + 1) % 3
    for other in {0, 1, 2} - {isolated}:
        quorum.cut(isolated, other)
        quorum.cut(other, isolated)
    quorum.run(15 * SECOND)
    before = quorum.leader()
    assert before is not None
    epoch = before.epoch
    quorum.heal()
    quorum.run(10 * SECOND)
    after = quorum.leader()
    assert after is not None
    assert (after.epoch > epoch) == deposes


def test_a_resigning_leader_has_a_successor_at_once() -> None:
    quorum = Quorum()
    leader = leader_of(quorum)
    raft = quorum.nodes[leader].raft
    assert raft is not None
    raft.resign()
    quorum.run(100 * MS)
    after = quorum.leader()
    assert after is not None
    assert after.node != leader
    assert raft.role is Role.FOLLOWER


@pytest.mark.parametrize(("tells", "at_once"), [(False, False), (True, True)])
def test_followers_learn_of_a_commit_with_the_next_record_or_after_half_a_second(
    tells: bool, at_once: bool
) -> None:
    """KIP-1166."""
    quorum = Quorum(observers=1, tells_hw=tells)
    leader_of(quorum)
    quorum.append(1)
    quorum.run(20 * MS)
    assert (quorum.numbers(3) == [1]) == at_once
    quorum.run(600 * MS)
    assert quorum.numbers(3) == [1]


def undecided_candidates(quorum: Quorum) -> list[int]:
    """Return a list that collects candidates that are neither leader_of nor rejected in time."""
    candidates: list[int] = []

    def note(node: int, _epoch: int) -> None:
        candidates.append(node)

    quorum.trace.subscribe(QuorumElectionUndecided, note)
    return candidates


def refused_candidate(quorum: Quorum) -> RaftClient:
    """Return a candidate that the other voters have refused."""
    leader = leader_of(quorum)
    raft = raft_of(quorum, (leader + 1) % 3)
    for other in {0, 1, 2} - {raft.node}:
        quorum.pause(other)
    raft._transition_to_candidate()
    raft._votes = {raft.node: True, **dict.fromkeys({0, 1, 2} - {raft.node}, False)}
    raft._count_votes()
    return raft


@pytest.mark.parametrize(
    ("release", "backs_off", "at_timeout"),
    [("3.6", True, True), ("3.9", True, True), ("4.0", True, False), ("4.3", False, False)],
)
def test_a_refused_candidate_backs_off_up_to_4_0_and_an_unanswered_one_up_to_3_9(
    release: str, backs_off: bool, at_timeout: bool
) -> None:
    """KAFKA-18345: from 4.1 on it waits for its election timeout, then runs again without a
    backoff."""
    switch = behaviours_in(release).kraft.election_backoff
    pre_vote = behaviours_in(release).kraft.pre_vote
    raft = refused_candidate(Quorum(pre_vote=pre_vote, election_backoff=switch))
    assert raft._is_backing_off == backs_off
    quorum = Quorum(pre_vote=pre_vote, election_backoff=switch)
    isolated = (leader_of(quorum) + 1) % 3
    isolate(quorum, {isolated})
    raft = raft_of(quorum, isolated)
    raft._elections = 5  # So that its random backoff is not zero.
    raft._transition_to_candidate()
    epoch = raft.epoch
    while raft.role is Role.CANDIDATE and not raft._is_backing_off and raft.epoch == epoch:
        quorum.run(MS)
    assert raft._is_backing_off == at_timeout


def test_a_refused_candidate_of_4_3_runs_again_after_its_election_timeout() -> None:
    quorum = Quorum(pre_vote=True)
    raft = refused_candidate(quorum)
    undecided = undecided_candidates(quorum)
    deadline_us = raft._deadline_us
    assert deadline_us is not None
    quorum.run(deadline_us - quorum.simulator.now_us - 1)
    before = raft.role
    quorum.run(1)
    assert (before, raft.role) == (Role.CANDIDATE, Role.PROSPECTIVE)
    assert undecided == [], "its election was decided by rejection"


@pytest.mark.parametrize("pre_vote", [False, True])
def test_an_election_without_answers_is_undecided(pre_vote: bool) -> None:
    quorum = Quorum(pre_vote=pre_vote)
    isolated = (leader_of(quorum) + 1) % 3
    undecided = undecided_candidates(quorum)
    isolate(quorum, {isolated})
    quorum.run(10 * SECOND)
    assert set(undecided) == {isolated}


def test_from_3_9_2_on_candidates_with_long_backoffs_run_at_different_times() -> None:
    """KAFKA-18345: without jitter all reach the same controller.quorum.election.backoff.max.ms."""

    def backoffs(switch: str, elections: int) -> list[int]:
        raft = raft_of(Quorum(election_backoff=switch), 0)
        raft._elections = elections
        return [raft._candidate_backoff_us() for _ in range(200)]

    assert set(backoffs(CAPPED, 1)) == {0, 100 * MS}
    assert set(backoffs(JITTERED, 1)) == {50 * MS, 100 * MS}
    assert set(backoffs(AFTER_REFUSAL, 1)) == {50 * MS}
    assert set(backoffs(AFTER_REFUSAL, 2)) == {50 * MS, 100 * MS, 150 * MS}
    assert backoffs(CAPPED, 20).count(SECOND) > 190
    for switch in (JITTERED, AFTER_REFUSAL):
        late = backoffs(switch, 20)
        assert max(late) <= SECOND + 49 * MS
        assert max(late.count(backoff) for backoff in late) < 20


def test_a_candidate_that_was_unattached_since_its_last_election_has_its_first_backoff_again() -> None:
    """CandidateState.retries counts consecutive elections."""
    quorum = Quorum()
    raft = refused_candidate(quorum)
    raft._transition_to_candidate()
    assert raft._elections == 2
    raft._transition_to_unattached(raft.epoch + 1)
    raft._transition_to_candidate()
    assert raft._elections == 1


def kill_without_known_leader(quorum: Quorum, node: int) -> None:
    """Kill a voter that knows the leader's epoch, but not the leader."""
    quorum.crash(node)
    quorum.nodes[node].log.leader = quorum.nodes[node].log.voted_for = -1


@pytest.mark.parametrize(("looks", "deposes"), [(False, True), (True, False)])
def test_from_3_9_1_on_a_voter_that_starts_without_a_known_leader_finds_it(
    looks: bool, deposes: bool
) -> None:
    """KAFKA-17030: before, it ran for election in the next epoch and deposed the leader."""
    quorum = Quorum(looks_for_leader=looks, begin_epoch_repeated=NEVER)
    leader = leader_of(quorum)
    epoch = raft_of(quorum, leader).epoch
    voter = (leader + 1) % 3
    kill_without_known_leader(quorum, voter)
    quorum.start(voter)
    quorum.run(100 * MS)
    assert (raft_of(quorum, voter).leader == leader) == looks
    quorum.run(5 * SECOND)
    after = quorum.leader()
    assert after is not None
    assert (after.epoch > epoch) == deposes


@pytest.mark.parametrize("looks", [False, True])
def test_from_3_9_1_on_a_follower_of_a_silent_leader_asks_other_voters(looks: bool) -> None:
    """FollowerState: maybeSendFetchToBestNode."""
    quorum = Quorum(looks_for_leader=looks)
    leader = leader_of(quorum)
    voter = raft_of(quorum, (leader + 1) % 3)
    quorum.crash(leader)
    next_voter = voter._next_voter
    quorum.run(300 * MS)
    assert (voter.role, voter.leader) == (Role.FOLLOWER, leader)
    assert (voter._next_voter > next_voter) == looks


@pytest.mark.parametrize(
    ("switch", "within_us"), [(NEVER, None), (ALWAYS, 2 * SECOND), (WHILE_SILENT, 3 * SECOND)]
)
def test_from_3_9_on_a_leader_repeats_its_announcement(switch: str, within_us: int | None) -> None:
    """KAFKA-16536: every half controller.quorum.fetch.timeout.ms, even to a voter that had it
    once."""
    quorum = Quorum(looks_for_leader=False, begin_epoch_repeated=switch)
    leader = leader_of(quorum)
    voter = raft_of(quorum, (leader + 1) % 3)
    voter._transition(Role.UNATTACHED, voter.epoch, -1)  # Without a timer for an election.
    began_us = quorum.simulator.now_us
    while voter.leader == -1 and quorum.simulator.now_us < began_us + 10 * SECOND:
        quorum.run(10 * MS)
    if within_us is None:
        assert voter.leader == -1
    else:
        assert voter.leader == leader
        assert quorum.simulator.now_us - began_us <= within_us


@pytest.mark.parametrize("switch", [NEVER, ALWAYS, WHILE_SILENT])
def test_a_repeated_announcement_meets_a_voter_in_a_later_epoch_and_deposes_the_leader(switch: str) -> None:
    quorum = Quorum(looks_for_leader=True, begin_epoch_repeated=switch)
    leader = leader_of(quorum)
    voter = raft_of(quorum, (leader + 1) % 3)
    voter._transition(Role.UNATTACHED, voter.epoch + 1, -1)
    quorum.run(3 * SECOND)
    assert raft_of(quorum, leader).is_leader == (switch == NEVER)


@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_resigned_leader_without_a_successor_leaves_its_epoch(pre_vote: bool) -> None:
    """``pollResigned``: up to 3.9 it runs in the next epoch, from 4.0 on it asks for pre-votes
    there."""
    quorum = Quorum(pre_vote=pre_vote)
    leader = leader_of(quorum)
    raft = raft_of(quorum, leader)
    epoch = raft.epoch
    for other in {0, 1, 2} - {leader}:
        quorum.pause(other)
    raft.resign()
    while raft.role is Role.RESIGNED:
        quorum.run(MS)
    assert raft.role is (Role.PROSPECTIVE if pre_vote else Role.CANDIDATE)
    assert (raft.epoch, raft.log.voted_for) == (epoch + 1, -1 if pre_vote else leader)


def test_a_killed_candidate_restarts_as_candidate_of_the_same_epoch() -> None:
    """QuorumState.initialize (isVotedCandidate)."""
    quorum = Quorum()
    leader = leader_of(quorum)
    voter = (leader + 1) % 3
    quorum.crash(leader)
    raft_of(quorum, voter)._transition_to_candidate()
    epoch = raft_of(quorum, voter).epoch
    quorum.crash(voter)
    quorum.start(voter)
    assert (raft_of(quorum, voter).role, raft_of(quorum, voter).epoch) == (Role.CANDIDATE, epoch)
    quorum.run(200 * MS)
    after = quorum.leader()
    assert after is not None
    assert (after.node, after.epoch) == (voter, epoch)


@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_former_leader_does_not_run_in_its_epoch_after_two_restarts(pre_vote: bool) -> None:
    """It must not lead an epoch twice, with other records, although it has its own vote there."""
    quorum = Quorum(pre_vote=pre_vote)
    leader = leader_of(quorum)
    epoch = raft_of(quorum, leader).epoch
    raft_of(quorum, leader).resign()
    for _ in range(2):
        quorum.crash(leader)
        quorum.start(leader)
        raft = raft_of(quorum, leader)
        assert (raft.role, raft.epoch) == (Role.RESIGNED, epoch)


@pytest.mark.parametrize(("pre_vote", "role"), [(False, Role.FOLLOWER), (True, Role.CANDIDATE)])
def test_from_4_0_on_a_follower_that_ran_in_the_epoch_asks_for_votes_first(
    pre_vote: bool, role: Role
) -> None:
    """From 4.0 on FollowerState.election has the vote. The others name the leader."""
    quorum = Quorum(pre_vote=pre_vote)
    leader = leader_of(quorum)
    voter = (leader + 1) % 3
    quorum.crash(voter)
    quorum.nodes[voter].log.voted_for = voter
    quorum.start(voter)
    raft = raft_of(quorum, voter)
    assert raft.role is role
    quorum.run(100 * MS)
    assert (raft.role, raft.leader) == (Role.FOLLOWER, leader)


steps = st.one_of(
    st.tuples(st.just("append")),
    st.tuples(st.just("run"), st.sampled_from([1, 20, 300, 1_500, 4_000])),
    st.tuples(st.sampled_from(["crash", "start", "pause", "resume", "resign", "stop"]), st.integers(0, 4)),
    st.tuples(st.just("cut"), st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.just("heal")),
    st.tuples(st.sampled_from(["snapshot", "clean", "lose_disk"]), st.integers(0, 4)),
)


@pytest.mark.soak(size=20, rounds_in_test=2, rounds_in_soak=200)
@settings(max_examples=20)
@given(
    voters=st.sampled_from([1, 2, 3, 5]),
    observers=st.integers(0, 1),
    pre_vote=st.booleans(),
    release=st.sampled_from(["3.6", "3.9", "4.0", "4.3"]),
    check_quorum=st.booleans(),
    actions=st.lists(steps, max_size=40),
    seed=st.integers(0, 2**16),
)
def test_each_epoch_has_one_leader_and_committed_records_survive(
    voters: int,
    observers: int,
    pre_vote: bool,
    release: str,
    check_quorum: bool,
    actions: list[tuple[Any, ...]],
    seed: int,
) -> None:
    behaviours = behaviours_in(release)
    quorum = Quorum(
        voters,
        observers,
        seed,
        pre_vote=pre_vote,
        check_quorum=check_quorum,
        election_backoff=behaviours.kraft.election_backoff,
        looks_for_leader=behaviours.kraft.voters_look_for_leader,
        begin_epoch_repeated=behaviours.kraft.begin_quorum_epoch_repeated,
    )
    quorum.run(3 * SECOND)
    number = 0
    for step in actions:
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
    assert quorum.append(0), "the quorum has no leader after the repair"
    quorum.run(2 * SECOND)
    event(f"{len(quorum.chosen)} records")
    event(f"{sum(len(node.fetched) for node in quorum.nodes)} snapshots fetched")
    assert all(quorum.numbers(node.id)[-1:] == [0] for node in quorum.nodes)
