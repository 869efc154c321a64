"""The section ``expect``: what the campaign expects at the end."""

from campaigns.plan import Expectation
from campaigns.probes import PROBES
from campaigns.schema import ExpectSection
from campaigns.sections.conditions import ConditionReader
from campaigns.sections.draft import Draft
from campaigns.sections.judged import Judged, rule_names
from campaigns.yaml_positions import Path


def read_expectation(
    section: ExpectSection | None, draft: Draft, conditions: ConditionReader, judged: Judged
) -> Expectation:
    """Return what a campaign expects, and report what it cannot."""
    if section is None:
        return Expectation()
    path: Path = ("expect",)
    rules = section.rules or {}
    known = rule_names()
    judged_rules = judged.rules()
    for name in rules:
        if name not in known:
            draft.unknown((*path, "rules", name), "rule", name, known, at_key=True)
        elif name not in judged_rules:
            judged.report_unjudged(draft, (*path, "rules", name), name, at_key=True)
    return Expectation(
        verdict=section.verdict,
        # What an option leaves out, the campaign cannot expect; the rest still counts.
        rules=tuple(sorted(item for item in rules.items() if item[0] in judged_rules)),
        lost=None if section.lost is None else tuple(section.lost),
        duplicated=None if section.duplicated is None else tuple(section.duplicated),
        final=conditions.read(section.final, (*path, "final")),
        probes=tuple(probe for probe in PROBES if probe in (section.probes or ())),
    )
