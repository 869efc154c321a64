"""The version of harrow from any source of its code, and the digest of the model."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from harrow.campaigns import version as this
from harrow.campaigns.sweep.code_archive import write_code_archive
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

NEXT = f"{this.RELEASE.rpartition('.')[0]}.{int(this.RELEASE.rpartition('.')[2]) + 1}"


def version_module(checkout: Path) -> Any:
    """Return `version.py` of a checkout as a module of its own, as hatchling loads it."""
    spec = spec_from_file_location("loaded", checkout / "campaigns" / "version.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(folder: Path, *words: str) -> str:
    settings = ("user.name=t", "user.email=t", "commit.gpgsign=false", "core.hooksPath=/dev/null")
    command = ["git", "-C", str(folder), *(word for each in settings for word in ("-c", each)), *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "--allow-empty", "-qm", "x")
    return git(folder, "rev-parse", "--short=8", "HEAD")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a folder with a few files of harrow, and no repository."""
    folder = tmp_path / "sources"
    (folder / "campaigns" / "run").mkdir(parents=True)
    (folder / "cluster_model" / "log").mkdir(parents=True)
    shutil.copy(ROOT / "campaigns" / "version.py", folder / "campaigns")
    (folder / "campaigns" / "run" / "runner.py").write_bytes(b"one\ntwo\n")
    (folder / "cluster_model" / "log" / "leo.py").write_bytes(b"three\n")
    return folder


