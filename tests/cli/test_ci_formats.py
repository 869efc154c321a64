"""JUnit files, read by a JUnit parser, and workflow commands for GitHub Actions."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from junitparser import xunit2

from tests.cli.conftest import ROOT, Harrow

CORPUS = ROOT / "tests" / "regressions"
AGAIN = "harrow run failing.yaml --seed 0"


def read(text: str) -> Any:
    """Return a document after checking that its counts match its cases."""
    document: Any = xunit2.JUnitXml.fromstring(text.encode())
    totals = (document.tests, document.failures, document.errors)
    for suite in document:
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == counts(suite)
    assert totals == tuple(map(sum, zip(*(counts(suite)[:3] for suite in document), strict=True)))
    return document


def counts(suite: Any) -> tuple[int, int, int, int]:
    cases = list(suite)
    return (
        len(cases),
        sum(case.is_failure for case in cases),
        sum(case.is_error for case in cases),
        sum(case.is_skipped for case in cases),
    )


def suites(text: str) -> dict[str, Any]:
    return {suite.name: suite for suite in read(text)}


def case_of(suite: Any, name: str) -> Any:
    (case,) = (case for case in suite if case.name == name)
    return case


def properties(case: Any) -> dict[str, str]:
    return {each.name: each.value for each in case.properties()}


def annotations(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Return workflow commands as GitHub Actions parses them: level, properties, message."""
    commands = []
    for line in text.splitlines():
        if match := re.fullmatch(r"::(\w+) (.*?)::(.*)", line):
            pairs = (part.partition("=") for part in match[2].split(","))
            fields = {
                key: unescaped(value).replace("%3A", ":").replace("%2C", ",") for key, _, value in pairs
            }
            commands.append((match[1], fields, unescaped(match[3])))
    return commands


def unescaped(text: str) -> str:
    return text.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")


def test_each_rule_is_a_case_of_its_campaigns_suite(harrow: Harrow) -> None:
    ended = harrow("run", "permitted.yaml", "failing.yaml", "undecided.yaml", "--format", "junit")
    assert ended.returncode == 1
    by_name = suites(ended.stdout)
    assert list(by_name) == ["permitted", "permitted[acks-all]", "failing", "undecided"]
    lost = case_of(by_name["permitted"], "lost-write")
    assert lost.is_passed
    assert "lost m0, permitted by acks=0" in lost.system_out
    failed = [case.name for case in by_name["failing"] if case.is_failure]
    assert failed == ["expectations"]
    case = case_of(by_name["failing"], "expectations")
    assert properties(case).items() >= {("seed", "0"), ("reproduce", AGAIN)}
    (result,) = case.result
    assert "LEO is 1, expected 2" in result.message
    assert "failing.yaml:6: " in result.text
    assert all(case.is_skipped for case in by_name["undecided"])
    assert case_of(by_name["undecided"], "expectations").result[0].message.startswith("inconclusive: ")


def test_a_broken_promise_fails_the_case_of_its_rule(harrow: Harrow) -> None:
    ended = harrow(
        "run", "loss-by-hw-truncation", "--variant", "base", "--set", "expect={}", "--format", "junit"
    )
    assert ended.returncode == 1
    (suite,) = read(ended.stdout)
    assert [case.name for case in suite if case.is_failure] == ["lost-write", "isr-holds-committed"]
    case = case_of(suite, "lost-write")
    assert case.result[0].message == "lost m1 despite acks=all"
    assert "truncated" in case.result[0].text
    assert properties(case)["promise"] == "acks=all"
    command = shlex.split(properties(case)["reproduce"])
    assert harrow(*command[1:], "--no-results").returncode == 1


def test_several_seeds_are_one_suite(harrow: Harrow) -> None:
    arguments = ("run", "swarm", "--seeds", "0..5", "--set", "behaviours.hw_waits_for_whole_isr=false")
    ended = harrow(*arguments, "--no-results", "--format", "junit")
    assert ended.returncode == 1
    (suite,) = read(ended.stdout)
    suite_properties = {each.name: each.value for each in suite.properties()}
    assert suite_properties["seeds"] == "0..5"
    (failed, *_) = [case for case in suite if case.is_failure]
    assert re.match(r"\d of 5 seeds, first \d: ", failed.result[0].message)
    command = shlex.split(properties(failed)["reproduce"])
    assert harrow(*command[1:], "--no-results").returncode == 1


