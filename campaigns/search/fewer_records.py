"""A handful of records instead of all: plans that send them at moments that could matter.

Removing records one by one shifts the messages of the others, and a failure that depends on the time of a
fetch is gone although the removed record had no part in it. What matters is mostly when a record is sent: just
before a fault, or well between two of them. So a few records are tried at those times, with the same latency
for every message.
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
"""A record is sent at most so many latencies before something happens: metadata, id, produce, ack."""
_FEW: Final = 3
"""With so many records or fewer there is no need to try one latency after the other."""
_PLACES_MAX: Final = 40
_PLANS_MAX: Final = 150
"""So many plans are made at most of one network and one number of records."""


def with_few_records(plan: Plan, finding: Finding) -> Iterator[Plan]:
    """Yield plans that send no record, one or two in place of all, where *plan* sends more or is slow."""
    moments = timeline(plan)
    sends = [moment for moment in moments if isinstance(moment.action, Send)]
    faults = sorted({moment.at_us for moment in moments if moment.is_fault()})
    events = sorted({*faults, *(link.at_us for link in finding.chain if link.at_us is not None)})
    networks = list(_networks(plan, many=len(sends) > _FEW))
    if sends:
        # A failure between controllers and brokers often takes no records.
        for network in networks:
            yield _sending(network, (), sends, finding.partition)
    for count in (1, 2):
        if len(sends) > count or (len(sends) == count and next(with_fixed_latency(plan), None)):
            for network in networks:
                latency_us = max(network.cluster.network.latency_max_us, US_PER_MS)
                near = _just_before(faults, latency_us)
                far = _between(events)
                times = _single(near, far, events) if count == 1 else _pairs(near, far)
                yield from (
                    _sending(network, at, sends, finding.partition) for at in islice(times, _PLANS_MAX)
                )


def _networks(plan: Plan, *, many: bool) -> Iterator[Plan]:
    """Yield the plan with each latency that might do, the plainest first; without *many* records only that."""
    return islice(chain(with_fixed_latency(plan), (plan,)), None if many else 1)


def _sending(plan: Plan, times: tuple[int, ...], sends: list[Moment], partition: str) -> Plan:
    rest = [moment for moment in timeline(plan) if not isinstance(moment.action, Send)]
    actions = [moment.action for moment in sends if isinstance(moment.action, Send)]
    # The producer that sends to the partition, the first of them if there are several.
    producer = next((send.producer for send in actions if send.partition == partition), actions[0].producer)
    records = [
        Moment(at_us=at_us, action=Send(producer=producer, value=f"m{number}", partition=partition))
        for number, at_us in enumerate(times)
    ]
    return with_timeline(plan, [*records, *rest])


def _single(near: list[int], far: list[int], events: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield times for one record: between events, at whole seconds, then close to events."""
    end_us = max(events, default=0)
    grid_us = max(1, end_us // US_PER_SECOND // _PLACES_MAX) * US_PER_SECOND
    seconds = range(0, end_us + grid_us, grid_us)
    yield from ((at_us,) for at_us in dict.fromkeys((*far, *seconds, *near)))


def _pairs(near: list[int], far: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield times for two records: one of them close to an event, then both between events."""
    both = chain(product(near, far), product(far, far))
    yield from dict.fromkeys((min(pair), max(pair)) for pair in both)


def _just_before(events: list[int], latency_us: int) -> list[int]:
    """Return times from which a request is on its way when something happens."""
    found = [at_us - hops * latency_us for hops in range(1, _HOPS_MAX + 1) for at_us in events]
    return [at_us for at_us in dict.fromkeys(found) if at_us >= 0]


def _between(events: list[int]) -> list[int]:
    """Return the times in the middle between two events, and one after the last."""
    bounds = [0, *events]
    middles = [(one + other) // 2 for one, other in pairwise(bounds)]
    return list(dict.fromkeys((0, *middles, bounds[-1] + US_PER_SECOND)))
