"""A broker's process dies, or its machine loses power."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from faults.fault import Surroundings
from faults.fields import Broker, DurationRange, described, draw_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCrash:
    """The broker is gone at once. Its ZooKeeper session lives on until it times out.

    A process crash keeps the whole log, flushed or not, and closes the connections.
    Power loss keeps what was flushed to disk, and the peers hear nothing at all.
    """

    name: ClassVar[str] = "broker_crash"

    broker: Broker = described("Which broker.")
    kind: Literal["process", "power_loss"] = described(
        "`process` (kill -9) keeps the page cache, `power_loss` does not.", default="process"
    )
    restart_after: DurationRange | None = described(
        "How long until it is started again; by default it stays down until the cluster is healed.",
        default=None,
    )

    def inject(self, surroundings: Surroundings) -> bool:
        """Crash the broker if it runs."""
        broker = surroundings.resolve_broker(self.broker)
        if broker is None or not surroundings.is_running(broker):
            return False
        power_loss = self.kind == "power_loss"
        if power_loss and not surroundings.may_lose_power(broker):
            return False
        surroundings.crash_broker(broker, power_loss=power_loss)
        if self.restart_after is not None:
            delay_us = draw_duration(surroundings.draw, self.restart_after)
            surroundings.after(delay_us, surroundings.start_broker, broker)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRestart:
    """A broker that is down is started.

    While its old session lives it cannot register: Kafka's broker ends then, and is tried again
    each second here, as by what supervises it.
    """

    name: ClassVar[str] = "broker_restart"

    broker: Broker = described("Which broker.")

    def inject(self, surroundings: Surroundings) -> bool:
        """Start the broker if it is down."""
        broker = surroundings.resolve_broker(self.broker)
        if broker is None or surroundings.is_running(broker):
            return False
        surroundings.start_broker(broker)
        return True
