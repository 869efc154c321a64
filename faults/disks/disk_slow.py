"""A disk that takes long to write."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Duration, Lasts, described
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.effects import Effects, SlowDisk
from harrow.faults.fault import Environment, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSlow(LastingFault):
    """The disk of a broker takes long to write: each append waits for it, after those before it, and keeps its thread.

    When all of `num.io.threads` wait, whatever else the broker is asked for waits behind them: what its followers fetch, so
    that a leader with a slow disk takes healthy followers out of the ISR; and what the controller orders, unless
    `control.plane.listener.name` gives it a queue of its own. Meanwhile it keeps its session, for that takes no thread. What slows a
    disk at once adds up.
    """

    name: ClassVar[str] = "disk_slow"

    broker: Broker = described("Whose disk.")
    delay: Duration = described("How long it takes for an append.", default=100 * US_PER_MS, minimum=1)
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.has_logs(self.broker) and environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [SlowDisk(self.broker, self.delay)]
