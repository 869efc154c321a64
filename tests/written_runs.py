"""Writes runs as `harrow run` does, for tests that read them."""

from pathlib import Path

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.record.report import BASE, run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.runner import run_plan


def written_run(results: Path, campaign: str | Path, variant: str | None = None, seed: int = 0) -> Path:
    """Run a campaign of the library, or a file, and return the folder of the run."""
    (file,) = resolve(str(campaign))
    plan_variant = None if variant == BASE else variant
    (plan,) = [plan for plan in load_campaign(file).plans if plan.variant == plan_variant]
    result = proven(run_plan(plan, seed))
    mapping = run_as_mapping(result, f"harrow run {campaign} --seed {seed}")
    return write_run(results, result, mapping, Path(file).read_text(encoding="utf-8"))
