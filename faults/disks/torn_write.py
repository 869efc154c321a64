"""The power goes while a log is being written to disk."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Lasts, Skip, described
from harrow.faults.effects import Effects, TearWrite
from harrow.faults.fault import BrokerProcesses, Environment, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class TornWrite(LastingFault):
    """The machine loses power while the operating system writes back what was not flushed: of one batch a part is on disk.

    Recovery cuts the log at the first batch with a bad CRC. No more is lost than by `broker_crash` with `kind: power_loss`, which
    is the case that nothing has been written back.
    """

    name: ClassVar[str] = "torn_write"

    broker: Broker = described("Which broker.")
    after: Skip = described(
        "How many unflushed batches of each log are on disk whole before the one that is torn.", default=0
    )
    restart_after: Lasts | None = described(
        "How long until it is started again; by default it stays down until the cluster is healed.",
        default=None,
    )

    def applies(self, environment: Environment) -> bool:
        return (
            environment.has_logs(self.broker)
            and environment.is_running(self.broker)
            and environment.may_lose_power(self.broker)
        )

    def effects(self, environment: Environment) -> Effects:
        return [TearWrite(self.broker, self.after)]

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)
