"""What a rule of histories yields: that there is an anomaly, and on demand what there is to say of it."""

from collections.abc import Callable
from dataclasses import dataclass

from harrow.checks.finding import Finding


@dataclass(frozen=True, slots=True)
class Sighting:
    """An anomaly, with what decides its verdict; ``finding`` works out the rest.

    A history can have millions of anomalies of a kind. The first ones are reported, the others only counted, and a chain costs
    ten times as much as noticing that there is something to tell.
    """

    finding: Callable[[], Finding]
    permitted_by: str | None = None
    is_after_loss: bool = False
    """What it is about was lost: what permits the loss permits it."""
    is_undecided: bool = False
    """It rests on a recording that may have ended too early."""
