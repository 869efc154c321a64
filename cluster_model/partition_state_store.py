"""Where a leader writes ISR changes: the state znode of the partition (``PartitionStateStore``)."""

from collections.abc import Callable

from cluster_model import zookeeper_protocol as zk
from cluster_model.host import Host
from cluster_model.isr_change_propagation import IsrChangePropagation
from cluster_model.partition import Partition
from cluster_model.release import Behaviours
from cluster_model.zookeeper_client import ZooKeeperClient


class ZkPartitionStateStore:
    """Writes of one broker. While one is under way, requests for its partition wait."""

    def __init__(
        self,
        broker: int,
        host: Host,
        zookeeper: ZooKeeperClient,
        behaviours: Behaviours,
        on_written: Callable[[Partition, bool], None],
    ) -> None:
        self._broker = broker
        self._zookeeper = zookeeper
        self._behaviours = behaviours
        self._on_written = on_written
        self._changes = IsrChangePropagation(host, zookeeper)

    def start(self) -> None:
        """Begin to tell the controller of changes."""
        self._changes.start()

    def change_isr(self, partition: Partition, new_isr: tuple[int, ...], change: str) -> None:
        """Write a new ISR into the partition's znode, if that has not changed meanwhile."""
        path = zk.state_path(partition.name)
        state = zk.TopicPartitionState(
            self._broker, partition.leader_epoch, new_isr, partition.controller_epoch
        )
        version = partition.zk_version if self._behaviours.isr_write_conditional else zk.ANY_VERSION
        # The leader may die, or lose the answer, before it knows what ZooKeeper has.
        tells = ("isr_written", self._broker, partition.name, partition.leader_epoch, new_isr)
        self._zookeeper.submit(
            (zk.SetData(path, state, version, tells), zk.GetData(path)),
            lambda response: self._written(partition, state, change, response),
        )

    def _written(
        self,
        partition: Partition,
        state: zk.TopicPartitionState,
        change: str,
        response: zk.ZooKeeperResponse,
    ) -> None:
        version = _version(state, response)
        hw_rose = partition.isr_written(state.isr, change, version)
        if version is not None:
            self._changes.note(partition.name)
        self._on_written(partition, hw_rose)


def _version(state: zk.TopicPartitionState, response: zk.ZooKeeperResponse) -> int | None:
    """Return the version that a write has made; None when it was refused or the session is over."""
    if response.error != zk.OK:
        return None
    written, read = response.results
    if written.error == zk.OK:
        return written.version
    if read.error == zk.OK and read.data == state:
        # The answer to an earlier attempt was lost, but it took effect.
        return read.version
    return None
