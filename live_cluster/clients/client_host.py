"""What the clients of a campaign on real brokers run on."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harrow.cluster_model.clients.programs import ResultStore
from harrow.cluster_model.sim.choices import Stream
from harrow.live_cluster.clients.client_process import ClientProcess
from harrow.live_cluster.clients.client_settings import LIBRARIES
from harrow.live_cluster.clients.reports import ClientReports
from harrow.live_cluster.links.frame import client_id_of
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.watches.happenings import WallClock


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHost:
    """What clients run on. ``servers`` are the brokers' addresses by id, ``release`` is that of the model.

    ``security`` are the settings that let any client in, under the names of librdkafka, ``topics`` what the campaign's are called
    there.
    """

    children: ChildProcesses
    folder: Path
    servers: Mapping[int, tuple[str, int]]
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    topics: Mapping[str, str] = field(default_factory=dict)
    release: str
    present: Callable[[], Sequence[str]]
    """Returns the partitions that there are: topics may get more."""
    clock: WallClock
    reports: ClientReports
    report: Report
    initialized: Callable[[str, str], None] = lambda _client, _transactional_id: None
    """Told of a client that has been given an epoch of its transactional id."""
    draw: Stream
    supervised: list[Callable[[], None]] = field(default_factory=list)
    """Called again and again by the thread that runs the campaign: what starts processes again that have ended."""
    stores: dict[str, ResultStore] = field(default_factory=dict)
    """What applications have stored outside of Kafka, by their groups."""
    storing: threading.Lock = field(default_factory=threading.Lock)
    """Held by who asks for a number of an application, or for what its group has stored."""
    processes: list[ClientProcess] = field(default_factory=list)

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(self.present())

    def start(
        self, folder: str, client: Mapping[str, Any], take: Callable[[dict[str, Any]], Any]
    ) -> ClientProcess:
        """Start a client's process."""
        told = {**client, "topics": dict(self.topics)}
        process = ClientProcess(self.children, self.folder / folder, told, take)
        self.processes.append(process)
        return process

    def connection_settings(self, library: str, client: str, brokers: tuple[int, ...] = ()) -> dict[str, Any]:
        """Return what any client of a library gets to find these brokers, or all of them."""
        known = [self.servers[broker] for broker in brokers or self.servers]
        servers = [f"{host}:{port}" for host, port in known]
        own = LIBRARIES[library]
        return {**own.secured(self.security), **own.connection(servers, client_id_of(client))}
