"""Every probe can be reached, by a library campaign or by `standard`, sound or with a mutant."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_reach import reach_of
from harrow.campaigns.probes.probes import PROBES, in_reach
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.release.profiles import MUTANTS
from tests.campaigns.language.campaign_texts import plan as plan_of
from tests.scenarios.dense_plan import dense_plan, standard_plan
from tests.scenarios.library_plans import in_group, library_plans

STANDARD = "standard[base]"
DENSE = "many faults and power losses"

SEEDS_MAX = 160

LATE_HEARTBEAT = "a heartbeat of a broker's former life"
OFFSETS_EXPIRE = "a group that nobody is in any more"
ONE_INSTANCE = "two members with one group.instance.id"
LATE_BATCH = "a batch that comes when its transaction is aborted (KIP-890)"
OWN_CAMPAIGNS = {
    LATE_HEARTBEAT: """
        kafka: "4.0"
        settings: {broker.session.timeout.ms: 2000, broker.heartbeat.interval.ms: 500}
        cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
        workload: {duration: 20s, producers: [{rate: 2/s}]}
        faults:
          - at: 2s
            do: {message: {action: delay, api: BrokerHeartbeat, kind: request, from: 1, delay: 8s, count: 1}}
          - at: 3s
            do: {broker_crash: {broker: 1, restart_after: 200ms}}
        """,
    OFFSETS_EXPIRE: """
        kafka: "2.4"
        settings:
          offsets.retention.minutes: 1
          offsets.retention.check.interval.ms: 10000
          offsets.topic.replication.factor: 1
          auto.commit.interval.ms: 1000
        cluster: {brokers: 1, topics: [{name: t}]}
        workload: {duration: 90s, producers: [{rate: 1/s}], consumers: [{stop: 5s, settings: {group.id: g}}]}
        """,
    ONE_INSTANCE: """
        kafka: "3.9"
        settings: {group.id: g, auto.offset.reset: earliest, group.instance.id: one}
        cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
        workload: {duration: 20s, producers: [{rate: 2/s}], consumers: [{name: former}, {name: latter, start: 10s}]}
        """,
    LATE_BATCH: """
        kafka: "2.8"
        settings: {acks: all, request.timeout.ms: 1500, delivery.timeout.ms: 1500}
        cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
        workload: {producers: [{name: app, settings: {transactional.id: app}}]}
        script:
          - at: 1s
            do: [begin_transaction, {send: m0}]
          - when: {event: {acknowledged: {values: m0}}}
            do: commit_transaction
          - when: {acked: m0}
            do:
              - begin_transaction
              - message: {action: hold, api: Produce, kind: request, from: app, id: late}
              - send: m1
          - after: 4s
            do: abort_transaction
          - after: 2s
            do: {release: {id: late}}
        """,
}
"""Campaigns for probes that no library campaign reaches."""

# For each probe a library campaign, or a mutant that runs in standard.yaml, and the first seed to
# try. Other seeds follow, because a change of the model may move the probe to another seed.
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
    "fetch-of-older-epoch-answered": ("stale-diverging-epoch[base]", 0),
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
    "appended-batch-given-up": ("error-after-deadline[base]", 0),
    "ack-lost-after-append": ("ack-lost[no-retries]", 0),
    "retried-after-append": ("ack-lost[base]", 0),
    "producer-retried-to-new-leader": ("divergence-by-hw[unclean-election]", 0),
    "sent-to-former-leader": ("preferred-leader[base]", 0),
    "controller-reelected": (STANDARD, 0),
    "quorum-election-undecided": ("controller-disk-loss[base]", 0),
    "quorum-majority-lost": ("delete-controller-znode[kraft-cut-off]", 0),
    "uncommitted-metadata-truncated": ("controller-disk-loss[base]", 0),
    "metadata-snapshot-fetched": ("metadata-snapshot[base]", 0),
    "metadata-log-start-raised": ("metadata-snapshot[base]", 0),
    "metadata-log-lost": ("controller-disk-loss[base]", 0),
    "metadata-majority-lost": ("controller-disk-loss[base]", 0),
    "registration-refused": ("controller-disk-loss[base]", 0),
    "stale-heartbeat-refused": (LATE_HEARTBEAT, 0),
    "elr-member-elected": ("last-replica-standing[eligible-leaders]", 0),
    "last-known-leader-elected": ("unclean-election[eligible-leaders]", 0),
    "alter-partition-fenced": ("swarm-kraft[base]", 5),
    "alter-partition-outdated": ("swarm-kraft[base]", 5),
    "alter-partition-stale-broker-epoch": ("swarm-kraft[base]", 294),
    "ineligible-replica-refused": ("swarm-kraft[base]", 9),
    "stale-producer-epoch-refused": ("zombie-fenced[base]", 0),
    "group-rebalanced": ("commit-during-rebalance[base]", 0),
    "rebalance-interrupted": ("swarm-eos[base]", 2),
    "member-session-expired": ("auto-commit-replay[base]", 0),
    "member-fenced": ("consumer-at-least-once[base]", 0),
    "static-member-took-over": ("rebalance[static]", 0),
    "static-member-fenced": (ONE_INSTANCE, 0),
    "static-member-unreleased": ("rebalance-by-coordinator[static-crash]", 0),
    "partitions-lost": ("commit-during-rebalance[paused]", 0),
    "member-asked-to-revoke": ("rebalance-by-coordinator[base]", 0),
    "commit-during-rebalance": ("commit-during-rebalance[base]", 0),
    "commit-refused-by-generation": ("stale-member-epoch[refused]", 0),
    "commit-sent-to-former-coordinator": ("swarm-eos[base]", 0),
    "group-coordinator-moved": ("offsets-partition[base]", 0),
    "coordinator-moved-with-pending-offsets": ("swarm-eos[base]", 0),
    "group-offsets-expired": (OFFSETS_EXPIRE, 0),
    "transaction-timed-out": ("open-transaction-holds-the-lso[base]", 0),
    "transaction-aborted-for-successor": ("consume-transform-produce[base]", 0),
    "producer-fenced": ("zombie-fenced[base]", 0),
    "transaction-only-abortable": ("zombie-fenced[base]", 0),
    "transaction-coordinator-moved": ("coordinator-failover[base]", 0),
    "markers-completed-by-successor": ("coordinator-failover[base]", 0),
    "markers-delayed": ("coordinator-failover[base]", 0),
    "marker-without-transaction": ("coordinator-failover[between-markers]", 0),
    "late-transactional-batch": (LATE_BATCH, 0),
    "lso-held-back": ("open-transaction-holds-the-lso[base]", 0),
}


@cache
def library() -> Mapping[str, Plan]:
    small = {name: plan_of(text) for name, text in OWN_CAMPAIGNS.items()}
    return {**library_plans(), **small, DENSE: dense_plan(power_loss=True)}


def plan_at(where: str) -> Plan:
    if where not in MUTANTS:
        return library()[where]
    mutant = MUTANTS[where]
    flaw = {mutant.switch: mutant.value}
    return replace(standard_plan(), behaviours={**standard_plan().behaviours, **flaw})


@cache
def probes_of(where: str, seed: int) -> Mapping[str, int]:
    return run_plan(plan_at(where), seed).probes


@pytest.mark.parametrize("probe", [in_group(REACHED.get(probe, (STANDARD, 0))[0], probe) for probe in PROBES])
def test_a_probe_can_be_reached(probe: str) -> None:
    where, first = REACHED[probe]
    assert any(probes_of(where, seed).get(probe, 0) for seed in (first, *range(SEEDS_MAX)))


@pytest.mark.parametrize(
    ("where", "seed"), [in_group(where, where, seed) for where, seed in dict.fromkeys(REACHED.values())]
)
def test_a_run_counts_only_probes_in_its_plans_reach(where: str, seed: int) -> None:
    """So no probe declares fewer control planes or clients than those with which it is counted."""
    assert probes_of(where, seed).keys() <= set(in_reach(reach_of(plan_at(where))))
