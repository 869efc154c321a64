"""What clients of a run are promised by their settings, whatever target they are on."""

from collections.abc import Sequence

from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.cluster_model.settings import READ_COMMITTED, ConsumerConfig, ProducerConfig, consumer_config
from harrow.cluster_model.topology import ApplicationSpec, ConsumerSpec


def promised_to_producer(name: str, config: ProducerConfig) -> ProducerSettings:
    """Return what a producer is promised."""
    return ProducerSettings(
        name=name,
        acks="all" if config.acks == -1 else str(config.acks),
        idempotence=config.idempotence,
        max_in_flight=config.max_in_flight,
        retries=config.retries,
        transactional_id=config.transactional_id,
    )


def promised_to_consumer(spec: ConsumerSpec, config: ConsumerConfig) -> ConsumerSettings:
    """Return what a consumer is promised. One that is assigned its partitions is no member of its group."""
    return _promised_to_reader(spec.name, "" if spec.partitions else spec.group, config)


def promised_to_consumer_of(spec: ApplicationSpec, release: str) -> ConsumerSettings:
    """Return what the consumer of an application is promised."""
    return _promised_to_reader(spec.name, spec.group, consumer_config(release, spec.consumer_settings()))


def _promised_to_reader(name: str, group: str, config: ConsumerConfig) -> ConsumerSettings:
    return ConsumerSettings(
        name=name,
        read_committed=config.isolation_level == READ_COMMITTED,
        group=group,
        offset_reset=config.auto_offset_reset,
    )


def promised_to_application(
    spec: ApplicationSpec, processes: Sequence[tuple[int, int]]
) -> ApplicationSettings:
    """Return what an application is promised, whose consumers and producers were these *processes* of the history."""
    return ApplicationSettings(
        name=spec.name,
        group=spec.group,
        delivery=spec.delivery,
        source=spec.source,
        target=spec.target,
        group_metadata=spec.group_metadata,
        rewinds=spec.rewinds,
        consumers=tuple(consumer for consumer, _ in processes),
        producers=tuple(producer for _, producer in processes),
    )
