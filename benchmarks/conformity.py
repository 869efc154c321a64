"""Which campaigns came out on real brokers as on the model: a row a campaign, a column a release.

Run ``python -m benchmarks.conformity FILE...`` with what ``harrow conform ... --format json`` has
printed, a file each time; of a campaign that ran on a release several times the last run counts.
The table is that of docs/evidence/beside-real-brokers.md: reasons that nothing was compared are
long, and the same for many, so they follow it as a list.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.record.markdown import table, text

_KAFKA: Final = "kafka:"
_RELEASE: Final = "kafka="
_AGREED: Final = "agreed"
_NEVER: Final = ""

Cells = dict[tuple[str, str], Mapping[str, Any]]
"""What came of it, by campaign and release: a comparison, with what was set for it."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in parser.parse_args().files]
    print(conformity_table(documents))


def conformity_table(documents: Iterable[dict[str, Any]]) -> str:
    """Return the table of documents, sorted by campaign and release, and the notes below it."""
    cells = cells_of(documents)
    campaigns = sorted({campaign for campaign, _ in cells})
    releases = sorted({release for _, release in cells}, key=_by_number)
    reasons: dict[str, int] = {}
    rows = [
        (
            text(campaign),
            *(
                _cell(cells[campaign, release], reasons) if (campaign, release) in cells else ""
                for release in releases
            ),
        )
        for campaign in campaigns
    ]
    listed = [f"{number}. {text(reason)}" for reason, number in reasons.items()]
    return "\n".join([*_summary(cells), "", table(("campaign", *releases), rows), "", *listed]).rstrip("\n")


def cells_of(documents: Iterable[dict[str, Any]]) -> Cells:
    """Return what came of each campaign on each release when it ran there last."""
    cells: Cells = {}
    for document in documents:
        release = document["target"].removeprefix(_KAFKA)
        given = [each for each in document.get("set", ()) if not each.startswith(_RELEASE)]
        for comparison in document["comparisons"]:
            campaign = " ".join(filter(None, (comparison["campaign"], comparison["variant"])))
            known = cells.get((campaign, release))
            if known is None or _began(comparison) >= _began(known):
                cells[campaign, release] = {**comparison, "set": given}
    return cells


def _began(comparison: Mapping[str, Any]) -> str:
    """Return when the last run of a comparison began; of what was never run, before everything."""
    return max((run["began"] or _NEVER for run in comparison["real"]), default=_NEVER)


def _summary(cells: Cells) -> Iterator[str]:
    statuses = Counter(comparison["status"] for comparison in cells.values())
    told = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    agreed = {campaign for (campaign, _), found in cells.items() if found["status"] == _AGREED}
    whole = {cells[key]["campaign"] for key in cells if key[0] in agreed}
    days = sorted({began[:8] for found in cells.values() if (began := _began(found))})
    yield (
        f"{len(cells)} comparisons: {told}. {counted(len(whole), 'campaign')} agreed on at least one release, with variants {len(agreed)}. "
        f"Began on {', '.join(f'{day[:4]}-{day[4:6]}-{day[6:]}' for day in days) or 'no day'} (UTC)."
    )


def _cell(comparison: Mapping[str, Any], reasons: dict[str, int]) -> str:
    """Return the status, the brokers' outcome, and the number of model runs with the same outcome.

    Without them, return the numbers of the reasons.
    """
    status = comparison["status"]
    if given := comparison["set"]:
        status = f"{status} with {text(', '.join(given))}"
    if comparison["reasons"]:
        numbers = [
            str(reasons.setdefault(reason, len(reasons) + 1))
            for reason in dict.fromkeys(comparison["reasons"])
        ]
        return f"{status} [{', '.join(numbers)}]"
    runs = comparison["real"]
    told = dict.fromkeys(f"{run['verdict']} {run['found']}".strip() for run in runs)
    alike = min(run["alike"] for run in runs)
    return f"{status}: {text(', '.join(told))} ({alike} of {comparison['modelled']})"


def _by_number(release: str) -> tuple[list[int], str]:
    number, _, metadata = release.partition("-")
    # ZooKeeper first: it came first.
    return [int(part) for part in number.split(".")], "" if metadata == "zookeeper" else metadata or "kraft"


if __name__ == "__main__":
    main()
