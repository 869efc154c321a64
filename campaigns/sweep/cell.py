"""A cell of a sweep's grid: one plan and its settings."""

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import variant_name
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One plan of a sweep. ``settings`` are the ``(key, value)`` pairs that ``--vary`` set.

    ``digest`` is the digest of the plan (`Plan.digest`), computed once.
    """

    plan: Plan
    digest: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def campaign(self) -> str:
        return self.plan.campaign

    @property
    def variant(self) -> str:
        """The name that selects the plan with ``--variant``."""
        return variant_name(self.plan)

    @property
    def name(self) -> str:
        """The cell's name within its campaign: the variant and the settings."""
        return " ".join([self.variant, *(f"{key}={value}" for key, value in self.settings)])


def cell_of(plan: Plan, settings: tuple[tuple[str, str], ...] = ()) -> Cell:
    return Cell(plan=plan, digest=plan.digest(), settings=settings)
