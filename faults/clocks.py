"""Faults of clocks: they jump, and jump back."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Duration, Lasts, LinkEnd, described
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.effects import Effects, StepClock
from harrow.faults.fault import Environment, Fault, LastingFault
from harrow.faults.link_ends import with_fewer_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSkew(LastingFault):
    """The clocks of some machines jump, and later jump back.

    The cause is a wrong time server, a restored virtual machine or an operator. Everything that
    Kafka derives from `System.currentTimeMillis` changes: timestamps of records, and with them
    retention and compaction; how long a follower has lagged, so a leader whose clock jumps ahead
    removes healthy followers from the ISR, and a leader whose clock jumps back keeps followers that
    lag; and when a producer's batch or request times out. Sessions of brokers, delayed requests and
    periodic tasks use a clock that does not jump (`System.nanoTime`). Several jumps of a clock add
    up. A jump outlives a restart of the process, because the clock belongs to the machine.
    """

    name: ClassVar[str] = "clock_skew"

    of: tuple[LinkEnd, ...] = described("Whose clocks: brokers and clients.")
    by: Duration = described("How far they jump.", default=60 * US_PER_SECOND, minimum=1)
    direction: Literal["forward", "backward"] = described(
        "Whether the clocks jump `forward` or `backward`.", default="forward"
    )
    duration: Lasts | None = described(
        "How long until they jump back; by default until the cluster is healed.", default=None
    )

    def simpler(self) -> Iterator[Fault]:
        yield from with_fewer_ends(self)

    def applies(self, environment: Environment) -> bool:
        return bool(self._machines(environment))

    def _machines(self, environment: Environment) -> list[int | str]:
        """Return those machines whose clock matters.

        The models of ZooKeeper and of separate controllers read no clock.
        """
        machines = {*environment.broker_ids(), *environment.client_names()}
        return [end for end in self.of if end in machines]

    def effects(self, environment: Environment) -> Effects:
        by_us = self.by if self.direction == "forward" else -self.by
        return [StepClock(end, by_us) for end in self._machines(environment)]
