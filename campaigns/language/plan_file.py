"""Writes a plan as a campaign file: the way back from `harrow.campaigns.language.loader`."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Final

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.writers.plan import document
from harrow.campaigns.language.writers.section import UnwritablePlanError
from harrow.campaigns.language.yaml_text import yaml_text

__all__ = ["UnwritablePlanError", "campaign_text"]

_FILE: Final = "campaign.yaml"


def campaign_text(plan: Plan, *, comments: Sequence[str] = (), name: str | None = None) -> str:
    """Return the text of a campaign file that loads as *plan*: its digest is the same.

    *comments* stand above it, a paragraph each. With *name* the campaign is called so,
    which counts in the digest. The same plan gives the same text.

    Raises:
        UnwritablePlanError: no file says this plan, for the loader would refuse it.

    """
    wanted = plan if name is None else replace(plan, campaign=name)
    text = yaml_text(document(wanted), comments)
    _check(text, wanted)
    return text


def _check(text: str, plan: Plan) -> None:
    """Raise UnwritablePlanError if the text is no campaign, or another one.

    A plan that a program has made may hold what the loader refuses.
    """
    try:
        found = load_text(text, _FILE).plans[0]
    except CampaignError as error:
        problems = "; ".join(problem.message for problem in error.problems)
        raise UnwritablePlanError(f"no campaign file says this plan: {problems}") from None
    if found.digest() != plan.digest():
        names = [
            item.name
            for item in fields(Plan)
            if replace(found, **{item.name: getattr(plan, item.name)}).digest() != found.digest()
        ]
        raise UnwritablePlanError(f"a campaign file says something else of {', '.join(names)}")
