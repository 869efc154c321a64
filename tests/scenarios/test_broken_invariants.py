"""Flaws of the model, of old releases and of mutants are noticed where they break an invariant."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from campaigns.library_index import resolve
from campaigns.loader import load_campaign
from campaigns.plan import Plan
from campaigns.run_result import RunResult
from campaigns.runner import run_plan
from checks.catalogue import RULE_OF_INVARIANT
from checks.finding import PERMITTED, VIOLATED
from cluster_model.cluster import Cluster
from cluster_model.disk import LogFile
from cluster_model.invariants import INVARIANTS
from cluster_model.leader_epoch_cache import LeaderEpochCache
from cluster_model.mutants import MUTANTS
from cluster_model.partition import Partition
from cluster_model.producer_state import ProducerStates
from cluster_model.replica_log import ReplicaLog
from cluster_model.virtual_time import US_PER_SECOND
from faults.broker_crash import BrokerCrash
from faults.injection import Rate

SEEDS = 30


@cache
def yardstick(*options: str) -> Plan:
    return load_campaign(resolve("standard")[0], options).plans[0]


@cache
def library_plan(campaign: str, variant: str | None = None) -> Plan:
    plans = load_campaign(resolve(campaign)[0]).plans
    return next(plan for plan in plans if plan.variant == variant)


def with_power_loss(plan: Plan) -> Plan:
    """Return the yardstick with a fault every other second, most of them power loss."""
    injection = plan.faults[0]
    crash = BrokerCrash(broker="any", kind="power_loss", restart_after=(US_PER_SECOND, 10 * US_PER_SECOND))
    assert isinstance(injection.timing, Rate)
    timing = replace(injection.timing, mean_us=2 * US_PER_SECOND)
    return replace(
        plan, faults=(replace(injection, timing=timing, faults=(*injection.faults, crash, crash)),)
    )


def broken(result: RunResult) -> dict[str, str]:
    """Return the invariants that broke, with the status of their rules."""
    rules = result.verdict.rules
    return {
        name: rules[rule].status
        for name, rule in RULE_OF_INVARIANT.items()
        if rule in rules and rules[rule].findings
    }


def is_violated(plan: Plan, invariant: str) -> bool:
    return any(broken(run_plan(plan, seed)).get(invariant) == VIOLATED for seed in range(SEEDS))


# Mutants and releases

MUTANTS_NOTICED = (
    ("hw-truncation", "isr-holds-committed"),
    ("hw-truncation", "log-matching"),
    ("hw-truncation", "producer-state-matches-log"),
    ("no-truncation", "isr-holds-committed"),
    ("no-truncation", "log-matching"),
    ("no-sequence-check", "producer-state-matches-log"),
    ("hw-ignores-followers", "isr-holds-committed"),
)


@pytest.mark.parametrize(("mutant", "invariant"), MUTANTS_NOTICED)
def test_a_mutant_is_noticed(mutant: str, invariant: str) -> None:
    plan = yardstick()
    flaw = {MUTANTS[mutant].switch: MUTANTS[mutant].value}
    assert is_violated(replace(plan, behaviours={**plan.behaviours, **flaw}), invariant)


def test_truncation_to_the_high_watermark_breaks_the_isr() -> None:
    result = run_plan(library_plan("loss-by-hw-truncation"), 0)
    assert broken(result) == {"isr-holds-committed": VIOLATED}
    finding = result.verdict.rules["isr-holds-committed"].findings[0]
    assert (finding.partition, finding.offset) == ("t-0", 1)
    assert [link.event for link in finding.chain] == ["appended", "truncated", "invariant-broken"]
    assert broken(run_plan(library_plan("loss-by-hw-truncation", "0.11"), 0)) == {}


def test_a_diverged_replica_in_the_isr_is_no_consequence_of_power_loss() -> None:
    assert broken(run_plan(library_plan("divergence-by-hw"), 0))["isr-holds-committed"] == VIOLATED
    for variant in ("0.11", "2.4"):
        found = broken(run_plan(library_plan("divergence-by-hw", variant), 0))
        assert found == {"isr-holds-committed": PERMITTED, "log-matching": PERMITTED}


# Flaws of the model, made for the occasion

Patch = Callable[[pytest.MonkeyPatch], None]


def _hw_stays_above_what_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    original = ReplicaLog.truncate_to

    def truncate_to(self: ReplicaLog, offset: int) -> bool:
        high_watermark = self.high_watermark
        cut = original(self, offset)
        self.high_watermark = high_watermark
        return cut

    monkeypatch.setattr(ReplicaLog, "truncate_to", truncate_to)


def _everybody_is_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "_is_in_sync", lambda *_: True)


def _entries_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaderEpochCache, "truncate_from_end", lambda *_: None)


def _entries_are_only_added(monkeypatch: pytest.MonkeyPatch) -> None:
    def assign(self: LeaderEpochCache, epoch: int, start_offset: int) -> None:
        if self.latest_epoch() != epoch:
            self.entries.append((epoch, start_offset))

    monkeypatch.setattr(LeaderEpochCache, "assign", assign)


def _producers_are_not_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerStates, "rebuild", lambda self, _: self.entries.clear())


def _everything_counts_as_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReplicaLog, "flushed_offset", property(lambda self: self.log_end_offset))


def _power_loss_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFile, "lose_power", lambda self: self.truncate_to(0))


def _a_crash_takes_what_is_not_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Cluster.crash_broker

    def crash_broker(self: Cluster, broker: int, *, power_loss: bool) -> None:
        original(self, broker, power_loss=power_loss)
        for file in self.disks[broker].log_files.values():
            file.lose_power()

    monkeypatch.setattr(Cluster, "crash_broker", crash_broker)


def _unknown_followers_reset_the_hw(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Partition.maybe_increment_hw

    def maybe_increment_hw(self: Partition) -> bool:
        others = [replica.log_end_offset for replica in self.remote_replicas.values()]
        if min(others, default=0) < 0:
            self.log.high_watermark = 0
            self._host.invariants.high_watermark_set(self.broker, self.name)
        return original(self)

    monkeypatch.setattr(Partition, "maybe_increment_hw", maybe_increment_hw)


FLAWS: tuple[tuple[Patch, str], ...] = (
    (_hw_stays_above_what_is_cut_off, "hw-within-log"),
    (_everybody_is_in_sync, "isr-holds-committed"),
    (_entries_are_never_cut, "epoch-cache-monotonic"),
    (_entries_are_only_added, "epoch-cache-monotonic"),
    (_producers_are_not_learned_again, "producer-state-matches-log"),
    (_everything_counts_as_flushed, "checkpoint-within-log"),
    (_power_loss_takes_everything, "checkpoint-within-log"),
    (_a_crash_takes_what_is_not_flushed, "isr-holds-committed"),
    (_unknown_followers_reset_the_hw, "hw-monotonic"),
)


@pytest.mark.parametrize(("flaw", "invariant"), FLAWS, ids=[flaw.__name__[1:] for flaw, _ in FLAWS])
def test_a_flaw_of_the_model_is_noticed(flaw: Patch, invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flaw(monkeypatch)
    assert is_violated(with_power_loss(yardstick()), invariant)


# Switches


def test_watching_changes_nothing_else() -> None:
    plan = with_power_loss(yardstick())
    for seed in range(5):
        watched, unwatched = run_plan(plan, seed), run_plan(replace(plan, invariants=()), seed)
        assert [e for e in watched.evidence.trace if e[1] != "invariant_broken"] == unwatched.evidence.trace
        left_out = watched.verdict.rules.keys() - unwatched.verdict.rules.keys()
        assert left_out == set(RULE_OF_INVARIANT.values())
        assert all(
            unwatched.verdict.rules[name] == watched.verdict.rules[name] for name in unwatched.verdict.rules
        )


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_one_alone_is_judged_alone(invariant: str) -> None:
    plan = replace(library_plan("loss-by-hw-truncation"), kafka="2.4", invariants=(invariant,))
    result = run_plan(plan, 0)
    judged = {name for name, rule in RULE_OF_INVARIANT.items() if rule in result.verdict.rules}
    assert judged == {invariant}
    assert set(broken(result)) <= {invariant}


# What Kafka permits


@pytest.mark.parametrize(
    "options",
    [
        ("min.insync.replicas=2",),
        ("unclean.leader.election.enable=true", "min.insync.replicas=1"),
        ("kafka=2.0", "unclean.leader.election.enable=true", "min.insync.replicas=1"),
    ],
)
def test_unclean_elections_and_power_loss_break_invariants_by_permission(options: tuple[str, ...]) -> None:
    plan = with_power_loss(yardstick(*options))
    found: dict[str, set[str]] = {}
    for seed in range(SEEDS):
        for name, status in broken(run_plan(plan, seed)).items():
            found.setdefault(name, set()).add(status)
    assert found.pop("isr-holds-committed") == {PERMITTED}
    assert found.pop("log-matching") == {PERMITTED}
    assert all(statuses == {PERMITTED} for statuses in found.values()), found
