"""A broker that is cut off from others."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from faults.fault import Surroundings
from faults.fields import Broker, DurationRange, described, draw_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIsolation:
    """A `partition` around one broker, which is found when it strikes: the leader, the controller, any.

    Nothing passes either way; as with TCP, what is sent meanwhile is sent again afterwards, unless
    one end has given the connection up. From ZooKeeper alone, a leader goes on as before until it is
    succeeded, and can write no ISR.
    """

    name: ClassVar[str] = "broker_isolation"

    broker: Broker = described("Which broker.")
    from_: Literal["zookeeper", "brokers", "servers"] = described(
        "From whom (written `from`): `zookeeper`, the other `brokers`, or both (`servers`).",
        default="servers",
    )
    duration: DurationRange | None = described(
        "How long; by default until the cluster is healed.", default=None
    )

    def inject(self, surroundings: Surroundings) -> bool:
        """Cut the broker's links."""
        broker = surroundings.resolve_broker(self.broker)
        if broker is None:
            return False
        others: list[int | str] = []
        if self.from_ != "zookeeper":
            others += [other for other in surroundings.broker_ids() if other != broker]
        if self.from_ != "brokers":
            others.append("zookeeper")
        links = [(broker, other) for other in others] + [(other, broker) for other in others]
        for sender, receiver in links:
            surroundings.cut_link(sender, receiver)
        if self.duration is not None:
            delay_us = draw_duration(surroundings.draw, self.duration)
            surroundings.after(delay_us, _restore, (surroundings, links))
        return True


def _restore(cut: tuple[Surroundings, list[tuple[int | str, int | str]]]) -> None:
    surroundings, links = cut
    for sender, receiver in links:
        surroundings.restore_link(sender, receiver)
