"""Turns one run of a campaign into a test."""

from typing import Any

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.report import AS_EXPECTED, OTHERWISE, UNDECIDED, outcome
from harrow.pytest_harrow.campaign_source import Source
from harrow.pytest_harrow.run_stories import in_a_line, story


class CampaignRun(pytest.Item):
    """A run of one variant and seed. It passes if its outcome is the expected one."""

    def __init__(
        self, *, source: Source, plan: Plan, seed: int, skips_inconclusive: bool, **keywords: Any
    ) -> None:
        super().__init__(**keywords)
        self._source = source
        self._plan = plan
        self._seed = seed
        self._skips_inconclusive = skips_inconclusive
        self._failure: str | None = None
        self.add_marker("harrow")

    def runtest(self) -> None:
        """Run the campaign. An inconclusive run does not pass."""
        result = self._source.run(self._plan, self._seed)
        self.user_properties += [
            ("harrow_verdict", result.verdict.status),
            ("harrow_trace_digest", result.trace_digest),
        ]
        run_outcome = outcome(result)
        if run_outcome in (AS_EXPECTED, OTHERWISE):
            return
        if run_outcome == UNDECIDED and self._skips_inconclusive:
            pytest.skip(f"{self._source.name}, {self.name}: inconclusive: {in_a_line(result)}")
        self._failure = in_a_line(result)
        here = self.config.invocation_params.dir
        pytest.fail(story(self._source.finished(result, here)), pytrace=False)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the story. pytest's summary shows only one line, at the campaign file."""
        shown = super().repr_failure(excinfo, style)
        crash = getattr(shown, "reprcrash", None)
        if self._failure is not None and crash is not None:
            crash.path, crash.lineno, crash.message = str(self.path), 1, self._failure
        return shown

    def reportinfo(self) -> tuple[Any, None, str]:
        """Return the test's place, and the heading of its failure."""
        return self.path, None, f"{run_name(self._source.name, self._plan.variant)}, seed {self._seed}"
