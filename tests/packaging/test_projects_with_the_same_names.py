"""harrow works beside distributions and projects with packages named like harrow's folders."""

from pathlib import Path

import pytest

from tests.cli.conftest import CAMPAIGNS
from tests.packaging.distributions import VirtualEnvironment, foreign_wheel

NAMES = ("cli", "checks", "faults", "campaigns", "tests")
FOREIGN = {f"{name}/__init__.py": f"WHOSE = 'foreign {name}'\n" for name in NAMES}
WHOSE = f"import {', '.join(NAMES)}\nprint({', '.join(f'{name}.WHOSE' for name in NAMES)}, sep='; ')"
FOREIGN_OUTPUT = f"{'; '.join(f'foreign {name}' for name in NAMES)}\n"
OWN_OUTPUT = f"{'; '.join(f'own {name}' for name in NAMES)}\n"

TESTS = """
import cli
from campaigns import WHOSE
from checks import judge
from faults import WHOSE as FAULTS


def test_our_own_code() -> None:
    assert (cli.WHOSE, WHOSE, FAULTS, judge()) == ("own cli", "own campaigns", "own faults", "judged")


def test_the_fixture(harrow) -> None:
    result = harrow.run("campaigns/permitted.yaml", seed=1)
    assert (result.verdict.status, type(result).__module__.partition(".")[0]) == ("permitted", "harrow")
    harrow.expect("loss-by-hw-truncation")
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    return foreign_wheel(tmp_path, FOREIGN)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with packages of these names, and with campaigns among its code."""
    folder = tmp_path / "project"
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"WHOSE = 'own {name}'\n", encoding="utf-8")
    (folder / "checks" / "__init__.py").write_text(
        "WHOSE = 'own checks'\ndef judge(): return 'judged'\n", encoding="utf-8"
    )
    (folder / "tests" / "test_own.py").write_text(TESTS, encoding="utf-8")
    (folder / "campaigns" / "permitted.yaml").write_text(CAMPAIGNS["permitted"], encoding="utf-8")
    (folder / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests campaigns\nharrow_campaigns = campaigns/*.yaml\nfilterwarnings = error\n",
        encoding="utf-8",
    )
    return folder


@pytest.mark.parametrize("foreign_first", [True, False], ids=["foreign-first", "harrow-first"])
def test_harrow_and_another_distribution_do_not_overwrite_each_other(
    environment: VirtualEnvironment, wheel: Path, foreign: Path, tmp_path: Path, *, foreign_first: bool
) -> None:
    first, second = (foreign, wheel) if foreign_first else (wheel, foreign)
    environment.install(first)
    before = environment.files()
    environment.install(second)
    after = environment.files()
    assert {name: after.get(name) for name in before} == before
    assert environment.run("python", "-c", WHOSE, folder=tmp_path).stdout == FOREIGN_OUTPUT
    completed = environment.run("harrow", "run", "loss-by-hw-truncation", "--no-results", folder=tmp_path)
    assert "as expected" in completed.stdout
    environment.pip("uninstall", "--yes", "kafka-harrow")
    remaining = environment.files()
    assert {name for name in remaining if "harrow" in name} == set()
    assert {name: remaining.get(name) for name in FOREIGN} == {
        name: text.encode() for name, text in FOREIGN.items()
    }
    assert environment.run("python", "-c", WHOSE, folder=tmp_path).stdout == FOREIGN_OUTPUT


def test_a_project_with_packages_of_the_same_names_works(
    environment: VirtualEnvironment, wheel: Path, foreign: Path, project: Path
) -> None:
    """The project's code and tests work, and so do harrow's command, fixture and campaign tests."""
    before = contents(project)
    environment.install(wheel, foreign)
    assert environment.run("python", "-c", WHOSE, folder=project).stdout == OWN_OUTPUT
    for words in (("harrow",), ("python", "-m", "harrow")):
        completed = environment.run(*words, "run", "campaigns/permitted.yaml", folder=project)
        assert "✓ held" in completed.stdout
    for pytest_command in (
        ("python", "-m", "pytest"),
        ("python", "-m", "pytest", "--import-mode=importlib"),
        # Like the command `pytest`, which does not put the current folder on the path.
        ("python", "-P", "-m", "pytest"),
        ("python", "-P", "-m", "pytest", "--import-mode=importlib", "-o", "pythonpath=."),
    ):
        completed = environment.run(*pytest_command, "-q", "-p", "no:cacheprovider", folder=project)
        # Two tests, and two campaigns: the base and its variant.
        assert "4 passed" in completed.stdout, completed.stdout
    environment.pip("uninstall", "--yes", "kafka-harrow")
    after = contents(project)
    assert {name: after.get(name) for name in before} == before
    assert environment.run("python", "-c", WHOSE, folder=project).stdout == OWN_OUTPUT


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
