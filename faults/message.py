"""Single messages: hold, drop, delay or duplicate the next one of a kind."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from cluster_model import message_rule
from cluster_model.virtual_time import US_PER_SECOND
from faults.endpoints import process_names
from faults.fault import Surroundings
from faults.fields import Api, Count, Duration, Endpoint, Skip, described


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What happens to the next messages of a kind, for example the next Fetch response from 0 to 1.

    Connections keep their order, so a message that is held or delayed holds up those
    behind it. `reset` breaks the connection in place of delivering the message. A
    held message goes on its way with `release`, or when the cluster is healed.
    """

    name: ClassVar[str] = "message"

    action: Literal["hold", "drop", "delay", "duplicate", "reset"] = described("What happens to it.")
    api: Api | None = described("Of which API; by default of any.", default=None)
    kind: Literal["request", "response"] | None = described("By default both.", default=None)
    from_: Endpoint | None = described("Who sends it (written `from`); by default anyone.", default=None)
    to: Endpoint | None = described("Who would get it; by default anyone.", default=None)
    count: Count = described("How many.", default=1)
    skip: Skip = described("How many pass first.", default=0)
    delay: Duration = described("With `delay`: how long.", default=US_PER_SECOND)
    id: str = described("A name, for `release`.", default="message")

    def inject(self, surroundings: Surroundings) -> bool:
        """Put the rule in force."""
        surroundings.add_message_rule(
            message_rule.MessageRule(
                name=self.id,
                action=self.action,
                api=self.api,
                kind=self.kind,
                senders=None if self.from_ is None else process_names((self.from_,)),
                receivers=None if self.to is None else process_names((self.to,)),
                skip=self.skip,
                count=self.count,
                delay_us=self.delay,
            )
        )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Held messages go on their way, and the rule that held them ends."""

    name: ClassVar[str] = "release"

    id: str = described("The `id` of the `message` rule.", default="message")

    def inject(self, surroundings: Surroundings) -> bool:
        """Release what the rule holds."""
        return surroundings.release_messages(self.id)
