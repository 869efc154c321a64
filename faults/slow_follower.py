"""A follower that cannot keep up."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from cluster_model import message_rule
from cluster_model.virtual_time import US_PER_SECOND
from faults.endpoints import process_names
from faults.fault import Surroundings
from faults.fields import Broker, Duration, DurationRange, described, draw_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowFollower:
    """The follower's fetches are stuck, or each round of them is slow.

    Only the connections on which this broker replicates are touched: it goes on
    serving what it leads. Whether it leaves the ISR is for `replica.lag.time.max.ms`
    to decide.
    """

    name: ClassVar[str] = "slow_follower"

    broker: Broker = described("Which follower.")
    mode: Literal["stuck", "slow"] = described(
        "`stuck`: no fetch reaches a leader. `slow`: every answer takes `delay` longer.", default="stuck"
    )
    delay: Duration = described("With `slow`: how much longer each answer takes.", default=US_PER_SECOND)
    duration: DurationRange | None = described(
        "How long; by default until the cluster is healed.", default=None
    )

    def inject(self, surroundings: Surroundings) -> bool:
        """Slow the follower down."""
        broker = surroundings.resolve_broker(self.broker)
        if broker is None:
            return False
        follower = process_names((broker,))
        if self.mode == "stuck":
            rule = message_rule.MessageRule(
                name=self.name,
                action=message_rule.HOLD,
                kind=message_rule.REQUEST,
                senders=follower,
                listener="replication",
            )
        else:
            rule = message_rule.MessageRule(
                name=self.name,
                action=message_rule.DELAY,
                kind=message_rule.RESPONSE,
                receivers=follower,
                listener="replication",
                delay_us=self.delay,
            )
        surroundings.add_message_rule(rule)
        if self.duration is not None:
            delay_us = draw_duration(surroundings.draw, self.duration)
            surroundings.after(delay_us, surroundings.remove_message_rule, rule)
        return True
