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
"""Campaigns of which each seed is another run; the scripts of the others leave little to chance."""


def record(results: Path, numbers: range) -> list[tuple[Path, str]]:
    """Write the runs of these numbers: half of them with new seeds, half of all campaigns and variants in turn."""
    written = []
    for campaign, plan, seed in islice(_runs(), numbers.start, numbers.stop):
        result = run_plan(plan, seed)
        run: dict[str, Any] = run_as_mapping(result, "harrow run")
        folder = write_run(results, result, run, campaign_copy(campaign, plan, seed))
        written.append((folder, result.trace_digest))
    return written


def _runs() -> Any:
    campaigns = {name: load_campaign(resolve(name)[0]) for name in library_names()}
    pairs: list[tuple[Campaign, Plan]] = [(c, plan) for c in campaigns.values() for plan in c.plans]
    for seed in count():
        drawn = campaigns[OPEN[seed % len(OPEN)]]
        yield drawn, drawn.plans[0], 1_000 + seed
        campaign, plan = pairs[seed % len(pairs)]
        yield campaign, plan, seed


def main() -> None:
    """Replay the runs whose folders stand on standard input; print the digest of each."""
    for line in sys.stdin:
        found = replay(read_run(Path(line.rstrip("\n"))))
        assert found.is_same() == (found.recorded.trace_digest == found.result.trace_digest)
        sys.stdout.write(f"{found.result.trace_digest}\n")


if __name__ == "__main__":
    main()
