"""What a client knows of the cluster, and how it asks (``Metadata.java``, ``NetworkClient.java``)."""

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
    """The leaders as a client knows them, and its connections to the brokers.

    One metadata request at a time, to a broker drawn from those that can be asked now,
    and not more often than once in ``retry.backoff.ms``, from KIP-580 on less and less often while requests fail, or tell
    nothing new. The first answer has to come from one of
    the *bootstrap* brokers (``bootstrap.servers``), by default of all. Those that come *later* it knows once it is told of them.
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
        self._news: list[str] = []
        self._asking = False
        self._timer_armed = False
        self._wanted = False
        self._next_request_us = host.clock.now_us
        self._backoff = ExponentialBackoff(
            config.retry_backoff_us, config.retry_backoff_max_us, host.choices.network
        )
        self._failures = 0
        self._answers_without_news = 0
        self.live_brokers: tuple[int, ...] = ()
        """The brokers of the last answer."""
        self.leaders: dict[str, int] = {}
        self.leader_epochs: dict[str, int] = {}
        self.racks: Mapping[int, str] = {}
        """The racks of the brokers that have one, as of the last answer."""
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
        self._known = {
            broker: self.connections[broker] for broker in bootstrap or brokers if broker not in self._later
        }

    def start(self) -> None:
        """Ask for the first time, and again when what is known has become old."""
        self.request_update()
        self._host.set_timer(self._config.metadata_max_age_us, self._grow_old)

    def leader(self, partition: str) -> int | None:
        """Return the leader of a partition as far as it is known."""
        leader = self.leaders.get(partition, NO_LEADER)
        return None if leader == NO_LEADER else leader

    def update_leader(self, partition: str, current_leader: tuple[int, int] | None) -> bool:
        """Take over a leader that a broker has told of, if that is news; return whether it is (KIP-951)."""
        if current_leader is None:
            return False
        leader, epoch = current_leader
        if leader not in self.connections or epoch <= self.leader_epochs.get(partition, NO_EPOCH):
            return False
        self.leaders[partition], self.leader_epochs[partition] = current_leader
        return True

    def new_partitions(self, topics: Collection[str]) -> list[str]:
        """Return the partitions of some topics that metadata tells of for the first time, since this was asked last."""
        news, self._news = self._news, []
        return sorted((name for name in news if name.rpartition("-")[0] in topics), key=_by_number)

    def request_update(self) -> None:
        """Ask for metadata as soon as that may be."""
        self._wanted = True
        if self._asking:
            return
        now_us = self._host.clock.now_us
        connection = self.least_loaded()
        if now_us < self._next_request_us or connection is None:
            self._ask_later(now_us)
            return
        self._asking = True
        self._wanted = False
        connection.send(MetadataRequest(), self._answered)

    def least_loaded(self) -> NetworkClient | None:
        """Return where to send what any broker can answer; None when no broker can be asked now.

        As ``leastLoadedNode``: a connected broker with the fewest requests in flight, else one
        that may be connected to; which of several is drawn.
        """
        usable = [c for c in self._known.values() if c.is_usable()]
        candidates = [c for c in usable if c.is_connected()] or usable
        if not candidates:
            return None
        least = min(len(c.in_flight) for c in candidates)
        return pick(self._host.choices.network, [c for c in candidates if len(c.in_flight) == least])

    def usable_in_us(self) -> int:
        """Return how long it takes until some broker can be asked."""
        soonest_us = min(c.usable_at_us for c in self._known.values())
        return max(soonest_us - self._host.clock.now_us, 0)

    def clock_stepped(self, by_us: int) -> None:
        """Have asked, and lost connections, so much longer ago, as the clock has it that has jumped."""
        self._next_request_us -= by_us
        for connection in self.connections.values():
            connection.clock_stepped(by_us)

    def _ask_later(self, now_us: int) -> None:
        if not self._timer_armed:
            self._timer_armed = True
            wait_us = max(self._next_request_us - now_us, self.usable_in_us(), 1)
            self._host.set_timer(wait_us, self._ask_now)

    def _ask_now(self, _: None) -> None:
        self._timer_armed = False
        if self._wanted:
            self.request_update()

    def _answered(self, response: MetadataResponse | None, _: None) -> None:
        self._asking = False
        if response is None:
            self._failures += 1
            self._answers_without_news = 0
            self._back_off(self._failures - 1)
            self.request_update()
            return
        self._failures = 0
        self._answers_without_news += 1
        self._known = self._told_of(response) if self._later else self.connections
        self.live_brokers = response.brokers
        self.racks = response.racks
        for partition, (leader, epoch) in response.partitions.items():
            # From KIP-320 on a client ignores metadata that is older than what it has; that
            # is harmless before, for an old leader refuses the client anyway.
            if partition not in self.leader_epochs:
                self._news.append(partition)
            if epoch >= self.leader_epochs.get(partition, epoch):
                if epoch != self.leader_epochs.get(partition):
                    self._answers_without_news = 0
                self.leaders[partition] = leader
                self.leader_epochs[partition] = epoch
        self._back_off(max(self._answers_without_news - 1, 0))
        if self._wanted or not self.leaders:
            self.request_update()
        self._on_update()

    def _told_of(self, response: MetadataResponse) -> dict[int, NetworkClient]:
        """Return the brokers that can be asked now that an answer has said which there are."""
        for broker in response.brokers:
            self._later.pop(broker, None)
        return {broker: known for broker, known in self.connections.items() if broker not in self._later}

    def _back_off(self, attempts: int) -> None:
        self._next_request_us = self._host.clock.now_us + self._backoff.backoff_us(attempts)

    def _grow_old(self, _: None) -> None:
        self._answers_without_news = 0
        self.request_update()
        self._host.set_timer(self._config.metadata_max_age_us, self._grow_old)


def _by_number(partition: str) -> tuple[str, int]:
    topic, _, number = partition.rpartition("-")
    return topic, int(number)
