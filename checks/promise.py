"""Defines Kafka's promises: the settings that make them, and those that permit an anomaly.

There is no verdict without a promise. An anomaly counts against Kafka only if Kafka, configured
like this, promised that it would not happen. With a trace, the cause decides which setting permits
an anomaly. With only a history, the stated settings decide. A promise of only one rule is defined
with the rule.
"""

from collections.abc import Iterable
from typing import Final

from harrow.checks import prevention as preventions
from harrow.checks.evidence import Evidence, ProducerSettings
from harrow.checks.permission import Permission, Promise
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.log.unified_log import DELETE_RECORDS, RETENTION_BYTES, RETENTION_MS
from harrow.cluster_model.settings import AUTO_OFFSET_RESET, IN_FLIGHT

# The names of rules

LOST_WRITE: Final = "lost-write"
DUPLICATE: Final = "duplicate"
NONMONOTONIC_SEND: Final = "nonmonotonic-send"
INT_NONMONOTONIC_SEND: Final = "int-nonmonotonic-send"
INT_SEND_SKIP: Final = "int-send-skip"
POLL_SKIP: Final = "poll-skip"
NONMONOTONIC_POLL: Final = "nonmonotonic-poll"
INT_POLL_SKIP: Final = "int-poll-skip"
INT_NONMONOTONIC_POLL: Final = "int-nonmonotonic-poll"
INCONSISTENT_OFFSETS: Final = "inconsistent-offsets"
UNSEEN: Final = "unseen"
G1A: Final = "G1a"
PRECOMMITTED_READ: Final = "precommitted-read"
TORN_TRANSACTION: Final = "torn-transaction"
UNASKED_COMMIT: Final = "unasked-commit"
FENCED_WRITE: Final = "fenced-write"
READ_ABOVE_LSO: Final = "read-above-lso"
HANGING_TRANSACTION: Final = "hanging-transaction"
LSO_STANDS_STILL: Final = "lso-stands-still"
OFFSET_REGRESSION: Final = "offset-regression"
G0: Final = "G0"
G1C: Final = "G1c"
READ_ABOVE_HW: Final = "read-above-hw"
LOG_DIVERGENCE: Final = "log-divergence"
TWO_LEADERS: Final = "two-leaders"
UNAVAILABLE: Final = "unavailable"
UNCONSUMED: Final = "unconsumed"
MISROUTED: Final = "misrouted"
LOST_EFFECT: Final = "lost-effect"
DOUBLED_EFFECT: Final = "doubled-effect"
REBALANCE_SKIP: Final = "rebalance-skip"
ACKED_BELOW_MIN_ISR: Final = "acked-below-min-isr"

# The words of output for what promises or permits something

ACKS_0: Final = "acks=0"
ACKS_1: Final = "acks=1"
ACKS_ALL: Final = "acks=all"
IDEMPOTENT: Final = "enable.idempotence=true"
NOT_IDEMPOTENT: Final = "enable.idempotence=false"
NOT_TRANSACTIONAL: Final = "no transactional.id"
SENT_IN_TRANSACTIONS: Final = "the application's own transactions"
"""Kafka keeps what each transaction committed, although an application sent the same twice."""
READ_COMMITTED: Final = "isolation.level=read_committed"
READ_UNCOMMITTED: Final = "isolation.level=read_uncommitted"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable=true"
FLUSH_INTERVAL: Final = "log.flush.interval.messages"
DISK_FAILURE: Final = "disk failure"
CLOCK_SKEW: Final = "clock skew"
DELETE_RETENTION_MS: Final = "delete.retention.ms"
HIGH_WATERMARK: Final = "high watermark"
LEADER_EPOCH: Final = "leader epoch"
CONTROLLER_EPOCH: Final = "controller epoch"
BROKER_EPOCH: Final = "broker epoch"
IN_SYNC_REPLICAS: Final = "in-sync replicas"
LIVE_IN_SYNC_REPLICA: Final = "a live in-sync replica"
REGISTRATION: Final = "/brokers/ids"
GENERATION: Final = "generation"
CONSUMER_PROTOCOL: Final = "group.protocol=consumer"
RECOVERY_POINT: Final = "recovery point"
OFFSETS_IN_ORDER: Final = "consumer position"
DEMANDED: Final = "what was demanded"
DEFINITE_ERROR: Final = "definite error"
SUBSCRIBED: Final = "subscribe()"
ADDRESSED: Final = "ProducerRecord.partition()"
ASSIGN: Final = "assign()"
ASYNC_COMMITS: Final = "commitAsync()"
WRITES_INTERLEAVE: Final = "write interleaving"
"""Kafka does not isolate the writes of transactions from each other."""


