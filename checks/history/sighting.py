"""What a rule of histories yields: an anomaly, with its finding on demand."""

from collections.abc import Callable

from harrow.checks.finding import Finding
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Sighting:
    """An anomaly with what decides its verdict; ``finding`` computes the rest.

    A history can have millions of anomalies of a kind. Only the first ones are reported, the others
    are counted, because a chain costs ten times as much as a sighting.
    """

    finding: Callable[[], Finding]
    permitted_by: str | None = None
    is_after_loss: bool = False
    """The record of the anomaly was lost: what permits the loss permits the anomaly."""
    is_undecided: bool = False
    """The recording may have ended too early to decide."""
