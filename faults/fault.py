"""What a fault is: data, and what it does to the cluster's surroundings."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from cluster_model.choices import Stream
from cluster_model.message_rule import MessageRule


class Surroundings(Protocol):
    """What a fault can lay hands on: processes, machines, links, sessions.

    There is nothing here that writes protocol state. A broker is named by its id,
    any end of a link by a broker's id, a client's name or ``"zookeeper"``.
    """

    draw: Stream

    @property
    def now_us(self) -> int:
        """Virtual time."""

    def after(self, delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call back when the fault is over, unless the cluster has been healed by then.

        A fault has one end: it calls this from `inject`, once at the most.
        """

    def resolve_broker(self, reference: int | str) -> int | None:
        """Return the broker that a reference means now; None when there is no such broker."""

    def broker_ids(self) -> tuple[int, ...]:
        """Return the ids of all brokers."""

    def client_names(self) -> tuple[str, ...]:
        """Return the names of the clients."""

    def crash_broker(self, broker: int, *, power_loss: bool) -> None:
        """End a broker's process, or cut its machine's power."""

    def may_lose_power(self, broker: int) -> bool:
        """Return whether the campaign's budget allows a broker's unflushed records to go."""

    def start_broker(self, broker: int) -> None:
        """Start a broker that is down."""

    def pause_broker(self, broker: int) -> None:
        """Stop a broker's process (SIGSTOP)."""

    def resume_broker(self, broker: int) -> None:
        """Let a paused broker go on (SIGCONT)."""

    def is_running(self, broker: int) -> bool:
        """Return whether a broker's process exists (it may be paused)."""

    def is_paused(self, broker: int) -> bool:
        """Return whether a broker's process is paused."""

    def expire_session(self, broker: int) -> None:
        """Have ZooKeeper end a broker's session."""

    def delete_controller_znode(self) -> None:
        """Delete ``/controller``, as ``rmr /controller`` does."""

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        """Let no packet pass from one end to the other."""

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        """Undo one `cut_link`."""

    def add_message_rule(self, rule: MessageRule) -> None:
        """Put a rule for single messages in force."""

    def remove_message_rule(self, rule: MessageRule) -> None:
        """Take a rule out of force; what it holds goes on its way."""

    def release_messages(self, name: str) -> bool:
        """Remove the rule of that name; return whether there was one."""


class Fault(Protocol):
    """A fault: a frozen dataclass whose fields are its campaign syntax."""

    name: ClassVar[str]

    def inject(self, surroundings: Surroundings) -> bool:
        """Do it. Return False when there was nothing to do it to (a broker already down)."""
