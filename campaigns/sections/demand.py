"""The key ``demand``: what a campaign asks for beyond what Kafka promises."""

from collections.abc import Sequence

from campaigns.schema import ALL_RULES
from campaigns.sections.draft import Draft
from campaigns.sections.judged import Judged, rule_names


def read_demand(names: Sequence[str] | None, draft: Draft, rules: Judged) -> tuple[str, ...]:
    """Return the rules that a campaign demands, sorted; report those that do not exist or are not judged."""
    if not names:
        return ()
    known, judged = rule_names(), rules.rules()
    for index, name in enumerate(names):
        if name == ALL_RULES and len(names) > 1:
            draft.problem(("demand", index), f"demand: `{name}` stands alone, without other names")
        elif name not in (*known, ALL_RULES):
            draft.unknown(("demand", index), "rule", name, known)
        elif name not in (*judged, ALL_RULES):
            rules.report_unjudged(draft, ("demand", index), name)
    return tuple(sorted(judged if ALL_RULES in names else set(names)))