BY_UNCLEAN_ELECTION = Permission(
    setting=UNCLEAN_ELECTION,
    stated=lambda settings: settings.unclean_leader_election,
    prevented_by=(preventions.CLEAN_ELECTIONS,),
)
BY_POWER_LOSS = Permission(
    setting=FLUSH_INTERVAL,
    when="when every replica that has the record loses power before flushing it",
    stated=lambda settings: not settings.flushed,
    prevented_by=(preventions.FLUSHING,),
)
_BY_POWER_LOSS_OF_SOME = (
    replace(
        BY_POWER_LOSS,
        when="when the only replica in the ISR loses the record, so that no other replica with the record can be elected (KIP-966)",
    ),
    replace(
        BY_POWER_LOSS,
        when="when a replica loses the record, and is elected because it is still or again in the ISR when it comes back (KIP-966, KIP-903)",
    ),
)
BY_RESUMED_EPOCH = replace(BY_POWER_LOSS, when="when a leader that has lost power resumes its epoch")
BY_POWER_LOSS_IN_ISR = replace(BY_POWER_LOSS, when="when a member of the ISR loses power before flushing")
BY_DISK_FAILURE = Permission(
    setting=DISK_FAILURE,
    when="when every replica that has the record loses its disk, or the data on it",
    prevented_by=(preventions.MORE_REPLICAS,),
)
BY_DAMAGED_LEADER = replace(
    BY_DISK_FAILURE,
    when="while a broker with a damaged copy leads: Kafka never repairs it",
    prevented_by=(),
)
BY_DISK_FAILURES = (
    BY_DISK_FAILURE,
    replace(
        BY_DISK_FAILURE,
        when="when the only replica in the ISR loses the record, so that no other replica with the record can be elected (KIP-966)",
    ),
    replace(
        BY_DISK_FAILURE,
        when="when a replica loses the record, and is elected because it is still or again in the ISR when it comes back (KIP-966, KIP-903)",
        prevented_by=(),
    ),
    BY_DAMAGED_LEADER,
)
BY_DISK_LOSS_IN_ISR = replace(
    BY_DISK_FAILURE, when="when a member of the ISR loses its disk, or the data on it", prevented_by=()
)
BY_FORGOTTEN_EPOCH = replace(
    BY_DISK_FAILURE,
    when="when a leader that has lost its disk resumes its epoch, or a replica has lost its leader-epoch-checkpoint",
    prevented_by=(),
)
BY_ACKS = (
    Permission(
        setting=ACKS_0, stated=lambda settings: settings.acks == "0", prevented_by=(preventions.SAFE_ACKS,)
    ),
    Permission(
        setting=ACKS_1,
        when="until the record is committed",
        stated=lambda settings: settings.acks == "1",
        prevented_by=(preventions.SAFE_ACKS,),
    ),
)
BY_RETENTION = (
    Permission(
        setting=RETENTION_MS,
        when="when the record is older, read or not",
        prevented_by=(preventions.KEEPING_LONGER,),
    ),
    Permission(
        setting=RETENTION_BYTES,
        when="when the log is that large without the segment of the record, read or not",
        prevented_by=(preventions.KEEPING_MORE,),
    ),
    Permission(
        setting=DELETE_RECORDS,
        when="when the record is below the offset that an administrator names, read or not",
        is_order=True,
    ),
)
BY_CLOCK_SKEW = Permission(
    setting=CLOCK_SKEW,
    when="when the record is older than retention.ms, or its tombstone than delete.retention.ms, by the clocks of its writer and its deleter",
)
BY_DELETE_RETENTION = Permission(
    setting=DELETE_RETENTION_MS,
    when="when the record is a tombstone, and the log was compacted after that time",
    prevented_by=(preventions.KEEPING_TOMBSTONES,),
)
BY_POWER_LOSSES = (BY_POWER_LOSS, *_BY_POWER_LOSS_OF_SOME)
BY_LOSS = (
    *BY_ACKS,
    BY_UNCLEAN_ELECTION,
    *BY_POWER_LOSSES,
    *BY_DISK_FAILURES,
    *BY_RETENTION,
    BY_DELETE_RETENTION,
    BY_CLOCK_SKEW,
)
BY_REBALANCE = Permission(
    setting=SUBSCRIBED,
    when="across a rebalance: a consumer continues from the last commit of its group",
    prevented_by=(preventions.ASSIGNED,),
)
_LOG_CUT = "when the log was truncated below the consumer's position"
BY_CUT_LOG = (
    replace(BY_UNCLEAN_ELECTION, when=_LOG_CUT),
    replace(BY_POWER_LOSS, when=_LOG_CUT),
    replace(BY_DISK_FAILURE, when=_LOG_CUT, prevented_by=()),
    replace(BY_DISK_FAILURE, when="when the application seeks past a batch with a bad CRC", prevented_by=()),
    Permission(
        setting=AUTO_OFFSET_RESET,
        when="when a deposed leader answers that the position is out of range",
        prevented_by=(preventions.NO_OFFSET_RESET,),
    ),
    *(
        replace(permission, when="when the consumer's next record has been deleted")
        for permission in BY_RETENTION
    ),
    replace(BY_DELETE_RETENTION, when="when the consumer's next record is a tombstone that was removed"),
    replace(
        BY_CLOCK_SKEW,
        when="when the consumer's next record has been deleted as too old, by the clocks of its writer and its deleter",
    ),
    Permission(
        setting=f"{AUTO_OFFSET_RESET}=latest",
        when="when the consumer's next record has been deleted, for the records that remain after it",
        prevented_by=(preventions.EARLIEST_RESET,),
    ),
)
_SEND_ORDER = (
    Permission(
        setting=ACKS_0,
        when="without idempotence",
        stated=lambda settings: settings.acks == "0" and not settings.idempotence,
        prevented_by=(preventions.IDEMPOTENCE, preventions.ONE_IN_FLIGHT_ACKED),
    ),
    Permission(
        setting=f"{IN_FLIGHT} above 1",
        when="without idempotence",
        stated=lambda settings: settings.max_in_flight > 1 and not settings.idempotence,
        prevented_by=(preventions.IDEMPOTENCE, preventions.ONE_IN_FLIGHT_ACKED),
    ),
    BY_RESUMED_EPOCH,
    BY_FORGOTTEN_EPOCH,
    Permission(
        setting="whatever permits the loss",
        when="for a record whose offset is assigned again",
    ),
)
BY_ISOLATION = (
    Permission(
        setting=READ_UNCOMMITTED,
        stated=lambda settings: not settings.read_committed,
        prevented_by=(preventions.COMMITTED_READS,),
    ),
    Permission(
        setting=NOT_TRANSACTIONAL,
        stated=lambda settings: not settings.transactional,
        prevented_by=(preventions.TRANSACTIONS,),
    ),
)
_LOST_DECISION = (
    "when a log loses the decision about the transaction: its marker, or its coordinator's record"
)
BY_LOST_DECISION = (
    replace(BY_UNCLEAN_ELECTION, when=_LOST_DECISION),
    replace(BY_POWER_LOSS, when=_LOST_DECISION),
    replace(BY_DISK_FAILURE, when=_LOST_DECISION, prevented_by=()),
)
NO_WRITE_ISOLATION: Final = "because Kafka does not isolate the writes of transactions from each other"


