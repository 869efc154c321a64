"""Prints a table of comparisons with real brokers: campaigns as rows, releases as columns.

Run ``python -m benchmarks.conformity FILE...`` with outputs of ``harrow conform --format json``.
If a campaign ran on a release several times, the last run counts. Reasons why nothing was compared
are long, and many campaigns share them, so they are listed below the table. The result is in
docs/evidence/compared-with-real-brokers.md.
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
"""Comparisons by campaign and release, with the options that were set for them."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in parser.parse_args().files]
    print(conformity_table(documents))


def conformity_table(documents: Iterable[dict[str, Any]]) -> str:
    """Return a summary, the table sorted by campaign and release, and the reasons."""
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
    """Return the last comparison of each campaign on each release."""
    cells: Cells = {}
    for document in documents:
        release = document["target"].removeprefix(_KAFKA)
        options = [each for each in document.get("set", ()) if not each.startswith(_RELEASE)]
        for comparison in document["comparisons"]:
            campaign = " ".join(filter(None, (comparison["campaign"], comparison["variant"])))
            known = cells.get((campaign, release))
            if known is None or _began(comparison) >= _began(known):
                cells[campaign, release] = {**comparison, "set": options}
    return cells


def _began(comparison: Mapping[str, Any]) -> str:
    """Return when the last run of a comparison began; a text before all others if none did."""
    return max((run["began"] or _NEVER for run in comparison["real"]), default=_NEVER)


def _summary(cells: Cells) -> Iterator[str]:
    statuses = Counter(comparison["status"] for comparison in cells.values())
    counts = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    agreed = {campaign for (campaign, _), found in cells.items() if found["status"] == _AGREED}
    campaigns_agreed = {cells[key]["campaign"] for key in cells if key[0] in agreed}
    days = sorted({began[:8] for found in cells.values() if (began := _began(found))})
    yield (
        f"{len(cells)} comparisons: {counts}. {counted(len(campaigns_agreed), 'campaign')} agreed on at least one release, with variants {len(agreed)}. "
        f"Began on {', '.join(f'{day[:4]}-{day[4:6]}-{day[6:]}' for day in days) or 'no day'} (UTC)."
    )


def _cell(comparison: Mapping[str, Any], reasons: dict[str, int]) -> str:
    """Return the outcome, with the status unless it is agreed, or the numbers of the reasons.

    If only some runs of the model had the brokers' outcome, the cell says how many.
    """
    status = comparison["status"]
    options = f"with {text(', '.join(set_options))}" if (set_options := comparison["set"]) else ""
    if comparison["reasons"]:
        numbers = [
            str(reasons.setdefault(reason, len(reasons) + 1))
            for reason in dict.fromkeys(comparison["reasons"])
        ]
        return " ".join(filter(None, (status, options, f"[{', '.join(numbers)}]")))
    runs = comparison["real"]
    outcome = text(", ".join(dict.fromkeys(map(_outcome, runs))))
    alike, modelled = min(run["alike"] for run in runs), comparison["modelled"]
    share = "" if alike == modelled else f" ({alike} of {modelled})"
    before = " ".join(filter(None, ("" if status == _AGREED else status, options)))
    return f"{before}: {outcome}{share}" if before else f"{outcome}{share}"


def _outcome(run: Mapping[str, Any]) -> str:
    """Return a run's findings, with its verdict unless they say that they are permitted."""
    if not run["found"]:
        return str(run["verdict"])
    return str(run["found"]) if "permitted by" in run["found"] else f"{run['verdict']}: {run['found']}"


def _by_number(release: str) -> tuple[list[int], str]:
    number, _, metadata = release.partition("-")
    # ZooKeeper first, because it is older.
    return [int(part) for part in number.split(".")], "" if metadata == "zookeeper" else metadata or "kraft"


if __name__ == "__main__":
    main()
