"""The core compiled and in plain Python: which of them runs, and that both give the same.

In an environment that has nothing compiled, what compares them is skipped; CI compiles and runs it.
"""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harrow import compilation
from harrow.campaigns.run.runner import run_plan
from tests.library_swarm import library_swarm
from tests.patience import PATIENCE_S
from tests.plain_environment import ROOT, plain_environment

HOW = "from harrow.compilation import compilation; import harrow.core; print(compilation()[0], harrow.core.__spec__.loader)"


def printed(*words: str, **variables: str) -> str:
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**plain_environment(), "HARROW_PURE": "", **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package with a source that seems to be compiled; its library is no library."""
    home = tmp_path / "harrow"
    home.mkdir()
    for name in ("__init__.py", "compilation.py"):
        shutil.copy(ROOT / "src" / "harrow" / name, home)
    (home / "core.py").write_text("", encoding="utf-8")
    (home / compilation.LIBRARY.name).write_text("", encoding="utf-8")
    line = compilation.source_line(home, "core.py", "harrow.core")
    (home / compilation.SOURCES.name).write_text(f"{line}\n", encoding="utf-8")
    return home


def test_what_is_compiled_is_imported_unless_plain_python_is_asked_for(package: Path) -> None:
    place = str(package.parent)
    with pytest.raises(AssertionError, match="ImportError"):
        printed("-c", HOW, PYTHONPATH=place)
    assert printed("-c", HOW, PYTHONPATH=place, HARROW_PURE="1").startswith(compilation.PURE)


@pytest.mark.parametrize("change", ["changed", "gone"])
def test_what_was_compiled_of_other_sources_is_never_imported(package: Path, change: str) -> None:
    if change == "changed":
        (package / "core.py").write_text("CHANGED = True\n", encoding="utf-8")
    else:
        (package / "other.py").write_text("", encoding="utf-8")
        line = compilation.source_line(package, "other.py", "")
        (package / "other.py").unlink()
        with (package / compilation.SOURCES.name).open("a", encoding="utf-8") as sources:
            sources.write(f"{line}\n")
    assert printed("-c", HOW, PYTHONPATH=str(package.parent)).startswith(compilation.STALE)


@pytest.mark.skipif(compilation.compilation()[0] != compilation.COMPILED, reason="nothing is compiled")
def test_compiled_or_not_a_seed_gives_the_same_digests_verdicts_and_findings() -> None:
    assert printed("-m", "benchmarks.compiled", "10").count(" 0 of them different") == 2


def test_what_a_run_gives_goes_to_another_process() -> None:
    result = run_plan(library_swarm(), 1)
    sent = pickle.loads(pickle.dumps(result))
    assert [operation.as_mapping() for operation in sent.evidence.operations] == [
        operation.as_mapping() for operation in result.evidence.operations
    ]
    assert sent.verdict == result.verdict
    assert {
        name: {broker: log.values() for broker, log in logs.items()}
        for name, logs in sent.evidence.replicas.items()
    } == {
        name: {broker: log.values() for broker, log in logs.items()}
        for name, logs in result.evidence.replicas.items()
    }


def test_the_command_says_that_plain_python_was_asked_for() -> None:
    assert printed("-m", "harrow", "--version", HARROW_PURE="1", PYTHONPATH="src").endswith("(pure Python)\n")
