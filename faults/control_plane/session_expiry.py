"""The control plane ends a broker's session."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, described
from harrow.faults.effects import Effects, ExpireSession
from harrow.faults.fault import Environment, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExpiry(Fault):
    """The control plane takes a broker that runs for dead, as after a long silence between them.

    ZooKeeper ends its session: its registration goes, and `/controller` with it if it was the controller. It learns of
    that when it next hears from ZooKeeper, and registers anew with a new broker epoch. A controller of a KRaft quorum
    fences it, until its next heartbeat; a controller whose session it is resigns.
    """

    name: ClassVar[str] = "session_expiry"

    broker: Broker = described("Whose session.")

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [ExpireSession(self.broker)]
