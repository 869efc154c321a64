"""Rules for single messages on their way: hold, drop, delay, duplicate, lose the answer."""

# Plain Python: protocols that are `runtime_checkable`.

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from harrow.cluster_model.sim.message import Body

REQUEST: Final = "request"
RESPONSE: Final = "response"

HOLD: Final = "hold"
DROP: Final = "drop"
DELAY: Final = "delay"
DUPLICATE: Final = "duplicate"
RESET: Final = "reset"
ACTIONS: Final = (HOLD, DROP, DELAY, DUPLICATE, RESET)


@runtime_checkable
class AboutZnodes(Protocol):
    """The body of a message that is about znodes."""

    @property
    def znodes(self) -> tuple[str, ...]:
        """Their paths."""


@runtime_checkable
class CarriesRecords(Protocol):
    """The body of a message that has records in it."""

    @property
    def record_bytes(self) -> int:
        """How large they are together."""


@dataclass(slots=True, kw_only=True, eq=False)
class MessageRule:
    """What happens to messages that match.

    ``api`` None matches every API; ``senders`` and ``receivers`` are names of
    processes, None for anyone. With ``znode`` only messages about that znode or one
    below it match. The first ``skip`` matches pass; then ``count`` matches
    are acted upon (None: all of them), each with ``probability`` in millionths.
    Connections keep their order: what is held or delayed holds up what follows it on
    the same connection and in the same direction. What is held ``is_on_the_way``, and arrives once it is released although its
    client has closed the connection meanwhile, or waits with the client, which takes it along. ``strike`` is the number of the fault that made
    the rule, as the trace numbers them; None where no fault did.
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
    matched: int = field(default=0)
    applied: int = field(default=0)

    def matches(self, body: Body, kind: str, sender: str, receiver: str, listener: str) -> bool:
        """Return whether a message is one that this rule is about."""
        return self.is_about_api(body.api, kind, sender, receiver, listener) and (
            self.znode is None or (isinstance(body, AboutZnodes) and self._is_about(body.znodes))
        )

    def is_about_api(self, api: str, kind: str, sender: str, receiver: str, listener: str) -> bool:
        """Return whether messages of an API may be among those that this rule is about."""
        return (
            (self.api is None or self.api == api)
            and (self.kind is None or self.kind == kind)
            and (self.listener is None or self.listener == listener)
            and (self.senders is None or sender in self.senders)
            and (self.receivers is None or receiver in self.receivers)
        )

    def _is_about(self, znodes: Iterable[str]) -> bool:
        return any(f"{path}/".startswith(f"{self.znode}/") for path in znodes)

    def stands_against(self, names: Iterable[str]) -> bool:
        """Return whether the rule names one of these processes, or no process at all."""
        if self.senders is None and self.receivers is None:
            return True
        return any(name in (self.senders or ()) or name in (self.receivers or ()) for name in names)

    def exhausted(self) -> bool:
        """Return whether the rule has acted as often as it may."""
        return self.count is not None and self.applied >= self.count
