"""Distributions have the right contents, and each way to install harrow gives the same code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harrow.campaigns.version import identity, version
from tests.packaging.distributions import VirtualEnvironment, build, content, unpack
from tests.plain_environment import ROOT

PACKAGES = ("campaigns", "checks", "cli", "cluster_model", "faults", "live_cluster", "pytest_harrow")
GENERIC_NAMES = (*PACKAGES, "tests", "docs", "benchmarks")

ARCHIVE = """
import sys
from pathlib import Path
from harrow.campaigns.sweep.code_archive import write_code_archive
write_code_archive(Path(sys.argv[1]))
"""

EXECUTOR = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from harrow.campaigns.run.runner import run_plan
assert "packages.zip" in run_plan.__code__.co_filename
with open(sys.argv[2], "rb") as file:
    print(run_plan(pickle.load(file), 0).trace_digest)
from harrow.campaigns.version import identity
print(identity())
"""

DRIVER = """
import pickle, sys
from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.run.runner import run_plan
plan = load_campaign(resolve("loss-by-hw-truncation")[0]).plans[0]
with open(sys.argv[1], "wb") as file:
    pickle.dump(plan, file)
print(run_plan(plan, 0).trace_digest)
from harrow.campaigns.version import identity
print(identity())
"""


def sources() -> dict[str, bytes]:
    """Return the files of harrow's packages by their installed names."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*")]
    contents = {
        f"harrow/{path.relative_to(ROOT)}": path.read_bytes()
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
    }
    for name in ("__init__.py", "__main__.py", "compilation.py", "py.typed"):
        contents[f"harrow/{name}"] = (ROOT / "src" / "harrow" / name).read_bytes()
    contents["harrow/campaigns/built.json"] = f'{{"version": "{version()}"}}\n'.encode()
    return contents


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    packed = {name: data for name, data in content(wheel).items() if ".dist-info/" not in name}
    assert packed == sources()
    for name in ("campaigns/library/standard.yaml", "cli/page/trace.js", "py.typed"):
        assert f"harrow/{name}" in packed


def test_the_wheel_has_its_metadata(wheel: Path) -> None:
    info = {
        name.partition(".dist-info/")[2]: data.decode()
        for name, data in content(wheel).items()
        if ".dist-info/" in name
    }
    assert info["entry_points.txt"].split() == [
        *("[console_scripts]", "harrow", "=", "harrow.cli.__main__:main"),
        *("[pytest11]", "harrow", "=", "harrow.pytest_harrow.plugin"),
    ]
    assert "licenses/LICENSE" in info
    required = [line for line in info["METADATA"].splitlines() if line.startswith("Requires-Dist:")]
    assert {re.split("[<>=]", line.split()[1])[0] for line in required if "extra ==" not in line} == {
        *("filelock", "platformdirs", "pydantic", "pyyaml", "rich", "typer")
    }


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    again = build("wheel", unpack(sdist, tmp_path / "source"), tmp_path / "dist")
    assert normalize(content(again)) == normalize(content(wheel))
    assert again.name == wheel.name


def normalize(packed: dict[str, bytes]) -> dict[str, object]:
    """Return the contents of a wheel, with its file list sorted."""
    return {
        name: sorted(data.splitlines()) if name.endswith("RECORD") else data for name, data in packed.items()
    }


def test_the_source_distribution_has_each_file_once(sdist: Path, tmp_path: Path) -> None:
    source = unpack(sdist, tmp_path / "source")
    assert sorted(path.name for path in (source / "src" / "harrow").iterdir()) == [
        *("__init__.py", "__main__.py", "compilation.py", "py.typed")
    ]
    assert {path.name for path in source.iterdir() if path.is_dir()} >= set(GENERIC_NAMES)
    assert [path.name for path in (source / "results").iterdir()] == ["README.md"]


def archive_of(environment: VirtualEnvironment, folder: Path) -> bytes:
    """Return the code archive for Spark's executors."""
    archive = folder / "packages.zip"
    environment.run("python", "-c", ARCHIVE, archive, folder=folder)
    return archive.read_bytes()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("source", ["wheel", "sdist"])
def test_an_installed_harrow_is_one_package_and_runs(
    request: pytest.FixtureRequest, source: str, environment: VirtualEnvironment, elsewhere: Path
) -> None:
    environment.install(request.getfixturevalue(source))
    installed = {name.split("/")[0] for name in environment.files()}
    assert {name.partition("-")[0] for name in installed} == {"dependencies.pth", "harrow", "kafka_harrow"}
    assert_it_runs(environment, elsewhere)


def test_an_editable_installation_runs_the_checkout_and_copies_nothing(
    environment: VirtualEnvironment, elsewhere: Path
) -> None:
    environment.install("--editable", ROOT)
    assert not [name for name in environment.files() if name.endswith((".py", ".yaml"))]
    assert_it_runs(environment, elsewhere)
    completed = environment.run(
        "python", "-c", "import harrow.faults as f; print(f.__file__)", folder=elsewhere
    )
    assert Path(completed.stdout.strip()).resolve() == (ROOT / "faults" / "__init__.py").resolve()


def test_an_installed_harrow_has_the_version_and_digest_of_the_checkout(
    wheel: Path, environment: VirtualEnvironment, elsewhere: Path
) -> None:
    environment.install(wheel)
    script = "from harrow.campaigns.version import identity; print(identity())"
    assert environment.run("python", "-c", script, folder=elsewhere).stdout == f"{identity()}\n"


def assert_it_runs(environment: VirtualEnvironment, folder: Path) -> None:
    for words in (("harrow",), ("python", "-m", "harrow")):
        completed = environment.run(*words, "run", "loss-by-hw-truncation", "--no-results", folder=folder)
        assert "as expected" in completed.stdout
    script = f"import importlib.util as u; print([n for n in {GENERIC_NAMES!r} if u.find_spec(n)])"
    assert environment.run("python", "-c", script, folder=folder).stdout == "[]\n"


def test_executors_get_the_same_code_from_a_wheel_and_from_a_checkout(
    wheel: Path, environment: VirtualEnvironment, elsewhere: Path
) -> None:
    environment.install(wheel)
    digest = environment.run("python", "-c", DRIVER, "plan", folder=elsewhere).stdout
    from_wheel = archive_of(environment, elsewhere)
    # An executor has only Python and the archive.
    script = (sys.executable, "-I", "-S", "-c", EXECUTOR, "packages.zip", "plan")
    completed = subprocess.run(script, cwd=elsewhere, capture_output=True, text=True, check=True)
    assert completed.stdout == digest
    environment.pip("uninstall", "--yes", "kafka-harrow")
    environment.install("--editable", ROOT)
    assert archive_of(environment, elsewhere) == from_wheel
