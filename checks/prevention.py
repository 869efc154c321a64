"""What would have kept a finding from happening: settings, repairs of later releases, behaviours of this one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from harrow.checks.evidence import Evidence
from harrow.cluster_model.release import switch_docs, version_of
from harrow.cluster_model.repairs import REPAIRS

SETTING: Final = "setting"
REPAIR: Final = "repair"
BEHAVIOUR: Final = "behaviour"


@dataclass(frozen=True, slots=True)
class Prevention:
    """One way to prevent a finding.

    ``kind`` is `SETTING`, `REPAIR` or `BEHAVIOUR`; ``value`` what is safe, or the release that brought the
    repair, None where it is enough to have it at all. ``text`` says it to people.
    """

    kind: str
    name: str
    value: str | int | bool | None
    text: str


def _setting(name: str, value: str | None = None, more: str = "") -> Prevention:
    return Prevention(SETTING, name, value, f"{name}{'' if value is None else f'={value}'}{more}")


def _repair(name: str) -> Prevention:
    repair = REPAIRS[name]
    since = f"{'opt-in ' if repair.is_opt_in else ''}from {repair.since} on"
    return Prevention(REPAIR, name, repair.since, f"{name}, {since}: {repair.text}")


_FLUSH_INTERVAL: Final = "log.flush.interval.messages"
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"

WAITING_FOR_ANSWERS: Final = _setting("acks", "1", " or acks=all, with retries")
SAFE_ACKS: Final = _setting("acks", "all", " with min.insync.replicas=2")
TWO_IN_SYNC: Final = _setting("min.insync.replicas", "2")
CLEAN_ELECTIONS: Final = _setting("unclean.leader.election.enable", "false")
FLUSHING: Final = _setting(_FLUSH_INTERVAL, "1")
FLUSHING_OR_PLACEMENT: Final = _setting(_FLUSH_INTERVAL, "1", ", or replicas that do not lose power together")
IDEMPOTENCE: Final = _setting("enable.idempotence", "true")
ONE_IN_FLIGHT: Final = _setting(_IN_FLIGHT, "1")
ONE_IN_FLIGHT_ACKED: Final = _setting(_IN_FLIGHT, "1", " with acks=1 or acks=all")
TRANSACTIONS: Final = _setting("transactional.id")
COMMITTED_READS: Final = _setting("isolation.level", "read_committed")
NO_OFFSET_RESET: Final = _setting("auto.offset.reset", "none")
ASSIGNED: Final = _setting("assign()")

KIP_101: Final = _repair("KIP-101")
KIP_279: Final = _repair("KIP-279")
KAFKA_7128: Final = _repair("KAFKA-7128")
KIP_320: Final = _repair("KIP-320")
KIP_380: Final = _repair("KIP-380")
KIP_966: Final = _repair("KIP-966")

LEADERSHIP: Final = (
    "controller_epoch_fencing",
    "leader_epoch_fencing",
    "controller_writes_fenced",
    "requests_after_registration",
    "broker_epoch",
)
"""The behaviours that keep a partition from having two leaders, and brokers from obeying the wrong controller."""

REPLICATION: Final = (
    "follower_truncation",
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
    *LEADERSHIP,
)
"""Those that keep what is committed, and the replicas' logs equal."""

SEQUENCES: Final = ("producer_batches_retained", "sequence_check", "idempotence", "followers_learn_producers")
"""Those by which a leader tells a retry from a new record."""

READING: Final = ("consumer_limited_by_hw",)
"""Those that keep consumers from what is not committed."""

_SWITCHES: Final = switch_docs()


def by_behaviour(evidence: Evidence, behaviours: Iterable[str]) -> tuple[Prevention, ...]:
    """Return those of some behaviours, as they are safe, that were switched off in this run."""
    prevented_by = []
    for name in behaviours:
        safe = _SWITCHES[name]["safe"]
        if evidence.behaviours.get(name, safe) != safe:
            text = f"{name}={str(safe).lower()}: {_SWITCHES[name]['meaning']}"
            prevented_by.append(Prevention(BEHAVIOUR, name, safe, text))
    return tuple(prevented_by)


def by_replication(
    evidence: Evidence, behaviours: Iterable[str] = REPLICATION, *, joined_early: bool = False
) -> tuple[Prevention, ...]:
    """Return what would have kept a committed record, or the replicas' logs equal.

    A run with a known flaw switched on is explained by that flaw; otherwise it is what the release does not
    do yet. *joined_early*: a leader was elected from the ISR that had never had the record.
    """
    switched_off = by_behaviour(evidence, behaviours)
    release = version_of(evidence.release)
    if switched_off:
        return switched_off
    if release < (0, 11):
        return (KIP_101,)
    if joined_early and release < (2, 0):
        return (KAFKA_7128,)
    return tuple(fix for since, fix in (((2, 0), KIP_279), ((2, 1), KIP_320)) if release < since)


def by_control(evidence: Evidence, *, unaware: bool) -> tuple[Prevention, ...]:
    """Return what would have given a partition a leader; *unaware*: it had one that did not know it."""
    switched_off = by_behaviour(evidence, REPLICATION)
    return switched_off or ((KIP_380,) if unaware and version_of(evidence.release) < (2, 2) else ())
