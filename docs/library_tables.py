"""Runs the campaigns of the library on three releases, and writes the outcomes as Markdown."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Final

from harrow.campaigns.language.library_index import fault_model_names, library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import Metadata

COLUMNS: Final[tuple[tuple[str, Metadata], ...]] = (("2.4", "zookeeper"), ("3.9", "kraft"), ("4.4", "kraft"))
"""Releases, each with its control plane."""

LIMIT_US: Final = 120 * US_PER_SECOND
"""How long a script may wait. No campaign that ends as it expects waits longer."""

NOT_THERE: Final = "does not happen"
"""The outcome of a script that waits in vain: this release has no such story."""

_KIP_848: Final = "from 4.0 on group.protocol=consumer is the default (KIP-848)"

WHY: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("commit-during-rebalance", "consumer-at-least-once", "consumer-at-most-once", "idle-consumers"),
            *("offsets-partition", "rebalance-by-coordinator", "stop-the-world"),
        ),
        _KIP_848,
    ),
    "fenced-member": f"{_KIP_848}; from 4.2 on a fenced member joins again at once (KAFKA-19233)",
    "stale-member-epoch": f"{_KIP_848}; from 4.3 on the epoch of the assignment counts (KIP-1251)",
    "acks-1-leader-stop": (
        "it delays a LeaderAndIsr, which KRaft lacks; the variants `kraft` and `kraft-acks-all` delay a fetch of metadata, which ZooKeeper lacks"
    ),
    "acks-all-degrades": (
        "from 3.7 on the high watermark waits for min.insync.replicas (KAFKA-15583); from 4.1 on there are eligible leader replicas (KIP-966)"
    ),
    "control-behind-data": "in KRaft a broker reads the metadata log, so no order waits in its queue: the variant `kraft`",
    "controller-failover": "ZooKeeper only; the variants `kraft` and `kraft-after-the-write` show KRaft",
    "controller-split-brain": "ZooKeeper only; the variant `kraft` shows KRaft",
    "delete-controller-znode": "ZooKeeper only; the variants `kraft`, `kraft-killed` and `kraft-cut-off` show KRaft",
    "delayed-end-txn": "from 4.0 on each transaction has its own epoch (KIP-890): the variant `4.3`",
    "disk-loss": "from 4.1 on a broker that lost its disk leaves the ISR, and others can be elected (KIP-966): the variant `eligible-leaders`",
    "divergence-by-hw": "from 0.11 on followers truncate by leader epochs (KIP-101)",
    "epoch-answer": "from 2.7 on a follower no longer asks for an epoch (KIP-595)",
    "epoch-without-records": "repaired in 2.6.1 (KAFKA-10706); from 2.7 on a follower no longer asks for an epoch (KIP-595)",
    "epochs-do-not-save-a-double-failure": (
        "from 2.3 on a new controller removes dead brokers (KAFKA-3143); from 2.7 on a follower no longer asks for an epoch"
    ),
    "failed-broker-set": "in KRaft a smaller ISR keeps the leader epoch: the variant `kraft`",
    "error-after-deadline": "up to 2.4 the next records take the sequence numbers, from 2.5 on they get new ones in a new epoch (KIP-360)",
    "stale-diverging-epoch": "up to 2.6 a follower truncates before it fetches; from 3.9.1 and 4.0.1 on it compares epochs (KAFKA-18991)",
    "stuck-isr": "ZooKeeper from 2.7 on: before, leaders wrote ISRs themselves and recognised their own writes",
    "forgotten-isr-change": "KRaft only; with ZooKeeper a leader is not told about its own changes",
    "compaction-above-hw": "from 3.1 on compaction leaves uncommitted records alone (KAFKA-13194)",
    "fetch-session-forgets-epoch": "from 2.5 on sessions keep the epoch (KAFKA-9338)",
    "follower-fetch": "from 3.4 on a consumer is sent only to a replica in the ISR (KAFKA-14372): before, as in the variant `sent-back`",
    "forgotten-isr-member": "from 2.7 on every replica that may have joined the ISR counts (KIP-497)",
    "clock-skew": "from 4.0 on timestamps more than an hour ahead are refused (KIP-1030): the variant `producer-refused`",
    "metadata-snapshot": "KRaft only: with ZooKeeper there is no metadata log",
    "isr-change-notification": "from 2.7 on the controller writes the ISRs (KIP-497): the variant `by-controller`",
    "watch-herd": "ZooKeeper only; the variant `kraft` shows KRaft",
    "isolated-from-controllers": "the variant `leader-of-quorum` needs KRaft: here ZooKeeper is one server",
    "last-replica-standing": "KRaft only; from 4.1 on there are eligible leader replicas (KIP-966)",
    "controller-disk-loss": "KRaft only",
    "log-dir-failure": (
        "from 1.0 on a broker survives it (KIP-112), so the variant `kafka-0.11` waits in vain for the broker's end; in KRaft the first "
        "directory has the metadata log: the variants `kraft`, `kraft-metadata-directory` and, before 3.7 (KIP-858), `kraft-3.6`"
    ),
    "log-truncation-not-allowed": "from 0.11 on followers truncate by leader epochs (KIP-101), and from 2.0.1 on they may (KAFKA-7414)",
    "loss-by-hw-truncation": "from 0.11 on followers truncate by leader epochs (KIP-101)",
    "quorum-lost": "KRaft only",
    "consume-transform-produce": "up to 2.4 a producer that gives up a record is finished (KIP-360), so `no-rewind` stops reading",
    "zombie-application": "up to 2.4 a transaction does not say as which member of a group it commits (KIP-447)",
    "re-elected-leader": "KRaft; with ZooKeeper a leader misses its deposition only together with a change of controller",
    "recovery-of-m3": "from 3.7 on a producer goes at once to the leader that a refusal names (KIP-951), so m3 is retried first",
    "starved-consumer": "from 2.5 on a consumer gets at most its quota at once (KAFKA-9677); the variants show 2.8 and 1.1",
    "throttled-producer": (
        "from 2.0 on a client above its quota is answered at once (KIP-219), from 3.0 on producers are idempotent by default (KIP-679)"
    ),
    "throttled-reassignment": "in KRaft a reassignment that changes no leader keeps the leader epoch",
    "cleaned-again": (
        "up to 3.0 a tombstone may stay much longer (KIP-534); from 4.0 to 4.3 the last batch of a cleaning round stays without a record "
        "(KAFKA-17076): the variant `4.3`"
    ),
    "slow-tombstone": "up to 3.0 a tombstone may stay much longer (KIP-534)",
    "zombie-fenced": "up to 2.6 a leader that refuses the older epoch fences the producer: the variant `2.4`; since then it may abort first (KIP-588)",
    "zookeeper-majority-lost": "ZooKeeper only",
    "unread-partition": "from 3.2 on a static member that returns leads its group again (KIP-814): the variant `3.6`",
    "unclean-election": (
        "from 4.1 on the last member leaves the ISR, too (KIP-966): the variant `eligible-leaders`; in KRaft before 3.9 no replica is elected "
        "uncleanly (KAFKA-12670): the variant `kraft-3.6`"
    ),
}
"""Why a campaign ends differently from its expectation on one of the releases."""


def fault_model_table() -> str:
    """Return the fault models: the name of each, its title, and what happens."""
    rows = ["| fault model | title | what happens |", "|---|---|---|"]
    for name in fault_model_names():
        plan = load_campaign(resolve(name)[0]).plans[0]
        rows.append(f"| `{name}` | {plan.title} | {' '.join(plan.description.split())} |")
    return "\n".join(rows)


def library_table() -> str:
    """Return the outcome of each campaign; variants with the same outcomes share a row."""
    rows = [
        "| campaign | variants | 2.4, ZooKeeper | 3.9, KRaft | 4.4, KRaft | why |",
        "|---|---|---|---|---|---|",
    ]
    # The thousand runs do not depend on each other. Their processes are spawned, not forked,
    # because the process that tests this table has threads.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for rows_of_name in pool.map(_rows_of, library_names(), chunksize=4):
            rows += [f"| {' | '.join(row)} |" for row in rows_of_name]
    return "\n".join(rows)


def _rows_of(name: str) -> list[tuple[str, ...]]:
    plans = [plan for file in resolve(name) for plan in load_campaign(file).plans if plan.swarm is None]
    variants: dict[tuple[str, ...], list[str]] = {}
    for plan in plans:
        outcomes = tuple(outcome(plan, *column) for column in COLUMNS)
        variants.setdefault(outcomes, []).append(plan.variant or "base")
    differs = any(cell.endswith(("otherwise", NOT_THERE)) for outcomes in variants for cell in outcomes)
    assert differs == (name in WHY), f"{name}: WHY must have a reason exactly where outcomes differ"
    rows = []
    for outcomes, names in variants.items():
        differs = any(cell.endswith(("otherwise", NOT_THERE)) for cell in outcomes)
        rows.append((f"`{name}`", ", ".join(names), *outcomes, WHY[name] if differs else ""))
    return rows


def outcome(plan: Plan, release: str, metadata: Metadata) -> str:
    """Run a plan on another release; return the verdict, marked if it is not as expected."""
    run = run_plan(
        replace(
            plan,
            kafka=release,
            cluster=replace(plan.cluster, metadata=metadata),
            script_limit_us=min(plan.script_limit_us, LIMIT_US),
            recovery_limit_us=min(plan.recovery_limit_us, LIMIT_US),
        ),
        0,
    )
    if any("waited in vain" in reason for reason in run.verdict.reasons):
        return NOT_THERE
    return run.verdict.status if run.expected else f"{run.verdict.status}, otherwise"
