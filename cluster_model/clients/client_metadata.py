"""Keeps a client's metadata up to date (``Metadata.java``, ``NetworkClient.java``)."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from harrow.cluster_model.clients.exponential_backoff import ExponentialBackoff
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.protocol import NO_EPOCH, NO_LEADER, MetadataRequest, MetadataResponse
from harrow.cluster_model.settings import ConsumerConfig, ProducerConfig
from harrow.cluster_model.sim.choices import pick
from harrow.cluster_model.sim.host import Host

CLIENT_LISTENER: Final = "client"


class ClientMetadata:
    """The leaders that a client knows of, and its connections to the brokers.

    At most one metadata request is in flight, to a random available broker, and at most one is sent
    per ``retry.backoff.ms``. Since KIP-580 this delay grows while requests fail or their answers
    contain nothing new. The first request goes to one of the *bootstrap* brokers
    (``bootstrap.servers``), by default to any broker. Brokers in *later* join the cluster later, so
    the client connects to them only once metadata lists them.
    """

    def __init__(
        self,
        host: Host,
        brokers: tuple[int, ...],
        config: ConsumerConfig | ProducerConfig,
        on_update: Callable[[], None],
        *,
        oldest_fails_first: bool = True,
        bootstrap: tuple[int, ...] = (),
        later: Collection[int] = (),
    ) -> None:
        self._host = host
        self._config = config
        self._on_update = on_update
        self._new_partitions: list[str] = []
        self._is_request_in_flight = False
        self._is_timer_set = False
        self._is_update_requested = False
        self._next_request_us = host.clock.now_us
        self._backoff = ExponentialBackoff(
            config.retry_backoff_us, config.retry_backoff_max_us, host.choices.network
        )
        self._failures = 0
        self._unchanged_answers = 0
        self.live_brokers: tuple[int, ...] = ()
        """The brokers in the last metadata response."""
        self.leaders: dict[str, int] = {}
        self.leader_epochs: dict[str, int] = {}
        self.racks: Mapping[int, str] = {}
        """The racks in the last metadata response, by broker."""
        self.connections = {
            broker: NetworkClient(
                host,
                f"broker-{broker}",
                CLIENT_LISTENER,
                config.request_timeout_us,
                config.reconnect_backoff_us,
                config.reconnect_backoff_max_us,
                on_disconnect=self.request_update,
                oldest_fails_first=oldest_fails_first,
            )
            for broker in brokers
        }
        self._later = dict.fromkeys(later)
        self._nodes = {
            broker: self.connections[broker] for broker in bootstrap or brokers if broker not in self._later
        }

    def start(self) -> None:
        """Request metadata now, and again whenever it is older than ``metadata.max.age.ms``."""
        self.request_update()
        self._host.set_timer(self._config.metadata_max_age_us, self._expire)

    def leader(self, partition: str) -> int | None:
        """Return the leader of a partition; None if the leader is unknown."""
        leader = self.leaders.get(partition, NO_LEADER)
        return None if leader == NO_LEADER else leader

    def update_leader(self, partition: str, current_leader: tuple[int, int] | None) -> bool:
        """Adopt the leader in an error response (KIP-951); return whether its epoch is newer."""
        if current_leader is None:
            return False
        leader, epoch = current_leader
        if leader not in self.connections or epoch <= self.leader_epochs.get(partition, NO_EPOCH):
            return False
        self.leaders[partition], self.leader_epochs[partition] = current_leader
        return True

    def new_partitions(self, topics: Collection[str]) -> list[str]:
        """Return the partitions of *topics* that appeared in metadata since the last call."""
        new: list[tuple[str, int, str]] = []
        for name in self._new_partitions:
            topic, _, number = name.rpartition("-")
            if topic in topics:
                new.append((topic, int(number), name))
        self._new_partitions = []
        return [name for _, _, name in sorted(new)]

    def request_update(self) -> None:
        """Request metadata as soon as the backoff and the connections permit."""
        self._is_update_requested = True
        if self._is_request_in_flight:
            return
        now_us = self._host.clock.now_us
        connection = self.least_loaded()
        if now_us < self._next_request_us or connection is None:
            self._schedule_update(now_us)
            return
        self._is_request_in_flight = True
        self._is_update_requested = False
        connection.send(MetadataRequest(), self._handle_response)

    def least_loaded(self) -> NetworkClient | None:
        """Return the connection for a request to any broker; None if no broker is available.

        Like ``leastLoadedNode`` this prefers a connected broker with the fewest requests in flight.
        If no broker is connected, it chooses one to which a connection may be opened. The choice
        among equals is random.
        """
        usable = [c for c in self._nodes.values() if c.is_usable()]
        candidates = [c for c in usable if c.is_connected()] or usable
        if not candidates:
            return None
        least = min([c.in_flight_count for c in candidates])
        return pick(self._host.choices.network, [c for c in candidates if c.in_flight_count == least])

    def usable_in_us(self) -> int:
        """Return the time until the first broker becomes available."""
        soonest_us = min(c.usable_at_us for c in self._nodes.values())
        return max(soonest_us - self._host.clock.now_us, 0)

    def on_clock_step(self, by_us: int) -> None:
        """Shift request times and reconnect backoffs after the machine's clock jumped."""
        self._next_request_us -= by_us
        for connection in self.connections.values():
            connection.on_clock_step(by_us)

    def _schedule_update(self, now_us: int) -> None:
        if not self._is_timer_set:
            self._is_timer_set = True
            wait_us = max(self._next_request_us - now_us, self.usable_in_us(), 1)
            self._host.set_timer(wait_us, self._retry_update)

    def _retry_update(self, _: None) -> None:
        self._is_timer_set = False
        if self._is_update_requested:
            self.request_update()

    def _handle_response(self, response: MetadataResponse | None, _: None) -> None:
        self._is_request_in_flight = False
        if response is None:
            self._failures += 1
            self._unchanged_answers = 0
            self._back_off(self._failures - 1)
            self.request_update()
            return
        self._failures = 0
        self._unchanged_answers += 1
        self._nodes = self._listed_nodes(response) if self._later else self.connections
        self.live_brokers = response.brokers
        self.racks = response.racks
        for partition, (leader, epoch) in response.partitions.items():
            # Since KIP-320 a client ignores metadata that is older than its own. The model does so
            # for earlier releases too, where it makes no difference, because an old leader refuses
            # the client anyway.
            if partition not in self.leader_epochs:
                self._new_partitions.append(partition)
            if epoch >= self.leader_epochs.get(partition, epoch):
                if epoch != self.leader_epochs.get(partition):
                    self._unchanged_answers = 0
                self.leaders[partition] = leader
                self.leader_epochs[partition] = epoch
        self._back_off(max(self._unchanged_answers - 1, 0))
        if self._is_update_requested or not self.leaders:
            self.request_update()
        self._on_update()

    def _listed_nodes(self, response: MetadataResponse) -> dict[int, NetworkClient]:
        """Return the connections to all brokers that the client knows of after this response."""
        for broker in response.brokers:
            self._later.pop(broker, None)
        return {broker: node for broker, node in self.connections.items() if broker not in self._later}

    def _back_off(self, attempts: int) -> None:
        self._next_request_us = self._host.clock.now_us + self._backoff.backoff_us(attempts)

    def _expire(self, _: None) -> None:
        self._unchanged_answers = 0
        self.request_update()
        self._host.set_timer(self._config.metadata_max_age_us, self._expire)
