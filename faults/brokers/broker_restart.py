"""A broker that is down is started."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import Broker, described
from harrow.cluster_model.topology import FIRST_ZOOKEEPER_ID
from harrow.faults.brokers.broker_crash import BrokerCrash
from harrow.faults.brokers.broker_stop import BrokerStop
from harrow.faults.effects import Effects, Start
from harrow.faults.fault import Environment, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRestart(Fault):
    """A broker that is down is started.

    While its old session lives it cannot register: Kafka's broker ends then, and is tried again
    each second here, as by what supervises it.
    """

    name: ClassVar[str] = "broker_restart"

    broker: Broker = described("Which broker.")

    def applies(self, environment: Environment) -> bool:
        # A broker that has not joined yet is not down; servers that are no brokers are all there.
        has_joined = self.broker >= FIRST_ZOOKEEPER_ID or self.broker in environment.broker_ids()
        return has_joined and not environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Start(self.broker)]

    def ends(self, other: Fault) -> bool:
        """Return whether that took this broker down."""
        return isinstance(other, (BrokerCrash, BrokerStop)) and other.broker == self.broker
