"""A log directory can no longer be written to."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Lasts, Skip, described
from harrow.faults.fault import Environment, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFailure(LastingFault):
    """Writing to a log directory fails: its disk is full, or gives errors. What is stored there stays.

    The broker finds out when it appends, flushes or writes a checkpoint. It takes the directory offline and goes on without the
    replicas there, and the controller elects others (KIP-112, from 1.0 on). Without another directory it ends at once, and
    cannot start before the disk is well again. With the end of the fault somebody repairs the disk and restarts the broker.
    """

    name: ClassVar[str] = "log_dir_failure"

    broker: Broker = described("Whose disk.")
    log_dir: Skip = described(
        "Which log directory, from 0; `cluster.disk.log_dirs` says how many there are.", default=0
    )
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and self.log_dir < environment.log_dirs()

    def inject(self, environment: Environment) -> None:
        environment.fail_log_dir(self.broker, self.log_dir)

    def end(self, environment: Environment) -> None:
        environment.repair_log_dir(self.broker, self.log_dir)
        if environment.is_running(self.broker) and not environment.is_stopping(self.broker):
            environment.stop_broker(self.broker)
        environment.start_broker(self.broker)
