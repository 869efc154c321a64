"""Defines the terms of Kafka and of harrow that output and documentation use."""

from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term and its synonyms. ``see`` names related terms, settings, rules or campaigns."""

    name: str
    synonyms: tuple[str, ...] = ()
    doc: str
    see: tuple[str, ...] = ()


_KAFKA: Final = (
    Term(
        name="LEO",
        synonyms=("log end offset",),
        doc="The offset of the next record in a replica's log: one above its last record. Each replica has its own.",
        see=("HW", "remote LEO"),
    ),
    Term(
        name="HW",
        synonyms=("high watermark",),
        doc=(
            "The offset below which all records are committed. The leader sets it to the smallest LEO that it knows in the ISR; "
            "followers learn it with their next fetch, so theirs lags. Consumers read below it."
        ),
        see=("LEO", "ISR", "hw-two-rounds"),
    ),
    Term(
        name="remote LEO",
        doc="A leader's view of a follower's LEO: the offset of that follower's last fetch. It lags behind the follower.",
        see=("LEO", "HW"),
    ),
    Term(
        name="LSO",
        synonyms=("last stable offset",),
        doc="The offset of the first record whose transaction is still open, or else the HW. Consumers with read_committed read below it.",
        see=("isolation.level", "open-transaction-holds-the-lso"),
    ),
    Term(
        name="log start offset",
        doc="The offset at which a log begins. Retention and DeleteRecords raise it.",
        see=("short-retention", "delete-records"),
    ),
    Term(
        name="ISR",
        synonyms=("in-sync replicas",),
        doc=(
            "The leader and the followers that keep up with it. A record is committed when all of them have it, "
            "and clean elections choose among them. A follower that stays behind for replica.lag.time.max.ms is removed."
        ),
        see=("replica.lag.time.max.ms", "min.insync.replicas", "acks-all-degrades"),
    ),
    Term(
        name="maximal ISR",
        doc="The ISR plus the replicas that the leader has asked to add. The HW waits for all of them until the response (KIP-497).",
        see=("KIP-497", "maximal_isr"),
    ),
    Term(
        name="ELR",
        synonyms=("eligible leader replicas",),
        doc=(
            "In KRaft, replicas that left the ISR while it was smaller than min.insync.replicas. They have all committed records, "
            "so one of them may lead when no member of the ISR can (KIP-966)."
        ),
        see=("KIP-966", "eligible_leader_replicas"),
    ),
    Term(
        name="leader epoch",
        doc=(
            "A number that each election of a partition's leader raises. Every batch carries the epoch in which it was appended, so two "
            "replicas can find out where their logs diverge."
        ),
        see=("KIP-101", "KIP-279", "KIP-320"),
    ),
    Term(
        name="epoch cache",
        synonyms=("leader-epoch-checkpoint",),
        doc="A replica's list of leader epochs and their start offsets, stored in the file leader-epoch-checkpoint.",
        see=("leader epoch",),
    ),
    Term(
        name="controller epoch",
        doc="A number that each election of a controller raises. Brokers refuse requests with an older one.",
        see=("controller-split-brain",),
    ),
    Term(
        name="broker epoch",
        doc="A number that a broker gets each time it registers. It distinguishes requests for one incarnation of a broker from those for the next.",
        see=("KIP-380", "control_requests_carry_broker_epoch"),
    ),
    Term(
        name="truncation",
        doc="A follower removes the end of its log where it differs from its leader's, and fetches the leader's records instead.",
        see=("follower_truncation", "loss-by-hw-truncation"),
    ),
    Term(
        name="purgatory",
        doc=(
            "Where a broker keeps requests that it cannot answer yet: a produce with acks=all until the HW has passed its records, a fetch "
            "until there is something to read. A request leaves when that happens, or when it expires."
        ),
        see=("fetch-woken-from-purgatory", "replica.fetch.wait.max.ms"),
    ),
    Term(
        name="fetch session",
        doc="A broker's memory of a client's fetches. With it, each fetch names only the partitions that changed (KIP-227).",
        see=("KIP-227", "fetch_sessions"),
    ),
    Term(
        name="checkpoint",
        doc="A small file in which a broker periodically writes offsets of its logs: high watermarks, recovery points, log starts.",
        see=("replica.high.watermark.checkpoint.interval.ms",),
    ),
    Term(
        name="recovery point",
        doc="The offset up to which a log is certainly flushed. After an unclean stop the broker checks the log from there.",
        see=("power-loss",),
    ),
    Term(
        name="unclean election",
        doc="An election of a replica outside the ISR. It may lack committed records, which are then lost.",
        see=("unclean.leader.election.enable", "unclean-election"),
    ),
    Term(
        name="preferred leader",
        doc="The first replica in a partition's assignment. The controller moves leadership back to it once it has rejoined the ISR.",
        see=("auto.leader.rebalance.enable", "preferred-leader"),
    ),
    Term(
        name="controlled shutdown",
        doc="An orderly stop: the broker first moves leadership of its partitions to others, and then flushes its logs.",
        see=("controlled.shutdown.enable", "rolling-restart"),
    ),
    Term(
        name="fencing",
        doc="Refusing a request because its sender has been replaced: the request carries an epoch older than the receiver's.",
        see=("leader epoch", "controller epoch", "zombie-fenced"),
    ),
    Term(
        name="zombie",
        doc="A process that keeps working although it has been replaced, usually after a pause.",
        see=("fencing", "zombie-application"),
    ),
    Term(
        name="idempotent producer",
        doc="A producer whose batches carry its producer id, epoch and sequence numbers, so that a leader recognises a retry (KIP-98).",
        see=("enable.idempotence", "retry-reorders"),
    ),
    Term(
        name="transaction marker",
        synonyms=("control record",),
        doc="The record that ends a transaction in a partition, as committed or aborted. The coordinator asks the leader to write it.",
        see=("LSO", "exactly-once"),
    ),
    Term(
        name="coordinator",
        doc="The broker responsible for a group or a transactional id. It leads the partition of the internal topic that stores it.",
        see=("coordinator-failover",),
    ),
    Term(
        name="tombstone",
        doc="A record with a key and no value. Compaction removes the key's earlier records, and after delete.retention.ms the tombstone.",
        see=("cleanup.policy", "slow-tombstone"),
    ),
    Term(
        name="KRaft",
        doc="Kafka's control plane without ZooKeeper: controllers replicate a metadata log, and brokers follow it.",
        see=("quorum-lost", "swarm-kraft"),
    ),
)
_HARROW: Final = (
    Term(
        name="campaign",
        doc="A file that describes runs: a cluster, a workload, a script or faults, and the expected verdict. Variants change parts of it.",
    ),
    Term(
        name="seed",
        doc="The number that determines every random choice of a run. The same campaign and seed give the same run on any machine.",
    ),
    Term(
        name="verdict",
        doc="The result of a run: held, permitted, violated, inconclusive or skipped.",
        see=("held", "permitted", "violated", "inconclusive", "skipped"),
    ),
    Term(name="held", doc="Every promise of the settings was kept."),
    Term(
        name="permitted",
        doc="A client saw an anomaly that a setting permits: acks=1 permits the loss of an acknowledged record.",
    ),
    Term(name="violated", doc="A client saw an anomaly that the settings promise to prevent."),
    Term(
        name="inconclusive",
        doc="The run proves nothing: its script waited in vain, or the cluster had not recovered at the end. The reason is printed with it.",
    ),
    Term(
        name="skipped",
        doc="The campaign needs something that the target cannot do or show, so it was not run. "
        "A rule of `check` is skipped if the history has nothing that could break it.",
    ),
    Term(
        name="otherwise",
        doc="A campaign for one release had another outcome on another release. That is not a failure.",
    ),
    Term(
        name="rule",
        doc="A kind of anomaly that harrow looks for, such as lost-write or duplicate, with the settings that promise to prevent it.",
        see=("lost-write",),
    ),
    Term(
        name="finding",
        doc="One anomaly in one run: its rule, its record, the chain of events that caused it, and remedies that would have prevented it.",
    ),
    Term(
        name="probe",
        synonyms=("rare state",),
        doc=(
            "A rare state of a cluster that runs should reach, such as an unclean election. harrow counts how often each run reached it, and a "
            "campaign can require it. `harrow list probes` shows all."
        ),
    ),
    Term(
        name="behaviour",
        synonyms=("switch",),
        doc="One difference between releases of Kafka. A campaign can set it alone: `--set behaviours.NAME=VALUE`.",
    ),
    Term(
        name="mutant",
        doc="A known flaw: one behaviour set to a bad value. docs/evidence/runs-with-a-known-flaw.md says how soon swarms find each.",
    ),
    Term(
        name="swarm",
        doc="A campaign that leaves its cluster, settings and faults open, so that each seed draws its own.",
        see=("swarm", "swarm-kraft", "swarm-eos", "swarm-disks"),
    ),
    Term(
        name="outage",
        doc="A period in which a partition acknowledged nothing while a producer was sending to it.",
    ),
    Term(
        name="healing",
        doc="The end of a run, after the last fault: everything is repaired, the cluster recovers, and a new consumer reads everything back.",
    ),
    Term(
        name="core",
        doc="A subset of the brokers that is healed first, to see whether it is enough for the cluster to serve clients.",
    ),
    Term(
        name="trace digest",
        doc="A hash of everything that happened in a run. Two runs with the same digest are the same run.",
    ),
    Term(
        name="target",
        doc="The cluster that a campaign runs on: the model, real brokers that harrow starts, or your own cluster.",
    ),
)

TERMS: Final[dict[str, Term]] = {term.name: term for term in (*_KAFKA, *_HARROW)}
"""The terms by name: those of Kafka, then those of harrow."""


def term_of(word: str) -> Term | None:
    """Return the term with a name or synonym; case, hyphens and underscores do not matter."""
    folded = _folded(word)
    return next(
        (term for term in TERMS.values() if folded in map(_folded, (term.name, *term.synonyms))), None
    )


def _folded(word: str) -> str:
    return word.lower().replace("-", " ").replace("_", " ")
