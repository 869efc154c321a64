"""Determines the version of harrow, and a digest of the sources that decide the course of a run.

The version comes from the first of these that exists:

- The file ``built.json`` beside this file. Wheels, source distributions and the archive for Spark's
  executors contain it.
- The git checkout: at the tag ``v0.3.0`` the version is ``0.3.0``, and at a later commit it is, for
  example, ``0.3.1.dev12+g1a2b3c4d``. Without tags, commits are counted from the first one. A
  shallow clone lacks some commits, so there the count is 0.
- The file ``.git_archival.txt``, in an archive that ``git archive`` or GitHub made. In a checkout
  the file has placeholders, which ``git archive`` replaces.
- `RELEASE`, with the next number and ``.dev0``.

A version names a commit. Only the digest shows whether files have changed since that commit.

To build a distribution, hatchling loads this file alone. So it imports nothing from harrow.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

RELEASE: Final = "0.3.0"
"""The last release."""

HOME: Final = "https://github.com/kafka-harrow/harrow"
"""The repository, as in `[project.urls]` of pyproject.toml."""

SCHEMA_URL: Final = f"{HOME}/releases/download/v{RELEASE}/campaign.schema.json"
"""The JSON Schema of campaigns as the last release published it; editors download it."""

CLUSTER_SCHEMA_URL: Final = f"{HOME}/releases/download/v{RELEASE}/cluster.schema.json"
"""The same for cluster files."""

BUILT: Final = "built.json"

ARCHIVAL: Final = ".git_archival.txt"

_READABLE_SINCE: Final = (0, 2)
"""The oldest version (major, minor) whose recorded runs this one can read.

Traces of earlier versions have other events, and their findings have sentences instead of data.
"""

_ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder that contains harrow's packages; links of an editable installation are resolved."""

_TAGS: Final = "v[0-9]*"
_TAG: Final = r"v(?P<release>[0-9].*?)(-(?P<distance>\d+)-(?P<commit>g[0-9a-f]+))?"
_COMMIT_DIGITS: Final = 8
"""A fixed number of digits. By default git shows more digits in clones with more objects."""

_MODEL_FOLDERS: Final = (
    *("cluster_model", "faults", "checks"),
    *("campaigns/language", "campaigns/run", "campaigns/clients", "campaigns/probes"),
)
"""The folders with the sources that read a plan, run it and judge the run."""

_DIGITS_SHOWN: Final = 8


@cache
def version() -> str:
    recorded = _built().get("version")
    return str(recorded or _version_of_checkout() or _version_of_archive() or f"{_next(RELEASE)}.dev0")


@cache
def model_digest() -> str:
    """Return the digest of the sources that decide the course of a run.

    It is the same if these sources are compiled, or have other line ends.
    """
    if recorded_digest := _built().get("model"):
        return str(recorded_digest)
    # SHA-1 takes half as long as SHA-256. Nobody forges sources to get the digest of others.
    digest = hashlib.sha1(usedforsecurity=False)
    for name, source in _model_sources():
        content = source.replace(b"\r\n", b"\n") if b"\r" in source else source
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def short_model_digest() -> str:
    """Return the first digits of the digest, which appear in the names of runs."""
    return model_digest()[:_DIGITS_SHOWN]


def name_ending() -> str:
    """Return the end of every run's name: the version and the short digest."""
    return f"-{version()}-{short_model_digest()}"


def identity() -> dict[str, str]:
    """Return the version and the digest, as runs and sweeps record them."""
    return {"version": version(), "model": model_digest()}


def another_harrow(recorded_version: str, recorded_model: str | None) -> str | None:
    """Name the harrow that recorded a run, or return None if this harrow has the same model.

    Older records have only a version, and no digest of the model.
    """
    if recorded_model == model_digest():
        return None
    return f"recorded by another harrow ({_named(recorded_version, recorded_model)}; this is {_named(**identity())})"


