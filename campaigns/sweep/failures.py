"""Writes ``failures/<signature>/``: for each kind of failure, a campaign that reproduces it."""

from collections.abc import Callable, Iterable, Iterator

from harrow.campaigns.record.campaign_copy import campaign_copy
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.search.shrink import NothingToShrinkError, Shrinker
from harrow.campaigns.search.shrunk_campaign import SHRUNK_BY, prevention_comments, shrunk_text
from harrow.campaigns.search.signature import signatures
from harrow.campaigns.storage.location import Location
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.definition import Definition, load_stored_cell, overrides_of
from harrow.campaigns.sweep.row import ERROR, EXPECTATION
from harrow.campaigns.sweep.sweep_folder import FAILURES
from harrow.campaigns.sweep.sweep_report import Example, FailureGroup
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFailure:
    """The file of a failure: the shrunk campaign if ``shrunk``, otherwise the original run's."""

    group: FailureGroup
    path: Location
    shrunk: bool


def write_failures(
    folder: Location,
    definition: Definition,
    groups: Iterable[FailureGroup],
    *,
    workers: Workers | None = None,
    shrink_s: float | None = None,
    on_shrink: Callable[[FailureGroup, int], None] = lambda _group, _runs: None,
) -> Iterator[WrittenFailure]:
    """Write a file for each kind of failure, and yield each when it is done.

    With *shrink_s*, the shortest run of each kind is shrunk, for at most *shrink_s* seconds, and
    the result is written. *on_shrink* is called with the number of runs that the search has made.
    """
    workers = workers or Workers()
    for group, path in _files(folder, groups):
        text = None
        if shrink_s is not None and group.rule != ERROR:
            text = _shrunk(definition, group, workers, shrink_s, on_shrink)
        shrunk = text is not None
        if text is None and _is_shrunk(path):
            # An earlier search, which may have had more time, shrank this failure. Its file stays.
            yield WrittenFailure(group=group, path=path, shrunk=True)
            continue
        path.write_text(_original_text(definition, group, workers) if text is None else text)
        yield WrittenFailure(group=group, path=path, shrunk=shrunk)


def known_failures(folder: Location, groups: Iterable[FailureGroup]) -> Iterator[WrittenFailure]:
    """Yield failure files that were written before, without running anything."""
    for group, path in _files(folder, groups):
        if path.exists():
            yield WrittenFailure(group=group, path=path, shrunk=_is_shrunk(path))


def _files(folder: Location, groups: Iterable[FailureGroup]) -> Iterator[tuple[FailureGroup, Location]]:
    """Yield the path for each kind of failure. Several campaigns may have failures of one kind."""
    taken: set[str] = set()
    for group in groups:
        name = f"{group.campaign}.yaml" if group.signature in taken else "campaign.yaml"
        taken.add(group.signature)
        yield group, folder / FAILURES / group.signature / name


def _is_shrunk(path: Location) -> bool:
    try:
        return f"# {SHRUNK_BY}" in path.read_text()
    except (OSError, ValueError):
        return False


def _original_text(definition: Definition, group: FailureGroup, workers: Workers) -> str:
    example = group.earliest
    cell = _cell(definition, group.campaign, example)
    source = definition.source_of(group.campaign)
    campaign = load_stored_cell(source, f"{source.campaign}.yaml", cell.settings, (cell.variant,))
    notes: list[str] = []
    if group.rule not in (ERROR, EXPECTATION):
        result = run_plan(cell.plan, example.seed)
        same = [signature for signature in signatures(result) if signature.rule == group.rule]
        notes = prevention_comments(result, same[0], workers) if same else []
    return campaign_copy(campaign, cell.plan, example.seed, overrides_of(source, cell), notes)


def _shrunk(
    definition: Definition,
    group: FailureGroup,
    workers: Workers,
    time_max_s: float,
    on_shrink: Callable[[FailureGroup, int], None],
) -> str | None:
    example = group.shortest
    plan = _cell(definition, group.campaign, example).plan
    try:
        shrinker = Shrinker(
            plan,
            example.seed,
            # Of missed expectations, only bounds can be shrunk.
            names=() if group.rule == EXPECTATION else (group.rule,),
            time_max_s=time_max_s,
            on_run=lambda runs, _best: on_shrink(group, runs),
            workers=workers,
        )
        shrinker.run()
    except NothingToShrinkError:
        return None
    return shrunk_text(shrinker, example.reproduce)


def _cell(definition: Definition, campaign: str, example: Example) -> Cell:
    return next(cell for cell in definition.cells if cell.campaign == campaign and cell.name == example.cell)
