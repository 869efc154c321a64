"""Faults of single messages: hold, drop, delay, duplicate or reset them."""

from typing import ClassVar, Literal

from harrow.cluster_model import fields
from harrow.cluster_model.fields import described
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim import message_rule
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.zookeeper.service.protocol import ZooKeeperRequest
from harrow.faults.effects import Effects, ReleaseMessages
from harrow.faults.fault import Environment, Fault, MessageFault, process_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(MessageFault):
    """Something happens to the next messages of a kind, such as Fetch responses from 0 to 1.

    Connections keep their order, so a message that is held or delayed also holds up the messages
    behind it. `reset` breaks the connection instead of delivering the message. A held message is
    delivered on `release`, or when the cluster is healed. It arrives even if its sender has
    meanwhile given up and closed the connection.
    """

    name: ClassVar[str] = "message"

    action: Literal["hold", "drop", "delay", "duplicate", "reset"] = described("What happens to it.")
    api: fields.Api | None = described("Its API; by default any.", default=None, shrinks=False)
    kind: Literal["request", "response"] | None = described(
        "Whether it is a request or a response; by default both.", default=None, shrinks=False
    )
    from_: fields.Endpoint | None = described("Its sender; by default anyone.", default=None, shrinks=False)
    to: fields.Endpoint | None = described("Its receiver; by default anyone.", default=None, shrinks=False)
    znode: fields.ZnodePath | None = described(
        "Only messages about this znode or one below it: requests that read or write it, their answers, and watches "
        "that fire on it; by default any.",
        default=None,
        shrinks=False,
    )
    count: fields.Count = described("How many messages.", default=1)
    skip: fields.Skip = described("How many messages pass first.", default=0)
    delay: fields.Duration = described("With `action: delay`: how long.", default=US_PER_SECOND)
    id: fields.MessageRuleName = described("A name, for `release`.", default="message", shrinks=False)

    def problem(self) -> str | None:
        if self.znode is None:
            return None
        if self.api not in (None, ZooKeeperRequest.api):
            return f"no {self.api} request is about a znode"
        ends = [end for end in (self.from_, self.to) if end is not None]
        if "zookeeper" not in ends and (len(ends) > 1 or any(isinstance(end, str) for end in ends)):
            return "only brokers and zookeeper exchange messages about znodes"
        return None

    def rule(self, environment: Environment) -> message_rule.MessageRule:
        return message_rule.MessageRule(
            name=self.id,
            action=self.action,
            api=self.api,
            kind=self.kind,
            senders=None if self.from_ is None else process_names((self.from_,)),
            receivers=None if self.to is None else process_names((self.to,)),
            znode=self.znode,
            skip=self.skip,
            count=self.count,
            delay_us=self.delay,
            is_on_the_way=True,
        )

    def messages(self) -> int | None:
        """Return the ``count``; None for a rule that holds messages until they are released."""
        return None if self.action == message_rule.HOLD else self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Fault):
    """Held messages are delivered, and the `message` rule that held them ends."""

    name: ClassVar[str] = "release"

    id: fields.MessageRuleReference = described(
        "The `id` of the `message` rule.", default="message", example="message"
    )

    def applies(self, environment: Environment) -> bool:
        return any(rule.name == self.id for rule in environment.message_rules())

    def effects(self, environment: Environment) -> Effects:
        return [ReleaseMessages(self.id)]

    def ends(self, other: Fault) -> bool:
        return isinstance(other, Message) and other.id == self.id
