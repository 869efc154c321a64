"""The two laws of chains (`harrow.checks.link`), as tests ask for them."""

from collections.abc import Iterator
from typing import Any

from harrow.campaigns.record.phrases import because
from harrow.checks.finding import Finding
from harrow.checks.link import ChainFact, Link, operand_kinds, standing, unmet
from harrow.cluster_model.events import FieldKind


def assert_lawful(finding: Finding, where: str = "") -> None:
    """Assert that each link follows from an earlier one, and that none is there for nothing."""
    gaps = [(gap.link.kind.name, gap.need) for gap in unmet(finding.chain)]
    assert not gaps, f"{where}: {gaps} in {because(finding)}"
    idle = [link.kind.name for link in idle_links(finding.chain)]
    assert not idle, f"{where}: nothing follows from {idle} in {because(finding)}"


def idle_links(chain: tuple[Link, ...]) -> Iterator[Link]:
    """Yield links that a chain could do without.

    A link is needed if it decides, tells of a record or of its producer, or if a later one follows from it. A conclusion, and
    what the history or harrow itself brings in, stands alone.
    """
    needed = set(_followed(chain))
    for place, link in enumerate(chain):
        stands_alone = bool(link.kind.free_because) and not link.kind.makes
        if not (
            place in needed or link.decides or link.at_us is None or stands_alone or _is_about_record(link)
        ):
            yield link


def _followed(chain: tuple[Link, ...]) -> Iterator[int]:
    """Yield the places of links from which a later one follows: they were the last to make what that one needs."""
    made: dict[tuple[ChainFact, tuple[Any, ...]], tuple[int, Any]] = {}
    for place, link in enumerate(chain):
        for need in standing(link, () if link.kind.is_fault else link.kind.needs):
            source, value = made.get((need.fact, need.subject), (place, None))
            if value == need.value:
                yield source
        for each in standing(link, link.kind.makes):
            made[each.fact, each.subject] = place, each.value


def _is_about_record(link: Link) -> bool:
    kinds = operand_kinds(link.kind.name)
    return any(
        kinds[name] is FieldKind.VALUES or name == "producer_id"
        for name, value in link.operands.items()
        if value is not None
    )
