"""The rules of the invariants: what the trace says was broken, and what permits it."""

from dataclasses import replace

import pytest

from harrow.campaigns.record.phrases import because, preventions
from harrow.checks.finding import HELD, PERMITTED, VIOLATED
from harrow.checks.index import Index
from harrow.checks.judge import judge
from harrow.checks.promise import DISK_FAILURE
from harrow.checks.rules.catalogue import RULE_OF_INVARIANT, RULES, rules_for, watched_in
from harrow.cluster_model.invariants.catalogue import INVARIANTS, SHOWN_BY_TRACE
from tests.checks.evidence_builder import PARTITION, RunBuilder

WATCHED = tuple(name for name in INVARIANTS if name not in SHOWN_BY_TRACE)
FLUSH = "log.flush.interval.messages"
UNCLEAN = "unclean.leader.election.enable=true"


def broken(
    run: RunBuilder, invariant: str, broker: int, offset: int, *, epoch: int = 0, partition: str = PARTITION
) -> None:
    run.event(
        "invariant_broken",
        invariant=invariant,
        broker=broker,
        partition=partition,
        leader_epoch=epoch,
        offset=offset,
        details="what was seen",
    )


def committed(*values: str, unclean: bool = False) -> RunBuilder:
    """Return a run in which broker 0 leads and both brokers have what is committed."""
    run = RunBuilder(unclean_leader_election=unclean)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    for value in values:
        run.write(producer, value, 0, 1)
    return run


@pytest.mark.parametrize("invariant", WATCHED)
def test_an_invariant_that_nothing_broke_held(invariant: str) -> None:
    assert committed("a").judge(invariant).status == HELD


@pytest.mark.parametrize("invariant", WATCHED)
def test_a_break_without_a_cause_is_a_violation(invariant: str) -> None:
    run = committed("a", "b")
    broken(run, invariant, 1, 1)
    result = run.judge(invariant)
    assert result.status == VIOLATED
    (finding,) = result.findings
    assert (finding.partition, finding.offset, finding.permitted_by) == (PARTITION, 1, None)
    assert because(finding).endswith("broker 1: what was seen")


def test_a_controller_has_no_partition() -> None:
    run = committed("a")
    broken(run, "one-controller-per-epoch", 1, -1, partition="")
    (finding,) = run.judge("one-controller-per-epoch").findings
    assert (finding.partition, finding.offset) == ("", None)


def test_a_deposed_leader_commits_records_of_its_own_history() -> None:
    run = RunBuilder((0, 1, 2))
    run.elect(0, 0, (0, 1, 2))
    run.append(0, "a")
    for broker in (1, 2):
        run.replicate(broker, "a")
        run.lose_power(broker, flushed=0)
    run.elect(2, 1, (2,))
    run.append(2, "b")
    run.raise_hw(1, 2)
    run.raise_hw(1, 0)
    broken(run, "isr-holds-committed", 1, 0, epoch=1)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == FLUSH


def test_a_member_does_not_lack_a_record_that_is_committed_only_later() -> None:
    """Broker 1 has joined the ISR of an unclean leader with all that this one has committed, which is less than was committed before."""
    run = RunBuilder((0, 1, 2), unclean_leader_election=True)
    run.elect(0, 0, (0, 1))
    run.append(0, "a", "b")
    run.replicate(1, "a", "b")
    run.raise_hw(2, 0, 1)
    run.elect(2, 1, (2,), unclean=True)
    run.truncate(1, 0)
    run.append(2, "c", "d")
    broken(run, "isr-holds-committed", 1, 1, epoch=1)
    run.replicate(1, "c", "d", epoch=1)
    run.raise_hw(2, 2, 1)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == UNCLEAN


@pytest.mark.parametrize("release", ["0.11", "2.0"])
def test_an_invariant_of_a_later_release_is_not_judged_before_it(release: str) -> None:
    run = committed("a")
    for invariant in ("registered-before-control", "registrations-known", "one-controller-per-epoch"):
        broken(run, invariant, 1, -1, partition="")
    watched = frozenset(watched_in(tuple(INVARIANTS), release, ()))
    evidence = replace(run.evidence(), release=release, invariants=watched)
    judged = judge(evidence).rules
    assert judged["one-controller-per-epoch"].status == VIOLATED
    assert "registrations-known" not in judged
    assert ("registered-before-control" in judged) == (release == "2.0")


