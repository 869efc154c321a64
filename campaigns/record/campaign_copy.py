"""Writes ``campaign.yaml`` beside a recorded run, so that the user can run the campaign again.

If the author's text loads as the plan of the run, it is copied with its comments. With a variant or
``--set``, or if the text would load as another plan, the file is written from the plan.
"""

import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.loader import Campaign
from harrow.campaigns.language.plan import Plan, SamePlan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.spelling import option_words
from harrow.campaigns.record.report import BASE, variant_name

_NAME: Final = "name"
_VARIANTS: Final = "variants"
_EXPECT: Final = "expect"


def campaign_copy(
    campaign: Campaign, plan: Plan, seed: int, overrides: Sequence[str] = (), notes: Sequence[str] = ()
) -> str:
    """Return a campaign file that runs *plan* of *campaign* again; *notes* are comments above it.

    Raises:
        UnwritablePlanError: no campaign file can express this plan.

    """
    has_variants = False
    if _can_copy_text(campaign, plan, overrides):
        body = campaign.text.removeprefix("\ufeff")
        has_variants = _VARIANTS in _keys(body)
    else:
        body = _written(SamePlan(plan))
    return _header(plan, seed, overrides, notes, variants=has_variants) + body


def _can_copy_text(campaign: Campaign, plan: Plan, overrides: Sequence[str]) -> bool:
    """Return whether the author's text, in a file of any name and without options, is *plan*."""
    if plan.variant is not None or overrides or campaign.brokers is not None or campaign.cluster_files:
        return False
    return _NAME in _keys(campaign.text) and plan.digest() in (loaded.digest() for loaded in campaign.plans)


@lru_cache(maxsize=64)  # Runs of one plan with different seeds have the same text.
def _keys(text: str) -> frozenset[str]:
    root = nodes.compose(text).root
    assert isinstance(root, nodes.MapNode), "only a campaign that has been loaded is run"
    return frozenset(root.entries)


@lru_cache(maxsize=64)
def _written(same: SamePlan) -> str:
    return campaign_text(same.plan)


def expect_line(path: Path, variant: str | None) -> int:
    """Return the line of ``expect`` in a variant, or else in the campaign; 0 if neither has it."""
    try:
        root = nodes.compose(path.read_text(encoding="utf-8")).root
    except (OSError, UnicodeDecodeError, nodes.YamlError):
        # The file has changed since it was loaded, so its lines do not matter.
        return 0
    for place in ((_VARIANTS, variant or BASE, _EXPECT), (_EXPECT,)):
        existing, mark, _ = nodes.lookup(root, place)
        if existing == place:
            return mark.line
    return 0


def _header(plan: Plan, seed: int, overrides: Sequence[str], notes: Sequence[str], *, variants: bool) -> str:
    only_base = " --variant base" if variants else ""
    lines = [f"The variant `{variant_name(plan)}` of {plan.campaign}, as it was run with seed {seed}."]
    lines += [f"Merged in: {shlex.join(option_words(override))}" for override in overrides]
    lines += [f"Again: harrow run campaign.yaml --seed {seed}{only_base}", *notes]
    return "".join(f"# {_on_one_line(line)}".rstrip() + "\n" for line in lines) + "\n"


def _on_one_line(text: str) -> str:
    """Return a text on one line, but keep its indent: an indented line is a command to copy."""
    indent = len(text) - len(text.lstrip(" "))
    return f"{' ' * indent}{' '.join(text.split())}"
