"""Checks the two laws of chains (`harrow.checks.link`): no gaps, and no superfluous links."""

from collections.abc import Iterator, Sequence
from typing import Any

from harrow.campaigns.record.phrases import because
from harrow.checks.finding import Finding
from harrow.checks.link import ChainFact, Link, fact_values, operand_kinds, unmet
from harrow.cluster_model.events import FieldKind


def assert_lawful(finding: Finding, where: str = "") -> None:
    """Assert that each link follows from an earlier one, and that none is superfluous."""
    gaps = [(gap.link.kind.name, gap.need) for gap in unmet(finding.chain)]
    assert not gaps, f"{where}: {gaps} in {because(finding)}"
    idle = [link.kind.name for link in idle_links(finding.chain)]
    assert not idle, f"{where}: nothing follows from {idle} in {because(finding)}"


def idle_links(chain: Sequence[Link]) -> Iterator[Link]:
    """Yield superfluous links.

    A link is needed if it decides the outcome, if it is about a record or its producer, or if a
    later link follows from it. Conclusions, and links from the history or from harrow itself, are
    never superfluous.
    """
    needed = set(_followed(chain))
    for place, link in enumerate(chain):
        stands_alone = bool(link.kind.needs_nothing_because) and not link.kind.makes
        if not (
            place in needed or link.decides or link.at_us is None or stands_alone or _is_about_record(link)
        ):
            yield link


def _followed(chain: Sequence[Link]) -> Iterator[int]:
    """Yield the places of links that were the last to make true what a later link needs."""
    established: dict[tuple[ChainFact, tuple[Any, ...]], tuple[int, Any]] = {}
    for place, link in enumerate(chain):
        for need in fact_values(link, () if link.kind.is_fault else link.kind.needs):
            source, value = established.get((need.fact, need.subject), (place, None))
            if value == need.value:
                yield source
        for effect in fact_values(link, link.kind.makes):
            established[effect.fact, effect.subject] = place, effect.value


def _is_about_record(link: Link) -> bool:
    kinds = operand_kinds(link.kind.name)
    return any(
        kinds[name] is FieldKind.VALUES or name == "producer_id"
        for name, value in link.operands.items()
        if value is not None
    )
