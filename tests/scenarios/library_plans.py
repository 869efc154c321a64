"""The plans of the campaigns that ship: each campaign, and each of its variants."""

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan


def library_plans() -> dict[str, Plan]:
    """Return the plans by ``campaign[variant]``."""
    plans = [plan for name in library_names() for file in resolve(name) for plan in load_campaign(file).plans]
    return {f"{plan.campaign}[{plan.variant or 'base'}]": plan for plan in plans}
