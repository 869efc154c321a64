"""acked-below-min-isr: a leader acked a send with acks=all although its ISR was too small."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from typing import Final

from harrow.checks.causes.facts import COPY, LEADER
from harrow.checks.causes.links import isr_text
from harrow.checks.causes.story import Story
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import ACTOR, BY_SETTING, cause, link
from harrow.checks.permission import Promise
from harrow.checks.promise import ACKED_BELOW_MIN_ISR, ACKS_ALL
from harrow.checks.rule import SEEN_IN_LOGS, Rule
from harrow.cluster_model import events
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import record_count
from harrow.cluster_model.settings import MIN_ISR
from harrow.cluster_model.trace import TraceEvent, TraceLine, decode

_ACKS_ALL: Final = -1
_RAISED: Final = events.HighWatermarkSet.name
_APPENDED: Final = events.BatchAppended.name
_ACKNOWLEDGED: Final = events.BatchAcknowledged.name
_LEADERSHIP: Final = (
    *(events.BecameLeader, events.IsrChanged, events.IsrPending),
    *(events.BatchAppended, events.BatchDeduplicated, events.HighWatermarkSet, events.BatchAcknowledged),
)


@link(
    "led-with-isr",
    events.IsrChanged,
    events.IsrReduced,
    events.LeaderElected,
    events.BecameLeader,
    event="isr-shrank",
    needs=(LEADER.of(then=ACTOR),),
)
def led_with_isr(*, isr: events.Brokers) -> str:
    return f"led with the ISR {isr_text(isr)}"


@link("acknowledged", events.ClientEnded, needs=(COPY.of("values", ACTOR),))
def acknowledged(*, values: events.Values, offset: events.Offset) -> str:
    return f"acknowledged {', '.join(values)} at offset {offset} to {ACKS_ALL}"


@cause("isr-below-minimum", needs_nothing_because=BY_SETTING)
def isr_below_minimum(*, minimum: events.Number, members: events.Number) -> str:
    return f"{MIN_ISR} is {minimum}, the ISR had {members}"


_Isr = TraceLine[events.BecameLeader | events.IsrChanged]


@dataclass(slots=True, eq=False)
class _Leader:
    """A broker as leader of a partition: its ISR, and the batches that it appended and committed.

    ``isr`` is the event of the last change of the ISR. ``small_isr`` is the event that made the ISR
    too small, None while the ISR is large enough.
    ``may_suffice`` says whether the maximal ISR, which includes requested members, is large enough
    nevertheless (KIP-497). The others are by the base offset of a batch: ``appended`` has the value
    of ``small_isr`` at the append, ``ends`` the end of the batch until it is committed, and
    ``committed`` the line at which the high watermark passed the batch.
    """

    isr: _Isr | None = None
    small_isr: _Isr | None = None
    may_suffice: bool = False
    appended: dict[int, _Isr | None] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)

    def change_isr(
        self, number: int, event: events.BecameLeader | events.IsrChanged | events.IsrPending, minimum: int
    ) -> None:
        """Apply a change of the ISR, or a leader's request for another member.

        A requested member (KIP-497) counts for an answer but not yet for an append:
        ``appendRecordsToLeader`` uses the ISR, ``checkEnoughReplicasReachOffset`` the maximal ISR.
        """
        if isinstance(event, events.IsrPending):
            self.may_suffice = self.may_suffice or len(event.isr) >= minimum
            return
        self.isr = TraceLine(number, event)
        if len(event.isr) >= minimum:
            self.small_isr = None
        elif self.small_isr is None or self.may_suffice:
            self.small_isr = self.isr
        self.may_suffice = False

    def set_minimum(self, minimum: int) -> None:
        """Compare the ISR with the minimum, which an administrator may have changed."""
        if self.isr is None or len(self.isr.event.isr) >= minimum:
            self.small_isr = None
        elif self.small_isr is None:
            self.small_isr = self.isr

    def append(self, base_offset: int, records: int) -> None:
        """Apply the append of a batch, which is new or was already in the log."""
        self.appended[base_offset] = self.small_isr
        self.ends[base_offset] = base_offset + records
        self.committed.pop(base_offset, None)

    def commit(self, number: int, high_watermark: int) -> None:
        for base_offset in [base for base, end in self.ends.items() if end <= high_watermark]:
            del self.ends[base_offset]
            self.committed[base_offset] = number

    def small_isr_for(self, base_offset: int) -> _Isr | None:
        """Return the event that made the ISR too small for a batch that is acknowledged now.

        The ISR has to be large enough at the append, and at some moment between the commit and the
        answer, because a leader checks its ISR some time after the high watermark has risen.
        """
        at_append = self.appended.get(base_offset)
        if at_append is not None or self.small_isr is None or self.may_suffice:
            return at_append
        return self.small_isr if self.committed.get(base_offset, 0) > self.small_isr.number else None


def _changed(index: Index) -> Collection[str]:
    """Return the partitions whose settings an administrator has changed."""
    return {name for name, settings in index.evidence.partitions.items() if settings.earlier}


def _suspects(index: Index, changed: Collection[str]) -> dict[tuple[int, str], _Leader]:
    """Return the leaders whose ISR was ever too small, and those of *changed* partitions."""
    leaders: dict[tuple[int, str], _Leader] = {}
    for kind in (events.BecameLeader, events.IsrChanged):
        isr_at = [*events.event_fields(kind.name)].index("isr") + 2
        for number, raw in index.raw_events(kind):
            broker: int = raw[2]
            partition: str = raw[3]
            isr: tuple[int, ...] = raw[isr_at]
            if partition in changed or len(isr) < _minimum_of(index, number, partition, broker, raw[0]):
                leaders[broker, partition] = _Leader()
    return leaders


def find(index: Index) -> Iterator[Finding]:
    """Check each leader whose ISR was ever too small."""
    changed = _changed(index)
    leaders = _suspects(index, changed)
    if not leaders:
        return
    # Most events are appends, acknowledgements and high watermarks, so these stay raw tuples.
    for number, raw in index.raw_events(*_LEADERSHIP):
        leader = leaders.get((raw[2], raw[3]))
        if leader is None:
            continue
        if raw[3] in changed:
            leader.set_minimum(_minimum_of(index, number, raw[3], raw[2], raw[0]))
        name: str = raw[1]
        if name == _RAISED:
            leader.commit(number, raw[4])
        elif name == _APPENDED:
            leader.append(raw[4], record_count(raw[8]))
        elif name == _ACKNOWLEDGED:
            isr = leader.small_isr_for(raw[4]) if raw[5] == _ACKS_ALL else None
            if isr is not None:
                ack = events.BatchAcknowledged(raw[0], *raw[2:])
                yield _finding(index, isr, TraceLine(number, ack))
        else:
            _apply_rare_event(index, leader, number, raw)


def _apply_rare_event(index: Index, leader: _Leader, number: int, raw: TraceEvent) -> None:
    match event := decode(raw):
        case events.BecameLeader() | events.IsrChanged() | events.IsrPending():
            leader.change_isr(number, event, _minimum(index, number, event))
        case events.BatchDeduplicated():
            # The trace has only the base offset of such a batch.
            leader.append(event.base_offset, 1)


def _minimum(
    index: Index,
    number: int,
    event: events.BecameLeader | events.IsrChanged | events.IsrPending | events.BatchAcknowledged,
) -> int:
    """Return the ``min.insync.replicas`` of the leader at an event."""
    return _minimum_of(index, number, event.partition, event.broker, event.at_us)


def _minimum_of(index: Index, number: int, partition: str, leader: int, at_us: int) -> int:
    """Return the ``min.insync.replicas`` of a leader, 0 for an unknown partition.

    Since 3.7 the setting is limited to the number of replicas (KAFKA-15583). A leader may learn
    late of a reassignment, so the smaller number, before or after the last reassignment, counts.
    Replicas that are being removed do not count.
    """
    evidence = index.evidence
    settings = evidence.partitions.get(partition)
    least = 0 if settings is None else settings.least_min_insync_replicas(leader, at_us)
    if settings is None or not index.behaviours.replication.min_isr_limited_to_replica_count:
        return least
    reassigned: Sequence[TraceLine[events.ReplicasAssigned]] = ()
    if index.has(events.ReplicasAssigned):
        reassigned = index.events(events.ReplicasAssigned, partition=partition)
    if not reassigned:
        return min(least, len(settings.replicas))
    first = reassigned[0][1]
    counts = [len(first.replicas) - len(first.adding)]
    counts += [
        len(assigned.replicas) - len(assigned.removing) for line, assigned in reassigned if line < number
    ]
    return min(least, *counts[-2:])


def _finding(index: Index, small_isr: _Isr, ack: TraceLine[events.BatchAcknowledged]) -> Finding:
    event, isr = ack.event, small_isr.event.isr
    partition, offset = event.partition, event.base_offset
    # An administrator may have lowered it before the answer, or raised it after the ISR shrank.
    minimum = max(_minimum(index, *small_isr), _minimum(index, *ack))
    story = Story(index, partition)
    story.tell(small_isr.number, led_with_isr(small_isr.event.at_us, event.broker, isr=isr), decides=True)
    story.tell(ack.number, acknowledged(event.at_us, event.broker, values=event.values, offset=offset))
    return Finding(
        partition=partition,
        offset=offset,
        value=event.values[0] if event.values else None,
        chain=story.chain(isr_below_minimum.conclude(minimum=minimum, members=len(isr))),
        details=(("isr", list(isr)), ("min_insync_replicas", minimum)),
    )


RULE: Final = Rule(
    name=ACKED_BELOW_MIN_ISR,
    goes_by_order=True,
    definition=(
        "A leader acknowledged a send with acks=all although its ISR was smaller than min.insync.replicas when it "
        "appended the record, or from the commit of the record to the answer. An ISR that shrinks afterwards does not count."
    ),
    source="Partition.appendRecordsToLeader (NotEnoughReplicasException), Partition.checkEnoughReplicasReachOffset.",
    promise=Promise(promised_by=(f"{ACKS_ALL} with {MIN_ISR}",), releases="since 0.8.2 (KAFKA-1555)"),
    find=find,
    is_tried=Index.has_acks,
    verb="acked by too small an ISR",
    seen_in=SEEN_IN_LOGS,
)
