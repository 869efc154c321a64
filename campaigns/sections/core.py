"""The section ``core``: which brokers are healed first."""

from campaigns.core_section import CoreSection
from campaigns.plan import Core
from campaigns.sections.draft import Draft
from campaigns.sections.references import References


def read_core(section: CoreSection | None, draft: Draft, references: References) -> Core | None:
    """Return the section; report brokers that do not exist or stand in the order twice."""
    if section is None:
        return None
    order: dict[int, None] = {}
    for index, broker in enumerate(section.order or ()):
        path = ("core", "order", index)
        if broker in order:
            draft.problem(path, f"broker {broker} stands here twice")
        elif references.broker(path, broker):
            order[broker] = None
    return Core(order=tuple(order), within_us=section.within)
