"""The outcome of a corpus entry, by the findings of its run and its expectations."""

from dataclasses import replace
from pathlib import Path

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import FIXED as MUST_HOLD
from harrow.campaigns.language.plan import OPEN, Expectation, Origin
from harrow.campaigns.run import runner
from harrow.campaigns.run.run_result import MissedExpectation, RunResult
from harrow.campaigns.search import corpus
from harrow.campaigns.search.corpus import (
    CHANGED,
    FIXED,
    STILL_FAILING,
    EntryResult,
    NotFailingError,
    entry_result,
    entry_text,
    regress_document,
)
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, RuleResult
from tests.campaigns.record.run_results import lost_record, plan, run_result

Rules = tuple[tuple[str, str], ...]

MISSED = (MissedExpectation(line=0, message="lost: m1; expected m2"),)


def entry(
    status: str, lost_write: str, duplicate: str = HELD, *, missed: bool = False, expects: Rules = ()
) -> EntryResult:
    """Return the outcome of an entry about lost-write, for these statuses of two rules."""
    drawn = plan(
        found=Origin(version="0.1.0", rule="lost-write", status="open" if status == OPEN else "fixed"),
        expect=Expectation(rules=expects),
    )
    anomaly = lost_record("m1", permitted_by="acks=1" if lost_write == PERMITTED else None)
    result = run_result(*([anomaly] if lost_write in (VIOLATED, PERMITTED) else []))
    verdict = result.verdict
    judged = {
        "lost-write": replace(verdict.rules["lost-write"], status=lost_write),
        "duplicate": RuleResult(status=duplicate, promise="enable.idempotence=true"),
    }
    statuses = (lost_write, duplicate)
    worst = next(status for status in (VIOLATED, INCONCLUSIVE, PERMITTED, HELD) if status in statuses)
    result = replace(
        result,
        plan=drawn,
        verdict=replace(verdict, status=worst, rules=judged),
        missed=MISSED if missed else (),
    )
    return entry_result(Path("entry.yaml"), drawn, result)


@pytest.mark.parametrize(
    ("entry", "outcome", "as_recorded"),
    [
        (entry(OPEN, VIOLATED), STILL_FAILING, True),
        (entry(OPEN, VIOLATED, missed=True), CHANGED, False),
        (entry(OPEN, VIOLATED, VIOLATED), CHANGED, False),
        (entry(OPEN, VIOLATED, VIOLATED, expects=(("duplicate", VIOLATED),)), STILL_FAILING, True),
        (entry(OPEN, HELD), FIXED, False),
        (entry(OPEN, HELD, VIOLATED), CHANGED, False),
        (entry(OPEN, PERMITTED), CHANGED, False),
        (entry(OPEN, PERMITTED, expects=(("lost-write", PERMITTED),)), FIXED, False),
        (entry(OPEN, INCONCLUSIVE), CHANGED, False),
        (entry(MUST_HOLD, HELD), FIXED, True),
        (entry(MUST_HOLD, HELD, missed=True), CHANGED, False),
        (entry(MUST_HOLD, HELD, VIOLATED), CHANGED, False),
        (entry(MUST_HOLD, VIOLATED), STILL_FAILING, False),
        (entry(MUST_HOLD, VIOLATED, VIOLATED), STILL_FAILING, False),
        (entry(MUST_HOLD, PERMITTED), CHANGED, False),
        (entry(MUST_HOLD, PERMITTED, expects=(("lost-write", PERMITTED),)), FIXED, True),
        (entry(MUST_HOLD, INCONCLUSIVE), CHANGED, False),
    ],
)
def test_the_outcome_of_an_entry_follows_from_its_status_and_its_run(
    entry: EntryResult, outcome: str, as_recorded: bool
) -> None:
    assert (entry.outcome, entry.as_recorded) == (outcome, as_recorded), entry.why
    assert entry.why


def test_another_failure_beside_the_known_one_is_named() -> None:
    assert entry(OPEN, VIOLATED, VIOLATED).why.startswith("also violated: duplicate; ")


def test_an_empty_or_interrupted_corpus_is_not_as_recorded() -> None:
    good = entry(OPEN, VIOLATED)
    assert regress_document([good])["as_recorded"]
    assert not regress_document([])["as_recorded"]
    assert not regress_document([good], interrupted=True)["as_recorded"]
    assert not regress_document([good, entry(OPEN, HELD)])["as_recorded"]


LOSS = """
name: loss
demand: lost-write
settings: {acks: 0}
cluster: {brokers: 3, controller: 2, topics: [{name: t, assignment: [[0, 1]]}]}
workload: {producers: [{name: producer-0}]}
script:
  - do:
      - partition: {between: [0], and: [1]}
      - send: {value: m, count: COUNT}
  - when: {replicas: {t-0: {0: {leo: COUNT}}}}
    do:
      - expect: {replicas: {t-0: {0: {leo: 99}}}}
      - broker_crash: {broker: 0}
  - when: {replicas: {t-0: {1: {role: leader}}}}
"""


def entry_of(count: int) -> str:
    (loaded,) = load_text(LOSS.replace("COUNT", str(count)), "loss.yaml").plans
    return entry_text(loaded, 0)[1]


def test_an_entry_expects_exactly_the_findings_of_its_run() -> None:
    text = entry_of(2)
    assert "lost: [m-0, m-1]" in text
    assert "leo: 99" not in text, "the missed expectation"
    assert "broker_crash" in text
    assert "lost:" not in entry_of(30), "too many to read"


def test_an_entry_keeps_the_story_in_its_heading() -> None:
    campaign = load_text("# Lost m.\n#   0.1s it went\n" + LOSS.replace("COUNT", "2").lstrip(), "loss.yaml")
    text = entry_text(campaign.plans[0], 0, heading=campaign.heading())[1]
    origin, *rest = text.splitlines()
    assert origin.startswith("# Found by harrow ")
    assert rest[rest.index("#") :][:4] == ["#", "# Lost m.", "#   0.1s it went", "name: loss"]
    assert load_text(LOSS.replace("COUNT", "2"), "loss.yaml").heading() == ""


def test_adding_an_existing_entry_keeps_its_story_and_drops_its_schema_line() -> None:
    original = (
        "# yaml-language-server: $schema=campaign.schema.json\n\n# Lost m.\n"
        + LOSS.replace("COUNT", "2").lstrip()
    )
    text = original
    for _ in range(2):
        campaign = load_text(text, "loss.yaml")
        text = entry_text(campaign.plans[0], 0, heading=campaign.heading())[1]
    origin, *rest = text.splitlines()
    assert origin.startswith("# Found by harrow ")
    assert rest[rest.index("#") :][:3] == ["#", "# Lost m.", "name: loss"]
    assert text.count("Found by harrow ") == 1


def test_a_campaign_whose_failure_does_not_repeat_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that does not repeat from its own file cannot be an entry."""
    runs: list[RunResult] = []

    def other_each_time(drawn: object, seed: int) -> RunResult:
        (loaded,) = load_text(LOSS.replace("COUNT", "2"), "loss.yaml").plans
        runs.append(original(loaded if not runs else replace(loaded, demand=()), seed))
        return runs[-1]

    original = runner.run_plan
    monkeypatch.setattr(corpus, "run_plan", other_each_time)
    with pytest.raises(NotFailingError, match="does not repeat as an entry: CHANGED"):
        entry_of(2)
