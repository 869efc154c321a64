"""Reads the service levels in the ``run.json`` of a recorded run."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record.service_report import share_text
from harrow.checks.service.outages import Outage
from harrow.cluster_model.sim.virtual_time import US_PER_MS

_Count = Annotated[int, Field(ge=0)]
_Ms = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Time = Annotated[float, Field(allow_inf_nan=False)]


class _RecordedPart(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class RecordedLatency(_RecordedPart):
    """A latency, in milliseconds."""

    p50: _Ms
    p99: _Ms
    max: _Ms


class RecordedOutage(_RecordedPart):
    """A period without an ack, and its reasons."""

    partition: str
    start_ms: _Time
    length_ms: _Ms
    began: str
    began_broker: int | None
    ended: str
    ended_broker: int | None

    def outage(self) -> Outage:
        return Outage(
            partition=self.partition,
            start_us=round(self.start_ms * US_PER_MS),
            end_us=round((self.start_ms + self.length_ms) * US_PER_MS),
            began=self.began,
            began_broker=-1 if self.began_broker is None else self.began_broker,
            ended=self.ended,
            ended_broker=-1 if self.ended_broker is None else self.ended_broker,
        )


class RecordedAcks(_RecordedPart):
    """The number of acks in each interval, from time zero on."""

    bucket_ms: Annotated[int, Field(gt=0)]
    counts: list[_Count]


class RecordedUnread(_RecordedPart):
    """A period in which no consumer read a partition that had unread records."""

    partition: str
    start_ms: _Time
    length_ms: _Ms


class _Lag(_RecordedPart):
    lag_max: _Count


class RecordedService(_RecordedPart):
    """The service levels of a run: how well its clients were served."""

    sent: _Count
    acked: _Count
    failed: _Count
    unknown: _Count
    ack_ms: RecordedLatency | None
    end_to_end_ms: RecordedLatency | None
    transaction_ms: RecordedLatency | None = None
    rebalance_ms: RecordedLatency | None = None
    unread: RecordedUnread | None = None
    acks: RecordedAcks
    longest_without_ack_ms: _Ms
    outages: list[RecordedOutage]
    consumers: dict[str, _Lag]

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the names and values to compare with those of another run."""
        yield "sent", str(self.sent)
        yield "acked", f"{self.acked}{share_text(self.acked, self.sent)}"
        yield "failed", str(self.failed)
        yield "unknown", str(self.unknown)
        yield "outages", str(len(self.outages))
        yield "longest time without an ack", _text(self.longest_without_ack_ms)
        for noun, latency in (("acked", self.ack_ms), ("end to end", self.end_to_end_ms)):
            for name in ("p50", "p99", "max"):
                yield f"{noun}, {name}", "-" if latency is None else _text(getattr(latency, name))
        for noun, latency in (("transactions", self.transaction_ms), ("rebalances", self.rebalance_ms)):
            if latency is not None:
                for name in ("p50", "p99", "max"):
                    yield f"{noun}, {name}", _text(getattr(latency, name))
        if self.rebalance_ms is not None and self.unread is not None:
            yield "longest time without a read", _text(self.unread.length_ms)
        for name, consumer in self.consumers.items():
            yield f"{name} behind at most", str(consumer.lag_max)


def recorded_service(run: Mapping[str, Any]) -> RecordedService | None:
    """Return the service levels of a run; None if they are missing or cannot be read."""
    try:
        return RecordedService.model_validate(run.get("service"))
    except ValidationError:
        return None


def _text(ms: float) -> str:
    return rough_duration_text(round(ms * US_PER_MS))
