"""Writes the service levels of a run, as JSON and in words."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harrow.campaigns.language.spelling import counted, printable
from harrow.campaigns.language.units import milliseconds, rough_duration_text
from harrow.checks.causes.story import seconds
from harrow.checks.service import outages as reasons
from harrow.checks.service.levels import ConsumerLevel, Latency, PartitionLevel, Sends, ServiceLevels, Unread
from harrow.checks.service.outages import Outage
from harrow.cluster_model.sim.virtual_time import US_PER_MS

_BEGAN: Final[Mapping[str, str]] = {
    reasons.NO_LEADER_KNOWN: "there was no leader",
    reasons.LEADER_DOWN: "its leader, {broker}, was down",
    reasons.LEADER_PAUSED: "its leader, {broker}, was paused",
    reasons.ISR_BELOW_MIN: "the ISR was below min.insync.replicas",
    reasons.FENCED: "requests went to {broker}, which did not lead",
    reasons.MEMBER_DOWN: "{broker}, a member of the ISR, was down",
    reasons.MEMBER_PAUSED: "{broker}, a member of the ISR, was paused",
    reasons.MEMBER_BEHIND: "{broker}, a member of the ISR, was behind",
    reasons.UNAWARE: "{broker} did not know yet that it led",
    reasons.THROTTLED: "{broker} throttled its producers, which had exceeded their quota",
    reasons.UNREACHABLE: "no request reached its leader, {broker}",
    reasons.ANSWER_LOST: "an answer of {broker} was lost",
    reasons.UNKNOWN: "the trace does not say why",
}
_ENDED: Final[Mapping[str, str]] = {
    reasons.ELECTED: "over when {broker} was elected",
    reasons.STARTED: "over when {broker} was back",
    reasons.RESUMED: "over when {broker} woke up",
    reasons.ISR_GREW: "over when the ISR grew",
    reasons.ISR_SHRANK: "over when the ISR was reduced",
    reasons.FAULT_ENDED: "over when the fault was over",
    reasons.TOLD: "over when it was told",
    reasons.CAUGHT_UP: "over when it had caught up",
    reasons.ANSWERED: "over when a request was answered",
    reasons.GIVEN_UP: "the senders gave up",
    reasons.NOT_OVER: "not over at the end",
}


def outage_sentence(outage: Outage) -> str:
    """Return the reasons of an outage in words: why it began, and how it ended."""
    # A recorded run may have reasons that this version does not know.
    began = _BEGAN.get(outage.began, _BEGAN[reasons.UNKNOWN])
    ended = _ENDED.get(outage.ended, _ENDED[reasons.NOT_OVER])
    began = began.format(broker=_broker(outage.began_broker))
    ended = ended.format(broker=_broker(outage.ended_broker))
    return f"{began}; {ended}"


def _broker(broker: int) -> str:
    return f"broker {broker}" if broker >= 0 else "a broker"


def sends_text(sends: Sends) -> str:
    """Return the outcomes of sends, as in ``20 sent: 18 acked, 2 unknown``."""
    ends = (("acked", sends.acked), ("failed", sends.failed), ("unknown", sends.unknown))
    open_count = sends.sent - sends.acked - sends.failed - sends.unknown
    parts = [f"{count} {name}" for name, count in (*ends, ("not ended", open_count)) if count]
    share = share_text(sends.acked, sends.sent)
    return f"{sends.sent} sent: {', '.join(parts)}{share}" if parts else f"{sends.sent} sent"


def share_text(acked: int, sent: int) -> str:
    """Return the percentage of acked sends in parentheses, unless none or all were acked."""
    return f" ({100 * acked / sent:.4g}%)" if acked not in (0, sent) else ""


def latency_text(latency: Latency | None) -> str:
    """Return a latency, as in ``p50 3.2 ms, p99 120 ms, max 4.1 s``, or a dash."""
    if latency is None:
        return "-"
    named = (("p50", latency.p50_us), ("p99", latency.p99_us), ("max", latency.max_us))
    return ", ".join(f"{name} {rough_duration_text(us)}" for name, us in named)


def outage_rows(levels: ServiceLevels, shown_max: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield the longest outages: the partition, the start, the length, and the reasons."""
    # The sort is stable, so outages of the same length stay in the order of their starts.
    longest_first = sorted(levels.outages, key=lambda outage: -outage.length_us)
    for outage in longest_first[:shown_max]:
        yield (
            printable(outage.partition),
            seconds(outage.start_us),
            rough_duration_text(outage.length_us),
            outage_sentence(outage),
        )