LOSSES_OF_LOGS = (BY_UNCLEAN_ELECTION, BY_POWER_LOSS, BY_DISK_FAILURE)


def restricted(when: str, permissions: Iterable[Permission]) -> tuple[Permission, ...]:
    """Return permissions that apply only in the case *when*, which no stated setting reveals."""
    return tuple(
        Permission(setting=each.setting, when=when, prevented_by=each.prevented_by) for each in permissions
    )


def durability(producer: ProducerSettings) -> str:
    """Return what a producer was promised about acked records."""
    if producer.acks == "0":
        return f"nothing ({ACKS_0})"
    if producer.acks == "1":
        return f"{ACKS_1} (once committed)"
    return ACKS_ALL


def single_copy(producer: ProducerSettings) -> str:
    """Return what a producer was promised about duplicates (KIP-98)."""
    return IDEMPOTENT if producer.idempotence else f"nothing ({NOT_IDEMPOTENT})"


def order(producer: ProducerSettings) -> str:
    """Return what a producer was promised about the order of its records.

    The documentation of ``max.in.flight.requests.per.connection`` in ``ProducerConfig.java`` is the
    source.
    """
    if producer.idempotence:
        return IDEMPOTENT
    if producer.max_in_flight == 1 and producer.acks != "0":
        return f"{IN_FLIGHT}=1"
    return f"nothing ({order_permitted_by(producer)})"


