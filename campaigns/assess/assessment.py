"""The assessment of a cluster: the tallies of all fault models, and the limits for them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from harrow.campaigns.assess.tally import ModelTally, PermittedDamage
from harrow.campaigns.assess.trials import FATES, KINDS_OF_DAMAGE
from harrow.campaigns.language.literals import LiteralError, duration, duration_text, whole_number
from harrow.campaigns.language.spelling import counted, quoted, suggestion
from harrow.campaigns.language.units import milliseconds
from harrow.campaigns.version import version
from harrow.checks.finding import INCONCLUSIVE, worst
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.lazy_dataclass import dataclass

SCHEMA: Final = "harrow.assess/1"
OUTAGE: Final = "outage"
_NUMBER_MAX: Final = 10**9


def _records_max(fate: str) -> Callable[[ModelTally], int]:
    return lambda tally: tally.records_max(fate)


_MEASURES: Final[Mapping[str, Callable[[ModelTally], int]]] = {
    **{kind: _records_max(kind) for kind in KINDS_OF_DAMAGE},
    OUTAGE: lambda tally: tally.longest_max_us,
    "violated": lambda tally: sum(bool(trial.broken) for trial in tally.conclusive),
    "inconclusive": lambda tally: tally.inconclusive,
}
"""What ``--expect`` can limit, by key: the value of the worst trial, or a number of trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most that an assessment may show, as in ``lost=0`` or ``outage=10s``."""

    text: str
    key: str
    value_max: int

    def excess(self, tally: ModelTally) -> str | None:
        """Return how a fault model exceeds the limit; None if it keeps it, or was not tried."""
        value = _MEASURES[self.key](tally)
        if value <= self.value_max:
            return None
        return f"{self.key} {_value_text(self.key, value)}, expected at most {_value_text(self.key, self.value_max)}"


def _value_text(key: str, value: int) -> str:
    return duration_text(value) if key == OUTAGE else str(value)


def parse_limit(text: str) -> Limit:
    """Parse a limit.

    Raises:
        LiteralError: It is not one.

    """
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or key not in _MEASURES:
        hint = "" if key in _MEASURES else suggestion(key, list(_MEASURES))
        raise LiteralError(f"{quoted(text)} is no limit: write for example lost=0 or outage=10s{hint}")
    read = duration if key == OUTAGE else whole_number(0, _NUMBER_MAX)
    try:
        return Limit(text=text, key=key, value_max=read(value))
    except LiteralError as error:
        raise LiteralError(f"{key}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What the fault models did to a cluster. ``cluster`` is the name of its file.

    If that file was imported, ``source`` names the user's files.
    ``stopped`` says why not all trials took place; it is empty if they did.
    """

    cluster: str
    tallies: Sequence[ModelTally]
    limits: Sequence[Limit] = ()
    stopped: str = ""
    source: str = ""

    @property
    def heading(self) -> str:
        return self.source or self.cluster

    @property
    def status(self) -> str:
        """The worst status of the fault models that were tried; inconclusive without any.

        It is inconclusive at best if there was no time for a run of a fault model.
        """
        statuses = [tally.status for tally in self.tried()]
        is_cut_short = any(tally.model.plan is not None and not tally.trials for tally in self.tallies)
        return worst([*statuses, INCONCLUSIVE] if is_cut_short else statuses)

    def tried(self) -> list[ModelTally]:
        """Return the fault models of which at least one trial decided something."""
        return [tally for tally in self.tallies if tally.conclusive]

    def not_tried(self) -> Iterator[tuple[str, Sequence[ModelTally]]]:
        """Yield each reason why fault models decided nothing, with these models.

        Those that do not fit the cluster are apart from those that ran in vain.
        """
        by_reason: dict[tuple[bool, str], list[ModelTally]] = {}
        for tally in self.tallies:
            if not tally.conclusive:
                by_reason.setdefault((bool(tally.trials), tally.not_tried), []).append(tally)
        yield from ((reason, tallies) for (_, reason), tallies in by_reason.items())

    def exceeded(self) -> Iterator[tuple[ModelTally, str]]:
        """Yield each fault model that exceeds a limit, and how."""
        for tally in self.tallies:
            for limit in self.limits:
                excess = limit.excess(tally)
                if excess is not None:
                    yield tally, excess

    def broken(self) -> Iterator[tuple[ModelTally, str]]:
        """Yield each rule whose promise a fault model broke, with the number of runs."""
        for tally in self.tried():
            total = counted(len(tally.conclusive), "run")
            yield from (
                (tally, f"broke {rule} in {runs} of {total}") for rule, runs in tally.broken().items()
            )

    def undecided(self) -> Iterator[tuple[ModelTally, str]]:
        """Yield the fault models that were tried and have undecided runs, with the usual reason."""
        for tally in self.tried():
            if tally.inconclusive:
                runs = f"{tally.inconclusive} of {counted(len(tally.trials), 'run')}"
                yield tally, f"{runs}: {tally.usual_reason()}"

    def damage(self) -> dict[tuple[str, str | None], list[tuple[ModelTally, PermittedDamage]]]:
        """Return what each setting permitted, by kind and setting, the worst kind first."""
        found: dict[tuple[str, str | None], list[tuple[ModelTally, PermittedDamage]]] = {}
        for tally in self.tried():
            for damage in tally.damage():
                found.setdefault((damage.fate, damage.setting), []).append((tally, damage))
        # What no setting permits comes first.
        ranks = {kind: rank for rank, kind in enumerate(KINDS_OF_DAMAGE)}
        order = sorted(
            found, key=lambda key: (ranks.get(key[0], len(ranks)), key[0], key[1] is not None, key[1] or "")
        )
        return {key: found[key] for key in order}

    def as_mapping(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "version": version(),
            "cluster": self.cluster,
            "verdict": self.status,
            "complete": not self.stopped,
            "exceeded": [{"model": tally.model.name, "message": text} for tally, text in self.exceeded()],
            "models": [_model_as_mapping(tally) for tally in self.tallies],
        }


