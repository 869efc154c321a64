"""The sections ``core``, ``limits``, ``invariants``, ``demand``, ``found`` and ``expect``."""

from dataclasses import fields
from typing import Any, Final

from campaigns.literal_texts import duration_text
from campaigns.plan import Core, Expectation, Found, Plan
from campaigns.schema import ALL_RULES, NO_INVARIANTS
from campaigns.sections.judged import judged_in
from campaigns.written.conditions import condition_map
from campaigns.yaml_text import Rows, Word
from cluster_model.invariants import INVARIANTS

_DEFAULTS: Final = {item.name: item.default for item in fields(Plan)}


def core_map(core: Core | None) -> dict[str, Any] | Word | None:
    """Return the section, None when there is none; a core about which nothing is said is one all the same."""
    if core is None:
        return None
    order = {"order": core.order} if core.order else {}
    within = {} if core.within_us is None else {"within": Word(duration_text(core.within_us))}
    return {**order, **within} or Word("{}")


def limits_map(plan: Plan) -> dict[str, Any]:
    """Return the limits that are not as by default."""
    found: dict[str, Any] = {}
    if plan.script_limit_us != _DEFAULTS["script_limit_us"]:
        found["script"] = Word(duration_text(plan.script_limit_us))
    if plan.recovery_limit_us != _DEFAULTS["recovery_limit_us"]:
        found["recovery"] = Word(duration_text(plan.recovery_limit_us))
    if plan.events_limit != _DEFAULTS["events_limit"]:
        found["events"] = plan.events_limit
    return found


def invariants_value(invariants: tuple[str, ...]) -> Any:
    """Return the invariants, None when all of them are watched, as by default."""
    return None if invariants == tuple(INVARIANTS) else invariants or NO_INVARIANTS


def demand_value(plan: Plan) -> Any:
    """Return the rules that are demanded, None for none."""
    if len(plan.demand) > 1 and plan.demand == tuple(sorted(judged_in(plan).rules())):
        return ALL_RULES
    return plan.demand or None


def found_map(found: Found | None) -> dict[str, Any] | None:
    """Return the section, None when there is none."""
    if found is None:
        return None
    return {"version": found.version, "rule": found.rule, "seed": found.seed, "status": found.status}


def expect_rows(expect: Expectation) -> Rows:
    """Return the section."""
    rows = Rows()
    if expect.verdict is not None:
        rows["verdict"] = expect.verdict
    if expect.rules:
        rows["rules"] = dict(expect.rules)
    if expect.lost is not None:
        rows["lost"] = expect.lost
    if expect.duplicated is not None:
        rows["duplicated"] = expect.duplicated
    if expect.probes:
        rows["probes"] = expect.probes
    if expect.final is not None:
        rows["final"] = condition_map(expect.final)
    return rows
