"""The section ``expect``: what the campaign expects at the end."""

from collections.abc import Collection

from campaigns.plan import Expectation
from campaigns.probes import PROBES
from campaigns.schema import ExpectSection
from campaigns.sections.conditions import ConditionReader
from campaigns.sections.draft import Draft
from campaigns.yaml_positions import Path
from cluster_model.invariants import INVARIANTS


def read_expectation(
    section: ExpectSection | None, draft: Draft, conditions: ConditionReader, invariants: tuple[str, ...]
) -> Expectation:
    """Return what a campaign expects, and report what it cannot."""
    if section is None:
        return Expectation()
    path: Path = ("expect",)
    rules = section.rules or {}
    known = rule_names()
    judged = rule_names(invariants)
    for name in rules:
        if name not in known:
            draft.unknown((*path, "rules", name), "rule", name, known, at_key=True)
        elif name not in judged and not draft.is_from_option(("invariants",)):
            message = f"{name} is not judged, for `invariants` leaves it out"
            draft.problem((*path, "rules", name), message, at_key=True)
    return Expectation(
        verdict=section.verdict,
        # What an option leaves out, the campaign cannot expect; the rest still counts.
        rules=tuple(sorted(item for item in rules.items() if item[0] in judged)),
        lost=None if section.lost is None else tuple(section.lost),
        duplicated=None if section.duplicated is None else tuple(section.duplicated),
        final=conditions.read(section.final, (*path, "final")),
        probes=tuple(probe for probe in PROBES if probe in (section.probes or ())),
    )


def rule_names(invariants: Collection[str] = tuple(INVARIANTS)) -> frozenset[str]:
    """Return the rules that are judged when these invariants are watched."""
    from checks.catalogue import rules_for  # noqa: PLC0415  # the rules are not needed to read other campaigns

    return frozenset(rules_for(invariants))
