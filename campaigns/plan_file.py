"""Writes a plan as a campaign file, whoever made the plan: the way back from `campaigns.loader`."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from campaigns.loader import CampaignError, load_text
from campaigns.plan import Plan
from campaigns.written.cluster import cluster_rows
from campaigns.written.expectation import (
    core_map,
    demand_value,
    expect_rows,
    found_map,
    invariants_value,
    limits_map,
)
from campaigns.written.faults import injection_rows
from campaigns.written.problem import UnwritablePlanError
from campaigns.written.script import script_items
from campaigns.written.settings import SharedSettings
from campaigns.written.swarm import swarm_rows
from campaigns.written.workload import workload_rows
from campaigns.yaml_text import Items, Prose, Rows, yaml_text
from cluster_model.release import switch_docs

__all__ = ["UnwritablePlanError", "campaign_text"]

_FILE: Final = "campaign.yaml"


def campaign_text(plan: Plan, *, comments: Sequence[str] = (), name: str | None = None) -> str:
    """Return the text of a campaign file that is loaded as *plan*: its digest is the same.

    *comments* stand above it, a paragraph each. With *name* the campaign is called so,
    which counts in the digest. The same plan gives the same text.

    Raises:
        UnwritablePlanError: no file says this plan, for the loader would refuse it.

    """
    wanted = plan if name is None else replace(plan, campaign=name)
    text = yaml_text(_document(wanted), comments)
    _check(text, wanted)
    return text


def _document(plan: Plan) -> Rows:
    return Rows((key, value) for key, value in _sections(plan) if value not in (None, "", {}, []))


def _sections(plan: Plan) -> Iterator[tuple[str, Any]]:
    """Yield the sections in the order of the reference."""
    shared = SharedSettings(plan)
    yield "name", plan.campaign
    yield "description", Prose(plan.description.strip())
    # Said also where it is the default, which is another in some later version of harrow.
    yield "kafka", plan.kafka
    yield "behaviours", Rows((key, plan.behaviours[key]) for key in _switches(plan))
    yield "settings", shared.rows()
    yield "cluster", cluster_rows(plan, shared)
    yield "workload", workload_rows(plan, shared)
    yield "script", script_items(plan)
    yield "faults", Items(injection_rows(injection, plan.duration_us) for injection in plan.faults)
    yield "swarm", swarm_rows(plan.swarm)
    yield "survivable", plan.survivable or None
    yield "core", core_map(plan.core)
    yield "limits", limits_map(plan)
    yield "invariants", invariants_value(plan.invariants)
    yield "demand", demand_value(plan)
    yield "found", found_map(plan.found)
    yield "expect", expect_rows(plan.expect)


def _switches(plan: Plan) -> list[str]:
    order = list(switch_docs())
    return sorted(plan.behaviours, key=lambda key: (order.index(key) if key in order else len(order), key))


def _check(text: str, plan: Plan) -> None:
    """Raise UnwritablePlanError if the text is no campaign, or another one.

    A plan that a program has made may say what the loader would not have let pass.
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
