"""Every probe can be reached: by a campaign that ships, or by the yardstick, sound or with a flaw."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.probes.probes import PROBES
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.mutants import MUTANTS
from tests.scenarios.dense_plan import dense_plan, yardstick
from tests.scenarios.library_plans import library_plans

STANDARD = "standard[base]"
DENSE = "many faults and power losses"

SEEDS_MAX = 160

# A campaign of the library, or a mutant of standard.yaml, and a seed that gets there, to begin with. Where a change of the
# model has made it another one, it is looked for.
REACHED: dict[str, tuple[str, int]] = {
    "controller-changed": ("divergence-by-hw[unclean-election]", 0),
    "controller-died": ("divergence-by-hw[unclean-election]", 0),
    "controller-died-during-election": ("controller-failover[base]", 0),
    "leader-died-without-controller": (STANDARD, 3),
    "controllers-overlapped": ("controller-split-brain[base]", 0),
    "paused-controller-woke-deposed": ("controller-split-brain[base]", 0),
    "controller-lost-its-session": ("controller-split-brain[base]", 0),
    "stale-controller-refused": ("controller-split-brain[base]", 0),
    "stale-broker-epoch-refused": (STANDARD, 4),
    "session-expired": ("retry-reorders[base]", 0),
    "session-expired-alive": ("epochs-do-not-save-a-double-failure[process-crash]", 0),
    "bounced-broker": ("epochs-do-not-save-a-double-failure[process-crash]", 0),
    "two-brokers-down": ("rack-outage[spread]", 0),
    "all-replicas-down": ("divergence-by-hw[base]", 0),
    "last-isr-member-died": ("divergence-by-hw[unclean-election]", 0),
    "partition-offline": ("all-replicas-die[base]", 0),
    "clean-election": ("rack-outage[spread]", 0),
    "unclean-election": ("divergence-by-hw[unclean-election]", 0),
    "preferred-leader-elected": ("preferred-leader[base]", 0),
    "fast-leader-changes": ("rack-outage[base]", 0),
    "leader-hw-behind": ("divergence-by-hw[unclean-election]", 0),
    "leader-restarted-in-its-epoch": (STANDARD, 22),
    "zombie-leader-accepted-write": ("controller-split-brain[no-fencing]", 0),
    "zombie-leader-acknowledged": ("controller-split-brain[no-fencing]", 0),
    "zombie-leader-served-read": (STANDARD, 71),
    "zombie-leader-changed-isr": ("unconditional-isr-write", 59),
    "paused-leader-woke-deposed": ("epoch-without-records[fixed]", 0),
    "isr-shrank": ("divergence-by-hw[unclean-election]", 0),
    "isr-shrank-to-one": ("retry-reorders[base]", 0),
    "isr-expanded": ("retry-reorders[base]", 0),
    "isr-flapped": ("slow-follower[back-by-the-high-watermark]", 0),
    "isr-write-refused": (STANDARD, 0),
    "truncated": ("divergence-by-hw[unclean-election-0.11]", 0),
    "truncated-below-hw": ("divergence-by-hw[unclean-election-0.11]", 0),
    "truncated-below-read": ("acks-1-leader-crash[acks-all]", 0),
    "follower-ahead-of-leader": ("divergence-by-hw[unclean-election-0.11]", 0),
    "follower-truncated-twice": ("hw-truncation", 0),
    "epoch-unknown-to-leader": ("epoch-without-records[fixed]", 0),
    "epoch-undefined-answer": ("no-epoch-entry-on-election", 11),
    "follower-gave-up": (DENSE, 235),
    "fenced-by-leader-epoch": (STANDARD, 0),
    "leader-epoch-unknown": ("failed-broker-set[base]", 0),
    "fetch-out-of-range": ("no-truncation", 80),
    "fetch-waited-in-purgatory": ("fetch-woken-from-purgatory[base]", 0),
    "fetch-expired-in-purgatory": ("fetch-woken-from-purgatory[base]", 0),
    "hw-checkpoint-stale-at-restart": ("rack-outage[spread]", 0),
    "unflushed-lost": ("rack-outage[spread]", 0),
    "committed-unflushed-lost": ("rack-outage[spread]", 0),
    "log-lost-with-disk": ("disk-loss[in-sync]", 0),
    "last-isr-member-lost-its-disk": ("disk-loss[base]", 0),
    "corrupt-batch-fetched": ("bit-rot[base]", 0),
    "recovery-met-corruption": ("bit-rot[base]", 0),
    "log-dir-failed": ("log-dir-failure[base]", 0),
    "request-queue-full": ("control-behind-data[full-queue]", 0),
    "leader-missed-its-deposition": ("re-elected-leader[base]", 0),
    "isr-write-unheard": ("forgotten-isr-member[base]", 0),
    "member-restarted-while-joining": ("swarm-kraft[base]", 0),
    "records-deleted-by-request": ("delete-records[base]", 0),
    "log-start-raised": ("short-retention[base]", 0),
    "log-compacted": ("slow-tombstone[base]", 0),
    "compacted-above-hw": ("compaction-above-hw[base]", 0),
    "log-started-anew": ("retention-passes-follower[base]", 0),
    "offset-reset": ("short-retention[base]", 0),
    "read-replica-preferred": ("follower-fetch[base]", 0),
    "read-replica-cleared": ("follower-fetch[base]", 0),
    "duplicate-batch-suppressed": ("ack-lost[0.11]", 0),
    "batch-appended-again": ("new-session-new-pid[base]", 0),
    "sequence-refused": ("retry-reorders[idempotent]", 0),
    "not-enough-replicas": ("retry-reorders[base]", 0),
    "not-enough-replicas-after-append": ("acks-all-degrades[min-isr-2]", 0),
    "produce-timed-out": ("swarm[base]", 18),
    "ack-lost-after-append": ("ack-lost[no-retries]", 0),
    "retried-after-append": ("ack-lost[base]", 0),
    "producer-retried-to-new-leader": ("divergence-by-hw[unclean-election]", 0),
    "sent-to-former-leader": ("preferred-leader[base]", 0),
}


@cache
def library() -> Mapping[str, Plan]:
    return {**library_plans(), DENSE: dense_plan(power_loss=True)}


@cache
def probes_of(where: str, seed: int) -> Mapping[str, int]:
    if where not in MUTANTS:
        return run_plan(library()[where], seed).probes
    mutant = MUTANTS[where]
    flaw = {mutant.switch: mutant.value}
    return run_plan(replace(yardstick(), behaviours={**yardstick().behaviours, **flaw}), seed).probes


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_can_be_reached(probe: str) -> None:
    where, first = REACHED[probe]
    assert any(probes_of(where, seed).get(probe, 0) for seed in (first, *range(SEEDS_MAX)))
