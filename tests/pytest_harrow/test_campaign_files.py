"""pytest collects campaign files as tests, which can be selected and fail readably."""

import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harrow.pytest_harrow.campaign_file import matches
from tests.pytest_harrow.conftest import Pytest

pytest_plugins = ["pytester"]


def collected(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "[seed-" in line and "::" in line]


def add_to_ini(project: Path, *lines: str) -> None:
    ini = project / "tox.ini"
    ini.write_text("\n".join([ini.read_text(encoding="utf-8"), *lines]), encoding="utf-8")


def test_only_selected_files_are_collected(run_pytest: Pytest, project: Path) -> None:
    (project / "test_it.py").write_text("def test_it(): pass\n", encoding="utf-8")
    run_pytest().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("campaigns/c*.yaml", {"campaigns/calm.yaml"}),
        ("./campaigns/below/*.yaml", {"campaigns/below/calm.yaml"}),
        ("**/calm.yaml", {"calm.yaml", "campaigns/calm.yaml", "campaigns/below/calm.yaml"}),
        ("campaigns/**/calm.yaml", {"campaigns/calm.yaml", "campaigns/below/calm.yaml"}),
        ("c?lm.yaml", {"calm.yaml", "campaigns/calm.yaml", "campaigns/below/calm.yaml"}),
        ("*/calm.yaml", {"campaigns/calm.yaml"}),
        ("campaigns", set[str]()),
    ],
)
def test_globs_match_the_path_from_the_root(glob: str, names: set[str]) -> None:
    paths = ("calm.yaml", "campaigns/calm.yaml", "campaigns/below/calm.yaml", "campaigns/other.yml")
    assert {path for path in paths if matches(Path(path), glob)} == names


def test_globs_select_campaigns(run_pytest: Pytest, project: Path) -> None:
    add_to_ini(project, "harrow_campaigns = campaigns/calm.yaml campaigns/perm*.yaml", "harrow_seeds = 5..7")
    collected_ids = collected(run_pytest("--collect-only", "-q"))
    assert collected_ids == [
        f"campaigns/{name}[seed-{seed}]"
        for name in ("calm.yaml::base", "permitted.yaml::base", "permitted.yaml::acks-all")
        for seed in (5, 6)
    ]


def test_a_campaign_on_the_command_line_is_collected(run_pytest: Pytest, project: Path) -> None:
    result = run_pytest("campaigns/permitted.yaml", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "campaigns/permitted.yaml::base[[]seed-0] PASSED*",
            "campaigns/permitted.yaml::acks-all[[]seed-0] PASSED*",
        ]
    )


def test_a_file_of_another_plugin_is_not_collected(run_pytest: Pytest, project: Path) -> None:
    (project / "other.yaml").write_text("name: of another plugin\nstages: []\n", encoding="utf-8")
    assert "campaign" not in run_pytest("other.yaml").stdout.str()


def test_seeds_and_settings_of_the_command_line_apply_to_every_campaign(
    run_pytest: Pytest, project: Path
) -> None:
    add_to_ini(project, "harrow_seeds = 5..7")
    result = run_pytest(
        "campaigns/permitted.yaml",
        "--harrow-seeds",
        "3..5",
        "--harrow-set",
        "acks=all",
        "--harrow-set",
        "kafka=2.0",
    )
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        ["  reproduce harrow run campaigns/permitted.yaml --seed 3 --set acks=all --set kafka=2.0"]
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--harrow-seeds=5..5", "--harrow-seeds: there is no seed in 5..5*"),
        ("--harrow-seeds=five", "--harrow-seeds: 'five' is not of the form A..B*"),
        ("--override-ini=harrow_seeds=-1..3", "harrow_seeds: '-1..3' is not of the form A..B*"),
        ("--override-ini=harrow_inconclusive=ignore", "harrow_inconclusive: expected `fail` or `skip`*"),
    ],
)
def test_an_invalid_option_is_a_usage_error(
    run_pytest: Pytest, project: Path, option: str, message: str
) -> None:
    result = run_pytest("campaigns/calm.yaml", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_a_failure_shows_the_missed_expectation_and_the_command_to_repeat_it(
    run_pytest: Pytest, project: Path
) -> None:
    result = run_pytest("campaigns/failing.yaml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ failing, seed 0 _*",
            "failing, seed 0: held, UNEXPECTED",
            "  missed campaigns/failing.yaml:6: *",
            "  missed campaigns/failing.yaml:8: the verdict is held, expected permitted",
            "  reproduce harrow run campaigns/failing.yaml --seed 0",
            "FAILED campaigns/failing.yaml::base[[]seed-0] - *",
        ]
    )
    for sign in ("*Traceback*", "*runtest*", "*pytest_harrow*.py*", "*Failed:*"):
        result.stdout.no_fnmatch_line(sign)


