"""The environment of the clients of a campaign on real brokers."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from harrow.cluster_model.clients.programs import ResultStore
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.choices import Stream
from harrow.live_cluster.clients.client_process import ClientProcess
from harrow.live_cluster.clients.client_settings import LIBRARIES
from harrow.live_cluster.clients.reports import ClientReports
from harrow.live_cluster.links.frame import client_id_of
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.watches.event_queue import WallClock


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHost:
    """What every client of a run shares: addresses, settings, clocks and receivers of reports.

    ``servers`` are addresses by broker id; ``release`` is the release of the model. ``security``
    has settings that every client needs, by librdkafka's names; ``topics`` has the names of the
    campaign's topics on the cluster.
    """

    children: ChildProcesses
    folder: Path
    servers: Mapping[int, tuple[str, int]]
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    topics: Mapping[str, str] = field(default_factory=dict)
    release: str
    present: Callable[[], Sequence[str]]
    """Returns the current partitions; topics may get more of them."""
    clock: WallClock
    reports: ClientReports
    report: Report
    initialized: Callable[[str, str], None] = lambda _client, _transactional_id: None
    """Called with a client that has initialized its transactional id."""
    draw: Stream
    supervised: list[Callable[[], None]] = field(default_factory=list)
    """Functions that restart ended processes; the thread that runs the campaign calls them
    repeatedly."""
    stores: dict[str, ResultStore] = field(default_factory=dict)
    """The results that applications have stored outside of Kafka, by group."""
    stores_lock: threading.Lock = field(default_factory=threading.Lock)
    """Guards the numbers of applications and the stores."""
    processes: list[ClientProcess] = field(default_factory=list)

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(self.present())

    def start(
        self, folder: str, client: Mapping[str, Any], on_report: Callable[[dict[str, Any]], Any]
    ) -> ClientProcess:
        """Start a client's process, whose reports go to *on_report*.

        The client works from the beginning of the run, or at once if the run has begun.
        """
        settings = {**client, "topics": dict(self.topics)}
        process = ClientProcess(self.children, self.folder / folder, settings, on_report)
        self.processes.append(process)
        if self.clock.zero_ns is not None:
            process.begin(self.clock.zero_ns)
        return process

    def begin(self) -> None:
        """Begin the run: from now on, time passes and the started clients work.

        The time that their processes take to start is not part of the run.
        """
        zero_ns = self.clock.begin()
        for process in self.processes:
            process.begin(zero_ns)

    def connection_settings(self, library: str, client: str, brokers: tuple[int, ...] = ()) -> dict[str, Any]:
        """Return the settings with which a client connects to these brokers, or to all."""
        addresses = [self.servers[broker] for broker in brokers or self.servers]
        servers = [f"{host}:{port}" for host, port in addresses]
        library_settings = LIBRARIES[library]
        return {
            **library_settings.secured(self.security),
            **library_settings.connection(servers, client_id_of(client)),
        }
