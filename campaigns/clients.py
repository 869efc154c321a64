"""The clients of a run: their processes, their sessions, and the records that they generate."""

from collections.abc import Mapping
from typing import Final

from checks.evidence import ProducerSettings
from cluster_model.choices import between
from cluster_model.cluster import Cluster
from cluster_model.consumer import Consumer
from cluster_model.process import Process
from cluster_model.producer import Producer
from cluster_model.settings import ConsumerConfig, ProducerConfig, Value, consumer_config, producer_config
from cluster_model.topology import ConsumerSpec, ProducerSpec
from cluster_model.virtual_time import US_PER_MS, US_PER_SECOND

READER = "reader"
"""The consumer that reads everything back at the end."""
CORE_READER = "core-reader"
"""The consumer that reads while only a core of the brokers has been healed."""
READER_TIMEOUT_US: Final = 30 * US_PER_SECOND
"""Its ``request.timeout.ms``, which before 2.0 would be five minutes by default (KIP-266)."""


class ProducerClient:
    """A producer application: one session after the other."""

    def __init__(self, spec: ProducerSpec, cluster: Cluster, config: ProducerConfig) -> None:
        self.spec = spec
        self.config = config
        self._cluster = cluster
        self._process = Process(spec.name)
        self._producer: Producer | None = None
        self._generated = 0
        self.history_processes: list[int] = []

    def start(self) -> None:
        """Begin the first session, and generate records if the campaign has a rate."""
        self._begin_session()
        if self.spec.interval_us is not None:
            first_us = self.spec.start_us + between(self._cluster.choices.workload, 0, self.spec.interval_us)
            self._schedule(first_us)

    def _begin_session(self) -> None:
        number = self._cluster.history.new_process(self.spec.name)
        self.history_processes.append(number)
        self._producer = Producer(
            self._cluster.host(self._process),
            number,
            tuple(self._cluster.processes),
            self.spec.partitions or self._cluster.spec.partition_names(),
            self.config,
            self._cluster.behaviours,
            self._cluster.history,
            self.spec.record_bytes,
        )
        self._producer.start()

    def send(self, value: str, partition: str | None) -> None:
        """Hand a record to the producer."""
        assert self._producer is not None
        self._producer.send(value, partition)

    def restart(self) -> None:
        """The application dies, with whatever its producer had not been told, and starts again."""
        now_us = self._cluster.simulator.now_us
        self._cluster.trace.add((now_us, "client_stopped", self.spec.name))
        assert self._producer is not None
        self._producer.abandon()
        self._process.kill()
        self._cluster.network.process_died(self._process, power_loss=False)
        self._process.start()
        self._begin_session()
        if self.spec.interval_us is not None:
            self._schedule(now_us + self.spec.interval_us)

    def unfinished(self) -> int:
        """Return how many records the producer has not reported on."""
        return 0 if self._producer is None else self._producer.unfinished

    def _schedule(self, at_us: int) -> None:
        if self.spec.stop_us is None or at_us < self.spec.stop_us:
            self._cluster.simulator.schedule(at_us, self._process, self._generate, None)

    def _generate(self, _: None) -> None:
        interval_us = self.spec.interval_us
        assert interval_us is not None
        self.send(f"{self.spec.name}:{self._generated}", None)
        self._generated += 1
        # Gaps between half and one and a half times the mean.
        gap_us = interval_us // 2 + self._cluster.choices.workload.below(interval_us + 1)
        self._schedule(self._cluster.simulator.now_us + gap_us)


class ConsumerClient:
    """A consumer application."""

    def __init__(
        self, spec: ConsumerSpec, cluster: Cluster, config: ConsumerConfig, bootstrap: tuple[int, ...] = ()
    ) -> None:
        self.spec = spec
        self._cluster = cluster
        self._config = config
        self._bootstrap = bootstrap
        self._process = Process(spec.name)
        self.consumer: Consumer | None = None

    def start(self) -> None:
        """Start at the time that the campaign says."""
        self._cluster.simulator.schedule(
            max(self.spec.start_us, self._cluster.simulator.now_us), self._process, self._begin, None
        )

    def _begin(self, _: None) -> None:
        self.consumer = Consumer(
            self._cluster.host(self._process),
            self._cluster.history.new_process(self.spec.name),
            tuple(self._cluster.processes),
            self.spec.partitions or self._cluster.spec.partition_names(),
            self._config,
            self._cluster.history,
            self.spec.poll_interval_us,
            self._bootstrap,
            sends_leader_epoch=self._cluster.behaviours.fetch_leader_epoch_fencing,
        )
        self.consumer.start()

    def stop(self) -> None:
        """Close the consumer."""
        self._process.kill()
        self._cluster.network.process_died(self._process, power_loss=False)


class Clients:
    """All clients of a run."""

    def __init__(
        self,
        producers: tuple[ProducerSpec, ...],
        consumers: tuple[ConsumerSpec, ...],
        cluster: Cluster,
        release: str,
    ) -> None:
        self._cluster = cluster
        self._release = release
        self.producers = {
            spec.name: ProducerClient(
                spec, cluster, producer_config(release, spec.settings, cluster.behaviours)
            )
            for spec in producers
        }
        self.consumers = {
            spec.name: ConsumerClient(spec, cluster, consumer_config(release, spec.settings))
            for spec in consumers
        }

    def start(self) -> None:
        """Start all of them."""
        for producer in self.producers.values():
            producer.start()
        for consumer in self.consumers.values():
            consumer.start()

    def names(self) -> tuple[str, ...]:
        """Return the clients' names."""
        return (*self.producers, *self.consumers)

    def unfinished(self) -> int:
        """Return how many records the producers have not reported on."""
        return sum(producer.unfinished() for producer in self.producers.values())

    def is_consumed(self, value: str) -> bool:
        """Return whether a consumer of the workload got a record."""
        return any(
            client.consumer is not None and value in client.consumer.consumed
            for client in self.consumers.values()
        )

    def start_reader(self) -> ConsumerClient:
        """Stop the workload's consumers, and start one that reads everything from the beginning."""
        for consumer in self.consumers.values():
            consumer.stop()
        return self._reader(READER)

    def start_core_reader(self, bootstrap: tuple[int, ...]) -> ConsumerClient:
        """Start a consumer that reads everything from the beginning, and knows these brokers at first."""
        timeout = {"request.timeout.ms": READER_TIMEOUT_US // US_PER_MS}
        return self._reader(CORE_READER, bootstrap, timeout)

    def _reader(
        self, name: str, bootstrap: tuple[int, ...] = (), settings: Mapping[str, Value] | None = None
    ) -> ConsumerClient:
        spec = ConsumerSpec(name=name, poll_interval_us=0)
        given = {"auto.offset.reset": "earliest", "max.poll.records": 100_000, **(settings or {})}
        reader = ConsumerClient(spec, self._cluster, consumer_config(self._release, given), bootstrap)
        reader.start()
        return reader

    def producer_settings(self) -> dict[int, ProducerSettings]:
        """Return what was promised to each producer session, by history process."""
        return {
            number: _settings(producer)
            for producer in self.producers.values()
            for number in producer.history_processes
        }


def _settings(producer: ProducerClient) -> ProducerSettings:
    config = producer.config
    return ProducerSettings(
        name=producer.spec.name,
        acks="all" if config.acks == -1 else str(config.acks),
        idempotence=config.idempotence,
        max_in_flight=config.max_in_flight,
        retries=config.retries,
    )
