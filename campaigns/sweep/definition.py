"""The definition of a sweep: campaigns, a grid of settings, and seeds."""

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.language.loader import Campaign, load_text
from harrow.campaigns.language.plan_reach import reach_of_all
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import quoted
from harrow.campaigns.probes.probes import in_reach
from harrow.campaigns.record.report import reproduce_command
from harrow.campaigns.sweep.cell import Cell, cell_of
from harrow.campaigns.sweep.row import SCHEMA_VERSION
from harrow.campaigns.version import identity, short_model_digest
from harrow.cluster_model.lazy_dataclass import dataclass, replace

CELLS_MAX: Final = 10_000
"""The default limit of combinations in a grid. To load a campaign for one takes 2 to 20 ms."""


class VaryError(ValueError):
    """A ``--vary`` option is malformed, or the grid is impossible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vary:
    """One axis of the grid: a key, as ``--set`` takes it, and its values."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSource:
    """The text of a campaign, with the argument and overrides that reproduce it."""

    campaign: str
    argument: str
    text: str
    overrides: tuple[str, ...] = ()
    cluster_files: dict[str, str] = field(default_factory=dict, compare=False)
    """The texts of the cluster files that the campaign, the overrides and the grid name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedCells:
    """Settings that a campaign cannot combine, and the reason. Usually, Kafka rejects them."""

    campaign: str
    settings: tuple[tuple[str, str], ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A sweep: its cells, grouped by campaign, and the seeds for each of them."""

    sources: tuple[SweepSource, ...]
    cells: tuple[Cell, ...]
    seeds: range
    skipped: tuple[SkippedCells, ...] = ()
    notes: tuple[Problem, ...] = field(default=(), compare=False)
    """Notes on values of the grid that have no effect, and on variants that a value excludes. There
    is one note for each place in a file."""

    def name(self) -> str:
        """Return the sweep's name. With the same model, it is the same on every machine."""
        text = json.dumps([(cell.campaign, cell.name, cell.digest) for cell in self.cells])
        digest = hashlib.sha256(f"{text}{self.seeds.start}..{self.seeds.stop}".encode()).hexdigest()
        return f"sweep-{digest[:8]}-{short_model_digest()}"

    def runs(self) -> int:
        return len(self.cells) * len(self.seeds)

    def probes(self) -> tuple[str, ...]:
        """Return the probes that runs of any cell can reach."""
        return in_reach(reach_of_all(cell.plan for cell in self.cells))

    def source_of(self, campaign: str) -> SweepSource:
        return next(source for source in self.sources if source.campaign == campaign)

    def reproduce(self, cell: Cell, seed: int) -> str:
        """Return the command that repeats one run."""
        source = self.source_of(cell.campaign)
        return reproduce_command(source.argument, seed, cell.plan.variant, overrides_of(source, cell))

    def as_mapping(self) -> dict[str, Any]:
        """Return the definition as written to ``sweep.json``."""
        return {
            "schema": SCHEMA_VERSION,
            **identity(),
            "seeds": [self.seeds.start, self.seeds.stop],
            "runs": self.runs(),
            "campaigns": [
                {
                    "campaign": s.campaign,
                    "argument": s.argument,
                    "set": list(s.overrides),
                    **({"cluster_files": s.cluster_files} if s.cluster_files else {}),
                }
                for s in self.sources
            ],
            "cells": [
                {
                    "campaign": cell.campaign,
                    "cell": cell.name,
                    "variant": cell.variant,
                    "settings": dict(cell.settings),
                    "plan_digest": cell.digest,
                    "probes": list(cell.plan.expect.probes),
                }
                for cell in self.cells
            ],
            "skipped": [
                {"campaign": skipped.campaign, "settings": dict(skipped.settings), "reason": skipped.reason}
                for skipped in self.skipped
            ],
        }


def overrides_of(source: SweepSource, cell: Cell) -> tuple[str, ...]:
    """Return all ``--set`` options of a cell."""
    return (*source.overrides, *(f"{key}={value}" for key, value in cell.settings))


def parse_vary(text: str) -> Vary:
    """Parse ``key=v1,v2``. Commas within brackets and quotes do not separate values.

    Raises:
        VaryError: The text does not have this form, or repeats a value.

    """
    key, equals, listed = text.partition("=")
    values = tuple(value.strip() for value in _split_at_commas(listed))
    if not equals or not key.strip() or not all(values):
        raise VaryError(f"--vary: {quoted(text)} is not of the form key=value,value, such as acks=1,all")
    repeated = next((value for value in values if values.count(value) > 1), None)
    if repeated is not None:
        raise VaryError(f"{quoted(text)}: {quoted(repeated)} is listed twice")
    return Vary(key=key.strip(), values=values)


