"""Finds outages of partitions, times without an ack, and why they began and ended."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import inf
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeVar

from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import ACKED
from harrow.checks.index import Index
from harrow.cluster_model import events
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

E = TypeVar("E", bound=events.Event)

OUTAGE_MIN_US: Final = US_PER_SECOND
"""A shorter time without an ack is latency, not an outage."""
IDLE_US: Final = US_PER_SECOND
"""If producers pause for longer than this after an error, the outage ended with the error."""

# What caused an outage
NO_LEADER_KNOWN: Final = "no leader"
LEADER_DOWN: Final = "leader down"
LEADER_PAUSED: Final = "leader paused"
ISR_BELOW_MIN: Final = "ISR below min.insync.replicas"
FENCED: Final = "leader deposed"
MEMBER_DOWN: Final = "ISR member down"
MEMBER_PAUSED: Final = "ISR member paused"
MEMBER_BEHIND: Final = "ISR member behind"
THROTTLED: Final = "client throttled"
UNAWARE: Final = "leader unaware"
UNREACHABLE: Final = "leader unreachable"
ANSWER_LOST: Final = "answer lost"
UNKNOWN: Final = "unknown"

# What ended an outage
ELECTED: Final = "leader elected"
STARTED: Final = "broker started"
RESUMED: Final = "broker resumed"
ISR_GREW: Final = "ISR expanded"
ISR_SHRANK: Final = "ISR shrunk"
FAULT_ENDED: Final = "fault ended"
TOLD: Final = "leader told"
CAUGHT_UP: Final = "ISR member caught up"
ANSWERED: Final = "answered"
GIVEN_UP: Final = "given up"
NOT_OVER: Final = "not over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time without an ack although a producer was sending, in virtual microseconds.

    ``began`` says why the outage began, and ``ended`` why it ended; both are constants of this
    module. ``began_broker`` and ``ended_broker`` are the brokers that caused the beginning and the
    end, -1 if no particular broker did.
    """

    partition: str
    start_us: int
    end_us: int
    began: str = UNKNOWN
    ended: str = ANSWERED
    began_broker: int = -1
    ended_broker: int = -1

    @property
    def length_us(self) -> int:
        return self.end_us - self.start_us


def outages_of(
    partition: str, history: HistoryIndex, rows: Iterable[int], end_us: int
) -> tuple[list[Outage], Outage | None]:
    """Return the outages of a partition, and the longest time without an ack.

    *rows* are the rows of all sends to the partition.

    A time without an ack starts with a send if no other send is in flight, otherwise with the
    previous ack. It ends with the next ack. An error does not end it, unless the producers pause
    for longer than `IDLE_US` after the error. A time that is not over when the history ends, at
    *end_us*, ends there.
    """
    spans = _without_ack(history, rows, end_us)

    def outage(span: tuple[int, int, str]) -> Outage:
        start_us, stop_us, ended = span
        return Outage(partition=partition, start_us=start_us, end_us=stop_us, ended=ended)

    longest = max(spans, key=_length_us, default=None)
    outages = [outage(span) for span in spans if _length_us(span) >= OUTAGE_MIN_US]
    return outages, None if longest is None else outage(longest)


def _length_us(span: tuple[int, int, str]) -> int:
    return span[1] - span[0]


_ERROR: Final = 0
_INVOCATION: Final = 1
_ACK: Final = 2
"""What happens to a send at a moment. If one operation does several, lower ones come first."""
_KINDS_COUNT: Final = 3


