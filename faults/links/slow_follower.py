"""A follower that cannot keep up."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Broker, Duration, Lasts, described
from harrow.cluster_model.sim import message_rule
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.fault import Environment, MessageFault, process_names


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowFollower(MessageFault):
    """The follower's fetches are stuck, or each round of them is slow.

    It goes on serving what it leads. Whether it leaves the ISR is for `replica.lag.time.max.ms` to decide. On real brokers only the
    connections of its fetchers are touched. On the model so is whatever else it asks other brokers: with ZooKeeper AlterPartition and
    ControlledShutdown of the controller, and for transactions WriteTxnMarkers and AddPartitionsToTxn.
    """

    name: ClassVar[str] = "slow_follower"

    broker: Broker = described("Which follower.")
    mode: Literal["stuck", "slow"] = described(
        "`stuck`: no fetch reaches a leader. `slow`: every answer takes `delay` longer.", default="stuck"
    )
    delay: Duration = described("With `slow`: how much longer each answer takes.", default=US_PER_SECOND)
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def rule(self, environment: Environment) -> message_rule.MessageRule:
        follower = process_names((self.broker,))
        if self.mode == "stuck":
            return message_rule.MessageRule(
                name=self.name,
                action=message_rule.HOLD,
                kind=message_rule.REQUEST,
                senders=follower,
                listener="replication",
            )
        return message_rule.MessageRule(
            name=self.name,
            action=message_rule.DELAY,
            kind=message_rule.RESPONSE,
            receivers=follower,
            listener="replication",
            delay_us=self.delay,
        )
