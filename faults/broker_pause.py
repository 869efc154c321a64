"""A broker's process stands still: a long garbage collection, SIGSTOP, a frozen virtual machine."""

from dataclasses import dataclass
from typing import ClassVar

from faults.fault import Surroundings
from faults.fields import Broker, DurationRange, described, draw_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPause:
    """The broker does nothing; its connections stay open and what arrives waits.

    Past `zookeeper.session.timeout.ms` its session expires without its knowing.
    """

    name: ClassVar[str] = "broker_pause"

    broker: Broker = described("Which broker.")
    duration: DurationRange | None = described(
        "How long; by default until the cluster is healed or the broker is resumed.", default=None
    )

    def inject(self, surroundings: Surroundings) -> bool:
        """Pause the broker if it runs."""
        broker = surroundings.resolve_broker(self.broker)
        if broker is None or not surroundings.is_running(broker) or surroundings.is_paused(broker):
            return False
        surroundings.pause_broker(broker)
        if self.duration is not None:
            delay_us = draw_duration(surroundings.draw, self.duration)
            surroundings.after(delay_us, surroundings.resume_broker, broker)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerResume:
    """A paused broker goes on where it was."""

    name: ClassVar[str] = "broker_resume"

    broker: Broker = described("Which broker.")

    def inject(self, surroundings: Surroundings) -> bool:
        """Resume the broker if it is paused."""
        broker = surroundings.resolve_broker(self.broker)
        if broker is None or not surroundings.is_paused(broker):
            return False
        surroundings.resume_broker(broker)
        return True