@pytest.mark.parametrize("invariant", ["isr-holds-committed", "log-matching"])
class TestPowerLoss:
    def test_unflushed_records_are_lost_by_permission(self, invariant: str) -> None:
        run = committed("a", "b")
        run.lose_power(1, flushed=1)
        broken(run, invariant, 1, 1)
        (finding,) = run.judge(invariant).findings
        assert finding.permitted_by == FLUSH
        assert [link.event for link in finding.chain] == [
            *("appended", "unflushed-lost", "invariant-broken", "conclusion")
        ]

    def test_a_record_that_was_fetched_again_is_not_lost_with_the_power(self, invariant: str) -> None:
        run = committed("a", "b")
        run.lose_power(1, flushed=1)
        run.replicate(1, "b")
        run.truncate(1, 1)
        broken(run, invariant, 1, 1)
        assert run.judge(invariant).status == VIOLATED

    def test_a_later_power_loss_is_no_cause(self, invariant: str) -> None:
        run = committed("a", "b")
        run.truncate(1, 1)
        broken(run, invariant, 1, 1)
        run.replicate(1, "b")
        run.lose_power(1, flushed=1)
        assert run.judge(invariant).status == VIOLATED

    def test_power_loss_elsewhere_in_the_log_is_no_cause(self, invariant: str) -> None:
        run = committed("a", "b", "c")
        run.lose_power(1, flushed=2)
        run.truncate(1, 1)
        broken(run, invariant, 1, 1)
        assert run.judge(invariant).status == VIOLATED


class TestMemberThatJoinsAnew:
    """KIP-903: in KRaft who has restarted joins the ISR by a fetch of its present life, and so has what is committed."""

    def run(self, *, registered: bool = True, leaves: bool = True) -> RunBuilder:
        run = committed("a", "b")
        if leaves:
            run.event("isr_reduced", controller=0, partition=PARTITION, leader=0, leader_epoch=0, isr=(0,))
        run.lose_power(1, flushed=1)
        if registered:
            run.event("broker_registered", broker=1, broker_epoch=9)
        run.event("isr_written", broker=0, partition=PARTITION, leader_epoch=0, isr=(0, 1))
        broken(run, "isr-holds-committed", 1, 1)
        return run

    def judged(self, run: RunBuilder, release: str = "4.3", metadata: str = "kraft") -> str | None:
        evidence = replace(run.evidence(), release=release, metadata=metadata)
        (finding,) = RULES["isr-holds-committed"].judge(Index(evidence)).findings
        return finding.permitted_by

    def test_a_loss_in_a_former_incarnation_permits_nothing(self) -> None:
        assert self.judged(self.run()) is None

    @pytest.mark.parametrize(("release", "metadata"), [("2.8", "zookeeper"), ("3.9", "zookeeper")])
    def test_before_that_a_fetch_of_a_former_life_lets_it_in(self, release: str, metadata: str) -> None:
        assert self.judged(self.run(), release, metadata) == FLUSH

    def test_one_that_joins_before_it_has_registered_counts_as_before(self) -> None:
        assert self.judged(self.run(registered=False)) == FLUSH

    def test_one_that_never_left_does_not_join(self) -> None:
        assert self.judged(self.run(leaves=False)) == FLUSH

    def test_a_loss_of_another_replica_permits_the_anomaly_as_well(self) -> None:
        run = committed("a", "b")
        run.event("isr_reduced", controller=0, partition=PARTITION, leader=0, leader_epoch=0, isr=(0,))
        run.lose_power(1, flushed=1)
        run.event("broker_registered", broker=1, broker_epoch=9)
        run.lose_power(0, flushed=1)
        run.event("isr_written", broker=0, partition=PARTITION, leader_epoch=0, isr=(0, 1))
        broken(run, "isr-holds-committed", 1, 1)
        assert self.judged(run) == FLUSH


@pytest.mark.parametrize("invariant", ["isr-holds-committed", "log-matching"])
class TestUncleanElection:
    def stale_leader(self, *, unclean: bool) -> RunBuilder:
        run = committed("a", unclean=unclean)
        run.append(0, "b")
        run.raise_hw(2, 0)
        run.elect(1, 1, (1,), unclean=True)
        return run

    def test_a_loss_takes_a_leader_without_the_committed_record(self, invariant: str) -> None:
        run = self.stale_leader(unclean=True)
        broken(run, invariant, 1, 1, epoch=1)
        (finding,) = run.judge(invariant).findings
        assert finding.permitted_by == UNCLEAN
        assert tuple(preventions(finding)) == ("unclean.leader.election.enable=false",)

    def test_only_where_it_is_enabled(self, invariant: str) -> None:
        run = self.stale_leader(unclean=False)
        broken(run, invariant, 1, 1, epoch=1)
        assert run.judge(invariant).status == VIOLATED

    def test_a_later_one_is_no_cause(self, invariant: str) -> None:
        run = committed("a", "b", unclean=True)
        run.truncate(1, 1)
        broken(run, invariant, 1, 1)
        run.elect(1, 1, (1,), unclean=True)
        assert run.judge(invariant).status == VIOLATED

    def test_a_leader_that_has_it_is_no_cause(self, invariant: str) -> None:
        run = committed("a", "b", unclean=True)
        run.elect(1, 1, (1,), unclean=True)
        run.truncate(0, 1)
        broken(run, invariant, 0, 1, epoch=1)
        assert run.judge(invariant).status == VIOLATED


