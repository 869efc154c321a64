"""Defines what settings have to prevent: lost, reordered and doubled records, outages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harrow.campaigns.advise.axis import consumer_configs, producer_configs, topic_configs
from harrow.campaigns.assess.trials import UNCOMMITTED, UNCOMMITTED_RULES
from harrow.campaigns.clients.client_promises import producer_promises
from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import counted
from harrow.campaigns.record.report import anomalies
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.service import Bound
from harrow.checks import promise
from harrow.checks.rule import DOUBLED, LOST, REORDERED
from harrow.checks.rules.catalogue import RULES
from harrow.checks.stated_settings import StatedSettings
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import READ_COMMITTED

FAILED: Final = "failed"
OUTAGE: Final = "outage"
KINDS: Final[Mapping[str, str]] = {
    LOST: "An acknowledged record, or the effect of one, is gone.",
    REORDERED: "A record stands before one that its producer sent earlier.",
    DOUBLED: "A record, or the effect of one, is there twice.",
    UNCOMMITTED: "A consumer receives a record of an open or aborted transaction, or only a part of a committed one.",
    FAILED: "A send ends without an acknowledgement.",
    OUTAGE: "A partition acknowledges nothing for too long while a producer sends to it.",
}
"""What each kind of harm is, worst first."""

RULES_OF_HARM: Final[Mapping[str, tuple[str, ...]]] = {
    **{
        kind: tuple(name for name, each in RULES.items() if kind in (each.fate, each.fate_for_readers))
        for kind in (LOST, REORDERED, DOUBLED)
    },
    UNCOMMITTED: UNCOMMITTED_RULES,
    FAILED: (),
}
"""The harm that settings can be asked to prevent, each with the rules that find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """Harm that a run showed. ``permitted_by`` is None for a broken promise and for an outage."""

    kind: str
    sentence: str
    rule: str = ""
    permitted_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What settings have to do in every trial: show no harm of the kinds in ``never``.

    ``outage`` bounds the longest time without an ack: a comparison (``<`` or ``<=``), microseconds.
    """

    never: tuple[str, ...] = (LOST, REORDERED)
    outage: tuple[str, int] | None = None

    def kinds(self) -> tuple[str, ...]:
        return self.never if self.outage is None else (*self.never, OUTAGE)

    def first_harm(self, harms: Sequence[Harm], longest_us: int) -> Harm | None:
        """Return the worst harm of a run that the needs exclude, None if there is none.

        *longest_us* is the longest time without an ack.
        """
        for harm in harms:
            if harm.kind in self.never:
                return harm
        if self.outage is None:
            return None
        comparison, limit_us = self.outage
        if longest_us < limit_us or (comparison == "<=" and longest_us == limit_us):
            return None
        return Harm(kind=OUTAGE, sentence=f"acked nothing for {duration_text(longest_us)}")

    def bounds(self, harm: Harm) -> tuple[Bound, ...]:
        """Return the bounds that express this harm.

        A run that shows it misses at least one. Empty if a rule finds the harm.
        """
        if harm.kind == FAILED:
            return tuple(Bound(measure=name, comparison="<=", limit=0) for name in ("failed", "unknown"))
        if harm.kind == OUTAGE and self.outage is not None:
            comparison, limit_us = self.outage
            return (Bound(measure="outage", comparison=comparison, limit=limit_us),)
        return ()

    def permitted_by(self, plan: Plan) -> str | None:
        """Return the setting of a plan that permits such harm whatever happens, if there is one.

        What only some faults can do, such as a loss of power, is left to the trials.
        """
        for stated in _stated_settings(plan):
            # Without acks, runs show neither outages nor failed sends.
            if stated.acks == "0" and (self.outage is not None or FAILED in self.never):
                return promise.ACKS_0
            for name in (name for kind in self.never for name in RULES_OF_HARM.get(kind, ())):
                setting = RULES[name].promise.permission(stated)
                if setting is not None:
                    return setting
        return None


def harms_of(result: RunResult) -> Iterator[Harm]:
    """Yield the harm that a run shows, permitted or not, worst first."""
    groups = anomalies(result)
    for kind, rules in RULES_OF_HARM.items():
        for group in groups:
            if group.rule in rules:
                yield Harm(
                    kind=kind, rule=group.rule, permitted_by=group.permitted_by, sentence=group.sentence()
                )
    total = result.measured.total
    if unacked := total.failed + total.unknown:
        yield Harm(kind=FAILED, sentence=f"{counted(unacked, 'send')} without an ack")


def has_transactions(plan: Plan) -> bool:
    """Return whether a run can show records of open and aborted transactions."""
    return any(config.transactional_id for config in producer_configs(plan))


def _stated_settings(plan: Plan) -> Iterator[StatedSettings]:
    """Yield for each producer the settings that permit harm without a particular fault."""
    unclean = plan.behaviour_switches().allows_unclean_election(plan.metadata) and any(
        config.unclean_leader_election for config in topic_configs(plan)
    )
    read_committed = all(config.isolation_level == READ_COMMITTED for config in consumer_configs(plan))
    for config in producer_configs(plan):
        settings = producer_promises("", config)
        yield StatedSettings(
            acks=settings.acks,
            idempotence=settings.idempotence,
            max_in_flight=settings.max_in_flight,
            read_committed=read_committed or not config.transactional_id,
            unclean_leader_election=unclean,
        )
