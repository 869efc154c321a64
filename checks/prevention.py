"""What would have prevented a finding: settings, and KIPs with the releases that brought them.

What was set against what the release does comes first: a run with a known flaw switched on
is explained by that flaw. Otherwise the cause decides, and what the release does not do yet.
"""

from collections.abc import Mapping
from typing import Any, Final

from checks.evidence import Evidence
from checks.promise import (
    ACKED_BELOW_MIN_ISR,
    DUPLICATE,
    INCONSISTENT_OFFSETS,
    LOG_DIVERGENCE,
    LOST_WRITE,
    NONMONOTONIC_SEND,
    READ_ABOVE_HW,
    TWO_LEADERS,
    UNAVAILABLE,
    UNSEEN,
)
from cluster_model.invariants import (
    CONTROLLER_EPOCH_MONOTONIC,
    CONTROLLER_WRITES_FENCED,
    FAILOVER_SHRINKS_ISR,
    LEADER_EPOCH_MONOTONIC,
    ONE_CONTROLLER_PER_EPOCH,
    REGISTERED_BEFORE_CONTROL,
    REGISTRATIONS_KNOWN,
)

WAITING_FOR_ANSWERS: Final = "acks=1 or acks=all, with retries"
ACKS_ALL: Final = "acks=all with min.insync.replicas=2"
MIN_ISR: Final = "min.insync.replicas=2"
CLEAN_ELECTIONS: Final = "unclean.leader.election.enable=false"
FLUSHING: Final = "log.flush.interval.messages=1"
FLUSHING_OR_PLACEMENT: Final = f"{FLUSHING}, or replicas that do not lose power together"
IDEMPOTENCE: Final = "enable.idempotence=true"
ONE_IN_FLIGHT: Final = "max.in.flight.requests.per.connection=1"
TRANSACTIONS: Final = "transactional.id"
NO_OFFSET_RESET: Final = "auto.offset.reset=none"

KIP_101: Final = (
    "KIP-101, from 0.11 on: a follower asks its leader where its leader epoch ends, "
    "instead of truncating to its own high watermark"
)
KIP_279: Final = "KIP-279, from 2.0 on: the answer names the epoch, so a follower asks again about one that it does not have"
KAFKA_7128: Final = "KAFKA-7128, from 2.0.1 on: a follower joins the ISR only when it has reached the start of the leader's epoch"
KIP_320: Final = "KIP-320, from 2.1 on: fetches carry the leader epoch, so one of another epoch is refused"
KIP_380: Final = "KIP-380, from 2.2 on: control requests carry the broker's epoch, so a broker that went and came back is noticed"
KIP_966: Final = (
    "KIP-966, opt-in from 4.0 on: a replica that has stopped uncleanly is elected only when no other can lead"
)

_Version = tuple[int, ...]
_FOLLOWER_TRUNCATION: Final = "follower_truncation"

_SAFE: Final[Mapping[str, tuple[Any, str]]] = {
    _FOLLOWER_TRUNCATION: (
        "answered_epoch",
        "a follower truncates to where its leader epoch ends (KIP-101, KIP-279)",
    ),
    "isr_expansion_checks_epoch_start": (
        True,
        "a follower joins the ISR only at the start of the leader's epoch",
    ),
    "epoch_entry_on_election": (True, "a new leader notes its epoch at once (KAFKA-7415)"),
    "fetch_leader_epoch_fencing": (True, "fetches carry the leader epoch (KIP-320)"),
    "broker_epoch": (True, "control requests carry the broker's epoch (KIP-380)"),
    "requests_after_registration": (True, "a starting broker obeys nothing before it is registered"),
    "failover_takes_out_dead_replicas": (True, "a new controller takes dead replicas out of the ISRs"),
    "controller_writes_fenced": (True, "only the present controller writes to ZooKeeper (KAFKA-6082)"),
    "controller_epoch_fencing": (True, "brokers refuse a controller of an older epoch"),
    "leader_epoch_fencing": (True, "brokers refuse a leader epoch that is not newer than their own"),
    "hw_counts_whole_isr": (True, "the high watermark waits for the whole ISR"),
    "ack_waits_for_hw": (True, "acks=all is answered when the high watermark has passed the record"),
    "unclean_election_only_if_enabled": (True, "unclean elections only where they are enabled (KIP-106)"),
    "preferred_leader_from_isr": (True, "the preferred replica leads only from within the ISR"),
    "isr_expansion_checks_hw": (True, "a follower joins the ISR when it has reached the high watermark"),
    "isr_shrink_waits_for_write": (True, "a smaller ISR counts when it is written (KIP-497)"),
    "refused_isr_write_obeyed": (True, "a leader goes by no ISR that was refused"),
    "isr_write_conditional": (True, "a leader writes no ISR over its successor's"),
    "deposed_leader_fails_pending": (True, "a leader that is succeeded acknowledges nothing more"),
    "followers_learn_producers": (True, "followers learn what their leader knows of producers (KIP-98)"),
    "producer_state_follows_log": (
        True,
        "what is cut off a log is not remembered as a batch of its producer",
    ),
    "min_isr_checked": (True, "acks=all is refused below min.insync.replicas (KAFKA-1555)"),
    "consumer_limited_by_hw": (True, "consumers read below the high watermark only"),
    "idempotence": (True, "the idempotent producer (KIP-98)"),
    "producer_batches_retained": (
        5,
        "a leader remembers the last batches of a producer (KIP-98, KAFKA-5494)",
    ),
    "sequence_check": (True, "a leader refuses a sequence number out of order (KIP-98)"),
}
"""The value that is safe, and what it means."""

