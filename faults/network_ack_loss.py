"""A request takes effect and its answer is lost."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from cluster_model import message_rule
from faults.endpoints import process_names
from faults.fault import Surroundings
from faults.fields import (
    Api,
    Broker,
    Client,
    Count,
    DurationRange,
    Probability,
    Skip,
    described,
    draw_duration,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAckLoss:
    """The broker handles the request; what it answers never arrives.

    `reset` breaks the connection where the answer would have passed, so the client
    learns at once that it does not know. `timeout` swallows the answer, and the client
    waits for `request.timeout.ms`.
    """

    name: ClassVar[str] = "network_ack_loss"

    client: Client | None = described("Whose requests; by default every client's.", default=None)
    broker: Broker | None = described("Whose answers; by default every broker's.", default=None)
    api: Api = described("Answers to which request.", default="Produce")
    count: Count | None = described("How many answers; by default every one while it lasts.", default=None)
    skip: Skip = described("How many answers pass first.", default=0)
    probability: Probability = described("How likely each answer is lost.", default=1.0)
    duration: DurationRange | None = described(
        "How long; by default until `count` is used up or the cluster is healed.", default=None
    )
    how: Literal["reset", "timeout"] = described("What the client notices.", default="reset")

    def inject(self, surroundings: Surroundings) -> bool:
        """Put the loss in force."""
        brokers: tuple[int | str, ...] = surroundings.broker_ids()
        if self.broker is not None:
            broker = surroundings.resolve_broker(self.broker)
            if broker is None:
                return False
            brokers = (broker,)
        clients = surroundings.client_names() if self.client is None else (self.client,)
        rule = message_rule.MessageRule(
            name=self.name,
            action=message_rule.RESET if self.how == "reset" else message_rule.DROP,
            api=self.api,
            kind=message_rule.RESPONSE,
            senders=process_names(brokers),
            receivers=process_names(clients),
            skip=self.skip,
            count=self.count,
            probability_millionths=round(self.probability * 1_000_000),
        )
        surroundings.add_message_rule(rule)
        if self.duration is not None:
            delay_us = draw_duration(surroundings.draw, self.duration)
            surroundings.after(delay_us, surroundings.remove_message_rule, rule)
        return True
