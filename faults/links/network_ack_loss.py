"""A request takes effect and its answer is lost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from harrow.cluster_model import fields
from harrow.cluster_model.fields import described
from harrow.cluster_model.sim import message_rule
from harrow.faults.fault import Environment, MessageFault, process_names


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAckLoss(MessageFault):
    """The broker handles the request; what it answers never arrives.

    `reset` breaks the connection where the answer would have passed, so the client
    learns at once that it does not know. `timeout` swallows the answer, and the client
    waits for `request.timeout.ms`.
    """

    name: ClassVar[str] = "network_ack_loss"

    client: fields.Client | None = described("Whose requests; by default every client's.", default=None)
    broker: fields.Broker | None = described("Whose answers; by default every broker's.", default=None)
    api: fields.Api = described("Answers to which request.", default="Produce")
    count: fields.Count | None = described(
        "How many answers; by default every one while it lasts.", default=None, shrinks=False
    )
    skip: fields.Skip = described("How many answers pass first.", default=0)
    probability: fields.Probability = described("How likely each answer is lost.", default=1.0)
    duration: fields.Lasts | None = described(
        "How long; by default until `count` is used up or the cluster is healed.", default=None
    )
    how: Literal["reset", "timeout"] = described("What the client notices.", default="reset")

    def rule(self, environment: Environment) -> message_rule.MessageRule:
        brokers = environment.broker_ids() if self.broker is None else (self.broker,)
        clients = environment.client_names() if self.client is None else (self.client,)
        return message_rule.MessageRule(
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

    def plainer(self) -> Iterator["NetworkAckLoss"]:
        """Yield the loss of one answer, of anyone's and of these: it is plainer than that of all."""
        for plain in (NetworkAckLoss(count=1), replace(self, count=1, probability=1.0, duration=None)):
            if plain != self:
                yield plain

    def messages(self) -> int | None:
        """Return how many answers it takes."""
        return self.count
