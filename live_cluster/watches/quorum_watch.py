"""Observes the active controller of a KRaft cluster, in its own thread."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.watches.polling_thread import PollingThread
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.quorum import QuorumLeader, quorum_leader

_NO_LEADER: Final = QuorumLeader(-1, -1)


class QuorumWatch:
    """Updates *observed_metadata* with the leader of the quorum, once it is the active controller.

    Only a leader claims to lead. The claim with the highest epoch counts, because a leader that is
    cut off believes for a while that it still leads. The last leader counts while it is paused or
    silent, but not after its death.
    """

    def __init__(
        self,
        observed_metadata: ObservedMetadata,
        controllers: Mapping[int, NodeProcess],
        connections: Mapping[int, BrokerConnection],
        activity: Activity,
    ) -> None:
        self._observed_metadata = observed_metadata
        self._controllers = controllers
        self._connections = connections
        self._last_leader = _NO_LEADER
        self._watch = PollingThread("quorum", self._poll, activity)

    def start(self) -> None:
        self._watch.start()

    def close(self) -> None:
        self._watch.close(self._connections.values())

    def _poll(self) -> None:
        leaders: list[QuorumLeader] = []
        silent: set[int] = set()
        for number, controller in self._controllers.items():
            if not controller.is_running:
                continue
            silent.add(number)
            if not controller.is_paused:
                with suppress(ConnectionLostError):
                    leader = quorum_leader(self._connections[number])
                    silent.discard(number)
                    if (
                        leader is not None
                        and leader.epoch >= self._last_leader.epoch
                        and self._observed_metadata.is_active(*leader)
                    ):
                        leaders.append(leader)
        if leaders:
            self._last_leader = max(leaders, key=lambda leader: leader.epoch)
            self._observed_metadata.set_controller(*self._last_leader)
        elif self._last_leader.id not in silent:
            self._observed_metadata.set_controller(None, self._last_leader.epoch)
