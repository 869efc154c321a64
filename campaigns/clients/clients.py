"""The kinds of clients that a workload can have, and the clients of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from harrow.campaigns.clients.client import Client, GroupReader, Reader, Sender
from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
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
    """A kind of client: what a campaign says of one, and how one is made on each kind of target.

    ``name`` is what one is called, with a number, where the campaign gives it no name of its own. What makes one
    gets the ``spec``, a frozen dataclass with a name, and what the target lets clients run on: of the model the `Cluster`.
    Each target puts into ``made_on`` how it makes clients. Strategies draw none that ``is_drawn`` is false of, for
    it takes topics of its own, and brokers enough for those of its coordinators.
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
"""Kinds of clients, by the key of `workload` that lists them."""


def application_kinds() -> Iterator[tuple[str, ClientKind]]:
    """Yield the kinds beside producers and consumers, with their keys."""
    for key, kind in CLIENTS.items():
        if key not in (PRODUCERS, CONSUMERS):
            yield key, kind


def make_client(spec: Any, target: str, host: Any, **given: Any) -> Client:
    """Return a client on a kind of target; *host* is what that lets clients run on, *given* what else its kind takes."""
    kind = next(kind for kind in CLIENTS.values() if kind.spec is type(spec))
    return kind.made_on[target](spec, host, **given)


READER = "reader"
"""The consumer that reads everything back at the end."""
CORE_READER = "core-reader"
"""The consumer that reads while only a core of the brokers has been healed."""
READER_TIMEOUT_US: Final = 30 * US_PER_SECOND
"""Its ``request.timeout.ms``, which before 2.0 would be five minutes by default (KIP-266)."""


class Clients:
    """All clients of a run, by name, and those that read for the run itself.

    *target* says on what kind of target they are made, and *host* is what that lets clients run on.
    """

    def __init__(self, specs: Iterable[Any], target: str, host: Any) -> None:
        self._target = target
        self._host = host
        self._specs = tuple(specs)
        self._readers: list[Reader] = []
        self._clients = {spec.name: make_client(spec, target, host) for spec in self._specs}

    def start(self) -> None:
        for client in self._clients.values():
            client.start()

    def stop(self) -> None:
        for client in self._clients.values():
            client.stop()

    def names(self) -> tuple[str, ...]:
        return tuple(self._clients)

    def sender(self, name: str) -> Sender:
        """Return a client that can be handed records."""
        client = self._clients[name]
        assert isinstance(client, Sender)
        return client

    def client(self, name: str) -> Client:
        return self._clients[name]

    def resume(self) -> None:
        """Let every client go on that stands still."""
        for client in self._clients.values():
            client.resume()

    def set_clocks(self) -> None:
        """Have every client's clock show the true time."""
        for client in self._clients.values():
            client.set_clock()

    def unfinished(self) -> int:
        return sum(client.unfinished() for client in self._clients.values())

    def group_readers(self) -> dict[str, list[GroupReader]]:
        """Return the instances of applications, by their groups."""
        found: dict[str, list[GroupReader]] = {}
        for client in self._clients.values():
            if isinstance(client, GroupReader):
                found.setdefault(client.group(), []).append(client)
        return found

    def is_consumed(self, value: str) -> bool:
        return any(client.has_consumed(value) for client in self._clients.values())

    def start_reader(self) -> Reader:
        """Stop the workload's readers, and start one that reads everything from the beginning, and goes on behind damaged batches."""
        for client in self._clients.values():
            if isinstance(client, Reader):
                client.stop()
        reader = self._reader(READER, {ISOLATION_LEVEL: READ_COMMITTED} if self.transactions_us else None)
        reader.skip_corrupt()
        return reader

    @property
    def transactions_us(self) -> int:
        """How long transactions may stay open that are never ended, 0 where no client has any."""
        default = SETTINGS[PRODUCER, TRANSACTION_TIMEOUT].defaults[-1][1]
        given = [
            spec.settings if isinstance(spec, ProducerSpec) else spec.producer
            for spec in self._specs
            if isinstance(spec, (ProducerSpec, ApplicationSpec)) and spec.transactional_id
        ]
        return max((int(each.get(TRANSACTION_TIMEOUT, default)) for each in given), default=0) * US_PER_MS

    def start_core_reader(self, bootstrap: tuple[int, ...]) -> Reader:
        """Start a consumer that reads everything from the beginning, and knows these brokers at first.

        It reads uncommitted: what a leader has to serve is what is below its high watermark, whether or not a transaction is open there, or has
        aborted one. What it reads says of no transaction that it is committed.
        """
        return self._reader(
            CORE_READER, {"request.timeout.ms": READER_TIMEOUT_US // US_PER_MS}, bootstrap=bootstrap
        )

    def _reader(self, name: str, settings: Mapping[str, Value] | None = None, **given: Any) -> Reader:
        settings = {"auto.offset.reset": "earliest", "max.poll.records": 100_000, **(settings or {})}
        spec = ConsumerSpec(name=name, poll_interval_us=0, settings=settings)
        reader = cast("Reader", make_client(spec, self._target, self._host, **given))
        reader.start()
        self._readers.append(reader)
        return reader

    def consumer_settings(self) -> dict[int, ConsumerSettings]:
        """Return the settings of the workload's consumers, and of those that read for the run itself and were promised something."""
        of_workload = [each.consumer_settings() for each in self._clients.values()]
        own = [each.consumer_settings() for each in self._readers]
        return {
            **{number: settings for each in of_workload for number, settings in each.items()},
            **{
                number: settings
                for each in own
                for number, settings in each.items()
                if settings.read_committed
            },
        }

    def producer_settings(self) -> dict[int, ProducerSettings]:
        return {
            number: settings
            for client in self._clients.values()
            for number, settings in client.producer_settings().items()
        }

    def application_settings(self) -> tuple[ApplicationSettings, ...]:
        return tuple(
            client.application_settings() for members in self.group_readers().values() for client in members
        )