def test_a_diverged_member_of_the_isr_is_judged_by_the_records_that_it_lacks() -> None:
    run = committed("a", "b")
    run.lose_power(1, flushed=1)
    run.elect(1, 1, (1,))
    run.append(1, "c")
    run.raise_hw(2, 1)
    # Broker 0 has still b where c is committed; that broker 1 lost b has nothing to do with it.
    broken(run, "isr-holds-committed", 0, 1, epoch=1)
    assert run.judge("isr-holds-committed").status == VIOLATED


@pytest.mark.parametrize("invariant", ["log-matching", "epoch-cache-monotonic", "producer-state-matches-log"])
def test_a_leader_that_forgets_and_resumes_its_epoch_mixes_histories(invariant: str) -> None:
    run = committed("a", "b")
    run.lose_power(0, flushed=1)
    run.lead(0, 0, (0, 1))
    run.append(0, "c")
    broken(run, invariant, 1, 1)
    assert run.judge(invariant).status == PERMITTED


def test_every_invariant_has_a_rule() -> None:
    assert RULE_OF_INVARIANT.keys() == INVARIANTS.keys()
    assert RULE_OF_INVARIANT["one-leader-per-epoch"] == "two-leaders"
    assert set(RULE_OF_INVARIANT.values()) <= RULES.keys()


def test_unwatched_invariants_are_not_judged() -> None:
    assert set(RULES) - set(rules_for((), core=True)) == set(RULE_OF_INVARIANT.values())
    assert rules_for(INVARIANTS, core=True) == RULES
    run = committed("a")
    broken(run, "log-matching", 1, 0)
    # Nobody says here that anything was watched: only what the trace tells is judged.
    assert "log-matching" not in judge(run.evidence()).rules
    assert "two-leaders" in judge(run.evidence()).rules


def test_an_invariant_that_a_release_does_not_promise_is_watched_when_demanded() -> None:
    names = ("failover-shrinks-isr", "hw-monotonic")
    assert watched_in(names, "2.4", ()) == names
    assert watched_in(names, "2.0", ()) == ("hw-monotonic",)
    assert watched_in(names, "2.0", ("failover-shrinks-isr",)) == names


@pytest.mark.parametrize("how", ["power", "unclean", "neither"])
def test_a_marker_of_a_transaction_may_go_as_a_record_may(how: str) -> None:
    """Nothing of it is a record, so that its offset alone tells what became of it."""
    run = committed("a", unclean=how == "unclean")
    for broker in (0, 1):
        run.append(broker, "<commit>")
    ids = {"producer_id": 0, "producer_epoch": 0, "coordinator_epoch": 0}
    run.event(
        "transaction_marker", broker=0, partition=PARTITION, first_offset=0, offset=1, committed=True, **ids
    )
    if how == "power":
        run.lose_power(1, 1)
    elif how == "unclean":
        run.elect(1, 1, (1,), unclean=True)
    broken(run, "isr-holds-committed", 1, 1)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == {"power": FLUSH, "unclean": UNCLEAN, "neither": None}[how]


@pytest.mark.parametrize(("broker", "permitted_by"), [(0, None), (1, FLUSH)])
def test_a_marker_that_others_get_once_a_replica_has_lost_it_is_lost_all_the_same(
    broker: int, permitted_by: str | None
) -> None:
    run = committed("a")
    ids = {"producer_id": 0, "producer_epoch": 0, "coordinator_epoch": 0}
    for holder in (1, 0):
        run.append(holder, "<commit>")
        run.event(
            "transaction_marker",
            broker=holder,
            partition=PARTITION,
            first_offset=0,
            offset=1,
            committed=True,
            **ids,
        )
        if holder == 1:
            run.lose_power(broker, 1)
    broken(run, "isr-holds-committed", broker, 1)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == permitted_by


def marker(run: RunBuilder, broker: int, epoch: int) -> None:
    """Have a broker append the end of a transaction in an epoch, behind the record that both have."""
    latest, run.epochs[PARTITION] = run.epochs[PARTITION], epoch
    run.append(broker, "<commit>")
    ids = {"producer_id": 0, "producer_epoch": 0, "coordinator_epoch": epoch}
    place = {"partition": PARTITION, "first_offset": 0, "offset": 1}
    run.event("transaction_marker", broker=broker, committed=True, **place, **ids)
    run.epochs[PARTITION] = latest


