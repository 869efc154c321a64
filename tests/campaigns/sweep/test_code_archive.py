"""Executors run compiled where the library is for their Python, and plain Python elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest

from harrow import compilation
from harrow.campaigns.language import kafka_settings
from harrow.campaigns.sweep import code_archive
from harrow.campaigns.sweep.code_archive import library, write_code_archive
from tests.patience import PATIENCE_S

EXECUTOR = """
import sys
sys.path[:0] = sys.argv[1:]
import harrow.cluster_model.sim.simulator as simulator
from harrow.compilation import compilation
assert "code.zip" in simulator.__spec__.origin
print(compilation()[0], type(simulator.__spec__.loader).__name__)
"""

needs_library = pytest.mark.skipif(
    compilation.compilation()[0] != compilation.COMPILED, reason="nothing is compiled"
)


READER = """
import sys
sys.path[:0] = sys.argv[1:]
from harrow.campaigns.language import kafka_settings
assert "code.zip" in kafka_settings.__spec__.origin
print(kafka_settings.unmodelled_hint("log.cleaner.threads"), kafka_settings.refusal("broker", "log.cleaner.threads", "x"))
"""


def executor(*path: Path | str, program: str = EXECUTOR, folder: Path | None = None) -> str:
    """Return what a Python prints that has only these places on its path."""
    words = [sys.executable, "-I", "-S", "-c", program, *map(str, path)]
    completed = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


@needs_library
def test_an_executor_with_the_library_on_its_path_runs_compiled(tmp_path: Path) -> None:
    archive = write_code_archive(tmp_path / "code.zip")
    files = tmp_path / "files"
    files.mkdir()
    assert executor(archive, files) == f"{compilation.UNLOADABLE} zipimporter"
    (files / compilation.LIBRARY.name).symlink_to(compilation.LIBRARY)
    assert executor(archive, files) == f"{compilation.COMPILED} _Library"


@needs_library
def test_an_executor_may_find_the_archive_in_its_working_folder(tmp_path: Path) -> None:
    """A standalone cluster starts Python with ``./code.zip`` and ``.`` on its path."""
    write_code_archive(tmp_path / "code.zip")
    (tmp_path / compilation.LIBRARY.name).symlink_to(compilation.LIBRARY)
    assert executor("./code.zip", ".", folder=tmp_path) == f"{compilation.COMPILED} _Library"


@needs_library
def test_an_executor_that_cannot_load_the_library_runs_plain_python(tmp_path: Path) -> None:
    archive = write_code_archive(tmp_path / "code.zip")
    (tmp_path / compilation.LIBRARY.name).write_bytes(b"a library of another platform")
    assert executor(archive, tmp_path) == f"{compilation.UNLOADABLE} zipimporter"


@needs_library
def test_a_library_for_another_python_is_not_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name has the version of Python and the platform."""
    other = tmp_path / "harrow__mypyc.cpython-399-z80-linux-gnu.so"
    other.symlink_to(compilation.LIBRARY)
    sources = tmp_path / f"{other.name}.sources"
    sources.symlink_to(compilation.SOURCES)
    monkeypatch.setattr(code_archive, "library", lambda: other)
    archive = write_code_archive(tmp_path / "code.zip")
    assert executor(archive, tmp_path) == f"{compilation.PURE} zipimporter"


def test_plain_python_ships_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "compilation", lambda: (compilation.PURE, frozenset()))
    assert library() is None
    assert executor(write_code_archive(tmp_path / "code.zip")) == f"{compilation.PURE} zipimporter"


def test_an_executor_knows_the_settings_that_the_model_lacks(tmp_path: Path) -> None:
    archive = write_code_archive(tmp_path / "code.zip")
    hint = kafka_settings.unmodelled_hint("log.cleaner.threads")
    refusal = kafka_settings.refusal("broker", "log.cleaner.threads", "x")
    assert hint
    assert refusal
    assert executor(archive, program=READER) == f"{hint} {refusal}"