def order_permitted_by(producer: ProducerSettings) -> str | None:
    """Return the setting that lets a record land after its successor, None if nothing does.

    This happens without retries as well: a request in flight to a deposed leader can be appended
    when that broker leads again. With ``acks=0`` nothing bounds the requests in flight.
    """
    if producer.idempotence:
        return None
    if producer.acks == "0":
        return ACKS_0
    if producer.max_in_flight == 1:
        return None
    return f"{IN_FLIGHT}={producer.max_in_flight}"


def committed_reads(_: Evidence) -> str:
    """Return what a run promises to consumers, whatever it promises to producers."""
    return HIGH_WATERMARK


def prevention(promise: Promise, setting: str) -> tuple[preventions.Prevention, ...]:
    """Return what prevents an anomaly that a setting permits, itself or as part of a loss."""
    for permitted in (*promise.permissions, *BY_LOSS):
        if permitted.setting == setting:
            return permitted.prevented_by
    return ()


RESETTING = Promise(
    promised_by=(OFFSETS_IN_ORDER,),
    permissions=(
        Permission(
            setting=f"{AUTO_OFFSET_RESET}=earliest",
            when="when a consumer finds nothing at its position, and starts over",
            prevented_by=(preventions.NO_OFFSET_RESET,),
        ),
        Permission(
            setting=f"{AUTO_OFFSET_RESET}=latest",
            when="when a consumer finds nothing at its position, or nothing was committed, for the records before the end",
            prevented_by=(preventions.EARLIEST_RESET,),
        ),
    ),
)
"""The promise to consumers that find no record at their position."""

IN_SEND_ORDER = Promise(
    promised_by=(IDEMPOTENT, f"{IN_FLIGHT}=1, unless {ACKS_0}"),
    permissions=_SEND_ORDER,
    releases="with idempotence since 0.11 (KIP-98)",
    to_producer=order,
)
INTERLEAVED = Promise(
    promised_by=(),
    permissions=(Permission(setting=WRITES_INTERLEAVE, when=NO_WRITE_ISOLATION, stated=lambda _: True),),
)
