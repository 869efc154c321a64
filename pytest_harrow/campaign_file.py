"""Collects campaign files as tests: one for each variant and seed."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest

from harrow.pytest_harrow.options import CAMPAIGNS, Options

_SUFFIXES: Final = (".yaml", ".yml")
_LOOKS_LIKE_A_CAMPAIGN: Final = re.compile(
    rb"^(\xef\xbb\xbf)?[\"']?(behaviours|cluster|faults|kafka|script|workload)[\"']?[ \t]*:", re.MULTILINE
)


class CampaignFile(pytest.File):
    """A campaign file that pytest collects."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests, or report every mistake in the file."""
        from harrow.campaigns.language.problem import CampaignError
        from harrow.campaigns.record.report import variant_name
        from harrow.pytest_harrow.campaign_run import CampaignRun
        from harrow.pytest_harrow.campaign_source import load_source

        options = Options.of(self.config)
        try:
            source = load_source(self.path, self.config.invocation_params.dir, options.overrides)
        except CampaignError as error:
            raise self.CollectError(str(error)) from None
        for plan in source.plans:
            for seed in options.seeds:
                # The name has no character that a shell or `-k` would need quoted.
                name = f"{variant_name(plan)}[seed-{seed}]"
                yield CampaignRun.from_parent(
                    self,
                    name=name,
                    # Pass the whole id: when pytest reads ids back for --lf, it keeps the bracketed
                    # part of a whole id, but not that of a name.
                    nodeid=f"{self.nodeid}::{name}",
                    source=source,
                    plan=plan,
                    seed=seed,
                    skips_inconclusive=options.skips_inconclusive,
                )


def is_campaign_file(path: Path, parent: pytest.Collector) -> bool:
    """Return whether ``harrow_campaigns`` or the command line selects a file as a campaign."""
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
    """Return whether a path below the root matches a glob.

    A glob without a slash is compared only with the file name.
    """
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
    """Return whether a file has a key of campaigns. Other plugins use YAML files as well."""
    try:
        return _LOOKS_LIKE_A_CAMPAIGN.search(path.read_bytes()) is not None
    except OSError:
        return False
