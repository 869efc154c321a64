"""Which files are campaigns: none that the project, or the command line, does not name."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest

from harrow.pytest_harrow.options import CAMPAIGNS

_SUFFIXES: Final = (".yaml", ".yml")
_LOOKS_LIKE_A_CAMPAIGN: Final = re.compile(
    rb"^(\xef\xbb\xbf)?[\"']?(behaviours|cluster|faults|kafka|script|workload)[\"']?[ \t]*:", re.MULTILINE
)


def is_campaign_file(path: Path, parent: pytest.Collector) -> bool:
    """Return whether a file matches a glob of ``harrow_campaigns``, or is a campaign on the command line."""
    if path.suffix not in _SUFFIXES:
        return False
    config = parent.config
    globs = config.getini(CAMPAIGNS)
    if path.is_relative_to(config.rootpath):
        relative = path.relative_to(config.rootpath)
        if any(matches(relative, glob) for glob in globs):
            return True
    return parent.session.isinitpath(path) and _looks_like_a_campaign(path)


def matches(path: Path, glob: str) -> bool:
    """Return whether a path below the root matches; a glob without a slash is about the name alone."""
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    if "/" not in glob:
        return fnmatchcase(path.name, glob)
    return _parts_match(path.parts, parts)


def _parts_match(parts: Sequence[str], globs: Sequence[str]) -> bool:
    if not globs:
        return not parts
    if globs[0] == "**":
        return any(_parts_match(parts[start:], globs[1:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], globs[0]) and _parts_match(parts[1:], globs[1:])


def _looks_like_a_campaign(path: Path) -> bool:
    """Return whether a file has a key that campaigns have: other plugins take YAML files as well."""
    try:
        return _LOOKS_LIKE_A_CAMPAIGN.search(path.read_bytes()) is not None
    except OSError:
        return False