def test_undecided_seeds_do_not_fail_a_rule(harrow: Harrow) -> None:
    settings = ("--set", "behaviours.follower_truncation=none", "--set", "limits.events=2300")
    arguments = ("run", "swarm", "--seeds", "0..16", *settings, "--no-results")
    runs = json.loads(harrow(*arguments, "--format", "json").stdout)["runs"]
    assert any(run["verdict"] == "inconclusive" for run in runs)
    (suite,) = read(harrow(*arguments, "--format", "junit").stdout)
    failures = {case.name: case.result[0].message for case in suite if case.is_failure}
    assert len(failures) >= 2
    for rule, message in failures.items():
        broken = [run["seed"] for run in runs if not run["expected"]]
        if rule != "expectations":
            broken = [run["seed"] for run in runs if run["rules"].get(rule, {}).get("status") == "violated"]
        assert message.startswith(f"{len(broken)} of 16 seeds, first {min(broken)}: ")


def test_a_report_starts_with_the_number_of_failed_seeds(harrow: Harrow, folder: Path) -> None:
    summary = folder / "summary.md"
    setting = "behaviours.follower_truncation=high_watermark"
    arguments = ("run", "swarm", "--seeds", "0..20", "--no-results", "--set", setting)
    failed = {
        run["seed"]
        for run in json.loads(harrow(*arguments, "--format", "json").stdout)["runs"]
        if not run["expected"]
    }
    total = f"{len(failed)} of 20 seeds failed, first {min(failed)}"
    ended = harrow(*arguments, "--format", "github", GITHUB_STEP_SUMMARY=str(summary))
    ((_, fields, message),) = annotations(ended.stdout)
    assert fields["title"] == f"swarm: {total}"
    by_rule = [int(count) for count in re.findall(r"^\S+: (\d+) of 20 seeds, first", message, re.MULTILINE)]
    assert len(by_rule) >= 2
    assert by_rule == sorted(by_rule, reverse=True)
    assert f"--seed {min(failed)} " in message.splitlines()[-1]
    counts = f"20 runs of 1 campaign: {20 - len(failed)} as expected, {len(failed)} failed"
    assert ended.stdout.splitlines()[-1] == counts
    heading, _, _, _, row, *_ = summary.read_text(encoding="utf-8").splitlines()
    assert heading == f"### harrow: {counts}"
    assert row.split(" | ")[2].startswith(f"{total}; ")
    (suite,) = read(harrow(*arguments, "--format", "junit").stdout)
    assert suite.system_out == total


def test_variants_count_as_runs_of_one_campaign(harrow: Harrow) -> None:
    ended = harrow("run", "permitted.yaml", "calm.yaml", "--format", "github")
    assert ended.stdout.splitlines()[-1] == "3 runs of 2 campaigns: 3 as expected"


def test_a_required_probe_that_no_seed_reached_is_a_skipped_case(harrow: Harrow) -> None:
    ended = harrow("run", "unreached.yaml", "--seeds", "0..3", "--format", "junit")
    assert ended.returncode == 3
    by_name = suites(ended.stdout)
    assert case_of(by_name["unreached"], "expectations").is_skipped
    assert "unclean-election" in case_of(by_name["unreached"], "expectations").result[0].message
    assert case_of(by_name["unreached[reached]"], "expectations").is_passed


def test_a_stopped_report_is_marked_incomplete(harrow: Harrow) -> None:
    ended = harrow("run", "failing.yaml", "calm.yaml", "--max-failures", "1", "--format", "junit")
    suite = suites(ended.stdout)["harrow"]
    assert case_of(suite, "complete").is_skipped
    assert case_of(suite, "complete").result[0].message == ("--max-failures 1 reached: 1 of 2 runs finished")


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_wrong_file_is_an_error_at_its_line(harrow: Harrow, command: str) -> None:
    ended = harrow(command, "wrong.yaml", "calm.yaml", "--format", "junit")
    assert ended.returncode == 2
    suite = suites(ended.stdout)["wrong.yaml"]
    assert [case.is_error for case in suite] == [True] * 3
    assert case_of(suite, "line 3, column 1").result[0].message.startswith("unknown key `clutser`")
    shown = annotations(harrow(command, "wrong.yaml", "--format", "github").stdout)
    assert [(level, fields["file"], fields["line"], fields["col"]) for level, fields, _ in shown] == [
        ("error", "wrong.yaml", "2", "8"),
        ("error", "wrong.yaml", "3", "1"),
        ("error", "wrong.yaml", "5", "12"),
    ]


