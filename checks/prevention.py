"""Lists what may prevent a finding: settings, repairs of later releases, switches of this release.

Rules propose settings that fit the cause. Switches declare which rules and causes they guard
against (`harrow.cluster_model.release.switch.Switch`). Neither is a proof. So commands run the plan
again with each `Remedy` (`harrow.campaigns.run.proof`), and the result of such a run is a `Trial`.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final

from harrow.checks.evidence import Evidence
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import REPAIRS, SWITCHES
from harrow.cluster_model.settings import IN_FLIGHT, INT_MAX, Value

SETTING: Final = "setting"
REPAIR: Final = "repair"
BEHAVIOUR: Final = "behaviour"
FIELD: Final = "field"
"""A field of a campaign that is not a setting of Kafka, such as the number of replicas."""
RELEASE: Final = "release"
TOGETHER: Final = "together"
"""Several remedies that help only if all are applied."""

TRIED_HELD: Final = "held"
REFUTED: Final = "refuted"
NOT_TRIED: Final = "not tried"
"""The outcomes of a trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Changes to the plan of a run: Kafka settings, a later release, switches, fields by path."""

    settings: tuple[tuple[str, Value], ...] = ()
    release: str | None = None
    switches: tuple[tuple[str, Any], ...] = ()
    fields: tuple[tuple[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return self != Remedy()

    def __or__(self, other: "Remedy") -> "Remedy":
        """Return one remedy that applies both; where they disagree, *other* wins."""
        return Remedy(
            settings=tuple({**dict(self.settings), **dict(other.settings)}.items()),
            release=other.release or self.release,
            switches=tuple({**dict(self.switches), **dict(other.switches)}.items()),
            fields=tuple({**dict(self.fields), **dict(other.fields)}.items()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """A finding of a trial that refutes the remedy: what broke, and where.

    ``causes`` are the names of the finding's causes. ``is_new`` is true if the run without the
    remedy had no such finding. Otherwise the remedy did not prevent the finding that it was for.
    """

    rule: str
    partition: str
    offset: int | None = None
    value: str | int | None = None
    permitted_by: str | None = None
    causes: tuple[str, ...] = ()
    is_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run with a remedy, and its result.

    ``outcome`` is `TRIED_HELD`, `REFUTED` (``refuted_by`` says what broke) or `NOT_TRIED`
    (``reason`` says why the trial proves nothing). ``verdict`` is the verdict of the trial. Of the
    faults that struck before the damage in the run, ``struck`` also struck in the trial, and
    ``missing`` did not. ``is_finished`` says whether the trial's script came to its end.
    ``options`` are the arguments of ``--set`` that repeat the trial. If ``is_drawn``, they are
    arguments of ``--then``, because they override values that the seed drew.
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
    refuted_by: Refutation | None = None


@dataclass(frozen=True, slots=True)
class Prevention:
    """One way to prevent a finding.

    ``kind`` is `SETTING`, `REPAIR`, `BEHAVIOUR`, `FIELD`, `RELEASE` or `TOGETHER`. ``value`` is the
    safe value, or the release with the repair, or None if any value will do. ``text`` is for
    people, and ``meaning`` explains a switch. Without a ``remedy``, the model cannot try the
    prevention. ``trial`` is None until a command has tried the remedy.
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
        """Whether a trial showed that this way prevents the finding, None if no trial decided."""
        if self.trial is None or self.trial.outcome == NOT_TRIED:
            return None
        return self.trial.outcome == TRIED_HELD


def _setting(name: str, value: str | None = None, more: str = "", **tried: Value) -> Prevention:
    """Return the prevention by a setting; *tried* are the settings to try, with ``_`` for dots."""
    text = f"{name}{'' if value is None else f'={value}'}{more}"
    settings = tuple((key.replace("_", "."), chosen) for key, chosen in tried.items())
    return Prevention(SETTING, name, value, text, Remedy(settings=settings))


def _repair(name: str) -> Prevention:
    repair = REPAIRS[name]
    since = f"{'opt-in ' if repair.is_opt_in else ''}from {repair.since} on"
    switches = () if repair.switch is None else ((repair.switch, repair.value),)
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


def by_switches(evidence: Evidence, rule: str, causes: Iterable[str]) -> tuple[Prevention, ...]:
    """Return the switches that guard against a broken promise and are not at their safe value.

    A switch guards against the finding if it names one of the causes. If no switch does, the
    switches that name the rule count.
    """
    return _unsafe(evidence, _guarding(frozenset(causes)) or _guarding(frozenset({rule})))


def other_switches(evidence: Evidence, proposed: Iterable[Prevention]) -> tuple[Prevention, ...]:
    """Return what else to try against a broken promise: all flaws that the campaign switched on.

    If the preventions that were *proposed* for the finding have no switch, all later repairs are
    tried as well.
    """
    with_repairs = not any(way.remedy.switches for way in proposed)
    return tuple(way for way in _unsafe(evidence, SWITCHES) if with_repairs or way.kind == BEHAVIOUR)


def _guarding(kinds: frozenset[str]) -> list[str]:
    return [name for name, switch in SWITCHES.items() if not kinds.isdisjoint(switch.guards)]


def _unsafe(evidence: Evidence, wanted: Collection[str]) -> tuple[Prevention, ...]:
    """Return the *wanted* switches whose value in this run is unsafe.

    Flaws that the campaign switched on come first, because they are the likelier reason. Repairs of
    later releases follow, in Kafka's order.
    """
    switched_off = []
    for name in wanted:
        switch = SWITCHES[name]
        if evidence.behaviours.get(name, switch.safe) != switch.safe:
            text = f"{name}={_plain(switch.safe)}: {switch.meaning}"
            switched_off.append(
                Prevention(
                    *(BEHAVIOUR, name, switch.safe, text),
                    Remedy(switches=((name, switch.safe),)),
                    meaning=switch.meaning,
                )
            )
    repairs = [
        _repair(repair.name)
        for repair in REPAIRS.values()
        if repair.switch is not None
        and repair.switch in wanted
        and repair.switch not in evidence.behaviours
        and repair.is_missing(SWITCHES[repair.switch].value_in(evidence.release))
        and (repair.needs is None or evidence.does().value(repair.needs) == SWITCHES[repair.needs].safe)
    ]
    return (*switched_off, *repairs)