def reason_text(kind: str, setting: str | None) -> str:
    """Return why a kind of damage is possible, as in ``permitted by acks=1``.

    If the kind is the name of a rule, the text also says where to read more.
    """
    if setting is None:
        reason = "although no setting permits it"
    elif kind in RULES:
        permissions = RULES[kind].promise.permissions
        words = (str(permission) for permission in permissions if permission.setting == setting)
        reason = f"permitted by {next(words, setting)}"
    else:
        reason = f"permitted by {setting}"
    return f"{reason} (`harrow explain {kind}`)" if kind in RULES else reason


def runs_text(damage: PermittedDamage, tally: ModelTally) -> str:
    """Return how often a damage occurred, as in ``in 3 of 20 runs, at most 7 records``."""
    runs = counted(len(tally.conclusive), "run")
    return f"in {damage.runs} of {runs}, at most {counted(damage.records_max, 'record')}"


def _model_as_mapping(tally: ModelTally) -> dict[str, Any]:
    worst_trial = tally.worst()
    return {
        "name": tally.model.name,
        "title": tally.model.title,
        "description": tally.model.description,
        "not_tried": tally.not_tried or None,
        "verdict": tally.status if tally.trials else INCONCLUSIVE,
        "runs": len(tally.trials),
        "conclusive": len(tally.conclusive),
        "inconclusive": tally.inconclusive,
        "records": {fate: tally.records_max(fate) for fate in FATES},
        "damage": [
            {
                "what": damage.fate,
                "permitted_by": damage.setting,
                "runs": damage.runs,
                "records_max": damage.records_max,
            }
            for damage in tally.damage()
        ],
        "broken": dict(tally.broken()),
        "outage_ms": {"p50": milliseconds(tally.outage_p50_us), "max": milliseconds(tally.outage_max_us)},
        "worst_seed": None if worst_trial is None else worst_trial.seed,
        "reproduce": None if worst_trial is None else tally.reproduce(worst_trial),
    }
