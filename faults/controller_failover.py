"""The controller loses its office."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from faults.fault import Surroundings
from faults.fields import DurationRange, described, draw_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFailover:
    """The controller's broker dies, its session expires, or `/controller` is deleted.

    After each, the first broker to create the znode is the new controller and raises
    the controller epoch. Only a crash touches the replicas of the old one's broker.
    """

    name: ClassVar[str] = "controller_failover"

    how: Literal["crash", "session_expiry", "delete_znode"] = described(
        "`crash` of its broker, `session_expiry` in ZooKeeper, or `delete_znode` (rmr /controller).",
        default="crash",
    )
    restart_after: DurationRange | None = described(
        "With `crash`: how long until the broker is started again; by default when the cluster is healed.",
        default=None,
    )

    def inject(self, surroundings: Surroundings) -> bool:
        """Depose the controller if there is one."""
        broker = surroundings.resolve_broker("controller")
        if broker is None or not surroundings.is_running(broker):
            return False
        if self.how == "delete_znode":
            surroundings.delete_controller_znode()
        elif self.how == "session_expiry":
            surroundings.expire_session(broker)
        else:
            surroundings.crash_broker(broker, power_loss=False)
            if self.restart_after is not None:
                delay_us = draw_duration(surroundings.draw, self.restart_after)
                surroundings.after(delay_us, surroundings.start_broker, broker)
        return True