def _without_ack(history: HistoryIndex, rows: Iterable[int], end_us: int) -> list[tuple[int, int, str]]:
    """Return the times without an ack, each with its start, its end, and how it ended."""
    records, times_us = history.records, history.times_us
    # A moment is one number made of its position and its kind, because numbers sort fast.
    moments: list[int] = []
    for row in rows:
        moments.append(records.invoked[row] * _KINDS_COUNT + _INVOCATION)
        completed = records.completed[row]
        if completed >= 0:
            moments.append(completed * _KINDS_COUNT + (_ACK if records.outcomes[row] == ACKED else _ERROR))
    moments.sort()
    spans: list[tuple[int, int, str]] = []
    pending = idle_since_us = 0
    since_us: int | None = None
    for moment in moments:
        at_us, kind = times_us[moment // _KINDS_COUNT], moment % _KINDS_COUNT
        if kind == _INVOCATION:
            if since_us is not None and not pending and at_us - idle_since_us > IDLE_US:
                spans.append((since_us, idle_since_us, GIVEN_UP))
                since_us = None
            since_us = at_us if since_us is None else since_us
            pending += 1
            continue
        pending -= 1
        if kind == _ERROR:
            idle_since_us = at_us
            continue
        if since_us is not None:
            spans.append((since_us, at_us, ANSWERED))
        since_us = at_us if pending else None
    if since_us is not None:
        spans.append((since_us, end_us, NOT_OVER) if pending else (since_us, idle_since_us, GIVEN_UP))
    return spans


@dataclass(frozen=True, slots=True)
class _Standstill:
    """A time in which a broker's process was down or paused."""

    began: str
    ended: str
    start_us: int
    end_us: int | None


class Disturbances:
    """Finds the events of a trace that caused and ended an outage."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._grouped: dict[tuple[type[events.Event], ...], Mapping[str | int, Sequence[Any]]] = {}

    def explained(self, outage: Outage) -> Outage:
        """Return an outage with its cause and its end, as far as the trace shows them."""
        elected = _before(outage, self._events(outage.partition, *_ELECTIONS))
        leader = NO_LEADER if elected is None else elected.leader
        began, began_broker = self._cause_of(outage, leader)
        ended, ended_broker = outage.ended, -1
        if ended == ANSWERED:
            ended, ended_broker = self._end_of(outage, leader, began, began_broker)
        return replace(outage, began=began, began_broker=began_broker, ended=ended, ended_broker=ended_broker)

    def _events(self, owner: str | int, *kinds: type[events.Event]) -> Sequence[Any]:
        """Return the events of some kinds about a partition, or about a broker's process."""
        if kinds not in self._grouped:
            grouped = defaultdict(list)
            for _, event in self._index.events(*kinds):
                grouped[getattr(event, "partition" if isinstance(owner, str) else "broker")].append(event)
            self._grouped[kinds] = grouped
        return self._grouped[kinds].get(owner, ())

    def _during(self, outage: Outage, kind: type[E]) -> Sequence[E]:
        return self._index.during(outage.start_us, outage.end_us, kind, outage.partition)

    def _isr(self, outage: Outage) -> tuple[int, ...]:
        changed = _before(outage, self._events(outage.partition, *_ELECTIONS, events.IsrChanged))
        return () if changed is None else changed.isr

    def _learned_to_lead(self, outage: Outage, leader: int) -> Sequence[events.BecameLeader]:
        """Return the events in which a leader learned, during the outage, that it leads."""
        led = _within(outage, self._events(outage.partition, events.BecameLeader))
        return [event for event in led if event.broker == leader and event.at_us > outage.start_us]

    def _standstills(self, broker: int) -> Iterator[_Standstill]:
        moments = self._events(broker, *_PROCESS)
        for event, later in zip_longest(moments, moments[1:]):
            words = _STANDSTILL.get(type(event))
            if words is not None:
                yield _Standstill(*words, event.at_us, None if later is None else later.at_us)

    def _standstill(self, broker: int, outage: Outage) -> _Standstill | None:
        """Return the first standstill of a broker that overlaps an outage."""
        for standstill in self._standstills(broker):
            if standstill.start_us <= outage.end_us and (
                standstill.end_us is None or standstill.end_us >= outage.start_us
            ):
                return standstill
        return None

    def _cause_of(self, outage: Outage, leader: int) -> tuple[str, int]:
        """Return what caused an outage, and the broker.

        This is the first event that can have prevented acks, if it was early enough. Otherwise it
        is the place where the first batch waited.
        """
        candidates = sorted(self._candidates(outage, leader), key=itemgetter(0))
        if candidates and candidates[0][0] <= outage.start_us + _SOON_US:
            return candidates[0][1:]
        waited = self._place_of_waiting(outage, leader)
        return candidates[0][1:] if waited[0] == UNKNOWN and candidates else waited

    def _candidates(self, outage: Outage, leader: int) -> Iterator[tuple[int, str, int]]:
        """Yield the time, cause and broker of events that can prevent acks, likelier ones first."""
        standstill = self._standstill(leader, outage)
        if standstill is not None:
            yield max(standstill.start_us, outage.start_us), standstill.began, leader
        if leader == NO_LEADER:
            yield outage.start_us, NO_LEADER_KNOWN, -1
        for election in _within(outage, self._events(outage.partition, *_ELECTIONS)):
            if election.leader == NO_LEADER:
                yield election.at_us, NO_LEADER_KNOWN, -1
        for refused in _within(outage, self._events(outage.partition, events.RequestRejected)):
            if refused.api == "Produce" and refused.error in _BY_ERROR:
                yield refused.at_us, _BY_ERROR[refused.error], refused.broker
        for member in self._isr(outage):
            standstill = None if member == leader else self._standstill(member, outage)
            if standstill is not None and self._waits_for_replicas(outage):
                yield max(standstill.start_us, outage.start_us), _CAUSE_OF_MEMBER[standstill.began], member

    def _waits_for_replicas(self, outage: Outage) -> bool:
        """Return whether the missing acks were those of acks=all."""
        acked = self._during(outage, events.BatchAcknowledged)
        return not acked or acked[-1].acks == _ACKS_ALL

    def _place_of_waiting(self, outage: Outage, leader: int) -> tuple[str, int]:
        """Return where the first batch of an outage waited: at the leader or in the ISR."""
        held_up = self._held_up(outage, leader)
        if held_up is not None:
            return held_up, leader
        appended = self._during(outage, events.BatchAppended)
        if not appended or appended[0].at_us - outage.start_us > outage.length_us // 2:
            return UNREACHABLE, leader
        offset = appended[0].base_offset
        acked = self._during(outage, events.BatchAcknowledged)
        acked_us = next((event.at_us for event in acked if event.base_offset == offset), None)
        if acked_us is not None and outage.end_us - acked_us > acked_us - outage.start_us:
            return ANSWER_LOST, leader
        if not self._waits_for_replicas(outage):
            return UNKNOWN, -1
        # A follower reports that it has a batch by its next fetch, so copying the batch is not
        # enough.
        reported: dict[int, int] = {}
        for fetched in self._during(outage, events.FollowerFetched):
            if fetched.offset > offset:
                reported.setdefault(fetched.replica, fetched.at_us)
        copied: dict[int, int] = {}
        for event in self._during(outage, events.BatchReplicated):
            if event.base_offset >= offset:
                copied.setdefault(event.broker, event.at_us)
        followers = [member for member in self._isr(outage) if member != leader]
        if not followers:
            return UNKNOWN, -1
        return MEMBER_BEHIND, max(
            followers, key=lambda each: (reported.get(each, inf), copied.get(each, inf))
        )

    def _held_up(self, outage: Outage, leader: int) -> str | None:
        """Return why a leader did not append the first batch, or None.

        The leader did not know yet that it leads, or it throttled the client.
        """
        if self._learned_to_lead(outage, leader):
            return UNAWARE
        return THROTTLED if 2 * self._throttled_us(outage, leader) >= outage.length_us else None

    def _throttled_us(self, outage: Outage, leader: int) -> int:
        """Return how long the leader muted producers during an outage, because of a quota."""
        throttled_us, since_us = 0, outage.start_us
        for throttled in self._events(leader, events.ClientThrottled):
            begin_us, end_us = throttled.at_us, throttled.at_us + throttled.throttle_us
            if throttled.api == "Produce" and begin_us < outage.end_us:
                throttled_us += max(min(end_us, outage.end_us) - max(begin_us, since_us), 0)
                since_us = max(since_us, end_us)
        return throttled_us

    def _end_of(self, outage: Outage, leader: int, began: str, began_broker: int) -> tuple[str, int]:
        """Return the last change before the ack that can have caused it, and the broker."""
        changes: list[tuple[int, str, int]] = []
        for election in _within(outage, self._events(outage.partition, *_ELECTIONS)):
            if election.leader not in (leader, NO_LEADER):
                leader = election.leader
                changes.append((election.at_us, ELECTED, leader))
        for event in _within(outage, self._events(outage.partition, events.IsrReduced, events.IsrChanged)):
            by = event.leader if isinstance(event, events.IsrReduced) else event.broker
            has_grown = isinstance(event, events.IsrChanged) and event.change == "expand"
            changes.append((event.at_us, ISR_GREW if has_grown else ISR_SHRANK, by))
        for broker in dict.fromkeys((leader, began_broker)):
            for standstill in self._standstills(broker):
                if standstill.end_us is not None and outage.start_us <= standstill.end_us <= outage.end_us:
                    changes.append((standstill.end_us, standstill.ended, broker))
        if began == UNAWARE:
            changes += [(event.at_us, TOLD, leader) for event in self._learned_to_lead(outage, leader)]
        if changes:
            return max(changes, key=itemgetter(0))[1:]
        # The end of a fault counts only if the ack follows it.
        ends = [event for _, event in self._index.events(events.FaultEnded, events.Healed)]
        if any(event.at_us >= outage.end_us - _SOON_US for event in _within(outage, ends)):
            return FAULT_ENDED, -1
        return (CAUGHT_UP, began_broker) if began in _MEMBER_CAUSES else (ANSWERED, -1)


_ELECTIONS: Final = (events.LeaderElected, events.IsrReduced)
_PROCESS: Final = (events.BrokerStopped, events.BrokerStarted, events.BrokerPaused, events.BrokerResumed)
_STANDSTILL: Final = {
    events.BrokerStopped: (LEADER_DOWN, STARTED),
    events.BrokerPaused: (LEADER_PAUSED, RESUMED),
}
"""How a standstill of a broker's process begins and ends, by the event that begins it. The next
event of `_PROCESS` ends it."""
_MEMBER_CAUSES: Final = frozenset({MEMBER_DOWN, MEMBER_PAUSED, MEMBER_BEHIND})
_CAUSE_OF_MEMBER: Final = {LEADER_DOWN: MEMBER_DOWN, LEADER_PAUSED: MEMBER_PAUSED}
_BY_ERROR: Final = {
    "NOT_ENOUGH_REPLICAS": ISR_BELOW_MIN,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": ISR_BELOW_MIN,
    "NOT_LEADER_FOR_PARTITION": FENCED,
    "FENCED_LEADER_EPOCH": FENCED,
}
_SOON_US: Final = US_PER_SECOND
_ACKS_ALL: Final = -1


def _before(outage: Outage, moments: Sequence[E]) -> E | None:
    """Return the last event up to the start of an outage."""
    place = bisect_right(moments, outage.start_us, key=_at_us)
    return moments[place - 1] if place else None


def _within(outage: Outage, moments: Sequence[E]) -> Sequence[E]:
    """Return the events within an outage, including its ends."""
    first = bisect_left(moments, outage.start_us, key=_at_us)
    return moments[first : bisect_right(moments, outage.end_us, key=_at_us)]


_at_us: Final = attrgetter("at_us")
