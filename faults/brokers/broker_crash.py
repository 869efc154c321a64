"""A broker's process dies, or its machine loses power."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.cluster_model.topology import FIRST_ZOOKEEPER_ID
from harrow.faults.fault import BrokerProcesses, Environment, Fault, LastingFault


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

    def inject(self, environment: Environment) -> None:
        environment.crash_broker(self.broker, power_loss=self.kind == "power_loss")

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)

    def end(self, environment: Environment) -> None:
        environment.start_broker(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRestart(Fault):
    """A broker that is down is started.

    While its old session lives it cannot register: Kafka's broker ends then, and is tried again
    each second here, as by what supervises it.
    """

    name: ClassVar[str] = "broker_restart"

    broker: Broker = described("Which broker.")

    def applies(self, environment: Environment) -> bool:
        # A broker that has not joined yet is not down; servers that are no brokers are all there.
        has_joined = self.broker >= FIRST_ZOOKEEPER_ID or self.broker in environment.broker_ids()
        return has_joined and not environment.is_running(self.broker)

    def inject(self, environment: Environment) -> None:
        environment.start_broker(self.broker)
