"""Where a leader writes ISR changes: the state znode of the partition (``ZkAlterPartitionManager.scala``)."""

from collections.abc import Callable, Mapping

from harrow.cluster_model.protocol import LeaderAndIsr
from harrow.cluster_model.release.zookeeper import ZooKeeperSwitches
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.zookeeper.isr_change_propagation import IsrChangePropagation
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient


class ZkAlterPartitionManager:
    """Writes of one broker. While one is under way, requests for its partition wait."""

    def __init__(self, host: Host, zookeeper: ZooKeeperClient, switches: ZooKeeperSwitches) -> None:
        self._zookeeper = zookeeper
        self._switches = switches
        self._changes = IsrChangePropagation(host, zookeeper)

    def start(self) -> None:
        self._changes.start()

    def submit(
        self,
        partition: str,
        state: LeaderAndIsr,
        controller_epoch: int,
        on_altered: Callable[[int | None], None],
        broker_epochs: Mapping[int, int],
    ) -> None:
        """Write a new ISR into the partition's znode, if that has not changed meanwhile."""
        path = zk.state_path(partition)
        data = zk.TopicPartitionState(state.leader, state.leader_epoch, state.isr, controller_epoch)
        version = state.partition_epoch if self._switches.isr_write_conditional else zk.ANY_VERSION

        def answered(response: zk.ZooKeeperResponse) -> None:
            written = _version(data, response)
            if written is not None:
                self._changes.note(partition)
            on_altered(written)

        self._zookeeper.submit((zk.SetData(path, data, version), zk.GetData(path)), answered)


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
