"""ZooKeeper ends a broker's session."""

from dataclasses import dataclass
from typing import ClassVar

from faults.fault import Surroundings
from faults.fields import Broker, described


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExpiry:
    """ZooKeeper forgets a broker's session although the broker runs on, as after a long silence between them.

    The broker's registration goes, and `/controller` with it if it was the controller. It
    learns of that when it next hears from ZooKeeper, and registers anew with a new broker epoch.
    """

    name: ClassVar[str] = "session_expiry"

    broker: Broker = described("Whose session.")

    def inject(self, surroundings: Surroundings) -> bool:
        """Expire the session if the broker runs."""
        broker = surroundings.resolve_broker(self.broker)
        if broker is None or not surroundings.is_running(broker):
            return False
        surroundings.expire_session(broker)
        return True