def reads_records_of(recorded: str) -> bool:
    """Return whether this version can read runs that *recorded*, another version, recorded.

    If *recorded* is not a version number, harrow tries to read them.
    """
    numbers = _numbers(recorded)
    return numbers is None or _READABLE_SINCE <= numbers <= (_numbers(version()) or numbers)


def _named(version: str, model: str | None) -> str:
    return version if model is None else f"{version}, model {model[:_DIGITS_SHOWN]}"


def _numbers(text: str) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", text)
    return None if match is None else (int(match[1]), int(match[2]))


def _built() -> dict[str, Any]:
    """Return the contents of ``built.json``, or an empty mapping in a checkout, which lacks it."""
    loader = getattr(__spec__, "loader", None)
    try:
        # Spark's executors have the code in an archive. Only the loader can read it, and only by
        # the path that it knows, which may start with "./". A `Path` would drop that.
        beside = os.path.join(os.path.dirname(__file__), BUILT)  # noqa: PTH118, PTH120 - a Path drops "./"
        text = loader.get_data(beside) if loader else b"{}"
        content = json.loads(text)
    except (AttributeError, OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _version_of_checkout() -> str | None:
    # If harrow is copied into the repository of another project, git would report commits of that
    # project.
    if not (_ROOT / ".git").exists():
        return None
    described = _git("describe", "--tags", f"--match={_TAGS}", f"--abbrev={_COMMIT_DIGITS}")
    if described and (described_version := _version_of_description(described)):
        return described_version
    head = _git("rev-parse", "--is-shallow-repository", f"--short={_COMMIT_DIGITS}", "HEAD")
    if head is None:
        return None
    shallow, commit = head.split()
    count = _git("rev-list", "--count", "HEAD") if shallow == "false" else None
    return f"{_next(RELEASE)}.dev{count or 0}+g{commit}"


def _version_of_archive() -> str | None:
    try:
        lines = (_ROOT / ARCHIVAL).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    commit = fields.get("node", "")
    if not re.fullmatch("[0-9a-f]{40,}", commit):  # a placeholder: git did not write this file
        return None
    described = _version_of_description(fields.get("describe-name", ""))
    return described or f"{_next(RELEASE)}.dev0+g{commit[:_COMMIT_DIGITS]}"


def _version_of_description(description: str) -> str | None:
    """Return the version that ``git describe --tags`` describes: a tag, or a commit after one."""
    tag = re.fullmatch(_TAG, description)
    if tag is None:
        return None
    release = tag["release"]
    return f"{_next(release)}.dev{tag['distance']}+{tag['commit']}" if tag["commit"] else release


def _next(release: str) -> str:
    """Return the release after *release*; development versions sort between the two."""
    stem = release.rstrip("0123456789")
    number = release.removeprefix(stem)
    assert number, f"a release ends with a number, unlike {release}"
    return f"{stem}{int(number) + 1}"


def _git(*words: str) -> str | None:
    """Return git's answer about the checkout; None if git is missing or fails."""
    import subprocess  # noqa: PLC0415 - an installed harrow never asks git

    # Git hooks run with variables that point to another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        process = subprocess.run(  # noqa: S603 - all words are constants
            ["git", "-C", str(_ROOT), *words],  # noqa: S607 - the user's git
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            start_new_session=True,  # otherwise Ctrl-C would end git and change the version
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() or None if process.returncode == 0 else None


def _model_sources() -> Iterator[tuple[str, bytes]]:
    # `Path.glob` takes three times as long, and every run that writes results needs the digest.
    files: dict[str, str] = {}
    for folder in _MODEL_FOLDERS:
        for path, _, names in os.walk(_ROOT / folder):
            part = path[len(str(_ROOT)) + 1 :].replace(os.sep, "/")
            # Editors leave hidden files.
            files |= {
                f"{part}/{name}": f"{path}{os.sep}{name}"
                for name in names
                if name.endswith(".py") and not name.startswith(".")
            }
    for name in sorted(files):
        with open(files[name], "rb", buffering=0) as file:  # noqa: PTH123 - a `Path` for each file takes longer
            yield name, file.read()
