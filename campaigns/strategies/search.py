"""Looks for a campaign that fails, and makes it as small as it gets."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.errors import NoSuchExample

from campaigns.plan import Plan
from campaigns.report import UNEXPECTED, anomalies, outcome
from campaigns.required_probes import RequiredProbes
from campaigns.run_result import RunResult
from campaigns.runner import run_plan

EXAMPLES_MAX: Final = 100
_MISSED: Final = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What came of a search.

    ``examples`` is how many campaigns were run until one failed, or all of them; ``shrinks`` how
    many were run to make that one smaller. ``found`` is the smallest that failed.
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
    given: Plan | None = None,
    told: Callable[[int, int], None] | None = None,
) -> Search:
    """Run drawn campaigns until one does not go as it expects, then look for the smallest like it.

    It is repeatable: Hypothesis draws from *seed*, which is the seed of every run too, and nothing
    is remembered from one search to the next. *given* is the plan that all of them come from;
    *told* is called after each run with the numbers of examples and of shrinks.
    """
    looking = _Looking(seed, given, told)
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
        smallest = hypothesis.find(campaigns, looking.fails, settings=chosen, random=chance)
    except NoSuchExample:
        found = None
    else:
        found = run_plan(smallest, seed)
    return Search(
        examples=looking.examples,
        shrinks=looking.shrinks,
        outcomes=looking.outcomes,
        required=looking.required,
        found=found,
    )


@contextmanager
def without_folder() -> Iterator[None]:
    """Let Hypothesis leave nothing in the folder that somebody happens to be in.

    Beside its database, which a search does without, it keeps what it has learned of the code there.
    """
    with TemporaryDirectory(prefix="harrow-") as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


class _Looking:
    """Runs campaigns for Hypothesis. The first failure says which failure it is that is made smaller."""

    def __init__(self, seed: int, given: Plan | None, told: Callable[[int, int], None] | None) -> None:
        self._seed = seed
        self._given = given
        self._told = told
        self._wanted: str | None = None
        self.examples = 0
        self.shrinks = 0
        self.outcomes: Counter[str] = Counter()
        self.required = RequiredProbes()

    def fails(self, plan: Plan) -> bool:
        """Return whether a campaign fails as the first that failed did."""
        result = run_plan(plan, self._seed)
        how = _how_it_failed(result)
        if self._wanted is not None:
            self.shrinks += 1
        else:
            self.examples += 1
            self.outcomes[outcome(result)] += 1
            self.required.add(result if self._given is None else replace(result, plan=self._given))
            self._wanted = how
        if self._told is not None:
            self._told(self.examples, self.shrinks)
        return how is not None and how == self._wanted


def _how_it_failed(result: RunResult) -> str | None:
    """Return the rule that was broken first, so that shrinking does not slip to another failure."""
    if outcome(result) != UNEXPECTED:
        return None
    broken = [anomaly.rule for anomaly in anomalies(result) if anomaly.permitted_by is None]
    return broken[0] if broken else _MISSED
