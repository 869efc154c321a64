"""Reads the sections that decide how a run is judged: invariants, demand, found and expect."""

from harrow.campaigns.language.part import Part
from harrow.campaigns.language.plan import Expectation, Origin, Plan
from harrow.campaigns.language.plan_reach import reach_of
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.schema import ALL_INVARIANTS, ALL_RULES, NO_INVARIANTS
from harrow.campaigns.probes.probes import PROBES
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.faults.control_plane import where_metadata_is


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleScope:
    """The rules that judge a run.

    They depend on the invariants that the run checks, and on whether the run first heals only some
    brokers, its core (`harrow.campaigns.language.plan.Core`).
    """

    invariants: tuple[str, ...] = tuple(INVARIANTS)
    has_core: bool = True

    def rules(self) -> frozenset[str]:
        from harrow.checks.rules.catalogue import rules_for  # noqa: PLC0415 - few campaigns need the rules

        return frozenset(rules_for(self.invariants, core=self.has_core))

    def check(self, draft: Draft, part: Part, rule: str, *, at_key: bool = False) -> None:
        """Report a rule that does not exist, or that does not judge the run."""
        names = rule_names()
        if rule not in names:
            draft.unknown(part, "rule", rule, names, at_key=at_key)
        elif rule in self.rules():
            return
        elif rule in RuleScope(invariants=self.invariants).rules():
            draft.problem(part, f"{rule} is not judged without a `core`", at_key=at_key)
        elif not (draft.body / "invariants").is_from_option():
            # If an option leaves out the invariant, the file has no mistake.
            draft.problem(part, f"{rule} is not judged, because `invariants` leaves it out", at_key=at_key)


def rule_scope_of(plan: Plan) -> RuleScope:
    has_core = plan.core is not None or (plan.swarm is not None and plan.swarm.core)
    return RuleScope(invariants=plan.invariants, has_core=has_core)


def rule_names() -> frozenset[str]:
    return RuleScope().rules()


def read_invariants(draft: Draft) -> tuple[str, ...]:
    """Return the invariants of a campaign in the order of the catalogue; by default all."""
    names = draft.body / "invariants"
    if names.value is None:
        return tuple(INVARIANTS)
    for name in names if len(names.value) > 1 else ():
        if name.value in (ALL_INVARIANTS, NO_INVARIANTS):
            draft.problem(name, f"invariants: `{name.value}` cannot be combined with other names")
    if ALL_INVARIANTS in names.value:
        return tuple(INVARIANTS)
    return tuple(name for name in INVARIANTS if name in names.value)


def read_demand(draft: Draft, scope: RuleScope) -> tuple[str, ...]:
    """Return the demanded rules, sorted; report those that do not exist or are not judged."""
    names = draft.body.get("demand") or ()
    for part in draft.body / "demand":
        if part.value != ALL_RULES:
            scope.check(draft, part, part.value)
        elif len(names) > 1:
            draft.problem(part, f"demand: `{part.value}` cannot be combined with other names")
    return tuple(sorted(scope.rules() if ALL_RULES in names else set(names)))


def read_origin(draft: Draft, scope: RuleScope, sections: SectionReader) -> Origin | None:
    """Read the section ``found``; report a rule that does not exist or is not judged."""
    section = draft.body / "found"
    if section.value is None:
        return None
    origin = sections.read(Origin, section, line=section.mark.line)
    scope.check(draft, section / "rule", origin.rule)
    return origin


def read_expectation(draft: Draft, scope: RuleScope, sections: SectionReader) -> Expectation:
    """Return the expectations; report those about rules that do not exist or are not judged."""
    section = draft.body / "expect"
    if section.value is None:
        return Expectation()
    rules = section / "rules"
    for name, part in rules.parts.items():
        scope.check(draft, part, name, at_key=True)
    judged = scope.rules()
    return sections.read(
        Expectation,
        section,
        # If an option leaves out an invariant, the expectation about its rule is dropped.
        rules=tuple(sorted(item for item in rules.as_dict().items() if item[0] in judged)),
        probes=tuple(probe for probe in PROBES if probe in (section.get("probes") or ())),
    )


def check_probes(draft: Draft, plan: Plan) -> None:
    """Report probes that ``expect`` requires although no run can reach them.

    If a swarm aims at such a probe, that is only noted.
    """
    if not all(draft.body.is_sound(section) for section in ("kafka", "cluster", "workload", "swarm")):
        return
    required = draft.body.at("expect", "probes")
    aims = draft.body.at("swarm", "aims", "any_of")
    if not required.value and not aims.value:
        return
    reach = reach_of(plan)

    def obstacle(name: str) -> str | None:
        probe = PROBES[name]
        why = probe.obstacle(reach)
        if why is None or probe.control_planes() & reach.control_planes:
            return why
        return f"{why}, and {where_metadata_is(plan.kafka, plan.metadata)}"

    for part in required:
        if why := obstacle(part.value):
            draft.problem(part, f"{part.value} is never reached: {why}")
    for probe in (aim / "probe" for aim in aims):
        if why := obstacle(probe.value):
            draft.note(probe, f"{probe.value} is never reached: {why}")
