"""Faults of the control plane: a session ends, or the controller fails over.

`control_plane_of` also finds out which control plane a fault needs.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from harrow.cluster_model import fields
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.fields import Broker, Lasts, described
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import CONTROL_PLANES, ZOOKEEPER
from harrow.faults.brokers import BrokerCrash
from harrow.faults.effects import DeleteController, Effects, ExpireSession, Kill
from harrow.faults.fault import BrokerProcesses, Environment, Fault, LastingFault


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFailover(LastingFault):
    """The controller's broker dies, its session expires, or `/controller` is deleted.

    With ZooKeeper, the first broker that creates `/controller` becomes the controller and raises
    the controller epoch. With KRaft, the quorum elects a controller, and the old one resigns unless
    it died. If the old controller is a broker, its replicas fail only if it crashes.
    """

    name: ClassVar[str] = "controller_failover"

    broker: Broker = described("The controller's.", default="controller", key="")
    how: Literal["crash", "session_expiry", "delete_znode"] = described(
        "`crash` of its broker, `session_expiry` in ZooKeeper, or `delete_znode` (rmr /controller).",
        default="crash",
    )
    restart_after: Lasts | None = described(
        "With `crash`: how long until the broker is started again; by default when the cluster is healed.",
        default=None,
    )

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        if self.how == "delete_znode":
            return [DeleteController()]
        return [ExpireSession(self.broker) if self.how == "session_expiry" else Kill(self.broker)]

    def is_lasting(self) -> bool:
        """Return whether it is a crash: nothing else leaves a broker that must be started again."""
        return self.how == "crash"

    def on_fixed_broker(self) -> BrokerCrash | None:
        """Return a crash of the broker that was the controller when this fault struck."""
        if not isinstance(self.broker, int) or self.how != "crash":
            return None
        return BrokerCrash(broker=self.broker, restart_after=self.restart_after)

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[BrokerCrash]:
        for broker in brokers if self.how == "crash" else ():
            yield BrokerCrash(broker=broker, restart_after=self.restart_after)

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExpiry(Fault):
    """The control plane declares a running broker dead, as after a long silence.

    With ZooKeeper the broker's session expires: its registration disappears, and so does
    `/controller` if it was the controller. The broker learns of this from ZooKeeper's next answer,
    and registers again with a new broker epoch. With KRaft the controller fences the broker until
    its next heartbeat. A KRaft controller that loses its own session resigns.
    """

    name: ClassVar[str] = "session_expiry"

    broker: Broker = described("Whose session.")

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [ExpireSession(self.broker)]


def where_metadata_is(release: str, metadata: str) -> str:
    """Return a sentence that says where a cluster of a release keeps its metadata."""
    return f"Kafka {release} keeps its metadata in {CONTROL_PLANES[metadata]} here"


def control_plane_of(fault: Fault) -> str | None:
    """Return the only control plane that has the messages of a fault; None if both have them.

    A campaign can run on a release with the other control plane. Without this check, a fault would
    wait there for messages that never come.
    """
    for item in fields.fields_of(type(fault)):
        value = item.value_in(fault)
        if item.kind is fields.ZnodePathMarker and value is not None:
            return ZOOKEEPER
        if item.kind is fields.ApiMarker and APIS.get(value) in CONTROL_PLANES:
            return APIS[value]
    return None
