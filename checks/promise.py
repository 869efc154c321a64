"""What each rule's promise depends on: the settings that make it and those that permit the anomaly.

No verdict without a promise: an anomaly counts against Kafka only if Kafka, so
configured, promised that it would not happen. Where there is a trace the cause decides
which setting permits an anomaly; where there is only a history, what is stated about the
settings has to do.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from checks.evidence import Evidence, ProducerSettings
from checks.permission import Permission, Promise, always
from checks.stated_settings import StatedSettings
from cluster_model.invariants import (
    CHECKPOINT_WITHIN_LOG,
    CONTROLLER_EPOCH_MONOTONIC,
    CONTROLLER_WRITES_FENCED,
    EPOCH_CACHE_MONOTONIC,
    FAILOVER_SHRINKS_ISR,
    HW_MONOTONIC,
    HW_WITHIN_LOG,
    ISR_HOLDS_COMMITTED,
    LEADER_EPOCH_MONOTONIC,
    LOG_MATCHING,
    ONE_CONTROLLER_PER_EPOCH,
    PRODUCER_STATE_MATCHES_LOG,
    REGISTERED_BEFORE_CONTROL,
    REGISTRATIONS_KNOWN,
)

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
G0: Final = "G0"
G1C: Final = "G1c"
READ_ABOVE_HW: Final = "read-above-hw"
LOG_DIVERGENCE: Final = "log-divergence"
TWO_LEADERS: Final = "two-leaders"
UNAVAILABLE: Final = "unavailable"
ACKED_BELOW_MIN_ISR: Final = "acked-below-min-isr"

ACKS_0: Final = "acks=0"
ACKS_1: Final = "acks=1"
ACKS_ALL: Final = "acks=all"
IDEMPOTENT: Final = "enable.idempotence=true"
NOT_IDEMPOTENT: Final = "enable.idempotence=false"
TRANSACTIONAL_ID: Final = "transactional.id"
NOT_TRANSACTIONAL: Final = "no transactional.id"
READ_COMMITTED: Final = "isolation.level=read_committed"
READ_UNCOMMITTED: Final = "isolation.level=read_uncommitted"
IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable=true"
AUTO_OFFSET_RESET: Final = "auto.offset.reset"
FLUSH_INTERVAL: Final = "log.flush.interval.messages"
HIGH_WATERMARK: Final = "high watermark"
LEADER_EPOCH: Final = "leader epoch"
CONTROLLER_EPOCH: Final = "controller epoch"
BROKER_EPOCH: Final = "broker epoch"
IN_SYNC_REPLICAS: Final = "in-sync replicas"
LIVE_IN_SYNC_REPLICA: Final = "a live in-sync replica"
REGISTRATION: Final = "/brokers/ids"
MIN_ISR: Final = "min.insync.replicas"
RECOVERY_POINT: Final = "recovery point"
OFFSETS_IN_ORDER: Final = "consumer position"
DEMANDED: Final = "what was demanded"
DEFINITE_ERROR: Final = "definite error"
SUBSCRIBED: Final = "subscribe()"
WRITES_INTERLEAVE: Final = "write interleaving"
"""Kafka does not isolate the writes of transactions from each other."""


_CLEAN: Final = ("unclean.leader.election.enable=false",)
_FLUSHED: Final = ("log.flush.interval.messages=1, or replicas that do not lose power together",)
_SAFE_ACKS: Final = ("acks=all with min.insync.replicas=2",)
_IN_ORDER: Final = (IDEMPOTENT, f"{IN_FLIGHT}=1 with acks=1 or acks=all")

_UNCLEAN = Permission(
    setting=UNCLEAN_ELECTION, stated=lambda settings: settings.unclean_leader_election, prevented_by=_CLEAN
)
_UNFLUSHED = Permission(
    setting=FLUSH_INTERVAL,
    when="when every replica that has the record loses power before flushing it",
    stated=lambda settings: not settings.flushed,
    prevented_by=_FLUSHED,
)
_RESUMED = Permission(
    setting=FLUSH_INTERVAL,
    when="when a leader that has lost power resumes its epoch",
    stated=lambda settings: not settings.flushed,
    prevented_by=_FLUSHED,
)
_MEMBER_WITHOUT_POWER = Permission(
    setting=FLUSH_INTERVAL,
    when="when a member of the ISR loses power before flushing",
    stated=lambda settings: not settings.flushed,
)
_UNACKED = (
    Permission(setting=ACKS_0, stated=lambda settings: settings.acks == "0", prevented_by=_SAFE_ACKS),
    Permission(
        setting=ACKS_1,
        when="until the record is committed",
        stated=lambda settings: settings.acks == "1",
        prevented_by=_SAFE_ACKS,
    ),
)
_LOSS = (*_UNACKED, _UNCLEAN, _UNFLUSHED)
_REBALANCE = Permission(
    setting=SUBSCRIBED,
    when="across a rebalance: a consumer goes on from the last commit of its group",
    prevented_by=("assign()",),
)
_CUT_OFF = (
    Permission(
        setting=UNCLEAN_ELECTION,
        when="when the log was cut off below the consumer's position",
        stated=lambda settings: settings.unclean_leader_election,
        prevented_by=_CLEAN,
    ),
    Permission(
        setting=FLUSH_INTERVAL,
        when="when the log was cut off below the consumer's position",
        stated=lambda settings: not settings.flushed,
        prevented_by=_FLUSHED,
    ),
    Permission(
        setting=AUTO_OFFSET_RESET,
        when="when a leader that has been succeeded says that the position is out of range",
        prevented_by=("auto.offset.reset=none",),
    ),
)
_SEND_ORDER = (
    Permission(
        setting=ACKS_0,
        when="without idempotence",
        stated=lambda settings: settings.acks == "0" and not settings.idempotence,
        prevented_by=_IN_ORDER,
    ),
    Permission(
        setting=f"{IN_FLIGHT} above 1",
        when="without idempotence",
        stated=lambda settings: settings.max_in_flight > 1 and not settings.idempotence,
        prevented_by=_IN_ORDER,
    ),
    _RESUMED,
    Permission(
        setting="what permits the loss",
        when="of a record whose offset is given away again",
    ),
)
_ISOLATION = (
    Permission(
        setting=READ_UNCOMMITTED,
        stated=lambda settings: not settings.read_committed,
        prevented_by=(READ_COMMITTED,),
    ),
    Permission(
        setting=NOT_TRANSACTIONAL,
        stated=lambda settings: not settings.transactional,
        prevented_by=(TRANSACTIONAL_ID,),
    ),
)
_INTERLEAVING = "Kafka does not isolate the writes of transactions from each other"

_IN_SEND_ORDER = Promise(
    promised_by=(IDEMPOTENT, f"{IN_FLIGHT}=1, unless {ACKS_0}"),
    permissions=_SEND_ORDER,
    releases="with idempotence since 0.11 (KIP-98)",
)
_INTERLEAVED = Promise(
    promised_by=(),
    permissions=(Permission(setting=WRITES_INTERLEAVE, when=_INTERLEAVING, stated=always),),
)

PROMISES: Final[dict[str, Promise]] = {
    LOST_WRITE: Promise(
        promised_by=(
            ACKS_ALL,
            f"{ACKS_1}, once the record is committed",
            "min.insync.replicas copies at the time of the ack",
        ),
        permissions=_LOSS,
        releases="kept since 0.11 (KIP-101), through fast leader changes since 2.0 (KIP-279)",
    ),
    DUPLICATE: Promise(
        promised_by=(IDEMPOTENT,),
        permissions=(
            Permission(
                setting=NOT_IDEMPOTENT,
                stated=lambda settings: not settings.idempotence,
                prevented_by=(IDEMPOTENT,),
            ),
            Permission(
                setting=NOT_TRANSACTIONAL,
                when="when the application sends the record again",
                prevented_by=(TRANSACTIONAL_ID,),
            ),
            _UNCLEAN,
            _UNFLUSHED,
        ),
        releases="since 0.11 (KIP-98)",
    ),
    NONMONOTONIC_SEND: _IN_SEND_ORDER,
    INT_NONMONOTONIC_SEND: _IN_SEND_ORDER,
    INT_SEND_SKIP: _INTERLEAVED,
    POLL_SKIP: Promise(
        promised_by=(OFFSETS_IN_ORDER,),
        permissions=(_REBALANCE, *_CUT_OFF),
    ),
    NONMONOTONIC_POLL: Promise(
        promised_by=(OFFSETS_IN_ORDER,),
        permissions=(_REBALANCE, *_CUT_OFF),
    ),
    INT_POLL_SKIP: Promise(promised_by=(OFFSETS_IN_ORDER,), permissions=_CUT_OFF),
    INT_NONMONOTONIC_POLL: Promise(promised_by=(OFFSETS_IN_ORDER,), permissions=_CUT_OFF),
    INCONSISTENT_OFFSETS: Promise(
        promised_by=(HIGH_WATERMARK,),
        permissions=(
            _UNCLEAN,
            _UNFLUSHED,
            *(replace(permission, when="when the acked record is lost") for permission in _UNACKED),
        ),
        releases="kept since 0.11 (KIP-101), through fast leader changes since 2.0 (KIP-279)",
    ),
    UNSEEN: Promise(
        promised_by=(HIGH_WATERMARK,),
        permissions=tuple(replace(permission, when="when the record is lost") for permission in _LOSS),
    ),
    G1A: Promise(
        promised_by=(DEFINITE_ERROR, READ_COMMITTED),
        permissions=_ISOLATION[:1],
        releases="for transactions since 0.11 (KIP-98)",
    ),
    PRECOMMITTED_READ: Promise(
        promised_by=(READ_COMMITTED,),
        permissions=_ISOLATION,
        releases="since 0.11 (KIP-98)",
    ),
    G0: _INTERLEAVED,
    G1C: Promise(
        promised_by=(READ_COMMITTED,),
        permissions=(
            Permission(setting=WRITES_INTERLEAVE, when=f"with a write in the cycle: {_INTERLEAVING}"),
            *_ISOLATION,
        ),
        releases="since 0.11 (KIP-98)",
    ),
    READ_ABOVE_HW: Promise(promised_by=(HIGH_WATERMARK,)),
    LOG_DIVERGENCE: Promise(
        promised_by=(HIGH_WATERMARK,),
        permissions=(_RESUMED,),
        releases="kept since 0.11 (KIP-101), through fast leader changes since 2.0 (KIP-279)",
    ),
    TWO_LEADERS: Promise(promised_by=(LEADER_EPOCH,)),
    UNAVAILABLE: Promise(promised_by=(LIVE_IN_SYNC_REPLICA, f"any live replica with {UNCLEAN_ELECTION}")),
    ACKED_BELOW_MIN_ISR: Promise(
        promised_by=(f"{ACKS_ALL} with {MIN_ISR}",), releases="since 0.8.2 (KAFKA-1555)"
    ),
    HW_MONOTONIC: Promise(promised_by=(HIGH_WATERMARK,)),
    HW_WITHIN_LOG: Promise(promised_by=(HIGH_WATERMARK,)),
    ISR_HOLDS_COMMITTED: Promise(
        promised_by=(IN_SYNC_REPLICAS,),
        permissions=(_UNCLEAN, _MEMBER_WITHOUT_POWER, _RESUMED),
        releases="kept since 0.11 (KIP-101), when joining the ISR since 2.0.1 (KAFKA-7128)",
    ),
    ONE_CONTROLLER_PER_EPOCH: Promise(promised_by=(CONTROLLER_EPOCH,)),
    LOG_MATCHING: Promise(
        promised_by=(HIGH_WATERMARK,),
        permissions=(_UNCLEAN, _MEMBER_WITHOUT_POWER, _RESUMED),
        releases="kept since 0.11 (KIP-101), through fast leader changes since 2.0 (KIP-279)",
    ),
    EPOCH_CACHE_MONOTONIC: Promise(promised_by=(LEADER_EPOCH,), permissions=(_RESUMED,)),
    PRODUCER_STATE_MATCHES_LOG: Promise(
        promised_by=(IDEMPOTENT,), permissions=(_RESUMED,), releases="since 0.11 (KIP-98)"
    ),
    CHECKPOINT_WITHIN_LOG: Promise(promised_by=(RECOVERY_POINT,)),
    CONTROLLER_EPOCH_MONOTONIC: Promise(promised_by=(CONTROLLER_EPOCH,)),
    LEADER_EPOCH_MONOTONIC: Promise(promised_by=(LEADER_EPOCH,)),
    CONTROLLER_WRITES_FENCED: Promise(promised_by=(CONTROLLER_EPOCH,), releases="since 2.1 (KAFKA-6082)"),
    REGISTERED_BEFORE_CONTROL: Promise(promised_by=(REGISTRATION,), releases="since 2.0 (KAFKA-6772)"),
    REGISTRATIONS_KNOWN: Promise(promised_by=(BROKER_EPOCH,), releases="since 2.2 (KIP-380)"),
    FAILOVER_SHRINKS_ISR: Promise(promised_by=(IN_SYNC_REPLICAS,), releases="since 2.3 (KAFKA-3143)"),
}
"""What promises what, by rule."""


def permission(rule: str, settings: StatedSettings) -> str | None:
    """Return the setting that may have permitted an anomaly by what is stated, None if nothing does."""
    for permitted in PROMISES[rule].permissions:
        if permitted.stated(settings):
            return permitted.setting
    return None


def prevention(rule: str, setting: str) -> tuple[str, ...]:
    """Return what would have kept an anomaly from happening that a setting permits."""
    for permitted in (*PROMISES[rule].permissions, *_LOSS):
        if permitted.setting == setting:
            return permitted.prevented_by
    return ()


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

    The documentation of ``max.in.flight.requests.per.connection`` in ``ProducerConfig.java``.
    """
    if producer.idempotence:
        return IDEMPOTENT
    if producer.max_in_flight == 1 and producer.acks != "0":
        return f"{IN_FLIGHT}=1"
    return f"nothing ({order_permitted_by(producer)})"


