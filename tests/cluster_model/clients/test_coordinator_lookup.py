"""Clients look up their coordinator on any broker until they find one that is reachable."""

from harrow.cluster_model import errors
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.coordinator_lookup import CoordinatorLookup
from harrow.cluster_model.clients.exponential_backoff import ExponentialBackoff
from harrow.cluster_model.coordinators.protocol import FindCoordinatorResponse, HeartbeatRequest
from harrow.cluster_model.protocol import NO_LEADER, FetchRequest, MetadataResponse
from harrow.cluster_model.settings import consumer_config
from harrow.cluster_model.topology import CONSUMER_OFFSETS
from tests.cluster_model.fakes import MS, FakeHost

BROKERS = (0, 1, 2)


class Client:
    """A client with metadata that looks up its coordinator."""

    def __init__(self, *, has_own_connection: bool = False) -> None:
        self.host = FakeHost()
        self.successes = 0
        self.failures = 0
        config = consumer_config("2.4", {})
        self.metadata = ClientMetadata(self.host, BROKERS, config, lambda: None)
        backoff = ExponentialBackoff(
            config.retry_backoff_us, config.retry_backoff_max_us, self.host.choices.network
        )
        self.lookup = CoordinatorLookup(
            self.host,
            self.metadata,
            config,
            CONSUMER_OFFSETS,
            "g",
            backoff,
            self._found,
            on_failure=self._failed,
            has_own_connection=has_own_connection,
        )
        self.metadata.start()
        self._answer_metadata()

    def _answer_metadata(self) -> None:
        """Answer earlier metadata requests first, as a broker does."""
        for _ in self.host.requests("Metadata"):
            self.host.take("Metadata").answer(MetadataResponse(BROKERS, {"t-0": (0, 0)}))

    def _found(self) -> None:
        self.successes += 1

    def _failed(self) -> None:
        self.failures += 1

    def answer(self, node: int, error: str = errors.NONE) -> None:
        self._answer_metadata()
        self.host.take("FindCoordinator").answer(FindCoordinatorResponse(error, node))


def test_a_coordinator_is_looked_up_only_once() -> None:
    client = Client()
    client.lookup.find()
    client.lookup.find()
    request = client.host.requests("FindCoordinator")[0].body
    assert (request.topic, request.key) == (CONSUMER_OFFSETS, "g")
    client.answer(2)
    client.lookup.find()
    assert client.host.requests("FindCoordinator") == []
    assert (client.lookup.node, client.successes) == (2, 1)


def test_a_failed_lookup_is_retried_after_a_backoff() -> None:
    client = Client()
    client.lookup.find()
    client.answer(NO_LEADER, errors.COORDINATOR_NOT_AVAILABLE)
    assert client.host.requests("FindCoordinator") == []
    client.host.advance(100 * MS)
    client.answer(1)
    assert (client.lookup.node, client.successes, client.failures) == (1, 1, 1)


def test_a_lost_lookup_is_sent_again() -> None:
    client = Client()
    client.lookup.find()
    client.host.take("FindCoordinator").lose()
    client.host.advance(100 * MS)
    assert len(client.host.requests("FindCoordinator")) == 1


def test_a_forgotten_coordinator_is_looked_up_again() -> None:
    client = Client()
    client.lookup.find()
    client.answer(1)
    client.lookup.forget()
    assert client.lookup.connection() is None
    client.lookup.find()
    client.answer(2)
    assert client.lookup.node == 2


def test_a_lookup_does_not_accept_an_unreachable_coordinator() -> None:
    client = Client()
    client.lookup.find()
    client.answer(1)
    connection = client.lookup.connection()
    assert connection is not None
    connection.send(HeartbeatRequest("g", 1, "m", ""), lambda *_: None)
    client.host.take("Heartbeat").lose()
    assert client.lookup.connection() is None
    client.lookup.find()
    client.answer(1)
    assert client.lookup.node is None
    client.host.advance(100 * MS)
    client.answer(1)
    assert client.lookup.node == 1


def test_a_group_member_has_a_separate_connection_to_its_coordinator() -> None:
    client = Client(has_own_connection=True)
    client.lookup.find()
    client.answer(1)
    connection = client.lookup.connection()
    assert connection is not None
    connection.send(HeartbeatRequest("g", 1, "m", ""), lambda *_: None)
    client.metadata.connections[1].send(FetchRequest(-1, 500, 1, {}), lambda *_: None)
    heartbeat, fetch = client.host.take("Heartbeat"), client.host.take("Fetch")
    assert heartbeat.server == fetch.server == "broker-1"
    assert heartbeat.connection is not fetch.connection
