"""A broker is stopped in good order, as an operator does it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.faults.brokers.broker_crash import BrokerCrash
from harrow.faults.effects import Effects, Start, Stop
from harrow.faults.fault import BrokerProcesses, Environment, Fault, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStop(LastingFault):
    """The broker is told to stop (SIGTERM): its leaderships are moved away, its logs are flushed, its session is closed.

    It stops with `controlled.shutdown.enable=false`, without a controller and without anyone to take over
    as well, later or less gently. Nothing is lost by it.
    """

    name: ClassVar[str] = "broker_stop"

    broker: Broker = described("Which broker.")
    restart_after: Lasts | None = described(
        "How long after the signal it is started again, or as soon as it has stopped if it takes longer; by default "
        "it stays down until the cluster is healed.",
        default=None,
    )

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and not environment.is_stopping(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Stop(self.broker)]

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[BrokerCrash]:
        """Yield crashes of the broker."""
        yield BrokerCrash(broker=self.broker, restart_after=self.restart_after)

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return processes.is_stopping(self.broker) or not processes.is_running(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerBounce(Fault):
    """The broker is restarted (`systemctl restart`): told to stop, and started as soon as its process has ended."""

    name: ClassVar[str] = "broker_bounce"

    broker: Broker = described("Which broker.")

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and not environment.is_stopping(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Stop(self.broker), Start(self.broker)]

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[BrokerCrash]:
        """Yield the crash of the broker."""
        yield BrokerCrash(broker=self.broker, restart_after=(0, 0))
