"""Defines rules for single messages: hold, drop, delay, duplicate or reset them."""

from collections.abc import Iterable
from dataclasses import field
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.message_content import ZnodeMessage

REQUEST: Final = "request"
RESPONSE: Final = "response"

HOLD: Final = "hold"
DROP: Final = "drop"
DELAY: Final = "delay"
DUPLICATE: Final = "duplicate"
RESET: Final = "reset"
ACTIONS: Final = (HOLD, DROP, DELAY, DUPLICATE, RESET)


@dataclass(slots=True, kw_only=True, eq=False)
class MessageRule:
    """A rule that does something to the messages that match it.

    ``api``, ``kind`` (request or response), ``listener``, ``senders`` and ``receivers`` (names of
    processes) match any message if they are None. With ``znode``, only messages about that znode or
    one below it match. The first ``skip`` matching messages pass. Then the rule acts on ``count``
    messages (None: on all), on each with a probability of ``probability_millionths``. Connections
    keep their order, so a held or delayed message holds up the later messages of its direction. If
    the client closes the connection while a message is held, the message is dropped, unless it
    ``is_on_the_way``: then it arrives after its release. ``strike`` is the number of the strike of
    the fault that made the rule, None if no fault did.
    """

    name: str
    action: str
    api: str | None = None
    kind: str | None = None
    senders: frozenset[str] | None = None
    receivers: frozenset[str] | None = None
    znode: str | None = None
    listener: str | None = None
    skip: int = 0
    count: int | None = None
    probability_millionths: int = 1_000_000
    delay_us: int = 0
    is_on_the_way: bool = False
    strike: int | None = None
    match_count: int = field(default=0)
    applied_count: int = field(default=0)

    def matches(self, body: Body, kind: str, sender: str, receiver: str, listener: str) -> bool:
        """Return whether a message matches."""
        return (
            self._is_about_link(kind, sender, receiver, listener)
            and (self.api is None or self.api == body.api)
            and (self.znode is None or (isinstance(body, ZnodeMessage) and self._is_about(body.znodes)))
        )

    def is_about_api(self, api: str, kind: str, sender: str, receiver: str, listener: str) -> bool:
        """Return whether a message of an API may match, depending on its body."""
        return (self.api is None or self.api == api) and self._is_about_link(kind, sender, receiver, listener)

    def _is_about_link(self, kind: str, sender: str, receiver: str, listener: str) -> bool:
        return (
            (self.kind is None or self.kind == kind)
            and (self.listener is None or self.listener == listener)
            and (self.senders is None or sender in self.senders)
            and (self.receivers is None or receiver in self.receivers)
        )

    def _is_about(self, znodes: Iterable[str]) -> bool:
        return any(f"{path}/".startswith(f"{self.znode}/") for path in znodes)

    def may_affect(self, names: Iterable[str]) -> bool:
        """Return whether the rule names one of these processes, or names no process at all."""
        if self.senders is None and self.receivers is None:
            return True
        return any(name in (self.senders or ()) or name in (self.receivers or ()) for name in names)

    def is_exhausted(self) -> bool:
        """Return whether the rule has acted on ``count`` messages."""
        return self.count is not None and self.applied_count >= self.count