def consumer_text(level: ConsumerLevel) -> str:
    lag = f"at most {counted(level.lag_max, 'acked record')} behind"
    return f"{counted(level.records, 'record')}, {lag}, {level.lag} at the end"


def service_as_mapping(levels: ServiceLevels) -> dict[str, Any]:
    """Return the JSON of service levels, with times in milliseconds."""
    return {
        **_sends_as_mapping(levels.total),
        "acks": {"bucket_ms": levels.bucket_us // US_PER_MS, "counts": list(levels.acks)},
        "end_to_end_ms": _latency_as_mapping(levels.end_to_end),
        "transaction_ms": _latency_as_mapping(levels.transactions),
        "rebalance_ms": _latency_as_mapping(levels.rebalances),
        "unread": _unread_as_mapping(levels.unread),
        "longest_without_ack_ms": milliseconds(levels.longest_us),
        "outages": [_outage_as_mapping(outage) for outage in levels.outages],
        "partitions": {
            name: {**_sends_as_mapping(level), **_gaps_as_mapping(level)}
            for name, level in levels.partitions.items()
        },
        "producers": {name: _sends_as_mapping(level) for name, level in levels.producers.items()},
        "consumers": {
            name: {
                "records": level.records,
                "end_to_end_ms": _latency_as_mapping(level.end_to_end),
                "lag": level.lag,
                "lag_max": level.lag_max,
            }
            for name, level in levels.consumers.items()
        },
    }


def _sends_as_mapping(sends: Sends) -> dict[str, Any]:
    return {
        "sent": sends.sent,
        "acked": sends.acked,
        "failed": sends.failed,
        "unknown": sends.unknown,
        "ack_ms": _latency_as_mapping(sends.ack_latency),
    }


def _gaps_as_mapping(level: PartitionLevel) -> dict[str, Any]:
    longest = None if level.longest is None else _outage_as_mapping(level.longest)
    return {"longest_without_ack": longest, "outage_count": len(level.outages)}


def _latency_as_mapping(latency: Latency | None) -> dict[str, Any] | None:
    if latency is None:
        return None
    return {
        "p50": milliseconds(latency.p50_us),
        "p99": milliseconds(latency.p99_us),
        "max": milliseconds(latency.max_us),
    }


def _unread_as_mapping(unread: Unread | None) -> dict[str, Any] | None:
    if unread is None:
        return None
    return {
        "partition": unread.partition,
        "start_ms": milliseconds(unread.start_us),
        "length_ms": milliseconds(unread.length_us),
    }


def coordination_rows(levels: ServiceLevels) -> Iterator[tuple[str, str]]:
    """Yield the latencies of transactions and groups, if there are any."""
    if levels.transactions is not None:
        yield "transactions", latency_text(levels.transactions)
    if levels.rebalances is not None:
        yield "rebalances", latency_text(levels.rebalances)
        if levels.unread is not None:
            yield "not read", unread_text(levels.unread)


def unread_text(unread: Unread) -> str:
    """Return the longest time without a read, as in ``3.2 s at most, t-0 from 12.100s``."""
    since = f"{printable(unread.partition)} from {seconds(unread.start_us)}"
    return f"{rough_duration_text(unread.length_us)} at most, {since}"


def _outage_as_mapping(outage: Outage) -> dict[str, Any]:
    return {
        "partition": outage.partition,
        "start_ms": milliseconds(outage.start_us),
        "length_ms": milliseconds(outage.length_us),
        "began": outage.began,
        "began_broker": None if outage.began_broker < 0 else outage.began_broker,
        "ended": outage.ended,
        "ended_broker": None if outage.ended_broker < 0 else outage.ended_broker,
    }
