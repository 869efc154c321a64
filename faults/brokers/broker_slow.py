"""A broker that takes long for everything."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, Duration, Lasts, described
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.fault import Environment, Link, SlowingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSlow(SlowingFault):
    """The broker is short of CPU or of disk: each request takes it longer, and the next one of the connection waits.

    It works on with what it asks others: it keeps its session, and fetches what it replicates. That is the
    failure that no timeout of the cluster notices, while clients wait.
    """

    name: ClassVar[str] = "broker_slow"

    broker: Broker = described("Which broker.")
    delay: Duration = described("How much longer each request takes.", default=100 * US_PER_MS, minimum=1)
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker)

    def slow_links(self, environment: Environment) -> list[Link]:
        senders: tuple[int | str, ...] = (*environment.broker_ids(), *environment.client_names())
        return [(sender, self.broker) for sender in senders]

    def quality(self) -> LinkQuality:
        return LinkQuality(request_us=self.delay)
