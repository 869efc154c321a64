"""A broker's process stands still: a long garbage collection, SIGSTOP, a frozen virtual machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.faults.brokers.broker_crash import BrokerCrash
from harrow.faults.effects import Effects, Pause, Resume
from harrow.faults.fault import BrokerProcesses, Environment, Fault, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPause(LastingFault):
    """The broker does nothing; its connections stay open and what arrives waits.

    Past `zookeeper.session.timeout.ms` its session expires without its knowing.
    """

    name: ClassVar[str] = "broker_pause"

    broker: Broker = described("Which broker.")
    duration: Lasts | None = described(
        "How long; by default until the cluster is healed or the broker is resumed.", default=None
    )

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and not environment.is_paused(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Pause(self.broker)]

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[BrokerCrash]:
        """Yield crashes of the broker."""
        yield BrokerCrash(broker=self.broker, restart_after=self.duration)
        yield BrokerCrash(broker=self.broker)

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return processes.is_paused(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerResume(Fault):
    """A paused broker goes on where it was."""

    name: ClassVar[str] = "broker_resume"

    broker: Broker = described("Which broker.")

    def applies(self, environment: Environment) -> bool:
        return environment.is_paused(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Resume(self.broker)]
