"""What faults of a disk have in common: they show when the broker comes back."""

from abc import abstractmethod

from harrow.faults.fault import BrokerProcesses, Environment, LastingFault


class DiskFault(LastingFault):
    """A broker's process dies with something of its disk; one that is down already only loses that.

    It lasts until the broker runs again.
    """

    __slots__ = ()

    broker: int

    @abstractmethod
    def strike_disk(self, environment: Environment) -> None:
        """Do it to the disk of a broker that is down."""

    def applies(self, environment: Environment) -> bool:
        return environment.has_logs(self.broker) and environment.may_lose_power(self.broker)

    def inject(self, environment: Environment) -> None:
        if environment.is_running(self.broker):
            environment.crash_broker(self.broker, power_loss=False)
        self.strike_disk(environment)

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)

    def end(self, environment: Environment) -> None:
        environment.start_broker(self.broker)
