"""What faults of a log directory have in common: somebody ends them, and restarts the broker."""

from abc import abstractmethod
from dataclasses import dataclass

from harrow.cluster_model.fields import Broker, Lasts, Skip, described
from harrow.faults.fault import Environment, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFault(LastingFault):
    """Something keeps a broker from writing to one of its log directories."""

    broker: Broker = described("Whose disk.")
    log_dir: Skip = described(
        "Which log directory, from 0; `cluster.disk.log_dirs` says how many there are.", default=0
    )
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def applies(self, environment: Environment) -> bool:
        return (
            environment.has_logs(self.broker)
            and environment.is_running(self.broker)
            and self.log_dir < environment.log_dirs()
        )

    @abstractmethod
    def repair(self, environment: Environment) -> None:
        """Let the directory be written to, as far as this fault is concerned."""

    def end(self, environment: Environment) -> None:
        self.repair(environment)
        if environment.is_running(self.broker) and not environment.is_stopping(self.broker):
            environment.stop_broker(self.broker)
        environment.start_broker(self.broker)
