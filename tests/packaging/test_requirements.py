"""The locked requirements: what `make` installs is what pyproject.toml allows, and no archive but those with the locked hashes."""

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


def asked_for(extra: str | None) -> Iterator[Requirement]:
    """Yield the libraries that the project needs, with those of an extra and of the extras that it names."""
    table = project()["project"]
    for line in table["dependencies"] if extra is None else table["optional-dependencies"][extra]:
        requirement = Requirement(line)
        if requirement.name != _PROJECT:
            yield requirement
        for other in requirement.extras if requirement.name == _PROJECT else ():
            yield from asked_for(other)


@cache
def locked(name: str) -> Mapping[str, set[str]]:
    """Return the versions of each library in a file: another one for some Pythons, perhaps."""
    versions: dict[str, set[str]] = {}
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    for library, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE):
        versions.setdefault(canonicalize_name(library), set()).add(version)
    return versions


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_locked_version_has_hashes_and_no_address(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    entries = text.replace("\\\n", " ").splitlines()
    assert entries
    for entry in entries:
        assert entry.lstrip().startswith("#") or "--hash=sha256:" in entry, entry


@pytest.mark.parametrize(("name", "extra"), [("run.txt", None), ("tests.txt", None), ("tests.txt", "test")])
def test_the_locked_versions_are_those_that_the_project_allows(name: str, extra: str | None) -> None:
    for requirement in asked_for(extra):
        versions = locked(name).get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement.name} is not in {name}: `make lock`"
        assert all(map(requirement.specifier.contains, versions)), f"{requirement}: not {versions}"


def test_all_files_lock_the_same_version_of_a_library() -> None:
    for name in ("run.txt", "build.txt"):
        assert {each: locked("tests.txt").get(each) for each in locked(name)} == locked(name)


def test_what_builds_harrow_is_locked() -> None:
    for line in project()["build-system"]["requires"]:
        requirement = Requirement(line)
        assert all(map(requirement.specifier.contains, locked("build.txt")[requirement.name]))


@pytest.mark.parametrize(
    "extra", [None, *sorted(project()["project"]["optional-dependencies"].keys() - {"test"})]
)
def test_no_library_may_be_of_a_major_version_that_was_never_tried(extra: str | None) -> None:
    for requirement in asked_for(extra):
        bounds = {each.operator for each in requirement.specifier}
        assert bounds & {"<", "<=", "==", "~="}, f"{requirement} has no upper bound"
