"""Threads that poll brokers close their connections when they end."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from harrow.cluster_model.sim.choices import SeededStream
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.observed_requests import ObservedRequests
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.java_program import JavaPrograms
from harrow.live_cluster.local.kraft_control_plane import KRaftControlPlane
from harrow.live_cluster.local.local_node import LocalNode
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.processes.ports import Ports
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.broker_watch import BrokerWatch
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError


class WatchedConnection(BrokerConnection):
    """A connection without answers that records its uses."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 1))
        self.done: list[str] = []
        self.was_requested = threading.Event()

    def ask(self, request: Any) -> Any:
        self.done.append("ask")
        self.was_requested.set()
        raise ConnectionLostError("connection refused")

    def close(self) -> None:
        self.done.append("close")

    def was_closed_last(self) -> bool:
        """Return whether it was closed once, after the last request, which would have opened it
        again.
        """
        return self.done.count("close") == 1 and self.done[-1] == "close"


def test_the_control_plane_closes_connections_after_its_last_request(tmp_path: Path) -> None:
    connections = [WatchedConnection(), WatchedConnection()]
    faults = LinkFaults(SeededStream(0, "network"), lambda *_: None)
    with (
        ChildProcesses() as children,
        Ports() as ports,
        Proxies(faults, ObservedRequests(lambda *_: None)) as proxies,
    ):
        programs = JavaPrograms(tmp_path / "java", tmp_path / "jars", children)
        control = KRaftControlPlane(
            programs,
            tmp_path,
            ports,
            proxies,
            voters=[3_000],
            brokers=[0, 1],
            topics=["t"],
            observed_metadata=ObservedMetadata(lambda *_: None),
            activity=Activity(),
            settings={},
            release=KafkaRelease("4.4.0"),
        )
        control.watch(lambda broker: connections[broker], lambda _: True)
        for connection in connections:
            assert connection.was_requested.wait(60)
        control.close()
    assert all(connection.was_closed_last() for connection in connections)


def test_a_broker_watch_closes_its_connection_after_its_last_request() -> None:
    connection = WatchedConnection()
    broker = cast("LocalNode", SimpleNamespace(id=0, is_running=True, is_paused=False))
    metadata = ObservedMetadata(lambda *_: None)
    with BrokerWatch(broker, connection, lambda: ["t-0"], metadata, lambda *_: None, Activity()):
        assert connection.was_requested.wait(60)
    assert connection.was_closed_last()
