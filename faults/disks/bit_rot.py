"""A disk damages what it has stored."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Partition, Skip, described
from harrow.faults.effects import DamageBatch, Effects
from harrow.faults.fault import Environment, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class BitRot(Fault):
    """Some bytes of a stored batch change, and its CRC is wrong from then on.

    No broker notices until the batch is read. The leader sends it as it is. A follower takes nothing of a fetch with such a batch, asks
    again and falls behind; a consumer stays before it. A broker that was killed finds it when it recovers, if it is in
    a segment from the recovery point on, and cuts the log there: what follows goes too, be it good or not.
    """

    name: ClassVar[str] = "bit_rot"

    broker: Broker = described("Whose disk.")
    partition: Partition = described("Of which partition.")
    offset: Skip | None = described(
        "The offset of a record in the batch; by default that of the last record.", default=None
    )

    def applies(self, environment: Environment) -> bool:
        return environment.has_batch(self.broker, self.partition, self.offset) and environment.may_lose_power(
            self.broker
        )

    def effects(self, environment: Environment) -> Effects:
        return [DamageBatch(self.broker, self.partition, self.offset)]
