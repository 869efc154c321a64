"""Defines the kinds of clients that a workload can have, and holds the clients of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from harrow.campaigns.clients.client import Client, GroupReader, Reader, Sender
from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.registry import Registry
from harrow.cluster_model.settings import (
    ISOLATION_LEVEL,
    PRODUCER,
    READ_COMMITTED,
    SETTINGS,
    TRANSACTION_TIMEOUT,
    Value,
)
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import ApplicationSpec, ConsumerSpec, ProducerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKind:
    """A kind of client: its section of a campaign, and its factory on each kind of target.

    A client that the campaign does not name is called ``name`` and a number. ``spec`` is a frozen
    dataclass whose instances have a name. Each kind of target adds its factory to ``made_on``. A
    factory takes the spec and the host that the target's clients run on, which is the `Cluster` for
    the model. Hypothesis strategies draw only kinds with ``is_drawn``. The other kinds need topics
    of their own, and enough brokers for the internal topics of their coordinators.
    """

    name: str
    spec: type[Any]
    made_on: dict[str, Callable[..., Client]]
    is_drawn: bool = True


def _model_producer(spec: ProducerSpec, cluster: Any) -> Client:
    from harrow.campaigns.clients.model_clients import ProducerClient  # noqa: PLC0415 - not needed to read a campaign

    return ProducerClient(spec, cluster)


def _model_consumer(spec: ConsumerSpec, cluster: Any, bootstrap: tuple[int, ...] = ()) -> Client:
    from harrow.campaigns.clients.model_clients import ConsumerClient  # noqa: PLC0415 - not needed to read a campaign

    return ConsumerClient(spec, cluster, bootstrap)


def _model_application(spec: ApplicationSpec, cluster: Any) -> Client:
    from harrow.campaigns.clients.model_applications import ApplicationClient  # noqa: PLC0415 - not needed to read a campaign

    return ApplicationClient(spec, cluster)


MODEL: Final = "model"
"""The kind of target whose clients run on a `harrow.cluster_model.cluster.Cluster`."""

PRODUCERS: Final = "producers"
CONSUMERS: Final = "consumers"
APPLICATIONS: Final = "applications"

CLIENTS: Final[Registry[str, ClientKind]] = Registry(
    {
        PRODUCERS: ClientKind(name="producer", spec=ProducerSpec, made_on={MODEL: _model_producer}),
        CONSUMERS: ClientKind(name="consumer", spec=ConsumerSpec, made_on={MODEL: _model_consumer}),
        APPLICATIONS: ClientKind(
            name="application",
            spec=ApplicationSpec,
            made_on={MODEL: _model_application},
            is_drawn=False,
        ),
    }
)
"""The kinds of clients, by their key under `workload`."""


def application_kinds() -> Iterator[tuple[str, ClientKind]]:
    """Yield every kind except producers and consumers, with its key."""
    for key, kind in CLIENTS.items():
        if key not in (PRODUCERS, CONSUMERS):
            yield key, kind


def make_client(spec: Any, target: str, host: Any, **options: Any) -> Client:
    """Make a client for the kind of target *target*, whose clients run on *host*."""
    kind = next(kind for kind in CLIENTS.values() if kind.spec is type(spec))
    return kind.made_on[target](spec, host, **options)


READER = "reader"
"""The name of the consumer that reads everything back at the end of a run."""
CORE_READER = "core-reader"
"""The name of the consumer that reads while only some brokers, the core, are healed
(`harrow.campaigns.run.core_recovery`)."""
READER_TIMEOUT_US: Final = 30 * US_PER_SECOND
"""The core reader's ``request.timeout.ms``, whose default before 2.0 is five minutes (KIP-266)."""


