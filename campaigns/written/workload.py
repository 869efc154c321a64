"""The section ``workload``."""

from typing import Any, Final

from campaigns.literal_texts import duration_text, rate_text
from campaigns.plan import Plan
from campaigns.written.settings import SharedSettings
from campaigns.yaml_text import Items, Rows, Word
from cluster_model.topology import ConsumerSpec, ProducerSpec

_PRODUCER: Final = ProducerSpec(name="producer-0")
_CONSUMER: Final = ConsumerSpec(name="consumer-0")


def workload_rows(plan: Plan, shared: SharedSettings) -> Rows | None:
    """Return the section, None for the one producer that a campaign has without saying so."""
    producers = [_producer(producer, plan.duration_us, shared) for producer in plan.producers]
    consumers = [_consumer(consumer, shared) for consumer in plan.consumers]
    if not plan.duration_us and not consumers and producers == [{"name": _PRODUCER.name}]:
        return None
    rows = Rows()
    if plan.duration_us:
        rows["duration"] = Word(duration_text(plan.duration_us))
    if producers or not (plan.duration_us or consumers):
        rows["producers"] = Items(producers)
    if consumers:
        rows["consumers"] = Items(consumers)
    return rows


def _producer(producer: ProducerSpec, duration_us: int, shared: SharedSettings) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": producer.name}
    if producer.interval_us is not None:
        entry["rate"] = Word(rate_text(producer.interval_us))
    if producer.partitions:
        entry["partitions"] = producer.partitions
    if producer.start_us:
        entry["start"] = Word(duration_text(producer.start_us))
    default_us = None if producer.interval_us is None else duration_us
    if producer.stop_us is not None and producer.stop_us != default_us:
        entry["stop"] = Word(duration_text(producer.stop_us))
    if producer.record_bytes != _PRODUCER.record_bytes:
        entry["record_bytes"] = producer.record_bytes
    return _with_settings(entry, shared.own(producer.settings))


def _consumer(consumer: ConsumerSpec, shared: SharedSettings) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": consumer.name}
    if consumer.partitions:
        entry["partitions"] = consumer.partitions
    if consumer.start_us:
        entry["start"] = Word(duration_text(consumer.start_us))
    if consumer.poll_interval_us != _CONSUMER.poll_interval_us:
        entry["poll_interval"] = Word(duration_text(consumer.poll_interval_us))
    return _with_settings(entry, shared.own(consumer.settings))


def _with_settings(entry: dict[str, Any], settings: dict[str, Word]) -> dict[str, Any]:
    return {**entry, "settings": settings} if settings else entry
