"""The fixture `harrow` runs campaigns from Python tests."""

from pathlib import Path

from tests.pytest_harrow.conftest import Pytest

pytest_plugins = ["pytester"]


def write_test(project: Path, text: str) -> None:
    (project / "test_it.py").write_text(text, encoding="utf-8")


def test_the_fixture_runs_campaigns_of_the_library_of_files_and_of_text(
    run_pytest: Pytest, project: Path
) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "beside.yaml").write_bytes((project / "campaigns" / "calm.yaml").read_bytes())
    (project / "tests" / "test_it.py").write_text(
        """
from pathlib import Path
import pytest

CALM = {"cluster": {"brokers": 1, "topics": [{"name": "t"}]}, "workload": {"producers": [{"name": "producer-0"}]},
        "script": [{"do": {"send": "m0"}}, {"when": {"acked": "m0"}}]}

def test_library(harrow):
    assert harrow.run("loss-by-hw-truncation").verdict.status == "violated"
    assert harrow.run("loss-by-hw-truncation", variant="0.11", seed=3).verdict.status == "held"
    assert harrow.run("loss-by-hw-truncation", set={"kafka": "0.11", "script": []}).plan.kafka == "0.11"

def test_files(harrow):
    assert harrow.run("beside.yaml").seed == 0
    assert harrow.run("campaigns/calm.yaml", seed=7).seed == 7
    assert harrow.run(Path(__file__).parent / "beside.yaml").verdict.status == "held"

def test_text(harrow):
    harrow.expect(CALM)
    loaded = harrow.load(CALM, set={"acks": 1})
    assert (loaded.name, len(loaded.plans)) == ("test_text", 1)
    harrow.expect(loaded, seeds=range(2), set=["cluster.brokers=2"])
    assert len(harrow.run(loaded, set=["cluster.brokers=2"]).plan.cluster.brokers) == 2
    first = harrow.run("cluster: {brokers: 1, topics: [{name: t}]}\\n", seed=1)
    assert first.verdict.status == "inconclusive"

@pytest.mark.harrow(seeds="4..6", set={"acks": "all"})
def test_marker(harrow):
    result = harrow.run("campaigns/permitted.yaml", variant="acks-all")
    assert (result.seed, result.verdict.status) == (4, "held")
    assert harrow.run("campaigns/permitted.yaml", set={"acks": 0}).verdict.status == "permitted"

def test_judged_later(harrow):
    harrow.assert_expected(harrow.run("campaigns/permitted.yaml"))
""",
        encoding="utf-8",
    )
    run_pytest("-W", "error").assert_outcomes(passed=5)


def test_a_missed_expectation_fails_without_a_python_traceback(run_pytest: Pytest, project: Path) -> None:
    write_test(
        project,
        """
def test_one(harrow):
    harrow.assert_expected(harrow.run("campaigns/failing.yaml", seed=2))

def test_many(harrow):
    harrow.expect("campaigns/failing.yaml", seeds=range(3), set={"kafka": "2.0"})
""",
    )
    result = run_pytest()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*_ test_one _*",
            "failing, seed 2: held, UNEXPECTED",
            "  missed campaigns/failing.yaml:8: the verdict is held, expected permitted",
            "  reproduce harrow run campaigns/failing.yaml --seed 2",
            "*_ test_many _*",
            "failing: 3 of 3 runs not as expected",
            "base, 3 seeds: 0, 1, 2: seed 0: held, UNEXPECTED",
            "  reproduce harrow run campaigns/failing.yaml --seed 0 --set kafka=2.0",
        ]
    )
    for sign in ("*Traceback*", "*.py:[0-9]*", "*harrow.expect*", "*Captured harrow*"):
        result.stdout.no_fnmatch_line(sign)


