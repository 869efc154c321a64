"""An anomaly that a search found in a history. Its `Finding` is computed on demand."""

from collections.abc import Callable

from harrow.checks.finding import Finding
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Sighting:
    """An anomaly: the facts that decide its verdict, and ``finding``, which computes the rest.

    A history can have millions of anomalies of a kind. The first ones are reported, and the others
    only counted, because the chain of a finding costs ten times as much as a sighting.
    """

    finding: Callable[[], Finding]
    permitted_by: str | None = None
    is_after_loss: bool = False
    """The record of the anomaly was lost, so what permits the loss permits the anomaly."""
    is_undecided: bool = False
    """The recording may have ended too early to decide."""
