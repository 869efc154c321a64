"""A broker that takes long for everything."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Duration, Lasts, described
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.effects import Effects, SlowBroker
from harrow.faults.fault import Environment, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSlow(LastingFault):
    """The broker is short of CPU: each request takes one of its threads longer, and the next one of the connection waits.

    Once all of `num.io.threads` are busy, whatever else it is asked for waits behind them: what its followers fetch, and what the controller
    orders, unless `control.plane.listener.name` gives that a queue of its own. It works on with what it asks others: it keeps its session, and
    fetches what it replicates. That is the failure that no timeout of the cluster notices, while clients wait. A controller in a process of its own
    has one thread for each connection here.
    """

    name: ClassVar[str] = "broker_slow"

    broker: Broker = described("Which broker.")
    delay: Duration = described("How much longer each request takes.", default=100 * US_PER_MS, minimum=1)
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [SlowBroker(self.broker, self.delay)]
