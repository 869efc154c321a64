"""The entries of the regression corpus have their recorded outcomes."""

from pathlib import Path

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.workers import parallel_runs
from harrow.campaigns.search.corpus import ERROR, FIXED, STILL_FAILING, check_files, corpus_files

CORPUS = Path(__file__).parents[1] / "regressions"


@pytest.mark.parametrize("file", corpus_files(CORPUS), ids=lambda file: file.stem)
def test_an_entry_has_its_recorded_outcome(file: Path) -> None:
    for item in check_files([file]):
        assert item.as_recorded, f"{item.outcome}: {item.why} {item.problems}"


def test_the_corpus_has_fixed_and_failing_entries() -> None:
    outcomes = [item.outcome for item in check_files(corpus_files(CORPUS))]
    assert {*outcomes} == {STILL_FAILING, FIXED}
    assert len(outcomes) >= 6


def test_a_crashing_run_is_reported_at_the_line_of_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(plan: Plan, seed: int, **_: object) -> None:
        raise ValueError(f"{plan.campaign} {seed}")

    monkeypatch.setattr(parallel_runs, "run_plan", crash)
    file = CORPUS / "dedup.yaml"
    (item,) = check_files([file])
    assert (item.outcome, item.as_recorded) == (ERROR, False)
    (problem,) = item.problems
    line = file.read_text(encoding="utf-8").splitlines()[problem.line - 1]
    assert line.startswith("found:")
    assert problem.message == "the run crashed: ValueError: dedup 0"
