"""The rules of the invariants: breaks in the trace and their permissions."""

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


def report_break(
    run: RunBuilder, invariant: str, broker: int, offset: int, *, epoch: int = 0, partition: str = PARTITION
) -> None:
    run.event(
        "invariant_broken",
        invariant=invariant,
        broker=broker,
        partition=partition,
        leader_epoch=epoch,
        offset=offset,
        details="an observation",
    )


def committed_run(*values: str, unclean: bool = False) -> RunBuilder:
    """Return a run in which broker 0 leads and both brokers have every committed record."""
    run = RunBuilder(unclean_leader_election=unclean)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    for value in values:
        run.write(producer, value, 0, 1)
    return run


@pytest.mark.parametrize("invariant", WATCHED)
def test_an_invariant_without_a_break_has_no_finding(invariant: str) -> None:
    assert committed_run("a").judge(invariant).status == HELD


@pytest.mark.parametrize("invariant", WATCHED)
def test_a_break_without_a_cause_is_a_violation(invariant: str) -> None:
    run = committed_run("a", "b")
    report_break(run, invariant, 1, 1)
    result = run.judge(invariant)
    assert result.status == VIOLATED
    (finding,) = result.findings
    assert (finding.partition, finding.offset, finding.permitted_by) == (PARTITION, 1, None)
    assert because(finding).endswith("broker 1: an observation")


def test_a_break_of_a_controller_has_no_partition() -> None:
    run = committed_run("a")
    report_break(run, "one-controller-per-epoch", 1, -1, partition="")
    (finding,) = run.judge("one-controller-per-epoch").findings
    assert (finding.partition, finding.offset) == ("", None)


@pytest.mark.parametrize("records", [1, 3])
def test_a_commit_of_a_deposed_leader_does_not_count_for_the_new_epoch(records: int) -> None:
    """The commit of several records breaks the invariant at several offsets."""
    run = RunBuilder((0, 1, 2))
    lost, kept = ([f"{name}{number}" for number in range(records)] for name in ("lost", "kept"))
    run.elect(0, 0, (0, 1, 2))
    run.append(0, *lost)
    for broker in (1, 2):
        run.replicate(broker, *lost)
        run.lose_power(broker, flushed=0)
    run.elect(2, 1, (2,))
    run.append(2, *kept)
    run.raise_hw(records, 2)
    run.raise_hw(records, 0)
    for offset in range(records):
        report_break(run, "isr-holds-committed", 1, offset, epoch=1)
    findings = run.judge("isr-holds-committed").findings
    assert [finding.permitted_by for finding in findings] == [FLUSH] * records


def test_a_member_lacks_only_records_that_were_committed_before_the_break() -> None:
    """Broker 1 joins the ISR of an unclean leader with every record that this leader has committed,
    fewer than its predecessor.
    """
    run = RunBuilder((0, 1, 2), unclean_leader_election=True)
    run.elect(0, 0, (0, 1))
    run.append(0, "a", "b")
    run.replicate(1, "a", "b")
    run.raise_hw(2, 0, 1)
    run.elect(2, 1, (2,), unclean=True)
    run.truncate(1, 0)
    run.append(2, "c", "d")
    report_break(run, "isr-holds-committed", 1, 1, epoch=1)
    run.replicate(1, "c", "d", epoch=1)
    run.raise_hw(2, 2, 1)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == UNCLEAN


@pytest.mark.parametrize("release", ["0.11", "2.0"])
def test_an_invariant_is_judged_only_on_releases_that_promise_it(release: str) -> None:
    run = committed_run("a")
    for invariant in ("registered-before-control", "registrations-known", "one-controller-per-epoch"):
        report_break(run, invariant, 1, -1, partition="")
    watched = frozenset(watched_in(tuple(INVARIANTS), release, ()))
    evidence = replace(run.evidence(), release=release, invariants=watched)
    judged = judge(evidence).rules
    assert judged["one-controller-per-epoch"].status == VIOLATED
    assert "registrations-known" not in judged
    assert ("registered-before-control" in judged) == (release == "2.0")