_LEADERSHIP: Final = (
    "controller_epoch_fencing",
    "leader_epoch_fencing",
    "controller_writes_fenced",
    "requests_after_registration",
    "broker_epoch",
)
_REPLICATION: Final = (
    _FOLLOWER_TRUNCATION,
    "hw_counts_whole_isr",
    "ack_waits_for_hw",
    "isr_expansion_checks_epoch_start",
    "epoch_entry_on_election",
    "fetch_leader_epoch_fencing",
    "failover_takes_out_dead_replicas",
    "unclean_election_only_if_enabled",
    "preferred_leader_from_isr",
    "isr_expansion_checks_hw",
    "isr_shrink_waits_for_write",
    "refused_isr_write_obeyed",
    "isr_write_conditional",
    "deposed_leader_fails_pending",
    "producer_state_follows_log",
    *_LEADERSHIP,
)
_SEQUENCES: Final = (
    "producer_batches_retained",
    "sequence_check",
    "idempotence",
    "followers_learn_producers",
)
_READING: Final = ("consumer_limited_by_hw",)
_CONCERNED: Final[Mapping[str, tuple[str, ...]]] = {
    LOST_WRITE: _REPLICATION,
    DUPLICATE: (*_SEQUENCES, *_REPLICATION),
    NONMONOTONIC_SEND: (*_SEQUENCES, *_REPLICATION),
    INCONSISTENT_OFFSETS: (*_REPLICATION, *_READING, *_SEQUENCES),
    UNSEEN: (*_REPLICATION, *_READING),
    READ_ABOVE_HW: _READING,
    LOG_DIVERGENCE: _REPLICATION,
    TWO_LEADERS: _LEADERSHIP,
    UNAVAILABLE: _REPLICATION,
    ACKED_BELOW_MIN_ISR: ("min_isr_checked",),
    ONE_CONTROLLER_PER_EPOCH: _LEADERSHIP,
    CONTROLLER_EPOCH_MONOTONIC: ("controller_epoch_fencing", "requests_after_registration"),
    LEADER_EPOCH_MONOTONIC: ("leader_epoch_fencing", "controller_epoch_fencing"),
    CONTROLLER_WRITES_FENCED: ("controller_writes_fenced",),
    REGISTERED_BEFORE_CONTROL: ("requests_after_registration",),
    REGISTRATIONS_KNOWN: ("broker_epoch",),
    FAILOVER_SHRINKS_ISR: ("failover_takes_out_dead_replicas",),
}
"""The behaviours that keep a rule's anomaly from happening."""

OF_CONTROL: Final = frozenset(
    {
        ONE_CONTROLLER_PER_EPOCH,
        CONTROLLER_EPOCH_MONOTONIC,
        LEADER_EPOCH_MONOTONIC,
        CONTROLLER_WRITES_FENCED,
        REGISTERED_BEFORE_CONTROL,
        REGISTRATIONS_KNOWN,
        FAILOVER_SHRINKS_ISR,
    }
)
"""The invariants of which logs tell nothing: who is obeyed, and what controllers know."""


def by_behaviour(evidence: Evidence, rule: str) -> tuple[str, ...]:
    """Return the behaviours that were switched off in this run and would have prevented an anomaly."""
    found = []
    for name in _CONCERNED[rule]:
        safe, meaning = _SAFE[name]
        if name in evidence.behaviours and evidence.behaviours[name] != safe:
            value = str(safe).lower()
            found.append(f"{name}={value}: {meaning}")
    return tuple(found)


def by_replication(evidence: Evidence, rule: str, *, joined_early: bool = False) -> tuple[str, ...]:
    """Return what would have kept a committed record, or the replicas' logs equal.

    *joined_early*: a leader was elected from the ISR that had never had the record.
    """
    switched_off = by_behaviour(evidence, rule)
    release = _version(evidence.release)
    if switched_off or not release:
        return switched_off
    if release < (0, 11):
        return (KIP_101,)
    if joined_early and release < (2, 0):
        return (KAFKA_7128,)
    return tuple(fix for since, fix in (((2, 0), KIP_279), ((2, 1), KIP_320)) if release < since)


def by_control(evidence: Evidence, *, unaware: bool) -> tuple[str, ...]:
    """Return what would have given a partition a leader; *unaware*: it had one, but who was not told."""
    switched_off = by_behaviour(evidence, UNAVAILABLE)
    release = _version(evidence.release)
    return switched_off or ((KIP_380,) if unaware and (0,) < release < (2, 2) else ())


def _version(release: str) -> _Version:
    numbers = release.split(".")
    return tuple(int(number) for number in numbers) if all(n.isdecimal() for n in numbers) else ()