def order_permitted_by(producer: ProducerSettings) -> str | None:
    """Return the setting that lets a record land after its successor, None if nothing does.

    Without retries too: what is in flight to a deposed leader can be appended when that
    leads again. With ``acks=0`` nothing bounds what is in flight.
    """
    if producer.idempotence:
        return None
    if producer.acks == "0":
        return ACKS_0
    if producer.max_in_flight == 1:
        return None
    return f"{IN_FLIGHT}={producer.max_in_flight}"


_BY_PRODUCER: Final[Mapping[str, Callable[[ProducerSettings], str]]] = {
    LOST_WRITE: durability,
    DUPLICATE: single_copy,
    NONMONOTONIC_SEND: order,
    INT_NONMONOTONIC_SEND: order,
}


def promise_to(rule: str, producer: ProducerSettings) -> str:
    """Return what a producer was promised that has a part in a rule, empty where none of its settings has."""
    acked = rule in (INCONSISTENT_OFFSETS, UNSEEN)
    of_producer = durability if acked else _BY_PRODUCER.get(rule)
    return "" if of_producer is None else of_producer(producer)


def promise(rule: str, evidence: Evidence) -> str:
    """Return what *rule* holds this run to, in its settings.

    Producers with different settings were promised different things; all are named.
    """
    of_producer = _BY_PRODUCER.get(rule)
    if of_producer is None:
        return _of_cluster(rule, evidence)
    texts = dict.fromkeys(of_producer(settings) for settings in evidence.producers.values())
    return "; ".join(texts) or "nothing (no producer)"


def _of_cluster(rule: str, evidence: Evidence) -> str:
    text = " and ".join(PROMISES[rule].promised_by[:1]) or "nothing"
    if rule == INCONSISTENT_OFFSETS and any(
        settings.unclean_leader_election for settings in evidence.partitions.values()
    ):
        return f"{text}, until an unclean election ({UNCLEAN_ELECTION})"
    return text
