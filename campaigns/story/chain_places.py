"""Finds the recorded event for each link in the chain of a finding.

It compares the fields of events and narrates none of them, because a diff needs a few links of a
run that has many events.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Any, Final

from harrow.campaigns.record.run_events import RunEvents, named_fields
from harrow.campaigns.story.run_state import state_at
from harrow.checks.finding import Finding
from harrow.checks.link import Link
from harrow.checks.replay.cluster_state import ClusterState
from harrow.cluster_model import events as kinds
from harrow.cluster_model.events import Event
from harrow.cluster_model.trace import TraceEvent, decode


class ChainPlaces:
    """Finds the event of each link in a run. A position is an index into the run's events."""

    def __init__(self, run: RunEvents) -> None:
        self._run = run

    @cached_property
    def end(self) -> ClusterState:
        """The cluster at the end of the run, with every copy of a record that was ever in a log."""
        return state_at(self._run)

    def positions(self, finding: Finding) -> list[int | None]:
        """Return the event position of each link of a chain, None for a link without one."""
        value = None if finding.value is None else str(finding.value)
        positions: list[int | None] = []
        previous = -1
        for link in finding.chain:
            position = self._link_position(link, value, previous)
            positions.append(position)
            previous = previous if position is None else position
        return positions

    def last_position(self, finding: Finding) -> int:
        """Return the position of the last event in a finding's chain.

        For a link without an event, the last event up to its time counts. Rules judge the whole
        run, but the finding is certain after this event. If a finding has no link with a time,
        return the position of the run's last event.
        """
        last = -1
        for link, position in zip(finding.chain, self.positions(finding), strict=True):
            if position is not None:
                last = max(last, position)
            elif link.at_us is not None:
                last = max(last, self.last_at(link.at_us))
        return last if last >= 0 else len(self._run.events) - 1

    def last_at(self, at_us: int) -> int:
        """Return the position of the last event up to a time, -1 if there is none."""
        return bisect_right(self._run.events, at_us, key=_AT_US) - 1

    def _link_position(self, link: Link, value: str | None, previous: int) -> int | None:
        """Return the position of a link's event, preferably not before *previous*."""
        if link.at_us is None:
            return None
        begin = bisect_left(self._run.events, link.at_us, key=_AT_US)
        names = link.kind.stems_from
        candidates = [
            position
            for position in range(begin, self.last_at(link.at_us) + 1)
            if self._run.events[position][1] in names
        ]
        criteria: tuple[Callable[[int], Any], ...] = (
            lambda position: _concerns(self._run.events[position], link.broker),
            lambda position: position >= previous,
            lambda position: value is None or not self._is_about_others(position, value),
            lambda position: -names.index(self._run.events[position][1]),
        )
        for criterion in criteria:
            # The third criterion may replay the whole run, so skip criteria that decide nothing.
            if len(candidates) > 1:
                best = max(map(criterion, candidates))
                candidates = [position for position in candidates if criterion(position) == best]
        return candidates[0] if candidates else None

    def _is_about_others(self, position: int, value: str) -> bool:
        """Return whether an event is about records other than the one with this value."""
        values = {*values_of(decode(self._run.events[position])), *self._removed(position)}
        return bool(values) and value not in values

    def _removed(self, position: int) -> Iterator[str]:
        """Yield the records that an event removed from its log."""
        fields = named_fields(self._run.events[position])
        partition = self.end.partitions.get(fields.get("partition", ""))
        replica = None if partition is None else partition.replicas.get(fields.get("broker", -1))
        for removed in () if replica is None else replica.removed:
            if removed.number == self._run.numbers[position]:
                yield removed.entry.value


def values_of(event: Event) -> Iterator[str]:
    """Yield the values of the records that an event names."""
    yield from map(str, getattr(event, "values", ()))
    if isinstance(event, kinds.ClientPolled):
        yield from (str(value) for _, value in event.records)
    elif isinstance(event, kinds.ClientSent | kinds.ClientEnded):
        yield str(event.value)


def _concerns(event: TraceEvent, broker: int | None) -> bool:
    if broker is None:
        return True
    fields: Mapping[str, object] = named_fields(event)
    # A link about an election names the new leader, although the controller elected it.
    return broker == fields.get("leader" if event[1] == kinds.LeaderElected.name else "broker")


_AT_US: Final = itemgetter(0)
