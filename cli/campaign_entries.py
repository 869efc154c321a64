"""The campaigns that ship, as the catalogue shows them."""

from collections.abc import Iterator

from campaigns.library_index import library_names, resolve
from campaigns.loader import load_campaign
from campaigns.plan import Expectation, Plan
from campaigns.report import variant_name
from cli.catalogue import Entry, Part, split_doc


def campaign_entries(only: str | None = None) -> Iterator[Entry]:
    """Yield an entry for each campaign of the library, or for the one that is called *only* (in lower case)."""
    for name in library_names():
        if only not in (None, name.lower()):
            continue
        path = resolve(name)[0]
        campaign = load_campaign(path)
        summary, about = split_doc(campaign.description)
        variants = ", ".join(variant_name(plan) for plan in campaign.plans)
        yield Entry(
            kind="campaign",
            name=name,
            summary=summary,
            about=about,
            columns=(("variants", variants if len(campaign.plans) > 1 else ""),),
            parts=(
                Part(
                    heading="runs", items=tuple((variant_name(plan), _told(plan)) for plan in campaign.plans)
                ),
                Part(heading="try", items=(("run", f"harrow run {name}"), ("file", str(path)))),
            ),
        )


def _told(plan: Plan) -> str:
    expected = _expectation(plan.expect)
    return f"Kafka {plan.kafka}; {expected}" if expected else f"Kafka {plan.kafka}"


def _expectation(expect: Expectation) -> str:
    parts = [expect.verdict] if expect.verdict else []
    if expect.lost:
        parts.append(f"lost {', '.join(expect.lost)}")
    if expect.duplicated:
        parts.append(f"doubled {', '.join(expect.duplicated)}")
    return f"expects: {'; '.join(parts)}" if parts else ""
