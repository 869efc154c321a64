"""harrow finds Java, or reports in one line that it is missing."""

import stat
from pathlib import Path

import pytest

from harrow.live_cluster.releases.java import JavaError, find_java


def java(folder: Path, output: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.parametrize("output", ['openjdk version "17.0.15" 2025-04-15', 'java version "21"'])
def test_java_home_comes_first(tmp_path: Path, output: str) -> None:
    first, second = java(tmp_path / "home", output), java(tmp_path / "other", output)
    path = str(second.parent)
    assert find_java({"JAVA_HOME": str(first.parents[1]), "PATH": path}) == first
    assert find_java({"PATH": path}) == second


@pytest.mark.parametrize(
    ("output", "message"),
    [('java version "1.8.0_442"', "is Java 8"), ("nothing", "does not print its version")],
)
def test_old_java_is_refused(tmp_path: Path, output: str, message: str) -> None:
    program = java(tmp_path, output)
    with pytest.raises(JavaError, match=message):
        find_java({"PATH": str(program.parent)})


def test_missing_java_is_reported() -> None:
    with pytest.raises(JavaError, match="brokers need Java 17, and there is none on the path: install it"):
        find_java({"PATH": ""})
    with pytest.raises(JavaError, match=r"none in JAVA_HOME \(/nowhere\)"):
        find_java({"JAVA_HOME": "/nowhere"})
