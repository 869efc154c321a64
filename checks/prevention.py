"""What may keep a finding from happening: settings, repairs of later releases, behaviours of this one.

Rules only propose, by what they know of the cause. Whether it does is tried where runs are made, by running
again with it (`harrow.campaigns.run.proof`): a `Remedy` is how a plan has to differ to try it, a `Trial` what
came of that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from harrow.checks.evidence import Evidence
from harrow.cluster_model.release import switch_docs, value_in
from harrow.cluster_model.repairs import REPAIRS
from harrow.cluster_model.settings import IN_FLIGHT, INT_MAX, Value

SETTING: Final = "setting"
REPAIR: Final = "repair"
BEHAVIOUR: Final = "behaviour"
FIELD: Final = "field"
"""A field of a campaign that is no setting of Kafka: how an application commits, how many replicas there are."""
RELEASE: Final = "release"
TOGETHER: Final = "together"
"""Several of them, none of which is enough alone."""

TRIED_HELD: Final = "held"
REFUTED: Final = "refuted"
NOT_TRIED: Final = "not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """How a plan has to differ: settings of Kafka, a later release, switches, and fields of the campaign by their paths."""

    settings: tuple[tuple[str, Value], ...] = ()
    release: str | None = None
    switches: tuple[tuple[str, Any], ...] = ()
    fields: tuple[tuple[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return self != Remedy()

    def __or__(self, other: "Remedy") -> "Remedy":
        """Return both as one; of a setting that both name the other's value counts."""
        return Remedy(
            settings=tuple({**dict(self.settings), **dict(other.settings)}.items()),
            release=other.release or self.release,
            switches=tuple({**dict(self.switches), **dict(other.switches)}.items()),
            fields=tuple({**dict(self.fields), **dict(other.fields)}.items()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The run again with a remedy, and what it shows.

    ``struck`` are the faults that had struck in the run until the damage was done and struck in the trial too, ``missing``
    those that did not. ``is_finished`` says whether the script came to its end, ``verdict`` is that of the trial. ``outcome``
    is `TRIED_HELD`, `REFUTED` or `NOT_TRIED`, with the ``reason`` where the trial shows nothing. ``options`` are what to
    type to see the trial, each after ``--set``, or after ``--then`` where the seed had drawn what they are laid over (`is_drawn`).
    """

    outcome: str
    reason: str = ""
    verdict: str = ""
    struck: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    is_finished: bool = True
    options: tuple[str, ...] = ()
    is_drawn: bool = False
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Prevention:
    """One way to prevent a finding.

    ``kind`` is `SETTING`, `REPAIR`, `BEHAVIOUR`, `FIELD`, `RELEASE` or `TOGETHER`; ``value`` what is safe, or the release
    that brought the repair, None where it is enough to have it at all. ``text`` says it to people, and ``meaning`` what a
    switch does. Without a ``remedy`` it cannot be tried on the model. ``trial`` is None as long as it was not tried.
    """

    kind: str
    name: str
    value: str | int | bool | None
    text: str
    remedy: Remedy = Remedy()
    trial: Trial | None = None
    meaning: str = ""

    @property
    def held(self) -> bool | None:
        """Whether it was tried and prevented the finding; None where that is unknown."""
        if self.trial is None or self.trial.outcome == NOT_TRIED:
            return None
        return self.trial.outcome == TRIED_HELD


def _setting(name: str, value: str | None = None, more: str = "", **tried: Value) -> Prevention:
    """Return a setting; *tried* is what a plan gets to try it, by names with ``_`` for dots."""
    text = f"{name}{'' if value is None else f'={value}'}{more}"
    settings = tuple((key.replace("_", "."), chosen) for key, chosen in tried.items())
    return Prevention(SETTING, name, value, text, Remedy(settings=settings))


def _repair(name: str) -> Prevention:
    repair = REPAIRS[name]
    since = f"{'opt-in ' if repair.is_opt_in else ''}from {repair.since} on"
    switches = () if repair.switch is None else ((repair.switch, repair.value()),)
    text = f"{name}, {since}: {repair.text}"
    return Prevention(REPAIR, name, repair.since, text, Remedy(switches=switches), meaning=text)


WAITING_FOR_ANSWERS: Final = _setting("acks", "1", " or acks=all, with retries", acks="1", retries=INT_MAX)
SAFE_ACKS: Final = _setting("acks", "all", " with min.insync.replicas=2", acks="all", min_insync_replicas=2)
_WEEK_MS: Final = 604_800_000

TWO_IN_SYNC: Final = _setting("min.insync.replicas", "2", min_insync_replicas=2)
CLEAN_ELECTIONS: Final = _setting(
    "unclean.leader.election.enable", "false", unclean_leader_election_enable=False
)
FLUSHING: Final = _setting(
    "log.flush.interval.messages", "1", log_flush_interval_messages=1, flush_messages=1
)
MORE_REPLICAS: Final = _setting("replication.factor", more=" above the number of disks that may fail at once")
IDEMPOTENCE: Final = _setting("enable.idempotence", "true", enable_idempotence=True)
ONE_IN_FLIGHT: Final = _setting(IN_FLIGHT, "1", max_in_flight_requests_per_connection=1)
ONE_IN_FLIGHT_ACKED: Final = _setting(
    IN_FLIGHT, "1", " with acks=1 or acks=all", max_in_flight_requests_per_connection=1, acks="1"
)
WATERMARKS: Final = _setting("commit", more=" of the lowest offset that is not finished")
TRANSACTIONS: Final = _setting("transactional.id")
COMMITTED_READS: Final = _setting("isolation.level", "read_committed")
KEEPING_LONGER: Final = _setting("retention.ms", "-1", log_retention_ms=-1, retention_ms=-1)
KEEPING_MORE: Final = _setting("retention.bytes", "-1", log_retention_bytes=-1, retention_bytes=-1)
KEEPING_TOMBSTONES: Final = _setting(
    "delete.retention.ms",
    str(_WEEK_MS),
    log_cleaner_delete_retention_ms=_WEEK_MS,
    delete_retention_ms=_WEEK_MS,
)
EARLIEST_RESET: Final = _setting("auto.offset.reset", "earliest", auto_offset_reset="earliest")
NO_OFFSET_RESET: Final = _setting("auto.offset.reset", "none", auto_offset_reset="none")
ASSIGNED: Final = _setting("assign()")

KIP_101: Final = _repair("KIP-101")
KIP_320: Final = _repair("KIP-320")


def together(parts: Iterable[Prevention]) -> Prevention:
    """Return several as one, for what none of them prevents alone; a single one is as it is."""
    first, *others = parts
    if not others:
        return first
    remedy = first.remedy
    for part in others:
        remedy |= part.remedy
    names = [part.name for part in (first, *others)]
    return Prevention(TOGETHER, "+".join(names), None, f"{' and '.join(names)}, together", remedy)


def _plain(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


LEADERSHIP: Final = (
    "controller_epoch_fencing",
    "leader_epoch_fencing",
    "controller_writes_fenced",
    "requests_after_registration",
    "broker_epoch",
)
"""The behaviours that keep a partition from having two leaders, and brokers from obeying the wrong controller."""

QUORUM: Final = ("one_vote_per_epoch",)
"""What keeps the quorum of KRaft from having two leaders, and what it has committed."""

SNAPSHOTS: Final = ("snapshot_cuts_shorter_log_only", "snapshot_of_committed_metadata")
"""What keeps snapshots of the metadata true, and what stands behind them in the log."""

REPLICATION: Final = (
    "follower_truncation",
    "hw_counts_whole_isr",
    "ack_waits_for_hw",
    "isr_expansion_checks_epoch_start",
    "epoch_entry_on_election",
    "fetch_leader_epoch_fencing",
    "fetch_sessions_keep_epoch",
    "failover_takes_out_dead_replicas",
    "unclean_election_only_if_enabled",
    "preferred_leader_from_isr",
    "isr_expansion_checks_hw",
    "isr_shrink_waits_for_write",
    "refused_isr_write_obeyed",
    "maximal_isr",
    "isr_write_conditional",
    "reelected_leader_forgets_positions",
    "isr_change_survives_known_state",
    "reverted_epochs_recovered",
    "fetch_answers_match_epoch",
    "deposed_leader_fails_pending",
    "producer_state_follows_log",
    "diverging_fetch_uncounted",
    "duplicate_waits_for_hw",
    "replica_epoch_checked",
    "former_life_fetch_refused",
    "alter_partition_fenced",
    "election_raises_leader_epoch",
    *LEADERSHIP,
    *QUORUM,
)
"""Those that keep what is committed, and the replicas' logs equal."""

SEQUENCES: Final = (
    "producer_batches_retained",
    "sequence_check",
    "idempotence",
    "followers_learn_producers",
    "producer_ids_given_once",
    "empty_log_begins_at_zero",
    "unknown_producer_begins_at_zero",
    "given_up_batch_unresolved",
)
"""Those by which a leader tells a retry from a new record."""

COMPACTION: Final = (
    "cleaner_waits_for_hw",
    "cleaner_keeps_latest",
    "cleaner_retains_tombstones",
    "cleaner_retains_last_batch",
)
"""Those by which compaction keeps of each key what is committed last."""

COORDINATION: Final = (
    "commits_fenced",
    "transactional_commits_fenced",
    "stable_offset_fetch",
    "transactional_epoch_checked",
    "lso_below_open_transactions",
    "markers_to_all_partitions",
    "prepared_commit_finished",
    "transactions_loaded_once_committed",
    "transactions_v2",
)
"""Those by which coordinators of groups and of transactions keep what is committed, and keep it together."""

READING: Final = ("consumer_limited_by_hw",)
"""Those that keep consumers from what is not committed."""

TRANSACTIONAL: Final = (
    "transactional_epoch_checked",
    "markers_to_all_partitions",
    "prepared_commit_finished",
    "transactions_loaded_once_committed",
    "lso_below_open_transactions",
    "transaction_verification",
    "transactions_v2",
)
"""Those that have a transaction take effect in all its partitions or in none, and once only."""

COMMITS: Final = ("commits_fenced", "group_answers_wait_for_writes")
"""Those that keep members of the past from committing for their group, and coordinators of the past from telling members where it is."""

_SUBJECTS: Final = (
    *(REPLICATION, SEQUENCES, COMPACTION, COORDINATION),
    *(READING, TRANSACTIONAL, COMMITS, SNAPSHOTS),
)
_SWITCHES: Final = switch_docs()


def by_behaviour(evidence: Evidence, behaviours: Iterable[str]) -> tuple[Prevention, ...]:
    """Return what some behaviours lack in this run: those that were switched off, then what came later.

    A flaw that somebody switched on is the likelier reason, so it comes first; the repairs come as Kafka got them.
    """
    wanted = list(behaviours)
    switched_off = []
    for name in wanted:
        switch = _SWITCHES[name]
        if evidence.behaviours.get(name, switch["safe"]) != switch["safe"]:
            text = f"{name}={_plain(switch['safe'])}: {switch['meaning']}"
            switched_off.append(
                Prevention(
                    *(BEHAVIOUR, name, switch["safe"], text),
                    Remedy(switches=((name, switch["safe"]),)),
                    meaning=switch["meaning"],
                )
            )
    repairs = [
        _repair(repair.name)
        for repair in REPAIRS.values()
        if repair.switch in wanted
        and repair.switch not in evidence.behaviours
        and repair.is_missing(value_in(evidence.release, repair.switch))
        and (repair.needs is None or not lacks(evidence, repair.needs))
    ]
    return (*switched_off, *repairs)


def by_subject(evidence: Evidence, proposed: Iterable[Prevention]) -> tuple[Prevention, ...]:
    """Return what else may prevent a broken promise: flaws that were switched on, and repairs of the same subject.

    The subject is that of the switches that a rule has *proposed*; a rule that proposes none leaves all of them open.
    """
    named = {name for way in proposed for name, _ in way.remedy.switches}
    related = [name for subject in _SUBJECTS if not named.isdisjoint(subject) for name in subject]
    return tuple(
        way
        for way in by_behaviour(evidence, _SWITCHES)
        if way.kind == BEHAVIOUR or not named or any(name in related for name, _ in way.remedy.switches)
    )


def lacks(evidence: Evidence, behaviour: str) -> bool:
    """Return whether a behaviour was not safe in this run, by its release or because it was switched off."""
    value = evidence.behaviours.get(behaviour, value_in(evidence.release, behaviour))
    return bool(value != _SWITCHES[behaviour]["safe"])


def by_replication(evidence: Evidence) -> tuple[Prevention, ...]:
    """Return what may have kept a committed record, or the replicas' logs equal."""
    return by_behaviour(evidence, REPLICATION)
