"""The fixture `harrow`, which runs campaigns from Python."""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
import yaml

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.record.report import AS_EXPECTED, OTHERWISE, UNDECIDED, outcome
from harrow.campaigns.run.run_result import RunResult
from harrow.cli.commands.run_tally import FinishedRun
from harrow.pytest_harrow.campaign_source import Source, UnknownVariant, load_source
from harrow.pytest_harrow.options import Options, OptionsError, Seeds, Settings, as_overrides, as_seeds
from harrow.pytest_harrow.run_stories import in_a_line, stories, story

_RUNS_REPORTED: Final = 3
_NAME_LENGTH_MAX: Final = 60

AnyCampaign = str | Path | Mapping[str, Any] | Source
"""A file (in the test's folder or the root directory), the name of a campaign that ships with
harrow, YAML text, a mapping with the contents of such a text, or a result of `Harrow.load`."""


class Harrow:
    """Runs campaigns. A mistake in a campaign fails the test with a message, not a traceback."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._here = request.config.invocation_params.dir
        self._loaded: dict[tuple[Path, tuple[str, ...]], Source] = {}
        self._written: dict[str, Path] = {}
        self._sources: list[Source] = []
        self._is_reported = False
        self._last: deque[tuple[Source, RunResult]] = deque(maxlen=_RUNS_REPORTED)
        try:
            options = Options.of(request.config)
            self._options = options.with_markers(request.node.iter_markers("harrow"))
        except OptionsError as error:
            _fail(error)

    def load(self, campaign: AnyCampaign, *, set: Settings | None = None) -> Source:
        """Load a campaign, with settings or fields changed as by ``--set key=value``."""
        __tracebackhide__ = True
        try:
            return self._load(campaign, as_overrides(set))
        except CampaignError as error:
            _fail(error)

    def run(
        self,
        campaign: AnyCampaign,
        *,
        seed: int | None = None,
        set: Settings | None = None,
        variant: str | None = None,
    ) -> RunResult:
        """Run a campaign once and return the result, whatever the verdict is.

        Without a variant, the base runs. Without a seed, the first seed of the test's options is
        used.
        """
        __tracebackhide__ = True
        source = self.load(campaign, set=set)
        try:
            plan = source.plan(variant)
            seed = self._options.seeds[0] if seed is None else as_seeds(seed, "seed")[0]
        except (UnknownVariant, OptionsError) as error:
            _fail(error)
        return self._run(source, plan, seed)

    def expect(
        self,
        campaign: AnyCampaign,
        *,
        seeds: Seeds | None = None,
        set: Settings | None = None,
        variants: Iterable[str] | None = None,
    ) -> None:
        """Run a campaign with each variant and seed. Fail the test if a run is not as expected.

        A campaign that states no expectations expects that no promise is broken.
        """
        __tracebackhide__ = True
        source = self.load(campaign, set=set)
        try:
            plans = source.plans if variants is None else [source.plan(variant) for variant in variants]
            chosen = self._options.seeds if seeds is None else as_seeds(seeds)
        except (UnknownVariant, OptionsError) as error:
            _fail(error)
        unexpected: list[FinishedRun] = []
        for plan in plans:
            for seed in chosen:
                result = self._run(source, plan, seed)
                if outcome(result) not in (AS_EXPECTED, OTHERWISE):
                    unexpected.append(source.finished(result, self._here))
        if not plans:
            _fail(f"{source.name}: no variant was asked for, so nothing ran")
        if unexpected:
            self._judge(unexpected, len(plans) * len(chosen))

    def assert_expected(self, result: RunResult) -> None:
        """Fail the test if a run is not as its campaign expects."""
        __tracebackhide__ = True
        source = self._source_of(result)
        if outcome(result) not in (AS_EXPECTED, OTHERWISE):
            self._judge([source.finished(result, self._here)], 1)

    def unreported_stories(self) -> str:
        """Return the stories of the last runs if the test failed without reporting them."""
        if self._is_reported:
            return ""
        return "\n".join(story(source.finished(result, self._here)) for source, result in self._last)

    def _run(self, source: Source, plan: Plan, seed: int) -> RunResult:
        result = source.run(plan, seed)
        self._last.append((source, result))
        return result

    def _judge(self, unexpected: Sequence[FinishedRun], finished: int) -> None:
        __tracebackhide__ = True
        if self._options.skips_inconclusive and all(run.outcome == UNDECIDED for run in unexpected):
            first = unexpected[0].result
            pytest.skip(f"{first.plan.campaign}, seed {first.seed}: inconclusive: {in_a_line(first)}")
        self._is_reported = True
        _fail(stories(unexpected, finished))

    def _source_of(self, result: RunResult) -> Source:
        __tracebackhide__ = True
        sources = (s for s in self._sources if any(plan is result.plan for plan in s.plans))
        source = next(sources, None)
        if source is None:
            _fail("this result is not of a run of the fixture `harrow` of this test")
        return source

    def _load(self, campaign: AnyCampaign, overrides: tuple[str, ...]) -> Source:
        if isinstance(campaign, Source):
            if not overrides:
                self._sources.append(campaign)
                return campaign
            overrides = (*campaign.overrides, *overrides)
            file_and_name: tuple[Path, str | None] = (campaign.campaign.path, campaign.argument)
        else:
            overrides = (*self._options.overrides, *overrides)
            file_and_name = self._find(campaign)
        path, argument = file_and_name
        source = self._loaded.get((path, overrides))
        if source is None:
            source = load_source(path, self._here, overrides, argument)
            self._loaded[path, overrides] = source
            self._sources.append(source)
        return source

    def _find(self, campaign: Any) -> tuple[Path, str | None]:
        """Return a campaign's file, and a name that `harrow run` accepts instead of the file."""
        if isinstance(campaign, Mapping):
            campaign = yaml.safe_dump(dict(campaign), sort_keys=False, allow_unicode=True)
        if isinstance(campaign, str) and "\n" in campaign:
            return self._write(campaign), None
        if not isinstance(campaign, str | Path):
            kind = type(campaign).__name__
            message = f"a campaign is a file, a name of the library, YAML text or a mapping, not {kind}"
            raise CampaignError([Problem("harrow", 0, 0, message)])
        folders = dict.fromkeys((self._request.path.parent, self._request.config.rootpath))
        for folder in folders:
            path = folder / campaign
            if path.is_file():
                return path, None
        try:
            paths = resolve(str(campaign))
        except CampaignError as error:
            raise CampaignError(_not_found(problem, folders) for problem in error.problems) from None
        if len(paths) > 1 or Path(campaign).is_dir():
            raise CampaignError([Problem(str(campaign), 0, 0, "a folder; name one campaign in it")])
        return paths[0], str(campaign)

    def _write(self, text: str) -> Path:
        """Write a campaign's text to a file, which the command line can run too, and return it."""
        if text not in self._written:
            folder: Path = self._request.getfixturevalue("tmp_path_factory").mktemp("harrow")
            name = re.sub(r"[^\w.-]+", "-", self._request.node.name)[:_NAME_LENGTH_MAX]
            self._written[text] = folder / f"{name}.yaml"
            self._written[text].write_text(text, encoding="utf-8")
        return self._written[text]


def _not_found(problem: Problem, folders: Iterable[Path]) -> Problem:
    if not Path(problem.file).suffix:
        return problem
    places = " and ".join(map(str, folders))
    return replace(problem, message=f"{problem.message} (looked for in {places})")


def _fail(reason: object) -> NoReturn:
    __tracebackhide__ = True
    raise pytest.fail.Exception(str(reason), pytrace=False) from None
