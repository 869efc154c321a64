"""What a campaign is judged by, and what it expects: ``invariants``, ``demand``, ``found`` and ``expect``."""

from collections.abc import Sequence
from dataclasses import dataclass

from harrow.campaigns.language.part import Section
from harrow.campaigns.language.plan import Expectation, Found, Plan
from harrow.campaigns.language.plan_reach import reach_of
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.schema import ALL_INVARIANTS, ALL_RULES, NO_INVARIANTS
from harrow.campaigns.language.yaml_positions import Path
from harrow.campaigns.probes.probes import PROBES
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.faults.control_plane.features import where_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What decides: the invariants that are watched, and whether a core is healed first."""

    invariants: tuple[str, ...] = tuple(INVARIANTS)
    core: bool = True

    def rules(self) -> frozenset[str]:
        from harrow.checks.rules.catalogue import rules_for  # noqa: PLC0415  # rules are not needed to read other campaigns

        return frozenset(rules_for(self.invariants, core=self.core))

    def check(self, draft: Draft, path: Path, rule: str, *, at_key: bool = False) -> None:
        """Report a rule that there is not, or that is not judged."""
        known = rule_names()
        if rule not in known:
            draft.unknown(path, "rule", rule, known, at_key=at_key)
        elif rule in self.rules():
            return
        elif rule in Judgement(invariants=self.invariants).rules():
            draft.problem(path, f"{rule} is not judged without a `core`", at_key=at_key)
        elif not draft.is_from_option(("invariants",)):
            # An option that leaves an invariant out is no mistake of the file's.
            draft.problem(path, f"{rule} is not judged, for `invariants` leaves it out", at_key=at_key)


def judgement_of(plan: Plan) -> Judgement:
    """Return what decides in a plan."""
    core = plan.core is not None or (plan.swarm is not None and plan.swarm.core)
    return Judgement(invariants=plan.invariants, core=core)


def rule_names() -> frozenset[str]:
    return Judgement().rules()


def read_invariants(names: Sequence[str] | None, draft: Draft) -> tuple[str, ...]:
    """Return the invariants that a campaign wants, in the order of the catalogue; all when it says nothing."""
    if names is None:
        return tuple(INVARIANTS)
    if len(names) > 1:
        for index, name in enumerate(names):
            if name in (ALL_INVARIANTS, NO_INVARIANTS):
                draft.problem(
                    ("invariants", index), f"invariants: `{name}` stands alone, without other names"
                )
    if ALL_INVARIANTS in names:
        return tuple(INVARIANTS)
    return tuple(name for name in INVARIANTS if name in names)


def read_demand(names: Sequence[str] | None, draft: Draft, judgement: Judgement) -> tuple[str, ...]:
    """Return the rules that a campaign demands, sorted; report those that do not exist or are not judged."""
    if not names:
        return ()
    for index, name in enumerate(names):
        if name != ALL_RULES:
            judgement.check(draft, ("demand", index), name)
        elif len(names) > 1:
            draft.problem(("demand", index), f"demand: `{name}` stands alone, without other names")
    return tuple(sorted(judgement.rules() if ALL_RULES in names else set(names)))


def read_found(
    section: Section | None, draft: Draft, judgement: Judgement, sections: SectionReader
) -> Found | None:
    """Return where a campaign's failure comes from, and report a rule that does not exist or is not judged."""
    if section is None:
        return None
    found: Found = sections.read(Found, section, ("found",), line=draft.line(("found",)))
    judgement.check(draft, ("found", "rule"), found.rule)
    return found


def read_expectation(
    section: Section | None, draft: Draft, judgement: Judgement, sections: SectionReader
) -> Expectation:
    """Return what a campaign expects, and report what it cannot."""
    if section is None:
        return Expectation()
    path: Path = ("expect",)
    given = section.given()
    rules: dict[str, str] = given.get("rules", {})
    for name in rules:
        judgement.check(draft, (*path, "rules", name), name, at_key=True)
    judged = judgement.rules()
    expectation: Expectation = sections.read(
        Expectation,
        section,
        path,
        # What an option leaves out, the campaign cannot expect; the rest still counts.
        rules=tuple(sorted(item for item in rules.items() if item[0] in judged)),
        probes=tuple(probe for probe in PROBES if probe in given.get("probes", ())),
    )
    return expectation


def check_probes(draft: Draft, plan: Plan) -> None:
    """Report a probe that a campaign requires and no run of it can reach, and note an aim at one."""
    if not all(draft.is_intact(section) for section in ("kafka", "cluster", "workload", "swarm")):
        return
    required = () if draft.body.get("expect") is None else draft.body.get("expect").given().get("probes", ())
    aims = () if plan.swarm is None or plan.swarm.aims is None else plan.swarm.aims.kinds
    if not required and not aims:
        return
    reach = reach_of(plan)

    def obstacle(name: str) -> str | None:
        probe = PROBES[name]
        why = probe.obstacle(reach)
        if why is None or probe.control_planes() & reach.control_planes:
            return why
        return f"{why}, and {where_kept(plan.kafka, plan.metadata)}"

    for index, name in enumerate(required):
        if why := obstacle(name):
            draft.problem(("expect", "probes", index), f"{name} is never reached: {why}")
    for index, aim in enumerate(aims):
        if why := obstacle(aim.probe):
            draft.note(("swarm", "aims", "any_of", index, "probe"), f"{aim.probe} is never reached: {why}")
