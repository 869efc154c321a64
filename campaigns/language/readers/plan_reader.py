"""Reads the plan of a campaign or a variant from its sections."""

from collections.abc import Collection

from harrow.campaigns.language.part import Part
from harrow.campaigns.language.plan import ActionMarker, Plan
from harrow.campaigns.language.plan_cost import Path, excess
from harrow.campaigns.language.readers import judgement
from harrow.campaigns.language.readers.cluster import ClusterReader
from harrow.campaigns.language.readers.conditions import ConditionReader
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.effective_settings import EffectiveSettings, switches_of
from harrow.campaigns.language.readers.faults import FaultReader
from harrow.campaigns.language.readers.script import ScriptReader
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.readers.swarm import read_swarm
from harrow.campaigns.language.readers.transactions import ScriptedTransactions, check_internal_topics
from harrow.campaigns.language.readers.workload import WorkloadReader
from harrow.cluster_model.fields import ConditionMarker, FaultMarker

BASE = "base"


def read_plan(draft: Draft, campaign: str, variants: Collection[str]) -> Plan:
    """Return the plan of a draft. The plan is valid only if the draft's report has no mistakes."""
    body = draft.body
    settings = EffectiveSettings(draft)
    cluster = ClusterReader(draft, settings).read()
    references = cluster.references
    workload = WorkloadReader(draft, settings, cluster)
    clients = workload.read()
    references.add_clients(**clients)
    for quota in body.at("cluster", "quotas"):
        if "client" in quota:
            references.client(quota / "client", quota.get("client"))
    sections = SectionReader(draft, references)
    faults = FaultReader(draft, sections, workload.duration_us)
    script = ScriptReader(draft, sections, faults, references)
    conditions = ConditionReader(draft, references)
    sections.readers |= {
        ConditionMarker: conditions.read,
        FaultMarker: faults.one_fault,
        ActionMarker: script.action,
    }
    places = _items_of_variant(draft, "script", variants)
    steps = tuple(map(script.step, places.values()))
    injections = [
        (path, injection)
        for path, part in _items_of_variant(draft, "faults", variants).items()
        for injection in faults.injections(part)
    ]
    swarm = read_swarm(draft, sections)
    faults.check_releases()
    scope = judgement.RuleScope(
        invariants=judgement.read_invariants(draft),
        has_core="core" in body or (swarm is not None and swarm.core),
    )
    plan = sections.read(
        Plan,
        body,
        campaign=campaign,
        cluster=cluster.spec,
        variant=draft.variant,
        title=" ".join((body.get("title") or "").split()),
        description=(body.get("description") or "").strip(),
        behaviours=switches_of(body),
        **clients,
        script=steps,
        faults=tuple(injection for _, injection in injections),
        invariants=scope.invariants,
        swarm=swarm,
        demand=judgement.read_demand(draft, scope),
        expect=judgement.read_expectation(draft, scope, sections),
        found=judgement.read_origin(draft, scope, sections),
    )
    conditions.check_awaited_rules(faults.control_plane_of_rule)
    faults.note_unmatched(references.metadata)
    if draft.body.is_sound("workload") and draft.body.is_sound("script"):
        ScriptedTransactions(draft, plan.producers).check(zip(plan.script, places.values(), strict=True))
    check_internal_topics(draft, plan)
    judgement.check_probes(draft, plan)
    if draft.report.mistakes:
        return plan
    if (problem := excess(plan, list(places), [path for path, _ in injections])) is not None:
        path, message = problem
        draft.problem(body.at(*path), message)
    return plan


def _items_of_variant(draft: Draft, key: str, variants: Collection[str]) -> dict[Path, Part]:
    """Return, by path, the items of a list that apply to the draft's variant."""
    listed = draft.body / key
    return {
        (key, index): part
        for index, part in listed.parts.items()
        if _applies_to_variant(draft, part / "only", variants)
    }


def _applies_to_variant(draft: Draft, only: Part, variants: Collection[str]) -> bool:
    if only.value is None:
        return True
    names = dict.fromkeys((BASE, *variants))
    for name in only:
        if name.value not in names:
            draft.unknown(name, "variant", name.value, names)
    return (draft.variant or BASE) in only.value
