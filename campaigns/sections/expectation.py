"""The section ``expect``: what the campaign expects at the end."""

from campaigns.plan import Expectation
from campaigns.schema import ExpectSection
from campaigns.sections.conditions import ConditionReader
from campaigns.sections.draft import Draft
from campaigns.yaml_positions import Path


def read_expectation(section: ExpectSection | None, draft: Draft, conditions: ConditionReader) -> Expectation:
    """Return what a campaign expects, and report what it cannot."""
    if section is None:
        return Expectation()
    path: Path = ("expect",)
    rules = section.rules or {}
    known = _rule_names()
    for name in rules:
        if name not in known:
            draft.unknown((*path, "rules", name), "rule", name, known, at_key=True)
    return Expectation(
        verdict=section.verdict,
        rules=tuple(sorted(rules.items())),
        lost=None if section.lost is None else tuple(section.lost),
        duplicated=None if section.duplicated is None else tuple(section.duplicated),
        final=conditions.read(section.final, (*path, "final")),
    )


def _rule_names() -> frozenset[str]:
    from checks.catalogue import RULES  # noqa: PLC0415  # the rules are not needed to read other campaigns

    return frozenset(RULES)
