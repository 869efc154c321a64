"""Single requests to something real: a cluster for them alone, asking in the model's words, and waiting."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from harrow.cluster_model.sim.choices import SeededStream
from harrow.cluster_model.topology import ClusterSpec
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.local_cluster import LocalCluster
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer, described
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.metadata_seen import MetadataSeen
from harrow.live_cluster.wire.codec import MODEL_NAMING, Naming, exchange
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError

PATIENCE_S: Final = 30.0
"""How long an answer, or a state that is sure to come, may take on a busy machine."""
LOOK_S: Final = 0.005


@contextmanager
def lone_cluster(
    started: StartedBrokers, folder: Path, spec: ClusterSpec, passing: ControlRequests
) -> Iterator[LocalCluster]:
    """Start a cluster without topics, in which nothing happens but what is asked of it; with this context it ends."""
    faults = LinkFaults(SeededStream(0, "network"), lambda *_: None)
    with (
        Proxies(faults, passing) as proxies,
        LocalCluster(
            spec,
            release=started.release,
            java=started.java,
            jars=started.jars,
            folder=folder,
            proxies=proxies,
            seen=MetadataSeen(lambda *_: None),
            metadata=started.metadata,
            activity=Activity(),
            shared=started.shared_classes(),
        ) as cluster,
    ):
        cluster.start()
        yield cluster


def holds_in_time(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Wait until something holds, and return whether it did within a time."""
    until_s = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(LOOK_S)
    return True


class Conversation:
    """What one sequence asks of a process, over one connection and with names of its own there."""

    def __init__(
        self,
        connection: BrokerConnection,
        naming: Naming = MODEL_NAMING,
        is_running: Callable[[], bool] = lambda: True,
    ) -> None:
        self.connection = connection
        self.naming = naming
        self._is_running = is_running

    def exchange(self, request: Any, versions: Iterable[int] = ()) -> Any:
        """Send a request, and return the answer; both are the model's.

        Raises:
            ConnectionLostError: there is none.

        """
        return exchange(self.connection, request, self.naming, versions)

    def ask(self, request: Any, *, with_epochs: bool = True) -> Answer:
        """Send a request, and return the answer as plain data; that the connection is closed is one.

        Raises:
            LiveError: the process has ended.

        """
        try:
            return described(self.exchange(request), with_epochs=with_epochs)
        except ConnectionLostError:
            return self.no_answer(request)

    def no_answer(self, request: Any) -> Answer:
        """Return what stands for an answer where a connection is closed in place of one.

        Raises:
            LiveError: the process has ended.

        """
        if not self._is_running():
            raise LiveError(f"the broker has ended; {request.api} was the last that it was asked") from None
        return dict(NO_ANSWER)
