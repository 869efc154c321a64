"""A broker's process dies, or its machine loses power."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.faults.effects import Effects, Kill, LosePower
from harrow.faults.fault import BrokerProcesses, Environment, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCrash(LastingFault):
    """The broker is gone at once. Its ZooKeeper session lives on until it times out.

    A process crash keeps the whole log, flushed or not, and closes the connections.
    Power loss keeps what was flushed to disk, and the peers hear nothing at all.
    """

    name: ClassVar[str] = "broker_crash"

    broker: Broker = described("Which broker.")
    kind: Literal["process", "power_loss"] = described(
        "`process` (kill -9) keeps the page cache, `power_loss` does not.", default="process"
    )
    restart_after: Lasts | None = described(
        "How long until it is started again; by default it stays down until the cluster is healed.",
        default=None,
    )

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and (
            self.kind == "process" or environment.may_lose_power(self.broker)
        )

    def effects(self, environment: Environment) -> Effects:
        return [LosePower(self.broker) if self.kind == "power_loss" else Kill(self.broker)]

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)
