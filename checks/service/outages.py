"""Outages: for how long nobody who sent to a partition got an ack, and what began and ended that."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, TypeVar

from harrow.checks.history.records import SendRecord
from harrow.checks.index import Index
from harrow.cluster_model import events
from harrow.cluster_model.history import INFO, INVOKE, OK
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.trace import TraceLine

OUTAGE_MIN_US: Final = US_PER_SECOND
"""Shorter ones are latency."""
IDLE_US: Final = US_PER_SECOND
"""After a send that was given up, a pause of the senders that is longer than this ends an outage."""

# What began an outage
NO_LEADER_KNOWN: Final = "no leader"
LEADER_DOWN: Final = "leader down"
LEADER_PAUSED: Final = "leader paused"
ISR_BELOW_MIN: Final = "ISR below min.insync.replicas"
FENCED: Final = "leader deposed"
MEMBER_DOWN: Final = "ISR member down"
MEMBER_PAUSED: Final = "ISR member paused"
MEMBER_BEHIND: Final = "ISR member behind"
UNAWARE: Final = "leader unaware"
UNREACHABLE: Final = "leader unreachable"
ANSWER_LOST: Final = "answer lost"
UNKNOWN: Final = "unknown"

# What ended one
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
    """A time without an ack while somebody was sending. Times are virtual, in microseconds.

    ``began`` and ``ended`` say what did it, in the words above; ``began_broker`` and ``ended_broker`` who it
    was, -1 where it was nobody in particular.
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
    partition: str, sends: Iterable[SendRecord], end_us: int
) -> tuple[list[Outage], Outage | None]:
    """Return the outages of a partition, and the longest time without an ack, be it an outage or not.

    The history ends at *end_us*; what is not over by then has lasted for so long at least.

    A time without an ack begins with a send when none is on its way, or with the ack before while others are. It
    ends with the next ack. Senders that get nothing but errors are still without an ack, unless they rest for
    longer than `IDLE_US`.
    """
    spans = _without_ack(sends, end_us)

    def outage(span: tuple[int, int, str]) -> Outage:
        start_us, stop_us, ended = span
        return Outage(partition=partition, start_us=start_us, end_us=stop_us, ended=ended)

    longest = max(spans, key=_length_us, default=None)
    outages = [outage(span) for span in spans if _length_us(span) >= OUTAGE_MIN_US]
    return outages, None if longest is None else outage(longest)


def _length_us(span: tuple[int, int, str]) -> int:
    return span[1] - span[0]


def _without_ack(sends: Iterable[SendRecord], end_us: int) -> list[tuple[int, int, str]]:
    """Return the times without an ack: from when, until when, and how they ended."""
    moments: list[tuple[int, int, str]] = []
    for send in sends:
        moments.append((send.invoked, send.invoked_us, INVOKE))
        if send.completed_us is not None:
            moments.append((send.completed, send.completed_us, send.outcome or INFO))
    moments.sort()
    found: list[tuple[int, int, str]] = []
    pending = idle_since_us = 0
    since_us: int | None = None
    for _, at_us, type_ in moments:
        if type_ == INVOKE:
            if since_us is not None and not pending and at_us - idle_since_us > IDLE_US:
                found.append((since_us, idle_since_us, GIVEN_UP))
                since_us = None
            since_us = at_us if since_us is None else since_us
            pending += 1
            continue
        pending -= 1
        if type_ != OK:
            idle_since_us = at_us
            continue
        if since_us is not None:
            found.append((since_us, at_us, ANSWERED))
        since_us = at_us if pending else None
    if since_us is not None:
        found.append((since_us, end_us, NOT_OVER) if pending else (since_us, idle_since_us, GIVEN_UP))
    return found


def explain(outages: Sequence[Outage], index: Index) -> list[Outage]:
    """Return outages with what began and ended them, as far as the trace tells."""
    if not outages:
        return []
    known = _Disturbances(index)
    return [known.explained(outage) for outage in outages]


@dataclass(frozen=True, slots=True)
class _Standstill:
    """A broker's process was dead or paused."""

    began: str
    ended: str
    start_us: int
    end_us: int | None