class Clients:
    """All clients of the workload by name, and the readers that the run itself starts.

    *target* is the kind of target, and *host* is what its clients run on. When all clients of the
    workload have started, `start` calls *on_started*.
    """

    def __init__(
        self, specs: Iterable[Any], target: str, host: Any, on_started: Callable[[], None] = lambda: None
    ) -> None:
        self._target = target
        self._host = host
        self._on_started = on_started
        self._specs = tuple(specs)
        self._readers: list[Reader] = []
        self.real_transactions_us = 0
        """How long a transaction of real clients, which are not in the workload, may stay open."""
        self._clients = {spec.name: make_client(spec, target, host) for spec in self._specs}

    def start(self) -> None:
        for client in self._clients.values():
            client.start()
        self._on_started()

    def stop(self) -> None:
        for client in self._clients.values():
            client.stop()

    def names(self) -> tuple[str, ...]:
        return tuple(self._clients)

    def sender(self, name: str) -> Sender:
        client = self._clients[name]
        assert isinstance(client, Sender)
        return client

    def client(self, name: str) -> Client:
        return self._clients[name]

    def resume(self) -> None:
        for client in self._clients.values():
            client.resume()

    def set_clocks(self) -> None:
        for client in self._clients.values():
            client.set_clock()

    def unfinished(self) -> int:
        return sum(client.unfinished() for client in self._clients.values())

    def group_readers(self) -> dict[str, list[GroupReader]]:
        """Return the application instances by group."""
        readers: dict[str, list[GroupReader]] = {}
        for client in self._clients.values():
            if isinstance(client, GroupReader):
                readers.setdefault(client.group(), []).append(client)
        return readers

    def is_consumed(self, value: str) -> bool:
        return any(value in client.consumed() for client in self._clients.values())

    def start_reader(self) -> Reader:
        """Stop the workload's readers, and start one that reads everything from the beginning.

        The new reader skips damaged batches.
        """
        for client in self._clients.values():
            if isinstance(client, Reader):
                client.stop()
        reader = self._reader(READER, {ISOLATION_LEVEL: READ_COMMITTED} if self.transactions_us else None)
        reader.skip_corrupt()
        return reader

    @property
    def transactions_us(self) -> int:
        """How long an abandoned transaction may stay open; 0 if no client has transactions."""
        default = SETTINGS[PRODUCER, TRANSACTION_TIMEOUT].defaults[-1][1]
        producers = [
            spec.settings if isinstance(spec, ProducerSpec) else spec.producer
            for spec in self._specs
            if isinstance(spec, (ProducerSpec, ApplicationSpec)) and spec.transactional_id
        ]
        timeouts_ms = (int(settings.get(TRANSACTION_TIMEOUT, default)) for settings in producers)
        return max(max(timeouts_ms, default=0) * US_PER_MS, self.real_transactions_us)

    def start_core_reader(self, bootstrap: tuple[int, ...]) -> Reader:
        """Start a consumer that reads everything from the beginning, via *bootstrap* brokers.

        Its isolation level is read_uncommitted: a leader must serve everything below its high
        watermark, even records of transactions that are open or aborted. So a record that this
        consumer reads is no evidence that a transaction was committed.
        """
        return self._reader(
            CORE_READER, {"request.timeout.ms": READER_TIMEOUT_US // US_PER_MS}, bootstrap=bootstrap
        )

    def _reader(self, name: str, settings: Mapping[str, Value] | None = None, **options: Any) -> Reader:
        settings = {"auto.offset.reset": "earliest", "max.poll.records": 100_000, **(settings or {})}
        spec = ConsumerSpec(name=name, poll_interval_us=0, settings=settings)
        reader = cast("Reader", make_client(spec, self._target, self._host, **options))
        reader.start()
        self._readers.append(reader)
        return reader

    def consumer_settings(self) -> dict[int, ConsumerSettings]:
        """Return the settings of the workload's consumers, and of read_committed readers."""
        return {
            process: settings
            for client in (*self._clients.values(), *self._readers)
            for process, settings in client.consumer_settings().items()
            if settings.read_committed or client not in self._readers
        }

    def producer_settings(self) -> dict[int, ProducerSettings]:
        return {
            process: settings
            for client in self._clients.values()
            for process, settings in client.producer_settings().items()
        }

    def application_settings(self) -> tuple[ApplicationSettings, ...]:
        return tuple(
            client.application_settings() for members in self.group_readers().values() for client in members
        )
