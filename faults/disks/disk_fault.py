"""What faults of a disk have in common: they show when the broker comes back."""

from abc import abstractmethod

from harrow.faults.effects import Effects, FaultEffect, Kill, Start
from harrow.faults.fault import BrokerProcesses, Environment, LastingFault


class DiskFault(LastingFault):
    """A broker's process dies with something of its disk; one that is down already only loses that.

    It lasts until the broker runs again.
    """

    __slots__ = ()

    broker: int

    @abstractmethod
    def effect_on_disk(self) -> FaultEffect:
        """Return what happens to the disk of a broker that is down."""

    def applies(self, environment: Environment) -> bool:
        return environment.has_logs(self.broker) and environment.may_lose_power(self.broker)

    def effects(self, environment: Environment) -> Effects:
        if environment.is_running(self.broker):
            yield Kill(self.broker)
        yield self.effect_on_disk()

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)

    def end(self, environment: Environment) -> Effects:
        return [Start(self.broker)]
