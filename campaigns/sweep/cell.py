"""A cell of a sweep's grid: one plan, and what sets it apart from the others."""

from dataclasses import dataclass

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import variant_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One plan of a sweep. ``settings`` are what the grid (``--vary``) set, as ``(key, value)``.

    ``digest`` is the plan's (`Plan.digest`), worked out once.
    """

    plan: Plan
    digest: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def campaign(self) -> str:
        return self.plan.campaign

    @property
    def variant(self) -> str:
        """The name by which ``--variant`` knows the plan."""
        return variant_name(self.plan)

    @property
    def name(self) -> str:
        """What sets the plan apart among the cells of its campaign: its variant, and its settings."""
        return " ".join([self.variant, *(f"{key}={value}" for key, value in self.settings)])


def cell_of(plan: Plan, settings: tuple[tuple[str, str], ...] = ()) -> Cell:
    return Cell(plan=plan, digest=plan.digest(), settings=settings)