@pytest.mark.parametrize("invariant", ["isr-holds-committed", "log-matching"])
@pytest.mark.parametrize("unclean", [True, False])
def test_a_marker_of_a_leader_that_had_been_replaced_is_of_another_history(
    invariant: str, *, unclean: bool
) -> None:
    """Broker 0 does not know that broker 1 leads, ends the transaction as well and goes on; then it is elected without what broker 1 has."""
    run = committed("a", unclean=True)
    run.elect(1, 1, (1,))
    marker(run, 1, 1)
    marker(run, 0, 0)
    run.replicate(0, "b", epoch=0)
    run.elect(0, 2, (0,), unclean=unclean)
    broken(run, invariant, 0, 1, epoch=2)
    (finding,) = run.judge(invariant).findings
    assert finding.permitted_by == (UNCLEAN if unclean else None)


def emptied(*, by: str) -> RunBuilder:
    """Return a run in which a record has gone from the beginning of both logs, which go on behind it."""
    run = committed("a", "b")
    for broker in (0, 1):
        if by == "compaction":
            fields = {"from_offset": 0, "to_offset": 2, "removed": (0,), "bytes_left": 70}
            run.event("log_cleaned", broker=broker, partition=PARTITION, **fields)
        else:
            fields = {"offset": 1, "reason": "retention.ms", "bytes_left": 70}
            run.event("log_start", broker=broker, partition=PARTITION, **fields)
    return run


@pytest.mark.parametrize("by", ["compaction", "retention"])
@pytest.mark.parametrize(
    ("how", "permitted_by"), [("disk", DISK_FAILURE), ("power", FLUSH), ("neither", None)]
)
def test_a_member_that_has_lost_a_place_lacks_it_whatever_had_emptied_it(
    by: str, how: str, permitted_by: str | None
) -> None:
    run = emptied(by=by)
    if how == "disk":
        run.lose_disk(1)
    elif how == "power":
        run.lose_power(1, 0)
    broken(run, "isr-holds-committed", 1, 0)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == permitted_by


def test_a_member_that_has_gone_on_behind_a_place_since_has_not_lost_it_with_its_disk() -> None:
    run = emptied(by="compaction")
    run.lose_disk(1)
    run.logs[PARTITION][1] = [("<commit>", 0)]
    run.replicate(1, "b")
    broken(run, "isr-holds-committed", 1, 0)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by is None


def test_a_disk_that_was_lost_and_filled_again_excuses_no_log_that_parts_later() -> None:
    """Broker 2 has fetched again what it had lost when broker 1 cuts off by a flaw what is committed, and leads."""
    run = RunBuilder((0, 1, 2))
    producer = run.producer()
    run.elect(0, 0, (0, 1, 2))
    for value in ("a", "b"):
        run.write(producer, value, 0, 1, 2)
    run.lose_disk(2)
    for value in ("a", "b"):
        run.replicate(2, value)
    run.raise_hw(2, 2)
    fields = {"from_offset": 0, "to_offset": 2, "removed": (0,), "bytes_left": 70}
    run.event("log_cleaned", broker=0, partition=PARTITION, **fields)
    run.truncate(1, 0)
    run.elect(1, 1, (0, 1, 2))
    run.append(1, "x")
    broken(run, "log-matching", 1, 0)
    (finding,) = run.judge("log-matching").findings
    assert finding.permitted_by is None


@pytest.mark.parametrize("has_it", [True, False])
def test_an_unclean_election_takes_a_place_where_the_leader_does_not_reach_it(*, has_it: bool) -> None:
    run = RunBuilder((0, 1, 2), unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1, 2))
    for value in ("a", "b"):
        run.write(producer, value, 0, 1)
    if has_it:
        for value in ("a", "b"):
            run.replicate(2, value)
    for broker in (0, 1):
        fields = {"from_offset": 0, "to_offset": 2, "removed": (0,), "bytes_left": 70}
        run.event("log_cleaned", broker=broker, partition=PARTITION, **fields)
    run.elect(2, 1, (2,), unclean=True)
    run.truncate(1, 0)
    broken(run, "isr-holds-committed", 1, 0)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == (None if has_it else UNCLEAN)


@pytest.mark.parametrize(
    ("broker", "to", "torn", "wanted"),
    [(1, 1, False, DISK_FAILURE), (1, 1, True, None), (0, 1, False, None), (1, 2, False, None)],
)
def test_a_disk_that_damages_flushed_records_may_cut_a_log_below_its_checkpoint(
    broker: int, to: int, torn: bool, wanted: str | None
) -> None:
    run = committed("m0", "m1")
    run.recover_with_corruption(broker, to, torn=torn)
    broken(run, "checkpoint-within-log", 1, 2)
    (finding,) = run.judge("checkpoint-within-log").findings
    assert finding.permitted_by == wanted
