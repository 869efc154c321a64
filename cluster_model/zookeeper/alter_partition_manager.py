"""Writes a leader's ISR changes to ZooKeeper, and announces them to the controller.

Modelled on ``ZkAlterPartitionManager.scala`` and ``ReplicaManager.maybePropagateIsrChanges``.
"""

from collections.abc import Callable, Mapping
from typing import Final

from harrow.cluster_model.protocol import LeaderAndIsr
from harrow.cluster_model.release.zookeeper import ZooKeeperSwitches
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.periodic_task import PeriodicTask
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient

CHECK_INTERVAL_US: Final = 2_500_000
QUIET_TIME_US: Final = 5 * US_PER_SECOND
PROPAGATION_INTERVAL_MAX_US: Final = 60 * US_PER_SECOND


class IsrChangePropagation:
    """Announces the ISR changes of one broker to the controller.

    As in ``ReplicaManager.maybePropagateIsrChanges``, the broker writes the changed partitions into
    one sequential znode under ``/isr_change_notification``, 5 s after the last change or 60 s after
    the last announcement.
    """

    __slots__ = ("_changed", "_host", "_last_change_us", "_last_propagation_us", "_task", "_zookeeper")

    def __init__(self, host: Host, zookeeper: ZooKeeperClient) -> None:
        self._host = host
        self._zookeeper = zookeeper
        self._changed: dict[str, None] = {}
        self._last_change_us = host.clock.now_us
        self._last_propagation_us = host.clock.now_us
        self._task = PeriodicTask(host, CHECK_INTERVAL_US, self._check)

    def start(self) -> None:
        self._task.start()

    def note(self, partition: str) -> None:
        self._changed[partition] = None
        self._last_change_us = self._host.clock.now_us
        self._task.request()

    def _check(self) -> bool:
        now_us = self._host.clock.now_us
        if self._changed and (
            self._last_change_us + QUIET_TIME_US < now_us
            or self._last_propagation_us + PROPAGATION_INTERVAL_MAX_US < now_us
        ):
            node = zk.Create(
                f"{zk.ISR_CHANGE_NOTIFICATION}/isr_change_", tuple(self._changed), sequential=True
            )
            changed, self._changed = self._changed, {}
            self._zookeeper.submit((node,), lambda response: self._finish_announcement(response, changed))
            self._last_propagation_us = now_us
        return bool(self._changed)

    def _finish_announcement(self, response: zk.ZooKeeperResponse, changed: dict[str, None]) -> None:
        """Retry a failed announcement. A successful one fires the controller's watch."""
        if response.error != zk.OK:
            self._changed = {**changed, **self._changed}
            self._task.request()


class ZkAlterPartitionManager:
    """Writes the ISRs of the partitions that one broker leads.

    A partition has at most one write in flight.
    """

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
        """Write a new ISR into the partition's znode, if the znode has not changed."""
        path = zk.state_path(partition)
        data = zk.TopicPartitionState(state.leader, state.leader_epoch, state.isr, controller_epoch)
        version = state.partition_epoch if self._switches.isr_write_conditional else zk.ANY_VERSION

        def on_response(response: zk.ZooKeeperResponse) -> None:
            written = _written_version(data, response)
            if written is not None:
                self._changes.note(partition)
            on_altered(written)

        self._zookeeper.submit((zk.SetData(path, data, version), zk.GetData(path)), on_response)


def _written_version(state: zk.TopicPartitionState, response: zk.ZooKeeperResponse) -> int | None:
    """Return the znode's version after a write.

    Return None if the write was refused, or if the session has expired.
    """
    if response.error != zk.OK:
        return None
    written, read = response.results
    if written.error == zk.OK:
        return written.version
    if read.error == zk.OK and read.data == state:
        # An earlier attempt took effect, but its response was lost.
        return read.version
    return None
