"""What each rule's promise depends on: the settings that make it and those that permit the anomaly.

No verdict without a promise: an anomaly counts against Kafka only if Kafka, so
configured, promised that it would not happen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from checks.evidence import Evidence, ProducerSettings

LOST_WRITE: Final = "lost-write"
DUPLICATE: Final = "duplicate"
NONMONOTONIC_SEND: Final = "nonmonotonic-send"
INCONSISTENT_OFFSETS: Final = "inconsistent-offsets"
UNSEEN: Final = "unseen"
READ_ABOVE_HW: Final = "read-above-hw"
LOG_DIVERGENCE: Final = "log-divergence"
TWO_LEADERS: Final = "two-leaders"

ACKS_0: Final = "acks=0"
ACKS_1: Final = "acks=1"
ACKS_ALL: Final = "acks=all"
IDEMPOTENT: Final = "enable.idempotence=true"
NOT_IDEMPOTENT: Final = "enable.idempotence=false"
TRANSACTIONAL_ID: Final = "transactional.id"
IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable=true"
FLUSH_INTERVAL: Final = "log.flush.interval.messages"
HIGH_WATERMARK: Final = "high watermark"
LEADER_EPOCH: Final = "leader epoch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What promises that an anomaly does not happen, and which settings permit it all the same."""

    promised_by: tuple[str, ...]
    permitted_by: tuple[str, ...] = ()


PROMISES: Final[dict[str, Promise]] = {
    LOST_WRITE: Promise(
        promised_by=(ACKS_ALL, f"{ACKS_1}, once the record is committed"),
        permitted_by=(ACKS_0, f"{ACKS_1}, until the record is committed", UNCLEAN_ELECTION, FLUSH_INTERVAL),
    ),
    DUPLICATE: Promise(
        promised_by=(IDEMPOTENT,),
        permitted_by=(
            NOT_IDEMPOTENT,
            f"no {TRANSACTIONAL_ID}, when the application sends again",
            UNCLEAN_ELECTION,
            FLUSH_INTERVAL,
        ),
    ),
    NONMONOTONIC_SEND: Promise(
        promised_by=(IDEMPOTENT, f"{IN_FLIGHT}=1, unless {ACKS_0}"),
        permitted_by=(
            f"{IN_FLIGHT} above 1, without idempotence",
            f"{ACKS_0}, without idempotence",
            f"{FLUSH_INTERVAL}, when a leader that has lost power resumes its epoch",
        ),
    ),
    INCONSISTENT_OFFSETS: Promise(
        promised_by=(HIGH_WATERMARK,),
        permitted_by=(UNCLEAN_ELECTION, FLUSH_INTERVAL, "what permits the loss of the acked record"),
    ),
    UNSEEN: Promise(promised_by=(HIGH_WATERMARK,)),
    READ_ABOVE_HW: Promise(promised_by=(HIGH_WATERMARK,)),
    LOG_DIVERGENCE: Promise(
        promised_by=(HIGH_WATERMARK,),
        permitted_by=(f"{FLUSH_INTERVAL}, when a leader that has lost power resumes its epoch",),
    ),
    TWO_LEADERS: Promise(promised_by=(LEADER_EPOCH,)),
}
"""What promises what, by rule."""


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
}


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
    text = PROMISES[rule].promised_by[0]
    if rule == INCONSISTENT_OFFSETS and any(
        settings.unclean_leader_election for settings in evidence.partitions.values()
    ):
        return f"{text}, until an unclean election ({UNCLEAN_ELECTION})"
    return text
