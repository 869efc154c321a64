"""Who is the active controller of a cluster with KRaft, asked of a controller again and again by a thread of its own."""

import threading
import time

from harrow.live_cluster.broker_watch import rest_s
from harrow.live_cluster.control_plane import NodeProcess
from harrow.live_cluster.metadata_seen import MetadataSeen
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.quorum import quorum_leader


class QuorumWatch:
    """Puts what the only voter tells of its quorum into what was *seen*.

    While it is paused, or does not answer for another reason, the last that it told counts; once its process is gone, nobody leads.
    """

    def __init__(self, seen: MetadataSeen, controller: NodeProcess, connection: BrokerConnection) -> None:
        self._seen = seen
        self._controller = controller
        self._connection = connection
        self._epoch = -1
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="quorum", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def close(self) -> None:
        """Ask no more."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        # Not before: the thread would make it again.
        self._connection.close()

    def _watch(self) -> None:
        while not self._over.is_set():
            began_s = time.monotonic()
            self._look()
            self._over.wait(rest_s(time.monotonic() - began_s))

    def _look(self) -> None:
        if self._controller.is_running:
            if self._controller.is_paused:
                return
            try:
                leader = quorum_leader(self._connection)
            except ConnectionLostError:
                return
        else:
            leader = None
        if leader is not None:
            self._epoch = leader.epoch
        self._seen.set_controller(None if leader is None else leader.id, self._epoch)
