"""A campaign, or one of its variants, from its sections to the plan."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from harrow.campaigns.language.part import Section
from harrow.campaigns.language.plan import ActionMarker, Plan
from harrow.campaigns.language.plan_cost import excess
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
from harrow.campaigns.language.yaml_positions import Path
from harrow.cluster_model.fields import ConditionMarker, FaultMarker

BASE = "base"


def read_plan(draft: Draft, campaign: str, variants: Collection[str]) -> Plan:
    """Return the plan of a draft; it is of use only when no problem was reported."""
    body = draft.body
    settings = EffectiveSettings(draft)
    cluster = ClusterReader(draft, settings).read()
    references = cluster.references
    workload = WorkloadReader(draft, settings, cluster)
    clients = workload.read()
    references.add_clients(**clients)
    for index, quota in enumerate(cluster.spec.quotas):
        if quota.client is not None:
            references.client(("cluster", "quotas", index, "client"), quota.client)
    sections = SectionReader(draft, references)
    faults = FaultReader(draft, sections, workload.duration_us)
    script = ScriptReader(draft, sections, faults, references)
    conditions = ConditionReader(draft, references)
    sections.forms |= {
        ConditionMarker: conditions.read,
        FaultMarker: faults.one_fault,
        ActionMarker: script.action,
    }
    steps = _for_variant(draft, "script", script.step, variants)
    injections = [
        (path, injection)
        for section, path in _of_variant(draft, "faults", variants)
        for injection in faults.injections(section, path)
    ]
    swarm = read_swarm(draft, sections)
    faults.check_releases()
    judged_by = judgement.Judgement(
        invariants=judgement.read_invariants(body.get("invariants"), draft),
        core=body.get("core") is not None or (swarm is not None and swarm.core),
    )
    plan: Plan = sections.read(
        Plan,
        body,
        (),
        campaign=campaign,
        cluster=cluster.spec,
        variant=draft.variant,
        description=(body.get("description") or "").strip(),
        behaviours=switches_of(body),
        **clients,
        script=steps,
        faults=tuple(injection for _, injection in injections),
        invariants=judged_by.invariants,
        swarm=swarm,
        demand=judgement.read_demand(body.get("demand"), draft, judged_by),
        expect=judgement.read_expectation(body.get("expect"), draft, judged_by, sections),
        found=judgement.read_found(body.get("found"), draft, judged_by, sections),
    )
    conditions.check_awaited_rules(faults.control_plane_of_rule)
    faults.note_unmet(references.metadata)
    places = [path for _, path in _of_variant(draft, "script", variants)]
    if draft.is_intact("workload") and draft.is_intact("script"):
        ScriptedTransactions(draft, plan.producers).check(zip(plan.script, places, strict=True))
    check_internal_topics(draft, plan)
    judgement.check_probes(draft, plan)
    if not draft.report.found:
        too_much = excess(plan, places, [path for path, _ in injections])
        if too_much is not None:
            draft.problem(*too_much)
    return plan


def _of_variant(draft: Draft, key: str, variants: Collection[str]) -> Iterator[tuple[Section, Path]]:
    for index, section in enumerate(draft.body.get(key) or ()):
        if _is_meant(draft, section.given().get("only"), (key, index, "only"), variants):
            yield section, (key, index)


def _for_variant(
    draft: Draft, key: str, read: Callable[[Section, Path], Any], variants: Collection[str]
) -> tuple[Any, ...]:
    return tuple(read(section, path) for section, path in _of_variant(draft, key, variants))


def _is_meant(draft: Draft, only: list[str] | None, path: Path, variants: Collection[str]) -> bool:
    if only is None:
        return True
    known = dict.fromkeys((BASE, *variants))
    for index, name in enumerate(only):
        if name not in known:
            draft.unknown((*path, index), "variant", name, known)
    return (draft.variant or BASE) in only
