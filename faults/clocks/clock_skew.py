"""Clocks that show another time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Duration, Lasts, LinkEnd, described
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.effects import Effects, StepClock
from harrow.faults.fault import Environment, Fault, LastingFault
from harrow.faults.links.link_ends import with_fewer_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSkew(LastingFault):
    """The clocks of some machines jump, as a wrong time server, a restored virtual machine or an operator has them do, and later back.

    What Kafka takes from `System.currentTimeMillis` sees it: timestamps of records, and so retention and compaction; since when a
    follower is behind, so that a leader whose clock jumps ahead takes followers out of the ISR which are not, and one whose clock jumps back keeps
    those that are; and when a producer's batch or request has timed out. Sessions of brokers, delays of requests and periodic tasks go by a clock that
    does not jump (`System.nanoTime`). Jumps add up. A machine keeps its clock when a process on it starts anew.
    """

    name: ClassVar[str] = "clock_skew"

    of: tuple[LinkEnd, ...] = described("Whose clocks: brokers and clients.")
    by: Duration = described("How far they jump.", default=60 * US_PER_SECOND, minimum=1)
    direction: Literal["forward", "backward"] = described(
        "Whether they show a later time then, or an earlier one.", default="forward"
    )
    duration: Lasts | None = described(
        "How long until they jump back; by default until the cluster is healed.", default=None
    )

    def plainer(self) -> Iterator[Fault]:
        """Yield it with one clock fewer."""
        yield from with_fewer_ends(self)

    def applies(self, environment: Environment) -> bool:
        return bool(self._struck(environment))

    def _struck(self, environment: Environment) -> list[int | str]:
        """Return whose clocks there are: nothing of what is modelled of ZooKeeper or of a controller goes by them."""
        known = {*environment.broker_ids(), *environment.client_names()}
        return [end for end in self.of if end in known]

    def effects(self, environment: Environment) -> Effects:
        by_us = self.by if self.direction == "forward" else -self.by
        return [StepClock(end, by_us) for end in self._struck(environment)]
