"""Every command without the extras of harrow."""

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from harrow.cli.extras import EXTRAS, INCLUDED, PACKAGES
from harrow.cli.requests import COMMANDS
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

WITHOUT = """
import sys

HIDDEN = sys.argv.pop(1).split(",")

class Hiding:
    def __init__(self, finder):
        self._finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else self._finder.find_spec(name, path, target)

sys.meta_path[:] = map(Hiding, sys.meta_path)
"""
COMMAND = """
from harrow.cli.__main__ import main
main()
"""
PYTEST = """
import pytest
sys.exit(pytest.main(["-q", "-p", "harrow.pytest_harrow.plugin", *sys.argv[1:]]))
"""
ALL_MODULES = tuple(module for modules in EXTRAS.values() for module in modules)

CAMPAIGN = """
name: calm
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: producer-0}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
"""
HISTORY = '{"process": 0, "type": "invoke", "f": "send", "value": [["send", "t-0", "m0"]]}\n'


def run_without(
    *arguments: str, folder: Path, hidden: tuple[str, ...] = ALL_MODULES, program: str = COMMAND
) -> tuple[int, str]:
    """Run a command without the *hidden* modules and return its exit code and messages."""
    variables = {"HARROW_CACHE": str(folder / "cache"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT}{program}", ",".join(hidden), *arguments],
        cwd=folder,
        env={**plain_environment(), **variables, "PYTHONPATH": PYTHONPATH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return ended.returncode, ended.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "calm.yaml").write_text(CAMPAIGN, encoding="utf-8")
    (tmp_path / "cluster.yaml").write_text('bootstrap: "127.0.0.1:1"\n', encoding="utf-8")
    (tmp_path / "history.jsonl").write_text(HISTORY, encoding="utf-8")
    (tmp_path / "server.properties").write_text("broker.id=1\n", encoding="utf-8")
    (tmp_path / "corpus").mkdir()
    return tmp_path


NEEDS = {
    "sweep calm.yaml --seeds 0..2 --engine process": "sweep",
    "sweep --report swept": "sweep",
    "sweep calm.yaml --seeds 0..2 --engine spark": "spark",
    "sweep calm.yaml --seeds 0..2 --remote sc://localhost:1": "connect",
    "check history.jsonl --engine spark": "spark",
    "assess server.properties --engine spark": "spark",
    "advise server.properties --survive broker-dies --engine spark": "spark",
    "run calm.yaml --engine hypothesis": "hypothesis",
    "run calm.yaml --target kafka:2.4.1": "live",
    "run calm.yaml --target cluster.yaml": "live",
    "conform calm.yaml --target kafka:2.4.1": "live",
    "conform calm.yaml --target cluster.yaml": "live",
    "conform --requests 3 --target kafka:2.4.1": "hypothesis,live",
    "target check cluster.yaml": "live",
    "heal": "live",
    "serve calm.yaml -- true": "live",
    "new mine --from cluster.yaml": "live",
}


@pytest.mark.parametrize(("command", "extra"), NEEDS.items())
def test_a_command_without_its_extra_names_the_install_command_in_one_line(
    folder: Path, command: str, extra: str
) -> None:
    code, message = run_without(*command.split(), folder=folder)
    assert code == 2
    assert message.count("\n") == 1
    assert message.endswith(f" is not installed: pip install 'kafka-harrow[{extra}]'\n")
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("extra", "module"), [(extra, module) for extra in ("sweep", "live") for module in EXTRAS[extra]]
)
def test_a_missing_module_is_reported_before_any_work(folder: Path, extra: str, module: str) -> None:
    command = next(command for command, needed in NEEDS.items() if needed == extra)
    code, message = run_without(*command.split(), folder=folder, hidden=(module,))
    advice = f"harrow: {PACKAGES.get(module, module)} is not installed: pip install 'kafka-harrow[{extra}]'\n"
    assert (code, message) == (2, advice)


WORKS = (
    "run calm.yaml",
    "run calm.yaml --seeds 0..3",
    "shrink calm.yaml --seed 0",
    "replay results/latest",
    "diff results/latest",
    "trace results/latest",
    "trace results/latest --format html",
    "regress corpus",
    "check history.jsonl",
    "validate calm.yaml",
    "list faults",
    "list campaigns",
    "explain broker_crash",
    "new mine",
    "import server.properties -o imported.yaml",
    "assess server.properties --show broker-dies --runs 1",
    "advise server.properties --survive broker-dies --runs 1 --change acks",
    "schema",
    "kafka list",
    "clean --keep 1",
)


def test_every_other_command_works_without_any_extra(folder: Path) -> None:
    for command in WORKS:
        code, message = run_without(*command.split(), folder=folder)
        assert code in {0, 1, 3} or "nothing to shrink" in message, (command, message)
        assert "internal error" not in message
        assert "is not installed" not in message


def test_the_pytest_plugin_works_without_any_extra(folder: Path) -> None:
    assert run_without("calm.yaml", folder=folder, program=PYTEST) == (0, "")
    assert (folder / "calm.yaml").exists()


MODULES = {module for modules in EXTRAS.values() for module in modules}
"""Modules of the extras. A distribution may contain more modules than harrow imports."""


def test_every_command_is_tried_without_extras() -> None:
    assert {command.split()[0] for command in (*NEEDS, *WORKS)} == set(COMMANDS)


def test_the_extras_are_those_of_the_project() -> None:
    """A library only in pyproject.toml would cause an internal error, and one only in `EXTRAS` bad
    advice.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brings: dict[str, set[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            brings.setdefault(distribution.lower(), set()).add(module)
    added: dict[str, set[str]] = {}
    included: dict[str, str] = {}
    for extra, requirements in project["optional-dependencies"].items():
        if extra != "test":
            names = [requirement.partition(">")[0].partition("<")[0] for requirement in requirements]
            others = [name for name in names if name.startswith("kafka-harrow[")]
            included.update((extra, name.partition("[")[2].rstrip("]")) for name in others)
            added[extra] = {
                # pyspark[connect] is pyspark with gRPC.
                "grpc" if name == "pyspark[connect]" else min(brings[name.partition("[")[0]] & MODULES)
                for name in names
                if name not in others
            }
    assert added == {extra: set(modules) for extra, modules in EXTRAS.items()}
    assert included == INCLUDED
