"""The findings of a recorded run, with a number each: as ``run.json`` has them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.problem import Problem
from campaigns.recorded_run import RUN, RecordError
from campaigns.spelling import printable
from cluster_model.invariants import INVARIANTS

_US_PER_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLink:
    """A link of a finding's chain. ``text`` is without the time; ``at_us`` None where it has no moment."""

    event: str
    text: str
    at_us: int | None
    broker: int | None
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFinding:
    """A finding. ``number`` counts from 1: broken promises first, what clients saw before invariants."""

    number: int
    rule: str
    promise: str
    partition: str
    offset: int | None
    value: str | None
    permitted_by: str | None
    prevented_by: tuple[str, ...]
    chain: tuple[RecordedLink, ...]

    def title(self) -> str:
        """Return what it is about, as in ``lost-write m1, t-0 offset 1``."""
        about = "" if self.value is None else f" {printable(self.value)}"
        where = printable(self.partition) or "the cluster"
        return f"{self.rule}{about}, {where}{'' if self.offset is None else f' offset {self.offset}'}"

    def judged(self) -> str:
        """Return whether a promise was broken, or what permits it."""
        if self.permitted_by is not None:
            return f"permitted by {self.permitted_by}"
        return f"violated, despite {self.promise}" if self.promise else "violated"

    def timed(self) -> Iterator[RecordedLink]:
        """Yield the links that have a moment of their own."""
        return (link for link in self.chain if link.at_us is not None)

    def conclusions(self) -> Iterator[str]:
        """Yield what the other links say."""
        return (link.text for link in self.chain if link.at_us is None)


def read_mapping(folder: Path) -> Mapping[str, Any]:
    """Return what ``run.json`` says, which `campaigns.recorded_run.read_run` has looked at already."""
    mapping: Mapping[str, Any] = json.loads((folder / RUN).read_text(encoding="utf-8"))
    return mapping


def findings_of(run: Mapping[str, Any], folder: Path) -> tuple[RecordedFinding, ...]:
    """Return the findings of a run.

    Raises:
        RecordError: they are not as a run's JSON has them.

    """
    try:
        found = [
            (rule, judged["promise"], finding)
            for rule, judged in run.get("rules", {}).items()
            for finding in judged["findings"]
        ]
        # Sorting is stable, so findings stay in the order of the report.
        found.sort(key=lambda entry: (entry[2].get("permitted_by") is not None, entry[0] in INVARIANTS))
        return tuple(_finding(number, *entry) for number, entry in enumerate(found, 1))
    except (KeyError, TypeError, AttributeError, ValueError):
        problem = Problem(str(folder / RUN), 1, 1, "rules: its findings are not as `harrow run` writes them")
        raise RecordError(problem) from None


def _finding(number: int, rule: str, promise: str, finding: Mapping[str, Any]) -> RecordedFinding:
    value = finding.get("value")
    return RecordedFinding(
        number=number,
        rule=rule,
        promise=promise,
        partition=finding["partition"],
        offset=finding.get("offset"),
        value=None if value is None else str(value),
        permitted_by=finding.get("permitted_by"),
        prevented_by=tuple(finding.get("prevented_by", ())),
        chain=tuple(map(_link, finding["chain"])),
    )


def _link(link: Mapping[str, Any]) -> RecordedLink:
    at_ms, text = link.get("at_ms"), str(link["text"])
    # The first word of a link with a moment is that moment.
    return RecordedLink(
        event=link["event"],
        text=text if at_ms is None else text.partition(" ")[2],
        at_us=None if at_ms is None else round(at_ms * _US_PER_MS),
        broker=link.get("broker"),
        offset=link.get("offset"),
    )
