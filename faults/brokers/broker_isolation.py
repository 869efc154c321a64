"""A broker that is cut off from others."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.faults.fault import BrokerProcesses, Link, LinkFault


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIsolation(LinkFault):
    """A `partition` around one broker, which is found when it strikes: the leader, the controller, any.

    Nothing passes either way; as with TCP, what is sent meanwhile is sent again afterwards, unless
    one end has given the connection up. From ZooKeeper alone, a leader goes on as before until it is
    succeeded, and can write no ISR.
    """

    name: ClassVar[str] = "broker_isolation"

    broker: Broker = described("Which broker.")
    from_: Literal["zookeeper", "quorum", "brokers", "servers"] = described(
        "From whom (written `from`): `zookeeper` (in KRaft `quorum`), the other `brokers`, or both (`servers`).",
        default="servers",
    )
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def links(self, environment: BrokerProcesses) -> list[Link]:
        others: list[int | str] = []
        if self.from_ not in ("zookeeper", "quorum"):
            others += [other for other in environment.broker_ids() if other != self.broker]
        if self.from_ != "brokers":
            others.append("zookeeper")
        return [(self.broker, other) for other in others] + [(other, self.broker) for other in others]
