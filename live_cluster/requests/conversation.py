"""Sends single requests to a real cluster that gets no other requests, and waits for it."""

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
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer, plain_answer
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.waiting import wait_until
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.wire.codec import MODEL_NAMING, Naming, exchange
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError

PATIENCE_S: Final = 30.0
"""How long an answer or an expected state may take on a busy machine."""
POLL_INTERVAL_S: Final = 0.005


@contextmanager
def lone_cluster(
    started: StartedBrokers, folder: Path, spec: ClusterSpec, control_requests: ControlRequests
) -> Iterator[LocalCluster]:
    """Start a cluster that has no topics and does nothing by itself; end it on exit."""
    faults = LinkFaults(SeededStream(0, "network"), lambda *_: None)
    with (
        Proxies(faults, control_requests) as proxies,
        LocalCluster(
            spec,
            release=started.release,
            java=started.java,
            jars=started.jars,
            folder=folder,
            proxies=proxies,
            observed_metadata=ObservedMetadata(lambda *_: None),
            metadata=started.metadata,
            activity=Activity(),
            shared=started.shared_classes(),
        ) as cluster,
    ):
        cluster.start()
        yield cluster


def holds_in_time(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    return wait_until(condition, patience_s, POLL_INTERVAL_S)


class Conversation:
    """The requests of one sequence, over one connection and with its own names on the cluster."""

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
        """Send a request of the model, and return the model's response."""
        return exchange(self.connection, request, self.naming, versions)

    def ask(self, request: Any, *, with_leader_epochs: bool = True) -> Answer:
        """Send a request, and return the answer as plain data.

        A closed connection counts as an answer. Raise `LiveError` if the process has ended.
        """
        try:
            return plain_answer(self.exchange(request), with_leader_epochs=with_leader_epochs)
        except ConnectionLostError:
            return self.no_answer(request)

    def no_answer(self, request: Any) -> Answer:
        """Return the answer that stands for a closed connection.

        Raise `LiveError` if the process ended.
        """
        if not self._is_running():
            raise LiveError(f"the broker has ended; its last request was {request.api}") from None
        return dict(NO_ANSWER)
