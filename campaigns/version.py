"""Which harrow this is: its version, and the digest of the sources that decide how a run goes.

The version comes from, in this order:

- ``built.json`` beside this file, which is in every wheel and source distribution, and in what Spark's executors get;
- the checkout: a tag such as ``v0.3.0``, or what follows one, as ``0.3.1.dev12+g1a2b3c4d``. Without tags commits count from
  the first one on, and in a shallow clone, which has not all of them, they do not count;
- `RELEASE`, where there is neither, nor git.

A version names a commit; whether files have been changed since then only the digest tells.

hatchling loads this file by itself to build a distribution, so it imports nothing of harrow.
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

BUILT: Final = "built.json"

_RECORDS_SINCE: Final = (0, 2)
"""The oldest version (major, minor) whose records of runs this one reads: until then traces had other events,
and findings had sentences where they have data now."""

_ROOMS: Final = Path(__file__).resolve().parents[1]
"""The folder that the rooms are in; of an editable installation they are links."""

_TAGS: Final = "v[0-9]*"
_TAG: Final = re.compile(r"v(?P<release>.+)-(?P<distance>\d+)-(?P<commit>g[0-9a-f]+)")
_COMMIT_DIGITS: Final = 8
"""As many in each clone: git itself takes more the more objects a clone has."""

_DECIDING: Final = (
    *("cluster_model/**/*.py", "faults/**/*.py", "checks/**/*.py"),
    *("campaigns/language/**/*.py", "campaigns/run/**/*.py"),
    *("campaigns/clients/**/*.py", "campaigns/probes/**/*.py"),
)
"""All that reads a plan, runs it and judges the run."""

_DIGITS_SHOWN: Final = 8


@cache
def version() -> str:
    """Return the version of harrow."""
    return str(_built().get("version") or _version_of_checkout() or f"{_next(RELEASE)}.dev0")


@cache
def model_digest() -> str:
    """Return the digest of the sources that decide how a run goes, whether compiled or not and whatever their line ends."""
    if known := _built().get("model"):
        return str(known)
    digest = hashlib.sha256()
    for name, source in _deciding_sources():
        content = source.replace(b"\r\n", b"\n")
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def short_model_digest() -> str:
    """Return as much of the digest as names have."""
    return model_digest()[:_DIGITS_SHOWN]


def name_ending() -> str:
    """Return how the name of each run of this harrow ends."""
    return f"-{version()}-{short_model_digest()}"


def identity() -> dict[str, str]:
    """Return the version and the digest, as records of runs and sweeps have them."""
    return {"version": version(), "model": model_digest()}


def another_harrow(recorded_version: str, recorded_model: str | None) -> str | None:
    """Return which other harrow recorded something; None where it was one whose runs go as those of this one.

    Records of before there were digests of the model say the version alone.
    """
    if recorded_model == model_digest():
        return None
    return f"recorded by another harrow ({_named(recorded_version, recorded_model)}; this is {_named(**identity())})"


def reads_records_of(recorded: str) -> bool:
    """Return whether this version reads what another one recorded of runs; of one that is not known, it tries."""
    numbers = _numbers(recorded)
    return numbers is None or _RECORDS_SINCE <= numbers <= (_numbers(version()) or numbers)


def _named(version: str, model: str | None) -> str:
    return version if model is None else f"{version}, model {model[:_DIGITS_SHOWN]}"


def _numbers(text: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text)
    return None if found is None else (int(found[1]), int(found[2]))


def _built() -> dict[str, Any]:
    """Return what was written down when this harrow was built; nothing in a checkout."""
    loader = getattr(__spec__, "loader", None)
    try:
        # Spark's executors have the code in an archive, which only the loader can read, and only by the path that it
        # has itself: that may start with "./", which a `Path` would leave out.
        beside = os.path.join(os.path.dirname(__file__), BUILT)  # noqa: PTH118, PTH120 - a Path drops "./"
        text = loader.get_data(beside) if loader else b"{}"
        found = json.loads(text)
    except (AttributeError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _version_of_checkout() -> str | None:
    # A copy of harrow in the repository of another project has that one's commits around it.
    if not (_ROOMS / ".git").exists():
        return None
    described = _git("describe", "--tags", "--long", f"--match={_TAGS}", f"--abbrev={_COMMIT_DIGITS}")
    if (tag := _TAG.fullmatch(described or "")) is not None:
        release, distance = tag["release"], int(tag["distance"])
        return f"{_next(release)}.dev{distance}+{tag['commit']}" if distance else release
    head = _git("rev-parse", "--is-shallow-repository", f"--short={_COMMIT_DIGITS}", "HEAD")
    if head is None:
        return None
    shallow, commit = head.split()
    count = _git("rev-list", "--count", "HEAD") if shallow == "false" else None
    return f"{_next(RELEASE)}.dev{count or 0}+g{commit}"


def _next(release: str) -> str:
    """Return the release that follows: versions of development come before it, and after the last one."""
    numbers = re.match(r"(.*?)(\d+)$", release)
    assert numbers is not None, f"a release ends with a number, unlike {release}"
    return f"{numbers[1]}{int(numbers[2]) + 1}"


def _git(*words: str) -> str | None:
    """Return what git says of the checkout; None where there is no git, or it refuses."""
    import subprocess  # noqa: PLC0415 - what is installed asks no git

    # A hook of git's runs with variables that would lead elsewhere.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        ended = subprocess.run(  # noqa: S603 - words of ours
            ["git", "-C", str(_ROOMS), *words],  # noqa: S607 - the git that the user has
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            start_new_session=True,  # Ctrl-C that ends git would change the version
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.strip() or None if ended.returncode == 0 else None


def _deciding_sources() -> Iterator[tuple[str, bytes]]:
    """Yield the files, by their names below the rooms."""
    files = {path.relative_to(_ROOMS).as_posix(): path for each in _DECIDING for path in _ROOMS.glob(each)}
    for name in sorted(files):
        if not files[name].name.startswith("."):  # what an editor leaves
            yield name, files[name].read_bytes()