def _split_at_commas(text: str) -> list[str]:
    parts = [""]
    depth = 0
    quote = ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            depth += (char in "[{") - (char in "]}")
        if char == "," and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def define(
    campaigns: Sequence[tuple[Campaign, str]],
    seeds: range,
    *,
    overrides: Sequence[str] = (),
    varies: Sequence[Vary] = (),
    variants: Sequence[str] = (),
    cells_max: int = CELLS_MAX,
    check: Callable[[int, int], None] = lambda *_: None,
) -> Definition:
    """Return the sweep of some campaigns, each given with the argument that names it.

    *overrides* apply to all campaigns. *variants* selects variants, all if empty. Cells whose
    values do not fit together are skipped. *check* is called with the number of combinations loaded
    so far and with their total. If it raises an error, loading ends.

    Raises:
        CampaignError: A value of the grid fits no cell, or two campaigns have the same name.
        VaryError: The grid has more than *cells_max* combinations, which is checked before any is
            loaded, or two of its cells have the same campaign and name.

    """
    combinations = len(campaigns) * math.prod(len(vary.values) for vary in varies)
    if varies and combinations > cells_max:
        raise VaryError(
            f"the grid has {combinations} combinations of values, more than {cells_max}: vary fewer values, or raise --max-cells"
        )
    numbers = itertools.count()

    def check_next() -> None:
        check(next(numbers), combinations)

    sources: list[SweepSource] = []
    cells: list[Cell] = []
    problems: list[Problem] = []
    refused: dict[SkippedCells, CampaignError] = {}
    notes: dict[tuple[str, int, int], Problem] = {}
    for campaign, argument in campaigns:
        # Each campaign has a folder with its name, and some file systems ignore case.
        same = [s.campaign for s in sources if s.campaign.casefold() == campaign.name.casefold()]
        if same:
            message = f"another campaign of this sweep is also named {quoted(same[0])}"
            problems.append(Problem(str(campaign.path), 0, 0, message))
            continue
        source = SweepSource(
            campaign=campaign.name, argument=argument, text=campaign.text, overrides=tuple(overrides)
        )
        sources.append(source)
        cells += _cells(source, campaign.path, varies, frozenset(variants), refused, notes, check_next)
    fitting = {setting for cell in cells for setting in cell.settings}
    for skipped, error in refused.items():
        # A value that fits nowhere is a mistake. Without a grid, nothing could fit.
        if not fitting.issuperset(skipped.settings) or not skipped.settings:
            problems += error.problems
    if problems:
        raise CampaignError(dict.fromkeys(problems))
    return Definition(
        sources=tuple(sources),
        cells=tuple(cells),
        seeds=seeds,
        skipped=tuple(refused),
        notes=tuple(notes.values()),
    )


def _cells(
    source: SweepSource,
    path: Path,
    varies: Sequence[Vary],
    variants: frozenset[str],
    refused: dict[SkippedCells, CampaignError],
    notes: dict[tuple[str, int, int], Problem],
    check_next: Callable[[], None],
) -> list[Cell]:
    """Return the cells of a campaign, and collect the combinations that do not fit in *refused*.

    *notes* collects the notes about the others, one for each place in a file.
    """
    cells: list[Cell] = []
    for values in itertools.product(*(vary.values for vary in varies)):
        check_next()
        settings = tuple((vary.key, value) for vary, value in zip(varies, values, strict=True))
        try:
            campaign = _load_cell(source, str(path), settings, variants)
        except CampaignError as error:
            reason = "; ".join(dict.fromkeys(problem.message for problem in error.problems))
            skipped = SkippedCells(campaign=source.campaign, settings=settings, reason=reason)
            refused[skipped] = _of_grid(error, settings)
            continue
        for note in campaign.notes:
            notes.setdefault((note.file, note.line, note.column), note)
        loaded = [cell_of(plan, settings) for plan in campaign.plans]
        cells += [cell for cell in loaded if not variants or cell.variant in variants]
        if any(cell.campaign != source.campaign for cell in loaded):
            raise VaryError("--vary name: the cells of a grid share a campaign, so its name cannot vary")
    ((name, times),) = Counter(cell.name for cell in cells).most_common(1) or [("", 0)]
    if times > 1:
        raise VaryError(f"two cells of {source.campaign} would be named {quoted(name)}: rename a variant")
    return cells


def _of_grid(error: CampaignError, settings: Iterable[tuple[str, str]]) -> CampaignError:
    """Return an error that names the option with which a user wrote the *settings*."""
    typed = tuple(f"{key}={value}:" for key, value in settings)
    return CampaignError(
        replace(problem, file="--vary")
        if problem.file == "--set" and problem.message.startswith(typed)
        else problem
        for problem in error.problems
    )


def load_stored_cell(
    source: SweepSource, path: str, settings: Iterable[tuple[str, str]], variants: Collection[str] = ()
) -> Campaign:
    """Return a stored campaign with the options of its sweep and with settings of the grid.

    Raises:
        CampaignError: The settings do not fit.

    """
    return _load_cell(source, path, settings, variants, is_stored=True)


def _load_cell(
    source: SweepSource,
    path: str,
    settings: Iterable[tuple[str, str]],
    variants: Collection[str],
    *,
    is_stored: bool = False,
) -> Campaign:
    options = [*source.overrides, *(f"{key}={value}" for key, value in settings)]
    stored = source.cluster_files if is_stored else None
    campaign = load_text(source.text, path, options, variants, cluster_files=stored)
    source.cluster_files.update(campaign.cluster_files)
    return campaign
