"""How a leader tells the controller of ISR changes that it has written itself.

After ``ReplicaManager.maybePropagateIsrChanges``: the changed partitions go into one
sequential node under ``/isr_change_notification``, once 5 s have passed since the
last change, or 60 s since the last time.
"""

from typing import Final

from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.periodic_task import PeriodicTask
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient

CHECK_INTERVAL_US: Final = 2_500_000
QUIET_TIME_US: Final = 5 * US_PER_SECOND
PROPAGATION_INTERVAL_MAX_US: Final = 60 * US_PER_SECOND


class IsrChangePropagation:
    """The changes of one broker that the controller has not been told of."""

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
            self._zookeeper.submit((node,), lambda response: self._announced(response, changed))
            self._last_propagation_us = now_us
        return bool(self._changed)

    def _announced(self, response: zk.ZooKeeperResponse, changed: dict[str, None]) -> None:
        """The controller's watch does the rest; what could not be written is tried again."""
        if response.error != zk.OK:
            self._changed = {**changed, **self._changed}
            self._task.request()