@pytest.mark.parametrize("invariant", ["isr-holds-committed", "log-matching"])
class TestPowerLoss:
    def test_a_power_loss_permits_missing_unflushed_records(self, invariant: str) -> None:
        run = committed_run("a", "b")
        run.lose_power(1, flushed=1)
        report_break(run, invariant, 1, 1)
        (finding,) = run.judge(invariant).findings
        assert finding.permitted_by == FLUSH
        assert [link.event for link in finding.chain] == [
            *("appended", "unflushed-lost", "invariant-broken", "conclusion")
        ]

    def test_a_power_loss_does_not_permit_missing_records_that_were_fetched_again(
        self, invariant: str
    ) -> None:
        run = committed_run("a", "b")
        run.lose_power(1, flushed=1)
        run.replicate(1, "b")
        run.truncate(1, 1)
        report_break(run, invariant, 1, 1)
        assert run.judge(invariant).status == VIOLATED

    def test_a_power_loss_after_the_break_is_not_the_cause(self, invariant: str) -> None:
        run = committed_run("a", "b")
        run.truncate(1, 1)
        report_break(run, invariant, 1, 1)
        run.replicate(1, "b")
        run.lose_power(1, flushed=1)
        assert run.judge(invariant).status == VIOLATED

    def test_a_power_loss_of_other_records_is_not_the_cause(self, invariant: str) -> None:
        run = committed_run("a", "b", "c")
        run.lose_power(1, flushed=2)
        run.truncate(1, 1)
        report_break(run, invariant, 1, 1)
        assert run.judge(invariant).status == VIOLATED


class TestRejoinAfterRestart:
    """KIP-903: in KRaft a restarted broker joins the ISR only by fetches of its current
    incarnation, so it has every committed record.
    """

    def run(self, *, registered: bool = True, leaves: bool = True) -> RunBuilder:
        run = committed_run("a", "b")
        if leaves:
            run.event("isr_reduced", controller=0, partition=PARTITION, leader=0, leader_epoch=0, isr=(0,))
        run.lose_power(1, flushed=1)
        if registered:
            run.event("broker_registered", broker=1, broker_epoch=9)
        run.event("isr_written", broker=0, partition=PARTITION, leader_epoch=0, isr=(0, 1))
        report_break(run, "isr-holds-committed", 1, 1)
        return run

    def permission(self, run: RunBuilder, release: str = "4.3", metadata: str = "kraft") -> str | None:
        evidence = replace(run.evidence(), release=release, metadata=metadata)
        (finding,) = RULES["isr-holds-committed"].judge(Index(evidence)).findings
        return finding.permitted_by

    def test_a_power_loss_of_a_former_incarnation_permits_no_gap_in_kraft(self) -> None:
        assert self.permission(self.run()) is None

    @pytest.mark.parametrize(("release", "metadata"), [("2.8", "zookeeper"), ("3.9", "zookeeper")])
    def test_a_power_loss_of_a_former_incarnation_permits_a_gap_with_zookeeper(
        self, release: str, metadata: str
    ) -> None:
        assert self.permission(self.run(), release, metadata) == FLUSH

    def test_a_member_that_joins_before_it_registers_counts_as_its_former_incarnation(self) -> None:
        assert self.permission(self.run(registered=False)) == FLUSH

    def test_a_member_that_never_left_the_isr_may_lack_lost_records(self) -> None:
        assert self.permission(self.run(leaves=False)) == FLUSH

    def test_a_power_loss_of_another_replica_permits_the_gap(self) -> None:
        run = committed_run("a", "b")
        run.event("isr_reduced", controller=0, partition=PARTITION, leader=0, leader_epoch=0, isr=(0,))
        run.lose_power(1, flushed=1)
        run.event("broker_registered", broker=1, broker_epoch=9)
        run.lose_power(0, flushed=1)
        run.event("isr_written", broker=0, partition=PARTITION, leader_epoch=0, isr=(0, 1))
        report_break(run, "isr-holds-committed", 1, 1)
        assert self.permission(run) == FLUSH


