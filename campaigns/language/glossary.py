"""The words of Kafka and of harrow that output and documentation use, each explained once."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word, and the other words for the same thing. ``see`` names other terms, settings, rules, probes or campaigns."""

    name: str
    also: tuple[str, ...] = ()
    doc: str
    see: tuple[str, ...] = ()


_KAFKA: Final = (
    Term(
        name="LEO",
        also=("log end offset",),
        doc="The offset that the next record of a replica's log gets: one above its last record. Each replica has its own.",
        see=("HW", "remote LEO"),
    ),
    Term(
        name="HW",
        also=("high watermark",),
        doc=(
            "The offset below which all records are committed. The leader sets it to the smallest LEO of the ISR as far as it knows "
            "these; followers hear of it with their next fetch, so theirs lags. Consumers read below it."
        ),
        see=("LEO", "ISR", "hw-two-rounds"),
    ),
    Term(
        name="remote LEO",
        doc="What a leader knows of a follower's LEO: the offset from which that follower last fetched. It lags behind the follower.",
        see=("LEO", "HW"),
    ),
    Term(
        name="LSO",
        also=("last stable offset",),
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
        also=("in-sync replicas",),
        doc=(
            "The replicas that have kept up with their leader, with the leader itself. A record is committed when all of them have it, "
            "and clean elections choose among them. A follower that is behind for replica.lag.time.max.ms leaves."
        ),
        see=("replica.lag.time.max.ms", "min.insync.replicas", "acks-all-degrades"),
    ),
    Term(
        name="maximal ISR",
        doc="The ISR with every replica that a leader has asked to add. The HW waits for all of them until the answer has come (KIP-497).",
        see=("KIP-497", "maximal_isr"),
    ),
    Term(
        name="ELR",
        also=("eligible leader replicas",),
        doc=(
            "In KRaft, replicas that left the ISR while it was smaller than min.insync.replicas. They have everything that is committed, "
            "so one of them may lead when no member of the ISR can (KIP-966)."
        ),
        see=("KIP-966", "eligible_leader_replicas"),
    ),
    Term(
        name="leader epoch",
        doc=(
            "A number that each election of a partition's leader raises. Every batch carries the epoch in which it was appended, so two "
            "replicas can find out where their logs part."
        ),
        see=("KIP-101", "KIP-279", "KIP-320"),
    ),
    Term(
        name="epoch cache",
        also=("leader-epoch-checkpoint",),
        doc="A replica's list of leader epochs, each with the offset at which it begins. It is kept in the file leader-epoch-checkpoint.",
        see=("leader epoch",),
    ),
    Term(
        name="controller epoch",
        doc="A number that each election of a controller raises. Brokers refuse requests of a controller with an older one.",
        see=("controller-split-brain",),
    ),
    Term(
        name="broker epoch",
        doc="A number that a broker gets each time it registers. It tells requests for one life of a broker from those for the next.",
        see=("KIP-380", "broker_epoch"),
    ),
    Term(
        name="truncation",
        doc="A follower cuts off the end of its log where that differs from its leader's, and fetches the leader's records instead.",
        see=("follower_truncation", "loss-by-hw-truncation"),
    ),
    Term(
        name="purgatory",
        doc=(
            "Where a broker keeps requests that it cannot answer yet: a produce with acks=all until the HW has passed its records, a fetch "
            "until there is something to read. A request leaves when that happens, or when its time is over."
        ),
        see=("fetch-woken-from-purgatory", "replica.fetch.wait.max.ms"),
    ),
    Term(
        name="fetch session",
        doc="What a broker remembers of a client's fetches, so that each fetch names only what has changed (KIP-227).",
        see=("KIP-227", "fetch_sessions"),
    ),
    Term(
        name="checkpoint",
        doc="A small file in which a broker notes now and then how far its logs are: high watermarks, recovery points, log starts.",
        see=("replica.high.watermark.checkpoint.interval.ms",),
    ),
    Term(
        name="recovery point",
        doc="The offset up to which a log is known to be flushed. After an unclean stop the log is checked from there on.",
        see=("power-loss",),
    ),
    Term(
        name="unclean election",
        doc="An election of a replica outside the ISR. It may lack committed records, which are then lost.",
        see=("unclean.leader.election.enable", "unclean-election"),
    ),
    Term(
        name="preferred leader",
        doc="The first replica in a partition's assignment. The controller moves leadership back to it when it is in the ISR again.",
        see=("auto.leader.rebalance.enable", "preferred-leader"),
    ),
    Term(
        name="controlled shutdown",
        doc="A broker that is stopped in good order first has its partitions led by others, and then flushes its logs.",
        see=("controlled.shutdown.enable", "rolling-restart"),
    ),
    Term(
        name="fencing",
        doc="Refusing a request because its sender was succeeded: it carries an epoch that is older than the receiver's.",
        see=("leader epoch", "controller epoch", "zombie-fenced"),
    ),
    Term(
        name="zombie",
        doc="A process that goes on working although another one was put in its place, mostly after a pause.",
        see=("fencing", "zombie-application"),
    ),
    Term(
        name="idempotent producer",
        doc="A producer whose batches carry its producer id, epoch and sequence numbers, so that a leader recognises a retry (KIP-98).",
        see=("enable.idempotence", "retry-reorders"),
    ),
    Term(
        name="transaction marker",
        also=("control record",),
        doc="The record with which a coordinator ends a transaction in a partition, as committed or as aborted.",
        see=("LSO", "exactly-once"),
    ),
    Term(
        name="coordinator",
        doc="The broker that leads the partition of an internal topic in which a group or a transactional id is kept.",
        see=("coordinator-failover",),
    ),
    Term(
        name="tombstone",
        doc="A record without a value. Compaction removes the earlier records of its key, and after delete.retention.ms the tombstone itself.",
        see=("cleanup.policy", "slow-tombstone"),
    ),
    Term(
        name="KRaft",
        doc="Metadata without ZooKeeper: controllers replicate a metadata log among themselves, and brokers follow it.",
        see=("quorum-lost", "swarm-kraft"),
    ),
)
_HARROW: Final = (
    Term(
        name="campaign",
        doc="A file that says what to run: a cluster, a workload, a script or faults, and the expected verdict. Variants change parts of it.",
    ),
    Term(
        name="seed",
        doc="The number from which all chance of a run comes. The same campaign and seed give the same run on any machine.",
    ),
    Term(
        name="verdict",
        doc="What a run comes to: held, permitted, violated, inconclusive or skipped.",
        see=("held", "permitted", "violated", "inconclusive", "skipped"),
    ),
    Term(name="held", doc="Everything that the settings promise was kept."),
    Term(
        name="permitted",
        doc="Something went wrong for a client, and a setting says that it may: acks=1 permits the loss of an acknowledged record.",
    ),
    Term(name="violated", doc="Something went wrong for a client that the settings promise to prevent."),
    Term(
        name="inconclusive",
        doc="The run does not tell: its script waited in vain, or the cluster had not recovered at the end. The reason is printed with it.",
    ),
    Term(name="skipped", doc="The target cannot do or show what the campaign asks for, so nothing was run."),
    Term(
        name="otherwise",
        doc="A campaign that was written for one release came out differently as of another. That is no failure.",
    ),
    Term(
        name="rule",
        doc="A kind of anomaly that harrow looks for, such as lost-write or duplicate, with the settings that promise it away.",
        see=("lost-write",),
    ),
    Term(
        name="finding",
        doc="One anomaly in one run: which rule, which record, how it came about, and what would have prevented it.",
    ),
    Term(
        name="probe",
        also=("rare state",),
        doc=(
            "A rare state of a cluster that runs are hoped to reach, such as an unclean election. harrow counts how often each run did, and a "
            "campaign can require it. `harrow list probes` shows all."
        ),
    ),
    Term(
        name="behaviour",
        also=("switch",),
        doc="One thing that releases of Kafka do differently. A campaign can set it alone: `--set behaviours.NAME=VALUE`.",
    ),
    Term(
        name="mutant",
        doc="A known flaw: one behaviour set to a bad value. The zoo of mutants shows which flaws the swarms find.",
    ),
    Term(
        name="swarm",
        doc="A campaign that leaves its cluster, settings and faults open, so that each seed draws others.",
        see=("swarm", "swarm-kraft", "swarm-eos", "swarm-disks"),
    ),
    Term(
        name="outage",
        doc="A time for which a partition acknowledged nothing while a producer was sending to it. The longest one is a cost of the run.",
    ),
    Term(
        name="healing",
        doc="What happens after the last fault: everything is repaired, the cluster recovers, and a new consumer reads everything back.",
    ),
    Term(
        name="core",
        doc="A part of the brokers that is healed first while the others stay as they are, to see whether it suffices.",
    ),
    Term(
        name="trace digest",
        doc="A number made of everything that happened in a run. Two runs with the same digest are the same run.",
    ),
    Term(
        name="target",
        doc="Where a campaign runs: the model, real brokers that harrow starts, or your own cluster.",
    ),
)

TERMS: Final[dict[str, Term]] = {term.name: term for term in (*_KAFKA, *_HARROW)}
"""The terms by name: those of Kafka, then those of harrow."""


def term_of(word: str) -> Term | None:
    """Return the term that a word stands for; upper and lower case do not matter, nor do hyphens for blanks."""
    wanted = _folded(word)
    return next((term for term in TERMS.values() if wanted in map(_folded, (term.name, *term.also))), None)


def _folded(word: str) -> str:
    return word.lower().replace("-", " ").replace("_", " ")
