"""Strategies for producers, consumers and other clients."""

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from harrow.campaigns.clients.clients import application_kinds
from harrow.campaigns.search.strategies.clusters import Options, settings
from harrow.campaigns.search.strategies.field_values import USUAL, specs
from harrow.cluster_model.fields import PartitionMarker
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.settings import CONSUMER, PRODUCER
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import ConsumerSpec, ProducerSpec

DURATION_US: Final = 10 * US_PER_SECOND
INTERVALS_US: Final = (1_000 * US_PER_MS, 200 * US_PER_MS, 50 * US_PER_MS)
"""From few records to many, because a failure with few records is easier to read."""

SAFE_PRODUCER: Final[Options] = {
    "acks": ["all"],
    "enable.idempotence": [False, True],
    "linger.ms": [0, 50],
    "request.timeout.ms": [2_000, 30_000],
    "delivery.timeout.ms": [120_000],
}
"""Settings with which Kafka promises not to lose acknowledged records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The clients of a campaign."""

    producers: tuple[ProducerSpec, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()
    applications: tuple[Any, ...] = ()

    def names(self) -> tuple[str, ...]:
        return tuple(client.name for client in (*self.producers, *self.consumers, *self.applications))


@st.composite
def producers(
    draw: st.DrawFn,
    /,
    *,
    name: str = "producer-0",
    kafka: str = DEFAULT_RELEASE,
    duration_us: int = DURATION_US,
    options: Options | None = SAFE_PRODUCER,
) -> ProducerSpec:
    """Draw a producer that sends until *duration_us*. *options* are its settings; None for any."""
    return ProducerSpec(
        name=name,
        settings=draw(settings(PRODUCER, kafka=kafka, options=options)),
        interval_us=draw(st.sampled_from(INTERVALS_US)),
        stop_us=duration_us,
    )


@st.composite
def workloads(
    draw: st.DrawFn,
    /,
    *,
    kafka: str = DEFAULT_RELEASE,
    duration_us: int = DURATION_US,
    producer_count: tuple[int, int] = (1, 2),
    consumer_count: tuple[int, int] = (0, 1),
    options: Options | None = SAFE_PRODUCER,
    partitions: Sequence[str] = ("t-0",),
    application_count: tuple[int, int] = (0, 1),
) -> Workload:
    """Draw producers, consumers that read everything, and clients of each other kind."""
    usual = {**USUAL, PartitionMarker: st.sampled_from(list(partitions))}
    drawn_producers = [
        draw(producers(name=f"producer-{number}", kafka=kafka, duration_us=duration_us, options=options))
        for number in range(draw(st.integers(*producer_count)))
    ]
    readers = [
        ConsumerSpec(name=f"consumer-{number}", settings=draw(settings(CONSUMER, kafka=kafka, options={})))
        for number in range(draw(st.integers(*consumer_count)))
    ]
    applications = [
        draw(specs(kind.spec, usual, name=f"{kind.name}-{number}"))
        for _, kind in application_kinds()
        if kind.is_drawn
        for number in range(draw(st.integers(*application_count)))
    ]
    return Workload(
        producers=tuple(drawn_producers), consumers=tuple(readers), applications=tuple(applications)
    )
