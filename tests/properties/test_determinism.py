"""A run depends only on its plan and choices, not on process, hash seed or Python version."""

import ast
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.sim.choices import STREAM_NAMES, Choices
from tests.campaigns.run.eventful_plan import digests, eventful_plan
from tests.plain_environment import PYTHONPATH
from tests.recorded_choices import RecordingStream, recorded_choices

ROOT = Path(__file__).parents[2]
CORE = ("cluster_model", "faults", "checks")
IMPURE = {
    "asyncio",
    "concurrent",
    "datetime",
    "io",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "selectors",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
    "weakref",
}
MAKES_CLASSES = "lazy_dataclass.py"
"""The file that creates methods of classes, as `dataclasses` does, with `exec` and `vars`."""
IMPURE_BUILTINS = {
    "breakpoint",
    "compile",
    "eval",
    "exec",
    "globals",
    "hash",
    "id",
    "input",
    "open",
    "print",
    "vars",
}


@cache
def digests_here() -> list[str]:
    return digests()


def digests_elsewhere(python: str, hash_seed: str = "random") -> list[str]:
    """Run the same plans in a new process with only the standard library."""
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": hash_seed, "PYTHONPATH": PYTHONPATH}
    command = [python, "-B", "-s", "-S", "-m", "tests.campaigns.run.eventful_plan"]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_the_same_seed_gives_the_same_run() -> None:
    assert digests() == digests_here()
    assert len(set(digests_here())) == len(digests_here()), "seeds and releases differ"


def test_the_plans_have_many_events() -> None:
    """In runs without events, the other tests in this file would show little."""
    probes: dict[str, int] = {}
    for seed in range(2):
        for probe, count in run_plan(eventful_plan(), seed).probes.items():
            probes[probe] = probes.get(probe, 0) + count
    assert {"controller-changed", "clean-election", "isr-shrank", "isr-expanded", "truncated"} <= set(probes)
    assert sum(probes.values()) > 50


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_fresh_processes_agree_under_every_hash_seed(hash_seed: str) -> None:
    assert digests_elsewhere(sys.executable, hash_seed) == digests_here()


def other_pythons() -> dict[str, str]:
    """Return interpreters of other versions from 3.11 on, by version."""
    candidates = [shutil.which(f"python3.{minor}") for minor in range(11, 16)]
    versions = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates += [str(path) for path in sorted(versions.glob("3.*/bin/python3"))]
    interpreters: dict[str, str] = {}
    for python in filter(None, candidates):
        script = "import sys; sys.stdout.write('.'.join(map(str, sys.version_info[:2])))"
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
        version = done.stdout
        if done.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 11):
            interpreters.setdefault(version, python)
    interpreters.pop(".".join(map(str, sys.version_info[:2])), None)
    return interpreters


def test_other_python_versions_agree() -> None:
    others = other_pythons()
    if not others:
        pytest.skip("no other Python from 3.11 on is on PATH or in PYENV_ROOT")
    for version, python in others.items():
        assert digests_elsewhere(python) == digests_here(), version


@pytest.mark.parametrize("release", ["2.4", "0.10.2"])
def test_a_recording_of_the_choices_replays_the_run(release: str) -> None:
    plan = eventful_plan(release, idempotence=release == "2.4", seconds=10)
    seeded = Choices.from_seed(3)
    recordings = {name: RecordingStream(getattr(seeded, name)) for name in STREAM_NAMES}
    recorded = run_plan(plan, 3, Choices(**recordings))
    replay = recorded_choices({name: stream.drawn for name, stream in recordings.items()})
    assert run_plan(plan, 3, replay).trace_digest == recorded.trace_digest == run_plan(plan, 3).trace_digest
    assert run_plan(plan, 4).trace_digest != recorded.trace_digest


# Imports of the core


def core_files() -> list[Path]:
    return [path for room in CORE for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("path", core_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_is_pure(path: Path) -> None:
    """The core uses only the standard library, without its clocks, randomness, waiting and I/O."""
    allowed = (sys.stdlib_module_names | {"harrow"}) - IMPURE
    if path.name == "compiling.py":
        allowed |= {"mypy_extensions"}  # only mypyc reads it; Python never imports it
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported = {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported = {(node.module or "").partition(".")[0]}
        else:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if path.name == MAKES_CLASSES and node.func.id in ("compile", "vars"):
                    continue
                assert node.func.id not in IMPURE_BUILTINS, f"line {node.lineno}: {node.func.id}()"
            continue
        assert imported <= allowed, f"line {node.lineno}: {imported - allowed}"


def test_the_core_files_are_found() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in core_files()} == set(CORE)
    assert len(core_files()) > 50
