"""The campaigns that ship, run as of releases with ZooKeeper and with KRaft, as Markdown."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import Metadata

COLUMNS: Final[tuple[tuple[str, Metadata], ...]] = (("2.4", "zookeeper"), ("3.9", "kraft"), ("4.4", "kraft"))
"""The releases, each with where it keeps its metadata."""

LIMIT_US: Final = 120 * US_PER_SECOND
"""So long a script may wait, for no campaign that goes as it says waits longer."""

NOT_THERE: Final = "does not happen"
"""A script that waits in vain tells a story that this release does not have."""

_KIP_848: Final = "from 4.0 on brokers have group.protocol=consumer (KIP-848), by default"

WHY: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("commit-during-rebalance", "consumer-at-least-once", "consumer-at-most-once", "idle-consumers"),
            *("offsets-partition", "rebalance-by-coordinator", "stop-the-world"),
        ),
        _KIP_848,
    ),
    "fenced-member": f"{_KIP_848}; from 4.2 on who was fenced joins again at once (KAFKA-19233)",
    "stale-member-epoch": f"{_KIP_848}; from 4.3 on it counts when a partition was assigned (KIP-1251)",
    "acks-1-leader-stop": (
        "it holds back a LeaderAndIsr, which KRaft does not have; the variants `kraft` and `kraft-acks-all` hold back a fetch of metadata, which "
        "ZooKeeper does not have"
    ),
    "acks-all-degrades": (
        "from 3.7 on the high watermark waits for min.insync.replicas (KAFKA-15583); from 4.1 on there are eligible leader replicas (KIP-966)"
    ),
    "control-behind-data": "in KRaft a broker reads the metadata log, and no order waits in its queue: the variant `kraft`",
    "controller-failover": "about ZooKeeper; the variants `kraft` and `kraft-after-the-write` tell what KRaft does",
    "controller-split-brain": "about ZooKeeper; the variant `kraft` tells what KRaft does",
    "delete-controller-znode": "about ZooKeeper; the variants `kraft`, `kraft-killed` and `kraft-cut-off` tell what KRaft does",
    "delayed-end-txn": "from 4.0 on each transaction has an epoch of its own (KIP-890): the variant `4.3`",
    "disk-loss": "from 4.1 on who lost its disk is not in the ISR, and others can be elected (KIP-966): the variant `eligible-leaders`",
    "divergence-by-hw": "from 0.11 on followers truncate by leader epochs (KIP-101)",
    "epoch-answer": "from 2.7 on a follower asks for no epoch (KIP-595)",
    "epoch-without-records": "repaired in 2.6.1 (KAFKA-10706); from 2.7 on a follower asks for no epoch (KIP-595)",
    "epochs-do-not-save-a-double-failure": "from 2.3 on a new controller takes out the dead (KAFKA-3143); from 2.7 on a follower asks for no epoch",
    "failed-broker-set": "in KRaft a smaller ISR leaves the leader epoch as it is: the variant `kraft`",
    "error-after-deadline": "up to 2.4 the next records take the sequence numbers, from 2.5 on they get others in a new epoch (KIP-360)",
    "stale-diverging-epoch": "up to 2.6 a follower truncates before it fetches; from 3.9.1 and 4.0.1 on it compares the epochs (KAFKA-18991)",
    "stuck-isr": "about ZooKeeper from 2.7 on: before, leaders wrote ISRs themselves, and recognised their own writes",
    "forgotten-isr-change": "about KRaft; with ZooKeeper nobody tells a leader of the ISR that it has written itself",
    "compaction-above-hw": "from 3.1 on nothing is compacted that is not committed (KAFKA-13194)",
    "fetch-session-forgets-epoch": "from 2.5 on sessions keep the epoch (KAFKA-9338)",
    "follower-fetch": "from 3.4 on a consumer is sent to a replica in the ISR alone (KAFKA-14372): before, as in the variant `sent-back`",
    "forgotten-isr-member": "from 2.7 on who may have joined the ISR counts (KIP-497)",
    "clock-skew": "from 4.0 on timestamps of more than an hour ahead are refused (KIP-1030): the variant `producer-refused`",
    "metadata-snapshot": "about KRaft: with ZooKeeper there is no metadata log",
    "isr-change-notification": "from 2.7 on the controller writes the ISRs (KIP-497): the variant `by-controller`",
    "watch-herd": "about ZooKeeper; the variant `kraft` tells what KRaft does",
    "isolated-from-controllers": "the variant `leader-of-quorum` is about KRaft: here ZooKeeper is one server",
    "last-replica-standing": "about KRaft; from 4.1 on there are eligible leader replicas (KIP-966)",
    "controller-disk-loss": "about KRaft",
    "log-dir-failure": (
        "from 1.0 on a broker survives it (KIP-112), so the variant `kafka-0.11` waits in vain for the broker's end; in KRaft the first "
        "directory has the metadata log: the variants `kraft`, `kraft-metadata-directory` and, before 3.7 (KIP-858), `kraft-3.6`"
    ),
    "log-truncation-not-allowed": "from 0.11 on followers truncate by leader epochs (KIP-101), and from 2.0.1 on they may (KAFKA-7414)",
    "loss-by-hw-truncation": "from 0.11 on followers truncate by leader epochs (KIP-101)",
    "quorum-lost": "about KRaft",
    "consume-transform-produce": "up to 2.4 a producer that gives a record up can do no more (KIP-360), so that `no-rewind` reads on no further",
    "zombie-application": "up to 2.4 a client does not say as which member of a group it commits in a transaction (KIP-447)",
    "re-elected-leader": "about KRaft; with ZooKeeper a leader misses its deposition only together with a change of controller",
    "recovery-of-m3": "from 3.7 on a producer goes at once to the leader that a refusal names (KIP-951), so that m3 is sent again first",
    "starved-consumer": "from 2.5 on a consumer gets no more at once than its quota allows (KAFKA-9677); the variants tell that of 2.8, and of 1.1",
    "throttled-producer": (
        "from 2.0 on who exceeds a quota is answered at once (KIP-219), from 3.0 on producers are idempotent by default (KIP-679)"
    ),
    "throttled-reassignment": "in KRaft a reassignment that changes no leader leaves the leader epoch as it is",
    "cleaned-again": (
        "up to 3.0 a tombstone may stay much longer (KIP-534); from 4.0 to 4.3 the last batch of what is cleaned stays without a record "
        "(KAFKA-17076): the variant `4.3`"
    ),
    "slow-tombstone": "up to 3.0 a tombstone may stay much longer (KIP-534)",
    "zombie-fenced": "up to 2.6 a leader that refuses the older epoch fences the producer: the variant `2.4`; since then it may abort first (KIP-588)",
    "zookeeper-majority-lost": "about ZooKeeper",
    "unread-partition": "from 3.2 on a static member that comes back leads its group again (KIP-814): the variant `3.6`",
    "unclean-election": (
        "from 4.1 on also the last member leaves the ISR (KIP-966): the variant `eligible-leaders`; in KRaft before 3.9 no replica is elected "
        "uncleanly (KAFKA-12670): the variant `kraft-3.6`"
    ),
}
"""Why a campaign goes otherwise than it says on one of the releases."""


def library_table() -> str:
    """Return what becomes of each campaign of the library, variants with the same outcome in one row."""
    rows = [
        "| campaign | variants | 2.4, ZooKeeper | 3.9, KRaft | 4.4, KRaft | why |",
        "|---|---|---|---|---|---|",
    ]
    rows += [f"| {' | '.join(row)} |" for row in _rows()]
    return "\n".join(rows)


@cache
def _rows() -> tuple[tuple[str, ...], ...]:
    return tuple(row for name in library_names() for row in _rows_of(name))


def _rows_of(name: str) -> Iterator[tuple[str, ...]]:
    plans = [plan for file in resolve(name) for plan in load_campaign(file).plans if plan.swarm is None]
    variants: dict[tuple[str, ...], list[str]] = {}
    for plan in plans:
        outcomes = tuple(outcome(plan, *column) for column in COLUMNS)
        variants.setdefault(outcomes, []).append(plan.variant or "base")
    differs = any(cell.endswith(("otherwise", NOT_THERE)) for outcomes in variants for cell in outcomes)
    assert differs == (name in WHY), f"{name}: WHY has to say why, and only where something differs"
    for outcomes, names in variants.items():
        differs = any(cell.endswith(("otherwise", NOT_THERE)) for cell in outcomes)
        yield f"`{name}`", ", ".join(names), *outcomes, WHY[name] if differs else ""


def outcome(plan: Plan, release: str, metadata: Metadata) -> str:
    """Return the verdict of a plan as of another release, and whether it goes as the campaign says."""
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
