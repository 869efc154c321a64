"""The CI workflow, the action, the pre-commit hook and the Dockerfile work.

They name only files, targets and versions that exist.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from junitparser import JUnitXml

from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TO_COPY: Final = ROOT / "docs" / "how-to" / "ci" / "harrow.yml"
ACTION: Final = ROOT / "action.yml"
HOOKS: Final = ROOT / ".pre-commit-hooks.yaml"
DOCKERFILE: Final = ROOT / "Dockerfile"

CAMPAIGN_WITH_VERDICT: Final = """
name: {name}
cluster: {{brokers: 1, topics: [{{name: t}}]}}
workload: {{producers: [{{name: p}}]}}
script: [{{do: {{send: m0}}}}, {{when: {{acked: m0}}}}]
expect: {{verdict: {verdict}}}
"""


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def workflow_steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def classified_pythons() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project["classifiers"]
    ]
    return [version[1] for version in versions if version]


def test_ci_tests_the_pythons_of_the_classifiers_and_the_next_one() -> None:
    matrix = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == classified_pythons()
    following = f"3.{int(classified_pythons()[-1].partition('.')[2]) + 1}"
    assert matrix["include"] == [{"python": following, "untried": True}]


def test_wheels_are_compiled_for_the_pythons_of_the_classifiers() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert tool["cibuildwheel"]["build"] == [f"cp{name.replace('.', '')}-*" for name in classified_pythons()]


def test_other_files_use_a_python_of_the_classifiers() -> None:
    named = [
        *re.findall(r"^FROM python:(3\.\d+)-slim", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE),
        read(ACTION)["inputs"]["python-version"]["default"],
    ]
    assert len(named) == 3
    assert set(named) <= set(classified_pythons())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_make_target_of_a_workflow_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = [line for step in workflow_steps(path) for line in step.get("run", "").splitlines()]
    called = [words[1] for words in map(shlex.split, commands) if words[0] == "make"]
    assert called
    assert set(called) <= targets


def test_ci_calls_the_make_targets_of_the_ci_script() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    in_script = set(re.findall(r"^(?:\w+=\S+ )*make (\w+)", script, re.MULTILINE))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    in_workflow = set(re.findall(r"- run: make (\w+)", workflow))
    # A hosted runner has too few cores for real brokers. A new checkout is already plain Python.
    assert in_script - in_workflow == {"live", "pure"}


@pytest.mark.parametrize("path", [*WORKFLOWS, TO_COPY, ACTION], ids=lambda path: path.name)
def test_only_actions_of_github_are_used_each_in_one_version(path: Path) -> None:
    steps = read(path)["runs"]["steps"] if path == ACTION else workflow_steps(path)
    used = {step["uses"] for step in steps if "uses" in step} - {"./"}
    assert [
        name for name in used if not re.fullmatch(r"(actions/[\w-]+|kafka-harrow/harrow)@v[\d.]+", name)
    ] == []
    names = [name.partition("@")[0] for name in used]
    assert len(names) == len(set(names))


def run_step(name: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell step of the action with `bash -eo pipefail` and inputs in variables."""
    (script,) = (step["run"] for step in read(ACTION)["runs"]["steps"] if step.get("name") == name)
    harrow = f'harrow() {{ "{sys.executable}" -m harrow "$@"; }}\n'
    return subprocess.run(
        ["/bin/bash", "-eo", "pipefail", "-c", harrow + script],
        cwd=folder,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a project with one campaign that has its expected outcome, and one that does not."""
    folder = tmp_path / "my campaigns"
    folder.mkdir()
    for name, verdict in (("calm", "held"), ("surprise", "violated")):
        (folder / f"{name}.yaml").write_text(
            CAMPAIGN_WITH_VERDICT.format(name=name, verdict=verdict), encoding="utf-8"
        )
    return tmp_path


def test_the_action_annotates_a_failure_and_writes_the_summary(repository: Path) -> None:
    summary = repository / "summary.md"
    inputs = {"CAMPAIGNS": "my campaigns/\n", "ARGUMENTS": "--seeds=0..2\n--no-results\n"}
    completed = run_step("Run campaigns", repository, GITHUB_STEP_SUMMARY=str(summary), **inputs)
    assert completed.returncode == 1, completed.stderr
    (annotation,) = [line for line in completed.stdout.splitlines() if line.startswith("::error")]
    assert "surprise.yaml" in annotation
    assert "surprise" in summary.read_text(encoding="utf-8")


def test_the_action_succeeds_when_campaigns_have_their_expected_outcomes(repository: Path) -> None:
    completed = run_step("Run campaigns", repository, CAMPAIGNS="my campaigns/calm.yaml", ARGUMENTS="")
    assert completed.returncode == 0, completed.stderr
    assert "::error" not in completed.stdout


def test_the_action_writes_junit_of_campaigns_that_fail(repository: Path) -> None:
    inputs = {"CAMPAIGNS": "my campaigns/", "ARGUMENTS": "", "JUNIT": "harrow.xml"}
    completed = run_step("Run campaigns", repository, **inputs)
    assert completed.returncode == 1, completed.stderr
    assert "::error" in completed.stdout
    suites = JUnitXml.fromfile(str(repository / "harrow.xml"))
    assert {suite.name: suite.failures for suite in suites} == {"calm": 0, "surprise": 1}


def test_the_action_fails_when_junit_cannot_be_written(repository: Path) -> None:
    inputs = {"CAMPAIGNS": "my campaigns/", "ARGUMENTS": "", "JUNIT": "nowhere/harrow.xml"}
    completed = run_step("Run campaigns", repository, **inputs)
    assert completed.returncode == 2
    assert "nowhere/harrow.xml" in completed.stderr
    assert not (repository / "results").exists()


def test_the_action_runs_each_campaign_once() -> None:
    scripts = [step.get("run", "") for step in read(ACTION)["runs"]["steps"]]
    assert sum(script.count("harrow run ") for script in scripts) == 1


def test_the_action_runs_the_corpus(repository: Path) -> None:
    corpus = ROOT / "tests" / "regressions" / "dedup.yaml"
    completed = run_step("Run regressions", repository, REGRESSIONS=str(corpus))
    assert completed.returncode == 0, completed.stderr
    assert run_step("Run regressions", repository, REGRESSIONS="nowhere").returncode == 2


def test_every_input_of_the_action_is_used_but_never_inside_a_script() -> None:
    action = read(ACTION)
    text = ACTION.read_text(encoding="utf-8")
    assert {name for name in action["inputs"] if f"inputs.{name}" not in text} == set()
    # An input inside a script could inject commands.
    assert [step["name"] for step in action["runs"]["steps"] if "${{" in step.get("run", "")] == []


def test_the_hook_checks_campaigns_and_reports_mistakes(repository: Path) -> None:
    (hook,) = read(HOOKS)
    assert re.search(hook["files"], "campaigns/calm.yaml")
    _, *words = shlex.split(hook["entry"])
    good = repository / "my campaigns" / "calm.yaml"
    bad = repository / "bad.yaml"
    bad.write_text(good.read_text(encoding="utf-8").replace("cluster:", "clutser:"), encoding="utf-8")
    for path, code in ((good, 0), (bad, 2)):
        completed = subprocess.run(
            [sys.executable, "-m", "harrow", *words, str(path)],
            cwd=repository,
            env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert completed.returncode == code, completed.stdout + completed.stderr


def test_the_image_copies_existing_files_and_runs_without_root() -> None:
    lines = DOCKERFILE.read_text(encoding="utf-8").splitlines()
    copied = [line.split()[1] for line in lines if line.startswith("COPY ")]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    last_stage = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert [line for line in last_stage if line.startswith("USER ")] == ["USER 10001"]
    needed = ("pyproject.toml", "hatch_build.py", "README.md", "campaigns", "src/harrow")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not set(ignored) & {f"{name}{end}" for name in needed for end in ("", "/")}
