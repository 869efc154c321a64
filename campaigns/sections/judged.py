"""Which rules a campaign is judged by, and why it is not judged by the others."""

from dataclasses import dataclass

from campaigns.plan import Plan
from campaigns.sections.draft import Draft
from campaigns.yaml_positions import Path
from cluster_model.invariants import INVARIANTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What decides: the invariants that are watched, and whether a core is healed first."""

    invariants: tuple[str, ...] = tuple(INVARIANTS)
    core: bool = True

    def rules(self) -> frozenset[str]:
        """Return the names of the rules."""
        from checks.catalogue import rules_for  # noqa: PLC0415  # rules are not needed to read other campaigns

        return frozenset(rules_for(self.invariants, core=self.core))

    def report_unjudged(self, draft: Draft, path: Path, rule: str, *, at_key: bool = False) -> None:
        """Report a rule that is there, but not judged; not where an option leaves its invariant out."""
        if rule not in Judged(invariants=self.invariants).rules():
            if not draft.is_from_option(("invariants",)):
                draft.problem(path, f"{rule} is not judged, for `invariants` leaves it out", at_key=at_key)
        else:
            draft.problem(path, f"{rule} is not judged without a `core`", at_key=at_key)


def judged_in(plan: Plan) -> Judged:
    """Return what decides in a plan."""
    core = plan.core is not None or (plan.swarm is not None and plan.swarm.core)
    return Judged(invariants=plan.invariants, core=core)


def rule_names() -> frozenset[str]:
    """Return the names of all rules."""
    return Judged().rules()
