"""Helpers for tests of campaign files."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from harrow.campaigns.language.loader import Campaign, CampaignError, load_text
from harrow.campaigns.language.plan import Plan

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "campaign-files.md"


def reference_example() -> str:
    """Return the example that the reference page begins with."""
    match = re.search(r"```yaml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    return match[1]


def load(text: str, *overrides: str) -> Campaign:
    """Load an indented text."""
    return load_text(dedent(text), "dir/file.yaml", overrides)


def plan(text: str, *overrides: str) -> Plan:
    """Load an indented text and return the plan without a variant."""
    return load(text, *overrides).plans[0]


def problems(text: str, *overrides: str) -> list[str]:
    """Return the problems of a text without the name of the file."""
    with pytest.raises(CampaignError) as error:
        load(text, *overrides)
    return [str(problem).removeprefix("dir/file.yaml:") for problem in error.value.problems]