def test_a_broken_promise_fails_with_its_chain(run_pytest: Pytest, project: Path, library: Path) -> None:
    text = (library / "loss-by-hw-truncation.yaml").read_text(encoding="utf-8")
    hopeful = text.replace("\n  verdict: violated\n", "\n  verdict: held\n")
    (project / "campaigns" / "loss.yaml").write_text(hopeful, encoding="utf-8")
    result = run_pytest("campaigns/loss.yaml")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "loss-by-hw-truncation, seed 0: violated, UNEXPECTED, lost m1 despite acks=all",
            "  lost-write m1, t-0 offset 1:",
            "    *s broker 0 acked m1: all of the ISR *",
            "    *s broker 1 truncated to its own high watermark, 1, removing m1",
            "    prevented by any of these (confirmed by a rerun):",
            "      --set behaviours.follower_truncation=leader_epoch *",
            "        KIP-101, *",
            "  reproduce harrow run campaigns/loss.yaml --seed 0",
            "FAILED campaigns/loss.yaml::base[[]seed-0] - lost m1 despite acks=all; *expected held",
        ]
    )


def test_forced_colours_do_not_get_into_the_junit_report(
    run_pytest: Pytest, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    run_pytest("campaigns/failing.yaml", "--junit-xml=report.xml", "--color=no")
    (case,) = ET.parse(project / "report.xml").iter("testcase")  # noqa: S314 - pytest wrote it
    (failure,) = case.iter("failure")
    assert "the verdict is held, expected permitted" in failure.attrib["message"]
    assert failure.text is not None
    assert "  reproduce harrow run campaigns/failing.yaml --seed 0" in failure.text
    assert "1B" not in failure.text
    properties = {item.attrib["name"]: item.attrib["value"] for item in case.iter("property")}
    assert properties["harrow_verdict"] == "held"
    assert properties["harrow_trace_digest"]


def test_an_inconclusive_run_fails_with_its_reasons_or_is_skipped(run_pytest: Pytest, project: Path) -> None:
    failed = run_pytest("campaigns/undecided.yaml")
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(
        ["undecided, seed 0: inconclusive, step 2 of the script (line 6) waited in vain: m1 is not acked"]
    )
    skipped = run_pytest("campaigns/undecided.yaml", "-rs", "-o", "harrow_inconclusive=skip")
    skipped.assert_outcomes(skipped=1)
    skipped.stdout.fnmatch_lines(["SKIPPED*undecided, base[[]seed-0]: inconclusive: *m1 is not acked*"])
    run_pytest("campaigns/failing.yaml", "-o", "harrow_inconclusive=skip").assert_outcomes(failed=1)


def test_mistakes_in_a_campaign_are_lines_that_editors_recognise(run_pytest: Pytest, project: Path) -> None:
    result = run_pytest("campaigns/wrong.yaml", "campaigns/calm.yaml", "--continue-on-collection-errors")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR collecting campaigns/wrong.yaml*",
            "campaigns/wrong.yaml:2:8: *0.12*",
            "campaigns/wrong.yaml:3:1: *clutser*did you mean `cluster`?",
            "campaigns/wrong.yaml:5:12: *",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*.py:*")
    option = run_pytest("campaigns/calm.yaml", "--harrow-set", "akcs=1")
    option.assert_outcomes(errors=1)
    option.stdout.fnmatch_lines(["--set: akcs=1: *did you mean `acks`?"])


def test_tests_can_be_selected_by_id_keyword_and_mark(run_pytest: Pytest, project: Path) -> None:
    (project / "test_it.py").write_text(
        "def test_plain(): pass\ndef test_of_harrow(harrow): pass\n", encoding="utf-8"
    )
    add_to_ini(project, "harrow_campaigns = campaigns/permitted.yaml", "harrow_seeds = 0..2")
    run_pytest("campaigns/permitted.yaml::acks-all[seed-1]").assert_outcomes(passed=1)
    run_pytest("-k", "seed-1 and acks-all").assert_outcomes(passed=1, deselected=5)
    run_pytest("-m", "harrow").assert_outcomes(passed=5, deselected=1)
    run_pytest("--markers").stdout.fnmatch_lines(
        ["@pytest.mark.harrow(seeds=..., set=..., inconclusive=...): *"]
    )


def test_last_failed_runs_the_failed_seed_again(run_pytest: Pytest, project: Path) -> None:
    add_to_ini(project, "harrow_campaigns = campaigns/calm.yaml campaigns/failing.yaml")
    run_pytest().assert_outcomes(passed=1, failed=1)
    run_pytest("--lf").assert_outcomes(failed=1)


def test_campaigns_run_under_xdist(run_pytest: Pytest, project: Path) -> None:
    pytest.importorskip("xdist")
    add_to_ini(
        project, "harrow_campaigns = campaigns/permitted.yaml campaigns/failing.yaml", "harrow_seeds = 0..2"
    )
    result = run_pytest("-p", "xdist", "-n2")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        [
            "  reproduce harrow run campaigns/failing.yaml --seed ?",
            "FAILED campaigns/failing.yaml::base[[]seed-?] - *the verdict is held, expected permitted*",
        ]
    )


def test_the_command_to_repeat_a_run_is_relative_to_where_pytest_started(
    run_pytest: Pytest, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "campaigns")
    result = run_pytest("failing.yaml")
    assert os.fspath(project) not in result.stdout.str().partition("FAILURES")[2]
    result.stdout.fnmatch_lines(
        ["  missed failing.yaml:8: *", "  reproduce harrow run failing.yaml --seed 0"]
    )