def test_the_tenth_annotation_counts_the_remaining_mistakes(harrow: Harrow, folder: Path) -> None:
    (folder / "many.yaml").write_text("name: many\n" + "".join(f"x{n}: 1\n" for n in range(20)), "utf-8")
    shown = annotations(harrow("validate", "many.yaml", "--format", "github").stdout)
    assert len(shown) == 10
    lines = [fields.get("line") for _, fields, _ in shown]
    assert len(set(lines)) == 10
    assert shown[-1][1]["title"].startswith("and ")
    assert "many.yaml:21" in shown[-1][2]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "failing.yaml", "calm.yaml", "missing.yaml"),
        ("run", "failing.yaml", "calm.yaml"),
        ("regress", str(CORPUS / "dedup.yaml")),
        ("sweep", "failing.yaml", "--seeds", "2", "--engine", "process"),
    ],
    ids=lambda words: f"{words[0]}-{len(words)}",
)
def test_a_junit_file_beside_the_table_has_what_the_junit_format_prints(
    harrow: Harrow, folder: Path, words: tuple[str, ...]
) -> None:
    alone = harrow(*words, "--format", "junit")
    again = ("--resume",) if words[0] == "sweep" else ()
    table = harrow(*words, *again)
    beside = harrow(*words, *again, "--junit", "beside.xml")
    assert (beside.returncode, alone.returncode) == (table.returncode, table.returncode)
    assert "wrote beside.xml" in beside.stderr
    assert _without_times(beside.stdout) == _without_times(table.stdout)
    written = (folder / "beside.xml").read_text(encoding="utf-8")
    assert _without_times(written) == _without_times(alone.stdout)


def _without_times(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?( ms| s)\b|time=\"[\d.]+\"", "", text)


def test_a_junit_file_that_cannot_be_written_is_an_error_before_anything_runs(
    harrow: Harrow, folder: Path
) -> None:
    ended = harrow("run", "calm.yaml", "--junit", "nowhere/beside.xml")
    assert ended.returncode == 2
    assert "nowhere/beside.xml" in ended.stderr
    assert not (folder / "results").exists()


def test_one_path_for_output_and_junit_is_refused_before_anything_runs(harrow: Harrow, folder: Path) -> None:
    ended = harrow("run", "calm.yaml", "--format", "json", "--output", "both", "--junit", "./both")
    assert ended.returncode == 2
    assert "nothing was run: --output and --junit both name both" in ended.stderr
    assert not (folder / "both").exists()


def test_junit_goes_to_a_file(harrow: Harrow, folder: Path) -> None:
    ended = harrow("run", "calm.yaml", "--format", "junit", "--output", "report.xml")
    assert ended.returncode == 0
    assert ended.stdout == ""
    (suite,) = read((folder / "report.xml").read_text(encoding="utf-8"))
    assert suite.name == "calm"


def test_the_corpus_has_a_case_for_each_entry(harrow: Harrow, folder: Path) -> None:
    ended = harrow("regress", str(CORPUS), "--format", "junit")
    assert ended.returncode == 0
    by_name = suites(ended.stdout)
    assert len(by_name) == len(list(CORPUS.glob("*.yaml")))
    (case,) = by_name[str(CORPUS / "no-dedup.yaml")]
    assert (case.name, case.is_passed) == ("duplicate", True)
    assert case.system_out.startswith("STILL FAILING: ")
    text = (CORPUS / "no-dedup.yaml").read_text(encoding="utf-8")
    (folder / "corpus").mkdir()
    (folder / "corpus" / "back.yaml").write_text(text.replace("status: open", "status: fixed"), "utf-8")
    (folder / "corpus" / "unreadable.yaml").write_text("cluster: [", encoding="utf-8")
    ended = harrow("regress", "corpus", "--format", "junit")
    assert ended.returncode == 2
    back, unreadable = read(ended.stdout)
    assert (back.failures, unreadable.errors) == (1, 1)
    shown = annotations(harrow("regress", "corpus", "--format", "github").stdout)
    assert [(level, fields["file"]) for level, fields, _ in shown] == [
        ("error", "corpus/unreadable.yaml"),
        ("error", "corpus/back.yaml"),
    ]
    assert "line" in shown[1][1]


