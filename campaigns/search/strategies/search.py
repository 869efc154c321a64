"""Searches, with Hypothesis, for the smallest failing campaign."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.errors import NoSuchExample

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import UNEXPECTED, anomalies, outcome
from harrow.campaigns.run.required_probes import RequiredProbes
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.cluster_model.lazy_dataclass import dataclass, replace

EXAMPLES_MAX: Final = 100
_MISSED: Final = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The result of a search.

    ``examples`` counts the campaigns up to the first failure; all, if none failed. ``shrinks``
    counts the runs that it took to shrink that failure. ``found`` is the smallest failing run.
    """

    examples: int
    shrinks: int
    outcomes: Counter[str]
    required: RequiredProbes
    found: RunResult | None


def search(
    campaigns: st.SearchStrategy[Plan],
    *,
    seed: int = 0,
    examples_max: int = EXAMPLES_MAX,
    base: Plan | None = None,
    on_run: Callable[[int, int], None] = lambda _examples, _shrinks: None,
) -> Search:
    """Run drawn campaigns until one fails, then find the smallest that fails like it.

    A search can be repeated if the same modules are loaded: Hypothesis draws from *seed*, which is
    also the seed of every run, and no search uses the results of another. Hypothesis also tries
    constants that it finds in local modules, so a change of code may lead to other campaigns.
    *base* is the plan from which all campaigns are drawn. *on_run* is called after each run with
    the numbers of examples and shrinks.
    """
    searcher = _Searcher(seed, base, on_run)
    chosen = hypothesis.settings(
        max_examples=examples_max,
        database=None,
        deadline=None,
        derandomize=False,  # The seed decides.
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    try:
        chance = Random(seed)  # noqa: S311 - a search that can be repeated, not a secret
        smallest = run_plan(hypothesis.find(campaigns, searcher.fails, settings=chosen, random=chance), seed)
    except NoSuchExample:
        smallest = None
    return Search(
        examples=searcher.examples,
        shrinks=searcher.shrinks,
        outcomes=searcher.outcomes,
        required=searcher.required,
        found=smallest,
    )


@contextmanager
def without_folder() -> Iterator[None]:
    """Keep Hypothesis from writing into the current folder.

    A search does not use Hypothesis's database. But Hypothesis would also store in the same place
    what it learns about the code.
    """
    with temporary_folder() as folder:
        set_hypothesis_home_dir(str(folder))
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


class _Searcher:
    """Runs campaigns for Hypothesis, which shrinks the first failure."""

    def __init__(self, seed: int, base: Plan | None, on_run: Callable[[int, int], None]) -> None:
        self._seed = seed
        self._base = base
        self._on_run = on_run
        self._failure: str | None = None
        self.examples = 0
        self.shrinks = 0
        self.outcomes: Counter[str] = Counter()
        self.required = RequiredProbes()

    def fails(self, plan: Plan) -> bool:
        """Return whether a campaign fails like the first failure."""
        result = run_plan(plan, self._seed)
        failure = _failure(result)
        if self._failure is not None:
            self.shrinks += 1
        else:
            self.examples += 1
            self.outcomes[outcome(result)] += 1
            self.required.add(result if self._base is None else replace(result, plan=self._base))
            self._failure = failure
        self._on_run(self.examples, self.shrinks)
        return failure is not None and failure == self._failure


def _failure(result: RunResult) -> str | None:
    """Return the first broken rule, by which shrinking can tell this failure from others."""
    if outcome(result) != UNEXPECTED:
        return None
    broken = [anomaly.rule for anomaly in anomalies(result) if anomaly.permitted_by is None]
    return broken[0] if broken else _MISSED
