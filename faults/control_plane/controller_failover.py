"""The controller loses its office."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.faults.brokers.broker_crash import BrokerCrash
from harrow.faults.effects import DeleteController, Effects, ExpireSession, Kill
from harrow.faults.fault import BrokerProcesses, Environment, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFailover(LastingFault):
    """The controller's broker dies, its session expires, or `/controller` is deleted.

    With ZooKeeper, the first broker to create the znode is the new controller and raises the controller epoch; with KRaft
    the quorum elects one, and the old one resigns where it does not die. Only a crash touches the replicas of the old
    one's broker, if it is one.
    """

    name: ClassVar[str] = "controller_failover"

    broker: Broker = described("The controller's.", default="controller", key="")
    how: Literal["crash", "session_expiry", "delete_znode"] = described(
        "`crash` of its broker, `session_expiry` in ZooKeeper, or `delete_znode` (rmr /controller).",
        default="crash",
    )
    restart_after: Lasts | None = described(
        "With `crash`: how long until the broker is started again; by default when the cluster is healed.",
        default=None,
    )

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        if self.how == "delete_znode":
            return [DeleteController()]
        return [ExpireSession(self.broker) if self.how == "session_expiry" else Kill(self.broker)]

    def is_lasting(self) -> bool:
        """Return whether there is a broker to be started again."""
        return self.how == "crash"

    def named(self) -> BrokerCrash | None:
        """Return the crash of the broker that was the controller: who that is hangs on all that happened before."""
        is_known = isinstance(self.broker, int) and self.how == "crash"
        return BrokerCrash(broker=self.broker, restart_after=self.restart_after) if is_known else None

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[BrokerCrash]:
        """Yield crashes of each of the brokers."""
        for broker in brokers if self.how == "crash" else ():
            yield BrokerCrash(broker=broker, restart_after=self.restart_after)

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)
