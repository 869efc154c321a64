"""The version of harrow, and a digest of the sources that decide how a run goes.

The version comes from the first of these that exists:

- ``built.json`` beside this file. Wheels, source distributions and the archive for Spark's
  executors have it.
- The checkout: a tag such as ``v0.3.0``, or a commit after a tag, such as
  ``0.3.1.dev12+g1a2b3c4d``. Without tags, commits are counted from the first one. A shallow clone
  lacks some of them, so there the count is 0.
- ``.git_archival.txt``, in an archive that git made, such as GitHub's of a tag. In a checkout it
  has placeholders, which ``git archive`` replaces.
- `RELEASE`.

A version names a commit. Only the digest shows whether files have changed since.

hatchling loads this file alone to build a distribution, so it imports nothing from harrow.
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

BUILT: Final = "built.json"

ARCHIVAL: Final = ".git_archival.txt"

_RECORDS_SINCE: Final = (0, 2)
"""The oldest version (major, minor) whose recorded runs this one can read.

Older traces had other events, and older findings had sentences where there is data now.
"""

_ROOMS: Final = Path(__file__).resolve().parents[1]
"""The folder that holds the rooms; in an editable installation they are links."""

_TAGS: Final = "v[0-9]*"
_TAG: Final = re.compile(r"v(?P<release>[0-9].*?)(-(?P<distance>\d+)-(?P<commit>g[0-9a-f]+))?")
_COMMIT_DIGITS: Final = 8
"""A fixed number, because git shows more digits in clones with more objects."""

_DECIDING: Final = (
    *("cluster_model/**/*.py", "faults/**/*.py", "checks/**/*.py"),
    *("campaigns/language/**/*.py", "campaigns/run/**/*.py"),
    *("campaigns/clients/**/*.py", "campaigns/probes/**/*.py"),
)
"""Everything that reads a plan, runs it and judges the run."""

_DIGITS_SHOWN: Final = 8


@cache
def version() -> str:
    recorded = _built().get("version")
    return str(recorded or _version_of_checkout() or _version_of_archive() or f"{_next(RELEASE)}.dev0")


@cache
def model_digest() -> str:
    """Return the digest of the sources that decide how a run goes.

    Compiling them, or changing their line ends, does not change it.
    """
    if recorded_digest := _built().get("model"):
        return str(recorded_digest)
    digest = hashlib.sha256()
    for name, source in _deciding_sources():
        content = source.replace(b"\r\n", b"\n")
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def short_model_digest() -> str:
    """Return the part of the digest that appears in names."""
    return model_digest()[:_DIGITS_SHOWN]


def name_ending() -> str:
    """Return the end of every run's name: the version and the short digest."""
    return f"-{version()}-{short_model_digest()}"


def identity() -> dict[str, str]:
    """Return the version and the digest, as runs and sweeps record them."""
    return {"version": version(), "model": model_digest()}


def another_harrow(recorded_version: str, recorded_model: str | None) -> str | None:
    """Name the harrow that made a record, or return None if its runs go as they do here.

    Records older than the model digest have only the version.
    """
    if recorded_model == model_digest():
        return None
    return f"recorded by another harrow ({_named(recorded_version, recorded_model)}; this is {_named(**identity())})"


def reads_records_of(recorded: str) -> bool:
    """Return whether this version reads runs that another recorded; it tries unknown ones."""
    numbers = _numbers(recorded)
    return numbers is None or _RECORDS_SINCE <= numbers <= (_numbers(version()) or numbers)


def _named(version: str, model: str | None) -> str:
    return version if model is None else f"{version}, model {model[:_DIGITS_SHOWN]}"


def _numbers(text: str) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", text)
    return None if match is None else (int(match[1]), int(match[2]))


def _built() -> dict[str, Any]:
    """Return the contents of ``built.json``; a checkout has none."""
    loader = getattr(__spec__, "loader", None)
    try:
        # Spark's executors have the code in an archive. Only the loader can read it, and only by
        # its own path, which may start with "./"; a `Path` would drop that.
        beside = os.path.join(os.path.dirname(__file__), BUILT)  # noqa: PTH118, PTH120 - a Path drops "./"
        text = loader.get_data(beside) if loader else b"{}"
        content = json.loads(text)
    except (AttributeError, OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _version_of_checkout() -> str | None:
    # If harrow is copied into another project's repository, git would report that project's
    # commits.
    if not (_ROOMS / ".git").exists():
        return None
    described = _git("describe", "--tags", f"--match={_TAGS}", f"--abbrev={_COMMIT_DIGITS}")
    if described_version := _version_of_description(described or ""):
        return described_version
    head = _git("rev-parse", "--is-shallow-repository", f"--short={_COMMIT_DIGITS}", "HEAD")
    if head is None:
        return None
    shallow, commit = head.split()
    count = _git("rev-list", "--count", "HEAD") if shallow == "false" else None
    return f"{_next(RELEASE)}.dev{count or 0}+g{commit}"


def _version_of_archive() -> str | None:
    try:
        lines = (_ROOMS / ARCHIVAL).read_text(encoding="utf-8").splitlines()
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
    tag = _TAG.fullmatch(description)
    if tag is None:
        return None
    release = tag["release"]
    return f"{_next(release)}.dev{tag['distance']}+{tag['commit']}" if tag["commit"] else release


def _next(release: str) -> str:
    """Return the release after *release*; development versions sort between the two."""
    numbers = re.match(r"(.*?)(\d+)$", release)
    assert numbers is not None, f"a release ends with a number, unlike {release}"
    return f"{numbers[1]}{int(numbers[2]) + 1}"


def _git(*words: str) -> str | None:
    """Return git's answer about the checkout; None if git is missing or fails."""
    import subprocess  # noqa: PLC0415 - an installed harrow never asks git

    # Git hooks run with variables that point to another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        process = subprocess.run(  # noqa: S603 - all words are constants
            ["git", "-C", str(_ROOMS), *words],  # noqa: S607 - the user's git
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


def _deciding_sources() -> Iterator[tuple[str, bytes]]:
    files = {
        path.relative_to(_ROOMS).as_posix(): path for pattern in _DECIDING for path in _ROOMS.glob(pattern)
    }
    for name in sorted(files):
        if not files[name].name.startswith("."):  # editors leave hidden files
            yield name, files[name].read_bytes()
