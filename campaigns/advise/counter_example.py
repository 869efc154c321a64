"""Shrinks runs that refute settings to small campaigns, and writes these to files."""

from collections.abc import Callable
from pathlib import Path

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import reproduce_command
from harrow.campaigns.record.whole_file import whole_file
from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.search.shrink import NothingToShrinkError, Shrinker
from harrow.campaigns.search.shrunk_campaign import shrunk_text
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinking:
    """Where shrunk counter-examples go, and how many runs shrink each."""

    folder: Path
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkRun:
    """A shrunk counter-example: the command that runs it, and the number of faults and records."""

    command: str
    faults: int
    records: int


def write_shrunk(
    plan: Plan,
    seed: int,
    rule: str,
    command: str,
    shrinking: Shrinking,
    *,
    workers: Workers,
    on_run: Callable[[int], None],
) -> ShrunkRun | None:
    """Shrink a run that *command* repeats, and write the result. None if nothing can be left out.

    Raises:
        OSError: The file cannot be written.

    """
    try:
        shrinker = Shrinker(
            plan,
            seed,
            rule=rule,
            runs_max=shrinking.runs,
            on_run=lambda runs, _best: on_run(runs),
            workers=workers,
        )
    except NothingToShrinkError:
        return None
    best = shrinker.run()
    if best is shrinker.original:
        return None
    path = shrinking.folder / f"{rule}-{plan.digest()[:8]}-seed-{seed}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        stream.write(shrunk_text(shrinker, command))
    faults, records = best.size()
    shrunk_command = reproduce_command(str(path), best.seed, None).removesuffix(" --seed 0")
    return ShrunkRun(command=shrunk_command, faults=faults, records=records)
