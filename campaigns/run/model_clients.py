"""Clients on the model: their processes, their sessions, and the records that they generate."""

from harrow.campaigns.run.client import Reader, Sender
from harrow.checks.evidence import ProducerSettings
from harrow.cluster_model.clients.consumer import Consumer
from harrow.cluster_model.clients.producer import Producer
from harrow.cluster_model.events import ClientStopped
from harrow.cluster_model.settings import consumer_config, producer_config
from harrow.cluster_model.sim.choices import between
from harrow.cluster_model.sim.cluster import Cluster
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topology import ConsumerSpec, ProducerSpec


class ProducerClient(Sender):
    """A producer application: one session after the other."""

    def __init__(self, spec: ProducerSpec, cluster: Cluster) -> None:
        self.spec = spec
        self.config = producer_config(cluster.release, spec.settings, cluster.behaviours)
        self._cluster = cluster
        self._process = Process(spec.name)
        self._producer: Producer | None = None
        self._generated = 0
        self._history_processes: list[int] = []

    def start(self) -> None:
        self._begin_session()
        if self.spec.interval_us is not None:
            first_us = self.spec.start_us + between(self._cluster.choices.workload, 0, self.spec.interval_us)
            self._schedule(first_us)

    def _begin_session(self) -> None:
        number = self._cluster.history.new_process(self.spec.name)
        self._history_processes.append(number)
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
        assert self._producer is not None
        self._producer.send(value, partition)

    def restart(self) -> None:
        self.stop()
        self._process.start()
        self._begin_session()
        if self.spec.interval_us is not None:
            self._schedule(self._cluster.simulator.now_us + self.spec.interval_us)

    def stop(self) -> None:
        self._cluster.trace.emit(ClientStopped, self.spec.name)
        assert self._producer is not None
        self._producer.abandon()
        self._process.kill()
        self._cluster.network.process_died(self._process, power_loss=False)

    def unfinished(self) -> int:
        return 0 if self._producer is None else self._producer.unfinished

    def producer_settings(self) -> dict[int, ProducerSettings]:
        return {number: _settings(self) for number in self._history_processes}

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


class ConsumerClient(Reader):
    """A consumer application."""

    def __init__(self, spec: ConsumerSpec, cluster: Cluster, bootstrap: tuple[int, ...] = ()) -> None:
        self.spec = spec
        self._cluster = cluster
        self._config = consumer_config(cluster.release, spec.settings)
        self._bootstrap = bootstrap
        self._process = Process(spec.name)
        self._consumer: Consumer | None = None
        self._history_process = -1
        self._operations_seen = 0
        self._consumed: set[str] = set()

    def start(self) -> None:
        self._cluster.simulator.schedule(
            max(self.spec.start_us, self._cluster.simulator.now_us), self._process, self._begin, None
        )

    def _begin(self, _: None) -> None:
        history = self._cluster.history
        self._history_process = history.new_process(self.spec.name)
        self._operations_seen = len(history.operations)
        self._consumer = Consumer(
            self._cluster.host(self._process),
            self._history_process,
            tuple(self._cluster.processes),
            self.spec.partitions or self._cluster.spec.partition_names(),
            self._config,
            history,
            self.spec.poll_interval_us,
            self._bootstrap,
            sends_leader_epoch=self._cluster.behaviours.fetch_leader_epoch_fencing,
        )
        self._consumer.start()

    def stop(self) -> None:
        self._process.kill()
        self._cluster.network.process_died(self._process, power_loss=False)

    def has_consumed(self, value: str) -> bool:
        # Few ask, so nothing is kept of millions of records until somebody does.
        operations = self._cluster.history.operations
        if self._consumer is not None and len(operations) > self._operations_seen:
            for operation in operations[self._operations_seen :]:
                if operation.process == self._history_process:
                    self._consumed.update([read for _, _, read in operation.polls()])
            self._operations_seen = len(operations)
        return value in self._consumed

    def position(self, partition: str) -> int | None:
        return None if self._consumer is None else self._consumer.position[partition]

    def has_read_to_end(self) -> bool:
        return self._consumer is not None and self._consumer.has_read_to_end()


def _settings(producer: ProducerClient) -> ProducerSettings:
    config = producer.config
    return ProducerSettings(
        name=producer.spec.name,
        acks="all" if config.acks == -1 else str(config.acks),
        idempotence=config.idempotence,
        max_in_flight=config.max_in_flight,
        retries=config.retries,
    )