def test_a_failed_assertion_has_the_story_beside_it(run_pytest: Pytest, project: Path) -> None:
    write_test(
        project,
        """
def test_it(harrow):
    assert harrow.run("loss-by-hw-truncation", seed=3).verdict.status == "held"
""",
    )
    result = run_pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*assert harrow.run*",
            "*Captured harrow call*",
            "loss-by-hw-truncation, seed 3: violated, as expected, lost m1 despite acks=all",
            "    *broker 1 truncated to its own high watermark, 1, removing m1",
            "  reproduce harrow run loss-by-hw-truncation --seed 3",
        ]
    )


MISTAKES = {
    'run("campaigns/wrong.yaml")': "campaigns/wrong.yaml:3:1: *clutser*",
    'run("loss-by-hw-truncatoin")': "*did you mean `loss-by-hw-truncation`?",
    'run("campaigns")': "campaigns: a folder; name one campaign in it",
    'run("campaigns/permitted.yaml", variant="acks-al")': "*no variant `acks-al`; did you mean `acks-all`?",
    'run("campaigns/calm.yaml", seed=-1)': "seed: a seed is a whole number from 0 to 2^63 - 1",
    'expect("campaigns/calm.yaml", seeds=[])': "seeds: no seeds",
    'expect("campaigns/calm.yaml", seeds=["1"])': "seeds: *neither A..B nor whole numbers",
    'expect("campaigns/calm.yaml", variants=[])': "*nothing ran",
    'run({"clutser": {}})': "*clutser*did you mean `cluster`?",
    'run("campaigns/calm.yaml", set={"akcs": 1})': "--set: akcs=1: *",
    "assert_expected(None)": "this result is not of a run of the fixture `harrow` of this test",
}


def test_mistakes_are_reported_in_one_line(run_pytest: Pytest, project: Path) -> None:
    calls = enumerate(MISTAKES)
    write_test(project, "".join(f"def test_{n}(harrow):\n    harrow.{call}\n" for n, call in calls))
    result = run_pytest("-v")
    result.assert_outcomes(failed=len(MISTAKES))
    for number, message in enumerate(MISTAKES.values()):
        result.stdout.fnmatch_lines([f"*_ test_{number} _*", message])
    for sign in ("*Traceback*", "*During handling*", "*pytest_harrow/*"):
        result.stdout.no_fnmatch_line(sign)


def test_inconclusive_runs_fail_unless_the_marker_skips_them(run_pytest: Pytest, project: Path) -> None:
    write_test(
        project,
        """
import pytest

def test_fails(harrow):
    harrow.expect("campaigns/undecided.yaml")

@pytest.mark.harrow(inconclusive="skip")
def test_skips(harrow):
    harrow.expect("campaigns/undecided.yaml")

@pytest.mark.harrow(inconclusive="skip")
def test_still_fails(harrow):
    harrow.expect("campaigns/failing.yaml")

@pytest.mark.harrow(sedes=range(3))
def test_wrong(harrow):
    pass
""",
    )
    result = run_pytest()
    result.assert_outcomes(failed=2, skipped=1, errors=1)
    result.stdout.fnmatch_lines(["the marker harrow takes only `seeds=`, `set=` and `inconclusive=`"])


def test_an_argument_that_is_no_campaign_fails_without_a_traceback(run_pytest: Pytest, project: Path) -> None:
    write_test(
        project,
        """
import pytest

@pytest.mark.parametrize("campaign", [None, 7, "", "nothing.yaml", "loss-by-hw-truncatoin", "campaigns"])
def test_it(harrow, campaign):
    harrow.run(campaign)
""",
    )
    result = run_pytest()
    result.assert_outcomes(failed=6)
    result.stdout.fnmatch_lines(
        [
            "harrow: a campaign is a file, a name of the library, YAML text or a mapping, not NoneType",
            "harrow: a campaign is *, not int",
            "*: the name of a campaign is empty",
            f"nothing.yaml: no such file or folder (looked for in {project})",
            "*did you mean `loss-by-hw-truncation`?",
            "campaigns: a folder; name one campaign in it",
        ]
    )
    assert "Error" not in result.stdout.str()
