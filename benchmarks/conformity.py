"""Which campaigns came out on real brokers as on the model: a row a campaign, a column a release.

Run ``python -m benchmarks.conformity FILE...`` with what ``harrow conform ... --format json`` has printed, a file each time; of a
campaign that ran on a release several times the last run counts. The table is that of docs/checked-against-kafka.md.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.record.markdown import table, text

_KAFKA: Final = "kafka:"

Cells = dict[tuple[str, str], str]
"""What came of it, by campaign and release."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in parser.parse_args().files]
    print(conformity_table(documents))


def conformity_table(documents: Iterable[dict[str, Any]]) -> str:
    """Return the table of some documents, in the order of campaigns by name and of releases by number."""
    cells: Cells = {}
    began: dict[tuple[str, str], str] = {}
    for document in documents:
        release = document["target"].removeprefix(_KAFKA)
        for comparison in document["comparisons"]:
            campaign = " ".join(filter(None, (comparison["campaign"], comparison["variant"])))
            newest = max((run["began"] or "" for run in comparison["real"]), default="")
            if newest >= began.get((campaign, release), ""):
                began[campaign, release] = newest
                cells[campaign, release] = _cell(comparison)
    campaigns = sorted({campaign for campaign, _ in cells})
    releases = sorted({release for _, release in cells}, key=_by_number)
    rows = [
        (text(campaign), *(cells.get((campaign, release), "") for release in releases))
        for campaign in campaigns
    ]
    return table(("campaign", *releases), rows)


def _cell(comparison: dict[str, Any]) -> str:
    """Return the status, what brokers came to, and how many runs of the model came to the same; else the reasons."""
    status, reasons = comparison["status"], comparison["reasons"]
    if reasons:
        return f"{status}: {text('; '.join(reasons))}"
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
