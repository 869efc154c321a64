"""Derives the promises to a client from its settings, on every target."""

from collections.abc import Sequence

from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.cluster_model.settings import READ_COMMITTED, ConsumerConfig, ProducerConfig, consumer_config
from harrow.cluster_model.topology import ApplicationSpec, ConsumerSpec


def promised_to_producer(name: str, config: ProducerConfig) -> ProducerSettings:
    return ProducerSettings(
        name=name,
        acks="all" if config.acks == -1 else str(config.acks),
        idempotence=config.idempotence,
        max_in_flight=config.max_in_flight,
        retries=config.retries,
        transactional_id=config.transactional_id,
    )


def promised_to_consumer(spec: ConsumerSpec, config: ConsumerConfig) -> ConsumerSettings:
    """Return the promises to a consumer. One that assigns itself partitions is in no group."""
    group = "" if spec.partitions else spec.group
    return _promised_to_reader(spec.name, group, config, spec.topics, spec.partitions)


def promised_to_consumer_of(spec: ApplicationSpec, release: str) -> ConsumerSettings:
    """Return the promises to the consumer of an application."""
    config = consumer_config(release, spec.consumer_settings())
    return _promised_to_reader(spec.name, spec.group, config, (spec.source,))


def _promised_to_reader(
    name: str, group: str, config: ConsumerConfig, topics: tuple[str, ...], partitions: tuple[str, ...] = ()
) -> ConsumerSettings:
    return ConsumerSettings(
        name=name,
        read_committed=config.isolation_level == READ_COMMITTED,
        group=group,
        offset_reset=config.auto_offset_reset,
        topics=topics,
        partitions=partitions,
        patience_us=_patience_us(config),
        max_poll_interval_us=config.max_poll_interval_us,
    )


def _patience_us(config: ConsumerConfig) -> int:
    """Return how long a group may take to read on: the sum of all delays in sequence.

    - ``metadata.max.age.ms``: the group's leader learns of new partitions, and a member learns of
      new leaders.
    - ``session.timeout.ms`` and ``heartbeat.interval.ms``: the coordinator removes a dead member,
      and the others notice.
    - ``request.timeout.ms``, three times: to find the coordinator, to fetch offsets, to fetch
      records.
    - ``auto.commit.interval.ms``: members commit before they give up partitions.
    """
    return (
        config.metadata_max_age_us
        + config.session_timeout_us
        + config.heartbeat_interval_us
        + 3 * config.request_timeout_us
        + config.auto_commit_interval_us
    )


def promised_to_application(
    spec: ApplicationSpec, processes: Sequence[tuple[int, int]]
) -> ApplicationSettings:
    """Return the promises to an application; *processes* are its consumers and producers."""
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