def test_an_empty_corpus_does_not_pass(harrow: Harrow, folder: Path) -> None:
    (folder / "corpus").mkdir()
    ended = harrow("regress", "corpus", "--format", "junit")
    assert ended.returncode == 3
    (suite,) = read(ended.stdout)
    assert suite.skipped == 1


def test_a_replay_is_a_suite_with_one_case(harrow: Harrow, folder: Path) -> None:
    harrow("run", "calm.yaml")
    ended = harrow("replay", "results/latest", "--format", "junit")
    assert ended.returncode == 0
    (suite,) = read(ended.stdout)
    assert [(case.name, case.is_passed) for case in suite] == [("trace", True)]
    (run,) = (folder / "results" / "calm").iterdir()
    (run / "trace.jsonl").write_text("", encoding="utf-8")
    ended = harrow("replay", str(run), "--format", "github")
    assert ended.returncode == 2
    assert annotations(ended.stdout)[0][0] == "error"


def test_a_history_has_a_case_for_each_anomaly(harrow: Harrow, folder: Path) -> None:
    values: list[tuple[str, str, object]] = []
    for offset in range(3):
        values.append(("invoke", "send", ["send", "t", f"m{offset}"]))
        values.append(("ok", "send", ["send", "t", [offset, f"m{offset}"]]))
    values += [("invoke", "poll", ["poll"]), ("ok", "poll", ["poll", {"t": [[2, "m2"], [3, "m0"]]}])]
    lines = [
        {"index": index, "process": 0, "type": kind, "f": f, "value": [value], "time": index}
        for index, (kind, f, value) in enumerate(values)
    ]
    (folder / "h.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ended = harrow("check", "h.jsonl", "--allow", "poll-skip", "--format", "junit")
    assert ended.returncode == 1
    (suite,) = read(ended.stdout)
    case = case_of(suite, "lost-write")
    assert case.is_failure
    assert "m1" in case.result[0].message
    command = shlex.split(properties(case)["reproduce"])
    assert command == ["harrow", "check", "h.jsonl", "--allow", "poll-skip"]
    assert harrow(*command[1:]).returncode == 1
    (shown,) = annotations(harrow("check", "h.jsonl", "--format", "github").stdout)
    assert shown[0] == "error"
    (folder / "empty.jsonl").write_text("", encoding="utf-8")
    ended = harrow("check", "empty.jsonl", "--format", "junit")
    assert ended.returncode == 3
    (suite,) = read(ended.stdout)
    assert suite.skipped == suite.tests > 0
    assert {case.result[0].message for case in suite} == {
        "inconclusive: nothing was tried: no record was sent"
    }


def test_a_sweep_has_a_suite_for_each_cell(harrow: Harrow, folder: Path) -> None:
    (folder / "sweep.yaml").write_text(
        """
name: sweep
kafka: "2.4"
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 5s, producers: [{name: p, rate: 4/s, settings: {enable.idempotence: false}}]}
faults:
  - rate: 30/m
    do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}
behaviours: {hw_waits_for_whole_isr: false}
""",
        encoding="utf-8",
    )
    arguments = ("sweep", "sweep.yaml", "--seeds", "0..30", "--vary", "acks=1,all", "--engine", "process")
    ended = harrow(*arguments, "--out", "s", "--format", "junit")
    assert ended.returncode == 1, ended.stderr
    by_name = suites(ended.stdout)
    assert list(by_name) == ["sweep[base acks=1]", "sweep[base acks=all]"]
    case = next(case for case in by_name["sweep[base acks=all]"] if case.is_failure)
    assert re.search(r"violated: \d+ of 30 runs, .*%", case.result[0].message)
    command = shlex.split(properties(case)["reproduce"])
    assert harrow(*command[1:], "--no-results").returncode == 1
    report = harrow("sweep", "--report", "s", "--engine", "process", "--format", "github")
    assert report.returncode == 1
    assert annotations(report.stdout)[0][0] == "error"


def test_annotations_are_limited_and_escaped(harrow: Harrow, folder: Path) -> None:
    text = (folder / "failing.yaml").read_text(encoding="utf-8")
    for number in range(14):
        (folder / f"f{number:02}.yaml").write_text(
            text.replace("name: failing", f"name: f{number:02}"), "utf-8"
        )
    text = text.replace("m0", '"100%: a, b"').replace("name: failing", "name: f00")
    (folder / "f00.yaml").write_text(text, "utf-8")
    ended = harrow(
        "run", *(f"f{number:02}.yaml" for number in range(14)), "undecided.yaml", "--format", "github"
    )
    assert ended.returncode == 1
    shown = annotations(ended.stdout)
    assert len(shown) == 10
    level, fields, message = shown[0]
    assert (level, fields["file"], fields["line"]) == ("error", "f00.yaml", "6")
    assert fields["title"].startswith("f00: ")
    assert message.endswith("harrow run f00.yaml --seed 0")
    assert "\n" in message
    assert shown[-1][1] == {"title": "and 6 more"}
    assert "f13" in shown[-1][2]
    assert ended.stdout.splitlines()[-1] == "15 runs of 15 campaigns: 1 undecided, 14 failed"


def test_the_step_summary_is_appended(harrow: Harrow, folder: Path) -> None:
    summary = folder / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    ended = harrow("run", "calm.yaml", "failing.yaml", "--format", "github", GITHUB_STEP_SUMMARY=str(summary))
    assert ended.returncode == 1
    before, heading, _, head, border, *rows = summary.read_text(encoding="utf-8").splitlines()
    assert (before, heading) == ("before", "### harrow: 2 runs of 2 campaigns: 1 as expected, 1 failed")
    assert (head.count("|"), border.count("|")) == (5, 5)
    assert [row.split(" | ")[1] for row in rows if row] == ["failing", "calm"]
    assert f"`{AGAIN}`" in rows[0]


def test_the_summary_does_not_call_a_failure_on_another_release_expected(
    harrow: Harrow, folder: Path
) -> None:
    summary = folder / "summary.md"
    run = ("run", "unread-partition", "--variant", "3.6", "--set", "kafka=2.8")
    assert harrow(*run, "--format", "github", GITHUB_STEP_SUMMARY=str(summary)).returncode == 1
    (row,) = [line for line in summary.read_text(encoding="utf-8").splitlines() if line.startswith("| ❌")]
    finding, reason = row.index("left unread m-0 despite subscribe()"), row.index("Kafka 2.8 lacks KIP-814")
    assert finding < reason
    assert "as expected" not in row
    output = " ".join(harrow(*run).stdout.split())
    assert (
        "UNEXPECTED 3.6 left unread m-0 despite subscribe(); the outcome differs: Kafka 2.8 lacks" in output
    )
    assert "missed " in output
    assert "the verdict is violated, expected held" in output


def test_an_unwritable_step_summary_does_not_change_the_result(harrow: Harrow, folder: Path) -> None:
    ended = harrow("run", "calm.yaml", "--format", "github", GITHUB_STEP_SUMMARY=str(folder / "no" / "file"))
    assert ended.returncode == 0
    assert "GITHUB_STEP_SUMMARY" in ended.stderr


def test_an_annotation_names_only_files_of_the_repository(harrow: Harrow, folder: Path) -> None:
    arguments = ("run", "failing.yaml", "--format", "github")
    ((_, fields, _),) = annotations(harrow(*arguments, GITHUB_WORKSPACE=str(folder.parent)).stdout)
    assert fields["file"] == f"{folder.name}/failing.yaml"
    (folder / "elsewhere").mkdir()
    ((_, fields, _),) = annotations(harrow(*arguments, GITHUB_WORKSPACE=str(folder / "elsewhere")).stdout)
    assert "file" not in fields


def test_a_failure_of_hypothesis_becomes_a_suite(harrow: Harrow) -> None:
    pytest.importorskip("hypothesis")
    arguments = ("run", "swarm", "--engine", "hypothesis", "--max-examples", "5", "--no-results")
    ended = harrow(*arguments, "--format", "junit")
    document = read(ended.stdout)
    assert document.failures == (1 if ended.returncode == 1 else 0)
    assert [suite.name for suite in document] == ["swarm"]