class _Disturbances:
    """What a trace tells that can begin and end outages: by partition or broker, each in the order of time."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._leaders: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._isrs: defaultdict[str, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
        self._altered: defaultdict[str, list[tuple[int, str, int]]] = defaultdict(list)
        self._errors: defaultdict[str, list[tuple[int, str, int]]] = defaultdict(list)
        self._standstills: defaultdict[int, list[_Standstill]] = defaultdict(list)
        for _, event in index.events(*_OF_PARTITIONS):
            self._note(event)
        for _, event in index.events(*_OF_BROKERS):
            if isinstance(event, events.BrokerStopped):
                self._stand_still(event.broker, LEADER_DOWN, STARTED, event.at_us)
            elif isinstance(event, events.BrokerPaused):
                self._stand_still(event.broker, LEADER_PAUSED, RESUMED, event.at_us)
            elif isinstance(event, events.BrokerStarted | events.BrokerResumed):
                self._go_on(event.broker, event.at_us)
        self._fault_ends = [(event.at_us,) for _, event in index.events(events.FaultEnded, events.Healed)]

    def _note(self, event: events.Event) -> None:
        if isinstance(event, events.LeaderElected | events.IsrReduced):
            self._leaders[event.partition].append((event.at_us, event.leader))
            self._isrs[event.partition].append((event.at_us, event.isr))
            if isinstance(event, events.IsrReduced):
                self._altered[event.partition].append((event.at_us, "shrink", event.leader))
        elif isinstance(event, events.IsrChanged):
            self._isrs[event.partition].append((event.at_us, event.isr))
            self._altered[event.partition].append((event.at_us, event.change, event.broker))
        elif isinstance(event, events.RequestRejected) and event.api == "Produce":
            self._errors[event.partition].append((event.at_us, event.error, event.broker))

    def _stand_still(self, broker: int, began: str, ended: str, at_us: int) -> None:
        self._go_on(broker, at_us)
        self._standstills[broker].append(_Standstill(began, ended, at_us, None))

    def _go_on(self, broker: int, at_us: int) -> None:
        last = self._standstills[broker][-1:]
        if last and last[0].end_us is None:
            self._standstills[broker][-1] = replace(last[0], end_us=at_us)

    def explained(self, outage: Outage) -> Outage:
        leader = _before(outage, self._leaders[outage.partition], NO_LEADER)
        began, began_broker = self._began(outage, leader)
        ended, ended_broker = outage.ended, -1
        if ended == ANSWERED:
            ended, ended_broker = self._ended(outage, leader, began, began_broker)
        return replace(outage, began=began, began_broker=began_broker, ended=ended, ended_broker=ended_broker)

    def _standstill(self, broker: int, outage: Outage) -> _Standstill | None:
        """Return the first time that a broker stood still for some of an outage."""
        for stood in self._standstills.get(broker, ()):
            if stood.start_us <= outage.end_us and (stood.end_us is None or stood.end_us >= outage.start_us):
                return stood
        return None

    def _began(self, outage: Outage, leader: int) -> tuple[str, int]:
        """Return what came first of all that can keep acks away, if it came soon enough to have begun it."""
        found = sorted(self._candidates(outage, leader), key=itemgetter(0))
        if found and found[0][0] <= outage.start_us + _SOON_US:
            return found[0][1:]
        waited = self._where_it_waited(outage, leader)
        return found[0][1:] if waited[0] == UNKNOWN and found else waited

    def _candidates(self, outage: Outage, leader: int) -> Iterator[tuple[int, str, int]]:
        """Yield when something began that can keep acks away, what, and of whom; the likelier ones first."""
        stood = self._standstill(leader, outage)
        if stood is not None:
            yield max(stood.start_us, outage.start_us), stood.began, leader
        if leader == NO_LEADER:
            yield outage.start_us, NO_LEADER_KNOWN, -1
        for at_us, later in _within(outage, self._leaders[outage.partition]):
            if later == NO_LEADER:
                yield at_us, NO_LEADER_KNOWN, -1
        for at_us, error, broker in _within(outage, self._errors[outage.partition]):
            if error in _BY_ERROR:
                yield at_us, _BY_ERROR[error], broker
        for member in _before(outage, self._isrs[outage.partition], ()):
            stood = None if member == leader else self._standstill(member, outage)
            if stood is not None and self._waits_for_replicas(outage):
                yield max(stood.start_us, outage.start_us), _MEMBER[stood.began], member

    def _waits_for_replicas(self, outage: Outage) -> bool:
        """Return whether the acks that did not come were those of acks=all."""
        acks = _within(outage, self._batches.get(outage.partition, {}).get(events.BatchAcknowledged, ()))
        return not acks or acks[-1][3] == _ACKS_ALL

    @cached_property
    def _batches(self) -> Mapping[str, Mapping[type[events.Event], Sequence[tuple[int, int, int, int]]]]:
        """Return when batches were appended, copied and acked, by whom, and for which acks, by partition."""
        found: defaultdict[str, Any] = defaultdict(lambda: defaultdict(list))
        lines: Sequence[TraceLine[events.BatchAppended | events.BatchReplicated | events.BatchAcknowledged]]
        lines = self._index.events(events.BatchAppended, events.BatchReplicated, events.BatchAcknowledged)
        for _, event in lines:
            acks = event.acks if isinstance(event, events.BatchAcknowledged) else 0
            found[event.partition][type(event)].append((event.at_us, event.base_offset, event.broker, acks))
        return found

    def _where_it_waited(self, outage: Outage, leader: int) -> tuple[str, int]:
        """Return how far the first batch of an outage came: to the leader, to the ISR, to its answer."""
        for _, led in self._index.events(events.BecameLeader, partition=outage.partition):
            if led.broker == leader and outage.start_us < led.at_us <= outage.end_us:
                return UNAWARE, leader
        batches = self._batches.get(outage.partition, {})
        appended = _within(outage, batches.get(events.BatchAppended, ()))
        if not appended or appended[0][0] - outage.start_us > outage.length_us // 2:
            return UNREACHABLE, leader
        offset = appended[0][1]
        acked_us = [
            moment[0]
            for moment in _within(outage, batches.get(events.BatchAcknowledged, ()))
            if moment[1] == offset
        ]
        if acked_us and outage.end_us - acked_us[0] > acked_us[0] - outage.start_us:
            return ANSWER_LOST, leader
        if not self._waits_for_replicas(outage):
            return UNKNOWN, -1
        copied = [
            broker
            for _, copy, broker, _ in _within(outage, batches.get(events.BatchReplicated, ()))
            if copy >= offset
        ]
        isr = _before(outage, self._isrs[outage.partition], ())
        behind = [member for member in isr if member not in (leader, *copied)] or copied[-1:]
        return (MEMBER_BEHIND, behind[0]) if behind else (UNKNOWN, -1)

    def _ended(self, outage: Outage, leader: int, began: str, blamed: int) -> tuple[str, int]:
        """Return the last change before the ack that can have brought it about."""
        found: list[tuple[int, str, int]] = []
        for at_us, later in _within(outage, self._leaders[outage.partition]):
            if later not in (leader, NO_LEADER):
                found.append((at_us, ELECTED, later))
                leader = later
        for at_us, change, broker in _within(outage, self._altered[outage.partition]):
            found.append((at_us, ISR_GREW if change == "expand" else ISR_SHRANK, broker))
        for broker in dict.fromkeys((leader, blamed)):
            for stood in self._standstills.get(broker, ()):
                if stood.end_us is not None and outage.start_us <= stood.end_us <= outage.end_us:
                    found.append((stood.end_us, stood.ended, broker))
        if began == UNAWARE:
            found += [
                (led.at_us, TOLD, led.broker)
                for _, led in self._index.events(events.BecameLeader, partition=outage.partition)
                if led.broker == leader and outage.start_us < led.at_us <= outage.end_us
            ]
        if found:
            return max(found, key=itemgetter(0))[1:]
        # The end of just any fault will not do: it has to be followed by the ack.
        if any(at_us >= outage.end_us - _SOON_US for (at_us,) in _within(outage, self._fault_ends)):
            return FAULT_ENDED, -1
        return (CAUGHT_UP, blamed) if began in _MEMBERS else (ANSWERED, -1)


_OF_PARTITIONS: Final = (events.LeaderElected, events.IsrReduced, events.IsrChanged, events.RequestRejected)
_OF_BROKERS: Final = (events.BrokerStopped, events.BrokerStarted, events.BrokerPaused, events.BrokerResumed)
_MEMBERS: Final = frozenset({MEMBER_DOWN, MEMBER_PAUSED, MEMBER_BEHIND})
_MEMBER: Final = {LEADER_DOWN: MEMBER_DOWN, LEADER_PAUSED: MEMBER_PAUSED}
_BY_ERROR: Final = {
    "NOT_ENOUGH_REPLICAS": ISR_BELOW_MIN,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": ISR_BELOW_MIN,
    "NOT_LEADER_FOR_PARTITION": FENCED,
    "FENCED_LEADER_EPOCH": FENCED,
}
_SOON_US: Final = US_PER_SECOND
_ACKS_ALL: Final = -1


T = TypeVar("T", bound=tuple[Any, ...])
S = TypeVar("S")


def _before(outage: Outage, moments: Sequence[tuple[int, S]], default: S) -> S:
    """Return what was so when an outage began."""
    place = bisect_right(moments, outage.start_us, key=itemgetter(0))
    return moments[place - 1][1] if place else default


def _within(outage: Outage, moments: Sequence[T]) -> Sequence[T]:
    """Return what happened during an outage, of moments that begin with their time."""
    first = bisect_left(moments, outage.start_us, key=itemgetter(0))
    return moments[first : bisect_right(moments, outage.end_us, key=itemgetter(0))]
