"""Derives what a client is promised from its settings, for clients on every target.

The results are evidence: the rules decide with these settings what Kafka has promised to the
client.
"""

from collections.abc import Sequence

from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.cluster_model.settings import READ_COMMITTED, ConsumerConfig, ProducerConfig, consumer_config
from harrow.cluster_model.topology import ApplicationSpec, ConsumerSpec


def producer_promises(name: str, config: ProducerConfig) -> ProducerSettings:
    return ProducerSettings(
        name=name,
        acks="all" if config.acks == -1 else str(config.acks),
        idempotence=config.idempotence,
        max_in_flight=config.max_in_flight,
        retries=config.retries,
        transactional_id=config.transactional_id,
    )


def consumer_promises(spec: ConsumerSpec, config: ConsumerConfig) -> ConsumerSettings:
    """Return the settings of a consumer. A consumer that assigns itself partitions has no group."""
    group = "" if spec.partitions else spec.group
    return _consumer_settings(spec.name, group, config, spec.topics, spec.partitions)


def application_consumer_promises(spec: ApplicationSpec, release: str) -> ConsumerSettings:
    """Return the settings of the consumer of an application."""
    config = consumer_config(release, spec.consumer_settings())
    return _consumer_settings(spec.name, spec.group, config, (spec.source,))


def _consumer_settings(
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
    """Return how long a group may read nothing before it counts as stuck.

    This is the sum of all delays that can follow one another:

    - ``metadata.max.age.ms``: the group's leader learns of new partitions, and a member learns of
      new leaders.
    - ``session.timeout.ms`` and ``heartbeat.interval.ms``: the coordinator removes a dead member,
      and the other members notice.
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


def application_promises(spec: ApplicationSpec, processes: Sequence[tuple[int, int]]) -> ApplicationSettings:
    """Return the settings of an application.

    *processes* has the process numbers in the history of each of its consumers and producers.
    """
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
