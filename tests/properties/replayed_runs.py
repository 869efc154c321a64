"""Runs of many kinds, recorded in one process and replayed in others."""

import sys
from itertools import count, islice
from pathlib import Path
from typing import Any

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import Campaign, load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.campaign_copy import campaign_copy
from harrow.campaigns.record.recorded_run import read_run
from harrow.campaigns.record.replay import replay
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.runner import run_plan

OPEN = ("swarm", "standard")
"""Campaigns with a different run for each seed.

The scripts of the others leave little to chance.
"""


def record(results: Path, numbers: range) -> list[tuple[Path, str]]:
    """Write the runs with these numbers.

    Every second run has a new seed of an open campaign. The others take all campaigns in turn.
    """
    runs = []
    for campaign, plan, seed in islice(_runs(), numbers.start, numbers.stop):
        result = run_plan(plan, seed)
        run: dict[str, Any] = run_as_mapping(result, "harrow run")
        folder = write_run(results, result, run, campaign_copy(campaign, plan, seed))
        runs.append((folder, result.trace_digest))
    return runs


def _runs() -> Any:
    campaigns = {name: load_campaign(resolve(name)[0]) for name in library_names()}
    pairs: list[tuple[Campaign, Plan]] = [(c, plan) for c in campaigns.values() for plan in c.plans]
    for seed in count():
        open_campaign = campaigns[OPEN[seed % len(OPEN)]]
        yield open_campaign, open_campaign.plans[0], 1_000 + seed
        campaign, plan = pairs[seed % len(pairs)]
        yield campaign, plan, seed


def main() -> None:
    """Replay the runs in the folders on standard input, and print their digests."""
    for line in sys.stdin:
        comparison = replay(read_run(Path(line.rstrip("\n"))))
        assert comparison.is_same() == (comparison.recorded.trace_digest == comparison.result.trace_digest)
        sys.stdout.write(f"{comparison.result.trace_digest}\n")


if __name__ == "__main__":
    main()
