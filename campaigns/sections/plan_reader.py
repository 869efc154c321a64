"""A campaign, or one of its variants, from its sections to the plan."""

from collections.abc import Collection
from dataclasses import replace

from campaigns.plan import Plan, Step
from campaigns.schema import InjectionSection, LimitsSection, StepSection
from campaigns.sections.cluster import ClusterReader
from campaigns.sections.conditions import ConditionReader
from campaigns.sections.core import read_core
from campaigns.sections.demand import read_demand
from campaigns.sections.draft import Draft
from campaigns.sections.effective_settings import EffectiveSettings, switches_of
from campaigns.sections.expectation import read_expectation
from campaigns.sections.faults import FaultReader
from campaigns.sections.found import read_found
from campaigns.sections.invariants import read_invariants
from campaigns.sections.judged import Judged
from campaigns.sections.references import References
from campaigns.sections.script import ScriptReader
from campaigns.sections.swarm import read_swarm
from campaigns.sections.workload import WorkloadReader
from campaigns.yaml_positions import Path
from cluster_model.release import DEFAULT_RELEASE
from faults.injection import Injection

BASE = "base"


def read_plan(draft: Draft, campaign: str, variants: Collection[str]) -> Plan:
    """Return the plan of a draft; it is of use only when no problem was reported."""
    body = draft.body
    settings = EffectiveSettings(draft)
    cluster = ClusterReader(draft, settings).read()
    references = References(draft, cluster)
    workload = WorkloadReader(draft, settings, cluster, references).read()
    references.add_clients(workload.producers, workload.consumers)
    conditions = ConditionReader(draft, references)
    faults = FaultReader(draft, references, conditions, workload.duration_us)
    script = _script(draft, ScriptReader(draft, references, conditions, faults), variants)
    injections = _injections(draft, faults, variants)
    swarm = read_swarm(draft, faults)
    faults.check_releases()
    core = read_core(body.core, draft, references)
    judged = Judged(
        invariants=read_invariants(body.invariants, draft),
        core=core is not None or (swarm is not None and swarm.core),
    )
    plan = Plan(
        campaign=campaign,
        cluster=cluster.spec,
        variant=draft.variant,
        description=(body.description or "").strip(),
        kafka=body.kafka or DEFAULT_RELEASE,
        behaviours=switches_of(body),
        producers=workload.producers,
        consumers=workload.consumers,
        script=script,
        faults=injections,
        duration_us=workload.duration_us,
        invariants=judged.invariants,
        swarm=swarm,
        survivable=bool(body.survivable),
        core=core,
        demand=read_demand(body.demand, draft, judged),
        expect=read_expectation(body.expect, draft, conditions, judged),
        found=read_found(body.found, draft, judged),
    )
    return _limited(plan, body.limits)


def _limited(plan: Plan, limits: LimitsSection | None) -> Plan:
    if limits is None:
        return plan
    return replace(
        plan,
        script_limit_us=limits.script or plan.script_limit_us,
        recovery_limit_us=limits.recovery or plan.recovery_limit_us,
        events_limit=limits.events or plan.events_limit,
    )


def _script(draft: Draft, reader: ScriptReader, variants: Collection[str]) -> tuple[Step, ...]:
    return tuple(
        reader.step(section, ("script", index))
        for index, section in enumerate(draft.body.script or ())
        if _is_meant(draft, section, ("script", index), variants)
    )


def _injections(draft: Draft, reader: FaultReader, variants: Collection[str]) -> tuple[Injection, ...]:
    entries = (
        reader.injection(section, ("faults", index))
        for index, section in enumerate(draft.body.faults or ())
        if _is_meant(draft, section, ("faults", index), variants)
    )
    return tuple(entry for entry in entries if entry is not None)


def _is_meant(
    draft: Draft, section: StepSection | InjectionSection, path: Path, variants: Collection[str]
) -> bool:
    """Return whether a step or an entry of ``faults`` is for this variant."""
    if section.only is None:
        return True
    known = dict.fromkeys((BASE, *variants))
    for index, name in enumerate(section.only):
        if name not in known:
            draft.unknown((*path, "only", index), "variant", name, known)
    return (draft.variant or BASE) in section.only
