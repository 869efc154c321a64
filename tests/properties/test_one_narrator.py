"""Diff, trace, page, report and live view agree with the judge about the records of a run."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.record.markdown_report import markdown_report
from harrow.campaigns.record.phrases import because
from harrow.campaigns.record.recorded_run import RecordedRun, read_run
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.story.playback import Playback
from harrow.campaigns.story.run_diff import DiffMoment, PartitionDiff, diff_story
from harrow.campaigns.story.runs_diff import diff_runs
from harrow.campaigns.story.trace_page_data import page_data
from harrow.campaigns.story.trace_record import story_of_record
from harrow.campaigns.story.trace_selection import Window
from harrow.campaigns.story.trace_story import TraceStory, story_of
from harrow.checks.finding import Finding
from harrow.checks.rule import LOST
from harrow.checks.rules.catalogue import RULES
from tests.library_swarm import library_swarm

SWARMS = ("swarm", "swarm-kraft", "swarm-disks", "swarm-eos")
COSTLY_INTERVAL = 13
"""One in this many runs gets the costly checks of the diff of two runs and of the live view."""
FOLLOWED_MAX = 3
"""How many records of a run are followed to the end. Each needs a pass over the whole story."""

Fate = tuple[str, str, str | None, int | None]
"""A rule, and the partition, value and offset of one of its findings."""


@pytest.mark.parametrize("swarm", SWARMS)
@pytest.mark.soak(size=5, rounds_in_test=1, rounds_in_soak=100)
def test_all_views_of_a_run_agree_with_the_judge(swarm: str, numbers: range, tmp_path: Path) -> None:
    for seed in numbers:
        check(swarm, seed, tmp_path)


@pytest.mark.parametrize(("swarm", "seed"), [("swarm-kraft", 2), ("swarm", 39)])
def test_views_report_reordered_and_doubled_records_like_the_judge(
    swarm: str, seed: int, tmp_path: Path
) -> None:
    check(swarm, seed, tmp_path)


def check(swarm: str, seed: int, folder: Path) -> None:
    result = run_plan(library_swarm(swarm), seed)
    text = campaign_text(library_swarm(swarm))
    recorded = read_run(write_run(folder, result, run_as_mapping(result, "harrow run"), text))
    story = story_of(recorded)
    check_diff(result, story)
    if seed % COSTLY_INTERVAL == 0:
        check_runs_diff(result, recorded)
        check_playback(result)
    check_trace(result, story)
    check_page(result, story)
    check_report(result)


def findings_of(result: RunResult) -> Iterator[tuple[str, Finding]]:
    for rule, rule_result in result.verdict.rules.items():
        for finding in rule_result.findings:
            yield rule, finding


def fate_of(rule: str, finding: Finding) -> Fate:
    return rule, finding.partition, None if finding.value is None else str(finding.value), finding.offset


def lost_of(result: RunResult, partition: str) -> set[str]:
    return {
        str(finding.value)
        for rule, finding in findings_of(result)
        if RULES[rule].fate == LOST and finding.partition == partition
    }


def check_diff(result: RunResult, story: TraceStory) -> None:
    story_diff = diff_story(story, DiffMoment(), tuple(result.evidence.partitions))
    notes = [note for diff in story_diff.partitions for note in diff.notes]
    assert not [note for diff in story_diff.partitions for note in diff.to_come], (
        "the end has no future notes"
    )
    fates = [
        fate_of(note.finding.rule, finding) for note in notes for finding in note.finding.incident.findings
    ]
    findings_about_records = [(rule, finding) for rule, finding in findings_of(result) if RULES[rule].fate]
    assert sorted(fates, key=str) == sorted((fate_of(*pair) for pair in findings_about_records), key=str)
    for diff in story_diff.partitions:
        lost = lost_of(result, diff.partition.name)
        assert lost_in_rows(diff) == lost & diff.partition.by_value.keys()
        assert {note.kind for note in diff.notes} <= {rule.fate for rule in RULES.values()}
    shown_chains = {because(note.finding.finding) for note in notes}
    assert shown_chains <= {because(finding) for _, finding in findings_about_records}


def check_runs_diff(result: RunResult, recorded: RecordedRun) -> None:
    """Check that a comparison of two runs shows the losses of each."""
    for logs in diff_runs(recorded, recorded, DiffMoment()).logs:
        assert set(logs.lost[0]) == lost_of(result, logs.name)


def lost_in_rows(diff: PartitionDiff) -> set[str]:
    return {fate.entry.value for row in diff.rows for fate in row.fates if fate.is_lost}


def check_trace(result: RunResult, story: TraceStory) -> None:
    by_value: dict[str, set[str]] = {}
    for rule, finding in findings_of(result):
        if finding.value is not None:
            by_value.setdefault(str(finding.value), set()).add(rule)
    named = {value for event in story.events for value in event.values}
    followed = [value for value in by_value if value in named][:FOLLOWED_MAX]
    unharmed = [value for value in sorted(named) if value not in by_value][:1]
    for value in [*followed, *unharmed]:
        assert rules_in(story_of_record(story, value).lines) == by_value.get(value, set()), value


def rules_in(lines: Iterable[str]) -> set[str]:
    verdicts = [line.removeprefix("judged: ") for line in lines if line.startswith("judged: ")]
    assert verdicts
    return {verdict.partition(",")[0] for verdict in verdicts} - {"no rule has a finding about it"}


def check_page(result: RunResult, story: TraceStory) -> None:
    findings = page_data(story, Window())["findings"]
    on_page = {
        (finding["rule"], finding["partition"], value) for finding in findings for value in finding["values"]
    }
    expected = {(rule, f.partition, str(f.value)) for rule, f in findings_of(result) if f.value is not None}
    assert on_page == expected


def check_report(result: RunResult) -> None:
    report = markdown_report(result, "harrow run")
    for rule, finding in findings_of(result):
        assert rule in report
        assert finding.permitted_by is None or finding.permitted_by.replace("_", "") in report.replace(
            "\\", ""
        ).replace("_", "")


def check_playback(result: RunResult) -> None:
    playback = Playback(result)
    playback.advance(len(playback.events) - 1)
    fates = [
        fate_of(anomaly.rule, finding)
        for anomaly in playback.scene().anomalies
        for finding in anomaly.findings
    ]
    assert sorted(fates, key=str) == sorted((fate_of(*pair) for pair in findings_of(result)), key=str)


def test_four_rules_decide_the_fates_of_records() -> None:
    fates = {name: rule.fate for name, rule in RULES.items() if rule.fate}
    assert fates == {
        "lost-write": "lost",
        "duplicate": "doubled",
        "nonmonotonic-send": "reordered",
        "log-divergence": "diverged",
    }