@pytest.fixture
def clone(sources: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    git(sources, "init", "-q")
    commit(sources)
    return sources


def test_a_checkout_without_tags_counts_its_commits(clone: Path) -> None:
    assert version_module(clone).version() == f"{NEXT}.dev1+g{git(clone, 'rev-parse', '--short=8', 'HEAD')}"
    head = commit(clone)
    assert version_module(clone).version() == f"{NEXT}.dev2+g{head}"


def test_a_tag_names_its_commit_and_those_that_follow_it(clone: Path) -> None:
    git(clone, "tag", "v7.1.9")
    assert version_module(clone).version() == "7.1.9"
    commit(clone)
    head = commit(clone)
    assert version_module(clone).version() == f"7.1.10.dev2+g{head}"
    git(clone, "tag", "-a", "v8.0.0rc1", "-m", "x")
    assert version_module(clone).version() == "8.0.0rc1"
    head = commit(clone)
    assert version_module(clone).version() == f"8.0.0rc2.dev1+g{head}"


def test_a_tag_without_a_version_is_ignored(clone: Path) -> None:
    git(clone, "tag", "vacation")
    git(clone, "tag", "nightly-1.0")
    assert version_module(clone).version().startswith(f"{NEXT}.dev1+g")


def test_a_shallow_clone_does_not_count_the_commits_that_it_lacks(clone: Path, tmp_path: Path) -> None:
    head = commit(clone)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", clone.as_uri(), str(shallow))
    assert version_module(shallow).version() == f"{NEXT}.dev0+g{head}"


def test_a_worktree_is_a_checkout(clone: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", "--detach", str(tmp_path / "worktree"))
    assert version_module(tmp_path / "worktree").version() == version_module(clone).version()


def test_a_checkout_is_found_through_links(clone: Path, tmp_path: Path) -> None:
    (clone / "src" / "harrow").mkdir(parents=True)
    (clone / "src" / "harrow" / "campaigns").symlink_to(clone / "campaigns")
    (tmp_path / "elsewhere").symlink_to(clone / "src")
    through = version_module(tmp_path / "elsewhere" / "harrow")
    assert through.version() == version_module(clone).version()
    assert through.model_digest() == version_module(clone).model_digest()


def test_a_hook_of_git_does_not_change_the_version(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = version_module(clone).version()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert version_module(clone).version() == expected


def archive(clone: Path, folder: Path, ref: str) -> Path:
    """Return the unpacked archive that git makes of a commit, as GitHub offers it for download."""
    folder.mkdir()
    packed = folder.with_suffix(".tar")
    git(clone, "archive", f"--output={packed}", ref)
    shutil.unpack_archive(packed, folder, filter="data")
    return folder


def test_an_archive_of_git_has_the_version_of_its_commit(clone: Path, tmp_path: Path) -> None:
    for name in (".gitattributes", this.ARCHIVAL):
        shutil.copy(ROOT / name, clone)
    untagged = commit(clone)
    assert (
        version_module(archive(clone, tmp_path / "untagged", "HEAD")).version() == f"{NEXT}.dev0+g{untagged}"
    )
    git(clone, "tag", "v7.1.9")
    assert version_module(archive(clone, tmp_path / "tagged", "v7.1.9")).version() == "7.1.9"
    commit(clone)
    head = commit(clone)
    assert version_module(archive(clone, tmp_path / "later", "HEAD")).version() == f"7.1.10.dev2+g{head}"


def test_sources_outside_git_and_archives_have_no_commit(sources: Path) -> None:
    shutil.copy(ROOT / this.ARCHIVAL, sources)
    assert version_module(sources).version() == f"{NEXT}.dev0"


def test_without_git_the_version_follows_the_last_release(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert version_module(clone).version() == f"{NEXT}.dev0"


def test_an_empty_repository_has_the_next_development_version(sources: Path) -> None:
    git(sources, "init", "-q")
    assert version_module(sources).version() == f"{NEXT}.dev0"


def test_the_repository_around_a_copy_is_not_that_of_harrow(clone: Path) -> None:
    vendored = clone / "vendored"
    (vendored / "campaigns").mkdir(parents=True)
    shutil.copy(clone / "campaigns" / "version.py", vendored / "campaigns")
    assert version_module(vendored).version() == f"{NEXT}.dev0"


def test_a_built_distribution_records_its_version(clone: Path) -> None:
    (clone / "campaigns" / "built.json").write_text(json.dumps({"version": "9.8.7"}))
    assert version_module(clone).version() == "9.8.7"
    assert version_module(clone).model_digest() != ""


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_damaged_record_of_the_version_is_ignored(sources: Path, text: str) -> None:
    (sources / "campaigns" / "built.json").write_text(text)
    assert version_module(sources).version() == f"{NEXT}.dev0"


def test_the_digest_depends_on_the_sources_but_not_on_their_line_ends(sources: Path) -> None:
    first = version_module(sources).model_digest()
    runner = sources / "campaigns" / "run" / "runner.py"
    runner.write_bytes(b"one\r\ntwo\r\n")
    assert version_module(sources).model_digest() == first
    (sources / "campaigns" / "run" / "__pycache__").mkdir()
    (sources / "campaigns" / "run" / "__pycache__" / "runner.cpython-311.pyc").write_bytes(b"x")
    (sources / "campaigns" / "run" / ".#runner.py").write_bytes(b"x")
    assert version_module(sources).model_digest() == first
    runner.write_bytes(b"one\ntwo\n#\n")
    assert version_module(sources).model_digest() != first
    runner.write_bytes(b"one\ntwo\n")
    runner.rename(runner.with_name("ran.py"))
    assert version_module(sources).model_digest() != first


def test_the_digest_depends_on_the_file_of_each_line(sources: Path) -> None:
    first = version_module(sources).model_digest()
    (sources / "campaigns" / "run" / "runner.py").write_bytes(b"one\n")
    (sources / "cluster_model" / "log" / "leo.py").write_bytes(b"two\nthree\n")
    assert version_module(sources).model_digest() != first


LOADED = """
import sys
import harrow.campaigns.run.runner, harrow.campaigns.run.proof, harrow.campaigns.run.swarm
print(*{m.__file__ for n, m in sys.modules.items() if n.startswith("harrow.") and m.__file__}, sep="\\n")
"""


def test_the_digest_covers_every_file_of_a_run() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH, "HARROW_PURE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    files = {Path(line).resolve().relative_to(ROOT).as_posix() for line in ended.stdout.split()}
    packages = {name for name in files if name.endswith("__init__.py")}
    finder = {"src/harrow/compilation.py"}
    assert len(files) > 200
    assert files - packages - finder <= {name for name, _ in this._model_sources()}


@pytest.mark.parametrize("entry", ["code.zip", "./code.zip"])
def test_an_executor_reports_the_version_of_its_archive_for_any_spelling_of_the_path(
    entry: str, tmp_path: Path
) -> None:
    """Executors of a Spark cluster have it as ``./``."""
    write_code_archive(tmp_path / "code.zip")
    script = f"import sys; sys.path.insert(0, {entry!r}); from harrow.campaigns import version as this; print(this.identity())"
    ended = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=tmp_path,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == f"{this.identity()}\n"


def test_a_record_of_the_same_model_counts_as_one_of_this_harrow() -> None:
    assert this.another_harrow("0.0.1", this.model_digest()) is None
    message = this.another_harrow("0.3.0", "0123456789abcdef")
    assert message is not None
    assert message.startswith("recorded by another harrow (0.3.0, model 01234567; this is ")
    older = this.another_harrow("0.2.0", None)
    assert older is not None
    assert older.startswith("recorded by another harrow (0.2.0; this is ")
