"""Replaces all records of a plan by a few, which are sent at times that could matter.

To remove one record shifts the messages of the others. A failure that depends on the time of a
fetch then disappears, although the removed record had no part in it. Usually, what matters is the
time of a send: just before a fault, or well between two faults. So this search tries a few records
at such times, with the same latency for every message.
"""

from collections.abc import Iterator
from itertools import chain, islice, pairwise, product
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.search.simpler_cluster import with_fixed_latency
from harrow.campaigns.search.timeline import Moment, timeline, with_timeline
from harrow.checks.finding import Finding
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.faults.actions import Send

_HOPS_MAX: Final = 8
"""A fault strikes at most so many latencies after a send.

The messages are those for metadata, for the producer id, for the record and for its ack.
"""
_FEW: Final = 3
"""With this many records or fewer, one latency is enough to try."""
_WHOLE_SECONDS_MAX: Final = 40
"""Most whole seconds to try as the time of a send."""
_PLANS_MAX: Final = 150
"""Most plans for one network and one number of records."""


def with_few_records(plan: Plan, finding: Finding) -> Iterator[Plan]:
    """Yield plans with no record, one record or two.

    There are only plans that send fewer records than *plan*, or as many with simpler latencies.
    """
    moments = timeline(plan)
    sends = [moment for moment in moments if isinstance(moment.action, Send)]
    faults = sorted({moment.at_us for moment in moments if moment.is_fault()})
    events = sorted({*faults, *(link.at_us for link in finding.chain if link.at_us is not None)})
    networks = list(_networks(plan, many=len(sends) > _FEW))
    if sends:
        # A failure between controllers and brokers often needs no records.
        for network in networks:
            yield _sending(network, (), sends, finding.partition)
    for count in (1, 2):
        if len(sends) > count or (len(sends) == count and next(with_fixed_latency(plan), None)):
            for network in networks:
                latency_us = max(network.cluster.network.latency_max_us, US_PER_MS)
                before_faults = _just_before(faults, latency_us)
                between_events = _between(events)
                times = (
                    _single(before_faults, between_events, events)
                    if count == 1
                    else _pairs(before_faults, between_events)
                )
                yield from (
                    _sending(network, at, sends, finding.partition) for at in islice(times, _PLANS_MAX)
                )


def _networks(plan: Plan, *, many: bool) -> Iterator[Plan]:
    """Yield the plan with each latency to try, the simplest first.

    Unless the plan has *many* records, the simplest latency is enough.
    """
    return islice(chain(with_fixed_latency(plan), (plan,)), None if many else 1)


def _sending(plan: Plan, times: tuple[int, ...], sends: list[Moment], partition: str) -> Plan:
    rest = [moment for moment in timeline(plan) if not isinstance(moment.action, Send)]
    actions = [moment.action for moment in sends if isinstance(moment.action, Send)]
    # The first producer that sends to the partition.
    producer = next((send.producer for send in actions if send.partition == partition), actions[0].producer)
    records = [
        Moment(at_us=at_us, action=Send(producer=producer, value=f"m{number}", partition=partition))
        for number, at_us in enumerate(times)
    ]
    return with_timeline(plan, [*records, *rest])


def _single(
    before_faults: list[int], between_events: list[int], events: list[int]
) -> Iterator[tuple[int, ...]]:
    """Yield times for one record: between events, at whole seconds, then close to faults."""
    end_us = max(events, default=0)
    grid_us = max(1, end_us // US_PER_SECOND // _WHOLE_SECONDS_MAX) * US_PER_SECOND
    seconds = range(0, end_us + grid_us, grid_us)
    yield from ((at_us,) for at_us in dict.fromkeys((*between_events, *seconds, *before_faults)))


def _pairs(before_faults: list[int], between_events: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield times for two records: first one close to a fault, then both between events."""
    both = chain(product(before_faults, between_events), product(between_events, between_events))
    yield from dict.fromkeys((min(pair), max(pair)) for pair in both)


def _just_before(events: list[int], latency_us: int) -> list[int]:
    """Return send times for which a request is in flight when an event happens."""
    candidates = [at_us - hops * latency_us for hops in range(1, _HOPS_MAX + 1) for at_us in events]
    return [at_us for at_us in dict.fromkeys(candidates) if at_us >= 0]


def _between(events: list[int]) -> list[int]:
    """Return the times halfway between two events, and one after the last."""
    bounds = [0, *events]
    middles = [(one + other) // 2 for one, other in pairwise(bounds)]
    return list(dict.fromkeys((0, *middles, bounds[-1] + US_PER_SECOND)))