@pytest.mark.parametrize("invariant", ["isr-holds-committed", "log-matching"])
class TestUncleanElection:
    def stale_leader(self, *, unclean: bool) -> RunBuilder:
        run = committed_run("a", unclean=unclean)
        run.append(0, "b")
        run.raise_hw(2, 0)
        run.elect(1, 1, (1,), unclean=True)
        return run

    def test_an_unclean_leader_without_the_record_permits_the_break(self, invariant: str) -> None:
        run = self.stale_leader(unclean=True)
        report_break(run, invariant, 1, 1, epoch=1)
        (finding,) = run.judge(invariant).findings
        assert finding.permitted_by == UNCLEAN
        assert tuple(preventions(finding)) == ("unclean.leader.election.enable=false",)

    def test_a_disabled_unclean_election_permits_no_break(self, invariant: str) -> None:
        run = self.stale_leader(unclean=False)
        report_break(run, invariant, 1, 1, epoch=1)
        assert run.judge(invariant).status == VIOLATED

    def test_an_unclean_election_after_the_break_is_not_the_cause(self, invariant: str) -> None:
        run = committed_run("a", "b", unclean=True)
        run.truncate(1, 1)
        report_break(run, invariant, 1, 1)
        run.elect(1, 1, (1,), unclean=True)
        assert run.judge(invariant).status == VIOLATED

    def test_an_unclean_election_of_a_leader_with_the_record_is_not_the_cause(self, invariant: str) -> None:
        run = committed_run("a", "b", unclean=True)
        run.elect(1, 1, (1,), unclean=True)
        run.truncate(0, 1)
        report_break(run, invariant, 0, 1, epoch=1)
        assert run.judge(invariant).status == VIOLATED


def test_a_diverged_member_is_judged_by_the_records_that_it_lacks() -> None:
    run = committed_run("a", "b")
    run.lose_power(1, flushed=1)
    run.elect(1, 1, (1,))
    run.append(1, "c")
    run.raise_hw(2, 1)
    # Broker 0 still has b where c is committed, and the loss of b on broker 1 does not matter.
    report_break(run, "isr-holds-committed", 0, 1, epoch=1)
    assert run.judge("isr-holds-committed").status == VIOLATED


@pytest.mark.parametrize("invariant", ["log-matching", "epoch-cache-monotonic", "producer-state-matches-log"])
def test_a_leader_that_resumes_its_epoch_after_power_loss_permits_mixed_histories(invariant: str) -> None:
    run = committed_run("a", "b")
    run.lose_power(0, flushed=1)
    run.lead(0, 0, (0, 1))
    run.append(0, "c")
    report_break(run, invariant, 1, 1)
    assert run.judge(invariant).status == PERMITTED


def test_every_invariant_has_a_rule() -> None:
    assert RULE_OF_INVARIANT.keys() == INVARIANTS.keys()
    assert RULE_OF_INVARIANT["one-leader-per-epoch"] == "two-leaders"
    assert set(RULE_OF_INVARIANT.values()) <= RULES.keys()


def test_unwatched_invariants_are_not_judged() -> None:
    assert set(RULES) - set(rules_for((), core=True)) == set(RULE_OF_INVARIANT.values())
    assert rules_for(INVARIANTS, core=True) == RULES
    run = committed_run("a")
    report_break(run, "log-matching", 1, 0)
    # The evidence names no watched invariants, so only those that the trace shows are judged.
    assert "log-matching" not in judge(run.evidence()).rules
    assert "two-leaders" in judge(run.evidence()).rules


def test_an_invariant_that_a_release_does_not_promise_is_watched_on_demand() -> None:
    names = ("failover-shrinks-isr", "hw-monotonic")
    assert watched_in(names, "2.4", ()) == names
    assert watched_in(names, "2.0", ()) == ("hw-monotonic",)
    assert watched_in(names, "2.0", ("failover-shrinks-isr",)) == names


@pytest.mark.parametrize("cause", ["power", "unclean", "neither"])
def test_a_transaction_marker_may_be_lost_as_a_record_may(cause: str) -> None:
    """A marker has no record, so only its offset identifies it."""
    run = committed_run("a", unclean=cause == "unclean")
    for broker in (0, 1):
        run.append(broker, "<commit>")
    ids = {"producer_id": 0, "producer_epoch": 0, "coordinator_epoch": 0}
    run.event(
        "transaction_marker", broker=0, partition=PARTITION, first_offset=0, offset=1, committed=True, **ids
    )
    if cause == "power":
        run.lose_power(1, 1)
    elif cause == "unclean":
        run.elect(1, 1, (1,), unclean=True)
    report_break(run, "isr-holds-committed", 1, 1)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == {"power": FLUSH, "unclean": UNCLEAN, "neither": None}[cause]


