"""pyproject.toml allows the locked versions, and lock files list hashes of their archives."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
FILES: Final = sorted((ROOT / "requirements").glob("*.txt"))
_PROJECT: Final = "kafka-harrow"


@cache
def project() -> Mapping[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements_of(extra: str | None) -> Iterator[Requirement]:
    """Yield the requirements of the project or of an extra, and of the extras that it names."""
    table = project()["project"]
    for line in table["dependencies"] if extra is None else table["optional-dependencies"][extra]:
        requirement = Requirement(line)
        if requirement.name != _PROJECT:
            yield requirement
        for other in requirement.extras if requirement.name == _PROJECT else ():
            yield from requirements_of(other)


@cache
def locked_versions(name: str) -> Mapping[str, set[str]]:
    """Return the versions that a file locks for each library. Versions may differ by Python."""
    versions: dict[str, set[str]] = {}
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    for library, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE):
        versions.setdefault(canonicalize_name(library), set()).add(version)
    return versions


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_locked_version_has_hashes_and_no_url(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    entries = text.replace("\\\n", " ").splitlines()
    assert entries
    for entry in entries:
        assert entry.lstrip().startswith("#") or "--hash=sha256:" in entry, entry


@pytest.mark.parametrize(("name", "extra"), [("run.txt", None), ("tests.txt", None), ("tests.txt", "test")])
def test_the_project_allows_the_locked_versions(name: str, extra: str | None) -> None:
    for requirement in requirements_of(extra):
        versions = locked_versions(name).get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement.name} is not in {name}: `make lock`"
        assert all(map(requirement.specifier.contains, versions)), f"{requirement}: not {versions}"


def test_all_files_lock_the_same_version_of_a_library() -> None:
    for name in ("run.txt", "build.txt"):
        assert {
            library: locked_versions("tests.txt").get(library) for library in locked_versions(name)
        } == locked_versions(name)


def test_build_requirements_are_locked() -> None:
    for line in project()["build-system"]["requires"]:
        requirement = Requirement(line)
        assert all(map(requirement.specifier.contains, locked_versions("build.txt")[requirement.name]))


@pytest.mark.parametrize(
    "extra", [None, *sorted(project()["project"]["optional-dependencies"].keys() - {"test"})]
)
def test_every_library_has_an_upper_bound(extra: str | None) -> None:
    for requirement in requirements_of(extra):
        bounds = {specifier.operator for specifier in requirement.specifier}
        assert bounds & {"<", "<=", "==", "~="}, f"{requirement} has no upper bound"
