"""Shrinks runs that refute settings to small campaigns, and writes these to files."""

from collections.abc import Callable, Sequence
from pathlib import Path

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import reproduce_command
from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.search.shrink import NothingToShrinkError, Shrinker
from harrow.campaigns.search.shrunk_campaign import shrunk_text
from harrow.campaigns.storage.whole_file import whole_file
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinking:
    """Where shrunk counter-examples go, how many runs shrink each, and what executes these.

    ``on_unwritable`` is called if a file cannot be written. The advice is valid without it.
    """

    folder: Path
    runs: int
    workers: Workers
    on_unwritable: Callable[[OSError], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkRun:
    """A shrunk counter-example: the command that runs it, and the number of faults and records."""

    command: str
    faults: int
    records: int


def write_shrunk(
    plan: Plan,
    seed: int,
    names: Sequence[str],
    command: str,
    shrinking: Shrinking,
    *,
    on_run: Callable[[], None],
) -> ShrunkRun | None:
    """Shrink a run that *command* repeats, and write the result.

    The result fails like the run: in one of the failures with these *names*.

    Return None if nothing can be left out, or if the file cannot be written.
    """
    try:
        shrinker = Shrinker(
            plan,
            seed,
            names=names,
            runs_max=shrinking.runs,
            on_run=lambda _runs, _best: on_run(),
            workers=shrinking.workers,
        )
    except NothingToShrinkError:
        return None
    finally:
        on_run()
    best = shrinker.run()
    if best is shrinker.original:
        return None
    path = shrinking.folder / f"{shrinker.failure.name}-{plan.digest()[:8]}-seed-{seed}.yaml"
    text = shrunk_text(shrinker, command)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as stream:
            stream.write(text)
    except OSError as error:
        shrinking.on_unwritable(error)
        return None
    faults, records = best.size()
    # The seed of a campaign is 0 unless it says otherwise.
    shrunk_command = reproduce_command(str(path), best.seed or None, None)
    return ShrunkRun(command=shrunk_command, faults=faults, records=records)