@pytest.mark.parametrize(("broker", "permitted_by"), [(0, None), (1, FLUSH)])
def test_a_marker_appended_elsewhere_after_its_loss_is_still_lost(
    broker: int, permitted_by: str | None
) -> None:
    run = committed_run("a")
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
    report_break(run, "isr-holds-committed", broker, 1)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == permitted_by


def append_marker(run: RunBuilder, broker: int, epoch: int) -> None:
    """Let a broker append the marker of a transaction in an epoch, behind the common record."""
    latest, run.epochs[PARTITION] = run.epochs[PARTITION], epoch
    run.append(broker, "<commit>")
    ids = {"producer_id": 0, "producer_epoch": 0, "coordinator_epoch": epoch}
    place = {"partition": PARTITION, "first_offset": 0, "offset": 1}
    run.event("transaction_marker", broker=broker, committed=True, **place, **ids)
    run.epochs[PARTITION] = latest


@pytest.mark.parametrize("invariant", ["isr-holds-committed", "log-matching"])
@pytest.mark.parametrize("unclean", [True, False])
def test_a_marker_of_a_deposed_leader_belongs_to_another_history(invariant: str, *, unclean: bool) -> None:
    """Broker 0, unaware that broker 1 leads, ends the transaction too and appends more.

    It is then elected without broker 1's marker.
    """
    run = committed_run("a", unclean=True)
    run.elect(1, 1, (1,))
    append_marker(run, 1, 1)
    append_marker(run, 0, 0)
    run.replicate(0, "b", epoch=0)
    run.elect(0, 2, (0,), unclean=unclean)
    report_break(run, invariant, 0, 1, epoch=2)
    (finding,) = run.judge(invariant).findings
    assert finding.permitted_by == (UNCLEAN if unclean else None)


def run_with_removed_record(*, by: str) -> RunBuilder:
    """Return a run in which both logs removed their first record by compaction or retention."""
    run = committed_run("a", "b")
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
    ("cause", "permitted_by"), [("disk", DISK_FAILURE), ("power", FLUSH), ("neither", None)]
)
def test_a_disk_or_power_loss_permits_lacking_a_removed_offset(
    by: str, cause: str, permitted_by: str | None
) -> None:
    run = run_with_removed_record(by=by)
    if cause == "disk":
        run.lose_disk(1)
    elif cause == "power":
        run.lose_power(1, 0)
    report_break(run, "isr-holds-committed", 1, 0)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == permitted_by


def test_a_member_that_refilled_its_log_beyond_an_offset_no_longer_lacks_it() -> None:
    run = run_with_removed_record(by="compaction")
    run.lose_disk(1)
    run.logs[PARTITION][1] = [("<commit>", 0)]
    run.replicate(1, "b")
    report_break(run, "isr-holds-committed", 1, 0)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by is None


def test_a_refilled_disk_excuses_no_later_divergence() -> None:
    """Broker 2 has fetched its lost records again when broker 1 truncates committed records by a
    flaw and leads.
    """
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
    report_break(run, "log-matching", 1, 0)
    (finding,) = run.judge("log-matching").findings
    assert finding.permitted_by is None


@pytest.mark.parametrize("has_it", [True, False])
def test_an_unclean_election_permits_lacking_offsets_beyond_the_leaders_log(*, has_it: bool) -> None:
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
    report_break(run, "isr-holds-committed", 1, 0)
    (finding,) = run.judge("isr-holds-committed").findings
    assert finding.permitted_by == (None if has_it else UNCLEAN)


@pytest.mark.parametrize(
    ("broker", "to", "torn", "permitted_by"),
    [(1, 1, False, DISK_FAILURE), (1, 1, True, None), (0, 1, False, None), (1, 2, False, None)],
)
def test_a_disk_failure_permits_a_log_that_ends_below_its_checkpoint(
    broker: int, to: int, torn: bool, permitted_by: str | None
) -> None:
    run = committed_run("m0", "m1")
    run.recover_with_corruption(broker, to, torn=torn)
    report_break(run, "checkpoint-within-log", 1, 2)
    (finding,) = run.judge("checkpoint-within-log").findings
    assert finding.permitted_by == permitted_by
