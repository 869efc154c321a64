"""The section ``found``: the failure that a regression is of."""

from campaigns.found_section import FoundSection
from campaigns.plan import Found
from campaigns.sections.draft import Draft
from campaigns.sections.judged import Judged, rule_names


def read_found(section: FoundSection | None, draft: Draft, judged: Judged) -> Found | None:
    """Return where a campaign's failure comes from, and report a rule that does not exist or is not judged."""
    if section is None:
        return None
    known = rule_names()
    if section.rule not in known:
        draft.unknown(("found", "rule"), "rule", section.rule, known)
    elif section.rule not in judged.rules():
        judged.report_unjudged(draft, ("found", "rule"), section.rule)
    return Found(
        version=section.version,
        rule=section.rule,
        status=section.status,
        seed=section.seed or 0,
        line=draft.line(("found",)),
    )
