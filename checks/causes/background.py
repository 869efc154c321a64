"""Looks up in the trace what made a link of a chain possible.

Rules add the links about a record. The sources in this file add the background: why there was an
election, how a broker was cut off, or which ISR a leader was elected from. Each source finds the
event behind one fact of `harrow.checks.causes.facts`. `Story.chain` calls it where a link needs the
fact and no earlier link has established it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

from harrow.checks.causes import facts, links
from harrow.checks.causes.story import AFTER, END, Story, source
from harrow.checks.history.records import Value
from harrow.checks.index import Index, detail_values, lines_before, names
from harrow.checks.link import Gap, Link
from harrow.checks.replay.partition_state import LogEntry
from harrow.cluster_model import events
from harrow.cluster_model.controller.control_plane import PREFERRED_LEADER
from harrow.cluster_model.events import ends_registration
from harrow.cluster_model.sim.message_rule import HOLD
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import FIRST_ZOOKEEPER_ID, process_name
from harrow.cluster_model.trace import TraceLine

NO_ANSWER: Final = "NETWORK_EXCEPTION"
_ISR_TOO_SMALL: Final = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
_RELEASE: Final = "release"
_CONTROL: Final = ("zookeeper", "controller")
"""Prefixes of the process names of the control plane."""

_AT_ONCE_US: Final = 10 * US_PER_MS
"""How soon the control plane gives up on a broker after a fault has ended its session."""
_SESSION_US: Final = 30 * US_PER_SECOND
"""How long after the end of a cut-off a session may still expire because of it."""
_LAG_US: Final = 40 * US_PER_SECOND
"""How long before a replica leaves the ISR the disturbance that caused this may have ended."""
_AFTERMATH_US: Final = 10 * US_PER_SECOND
"""How long after a disturbance a request may still fail because of it: a broker that was down has
to catch up."""
_LATE_UPDATES_MAX: Final = 2
"""How many late updates to a leader a story shows: the update with the ISR in question, and the
update before it."""

Leadership = events.LeaderElected | events.BecameLeader
LeadershipEnd = (
    events.BrokerRegistered
    | events.BrokerStopped
    | events.BrokerStopping
    | events.SessionExpired
    | events.LogDirFailed
    | events.MetadataLogLost
    | events.ReplicasAssigned
)
Cut = events.BrokerStopped | events.BrokerPaused | events.FaultStruck | events.MessageRuleApplied
CutEnd = events.FaultEnded | events.BrokerStarted | events.BrokerResumed
Disturbance = Cut | events.ClientThrottled
IsrEvent = events.IsrWritten | events.IsrReduced | events.LeaderElected


# Leaders and controllers


def former_leader(story: Story, line: int) -> int | None:
    """Return the last leader before an election, None if the trace shows none."""
    for _, event in lines_before(_leaderships(story), line):
        if _leader_of(event) >= 0:
            return _leader_of(event)
    return None


def former_controller(story: Story, line: int) -> int | None:
    """Return the controller before an election, None for the first one."""
    election = story.last(events.ControllerElected, before=line)
    return None if election is None else election.event.broker


def _leaderships(story: Story) -> Sequence[TraceLine[Leadership]]:
    return story.events(events.LeaderElected, events.BecameLeader)


def _leader_of(event: Leadership) -> int:
    return event.leader if isinstance(event, events.LeaderElected) else event.broker


@source(facts.LEADER)
def _tell_election(story: Story, line: float, gap: Gap) -> None:
    """Tell the election of a leader.

    Without an election in the trace, tell that the broker began to lead.
    """
    election = story.last(events.LeaderElected, before=line, leader=gap.need.value)
    if election is not None:
        tell_election(story, election)
        return
    start = story.last(events.BecameLeader, before=line, broker=gap.need.value)
    if start is not None:
        tell_leadership(story, start)


def is_shared_epoch(story: Story, leader: int, epoch: int, *, before: float = END) -> bool:
    """Return whether another broker led in the same epoch, which is a bug in any cluster."""
    return any(
        number < before and start.leader_epoch == epoch and start.broker != leader
        for number, start in story.events(events.BecameLeader)
    )


def tell_leadership(story: Story, line: TraceLine[events.BecameLeader], *, decides: bool = False) -> None:
    """Tell that a broker became leader, and whether another broker had led in the same epoch."""
    start = line.event
    is_second = is_shared_epoch(story, start.broker, start.leader_epoch, before=line.number)
    story.tell_event(
        line,
        links.became_leader,
        decides=decides or is_second,
        offset=start.start_offset,
        is_second=is_second,
    )


def tell_election(
    story: Story, line: TraceLine[events.LeaderElected], *, decides: bool = False, **operands: Any
) -> None:
    """Tell an election; *operands* say, for example, whether the new leader has the record."""
    event = line.event
    kind = links.elected_uncleanly if event.unclean else links.elected
    election = kind(
        event.at_us,
        event.leader,
        leader_epoch=event.leader_epoch,
        **operands,
        **election_operands(story, line),
    )
    story.tell(line.number, election, decides=decides)


def producer_epoch(story: Story, copy: LogEntry) -> int | None:
    """Return the producer epoch of a record.

    The trace lacks it, so it is read from the logs at the end of the run.
    """
    if copy.producer_id < 0:
        return None
    for log in story.evidence.replicas.get(story.partition, {}).values():
        for batch in log.batches:
            if batch.base_offset <= copy.offset < batch.next_offset:
                if (batch.leader_epoch, batch.producer_id) == (copy.leader_epoch, copy.producer_id):
                    return batch.producer_epoch
                break
    return None


def election_operands(story: Story, line: TraceLine[events.LeaderElected]) -> dict[str, Any]:
    """Return the operands of an election that name the former leader or the preferred replica."""
    if line.event.reason == PREFERRED_LEADER:
        return {"is_preferred": True}
    return {"former": former_leader(story, line.number)}


@source(facts.EPOCH)
def _tell_epoch_start(story: Story, line: float, gap: Gap) -> None:
    election = story.last(events.LeaderElected, before=line, leader_epoch=gap.need.subject[0])
    if election is not None:
        tell_election(story, election)


@source(facts.UNCLEAN)
def _tell_unclean_election(story: Story, line: float, gap: Gap) -> None:
    election = story.last(events.LeaderElected, before=line, leader=gap.need.subject[0], unclean=True)
    if election is not None:
        tell_election(story, election)


# The end of a leader


@source(facts.OUT_OF_SERVICE)
def _tell_end_of_leader(story: Story, line: float, gap: Gap) -> None:
    """Tell the first event of a leadership that took the leader out of service.

    If a broker stops and comes back before the control plane notices, the control plane replaces it
    only when it registers. So an event before the registration counts, unless a later event ended
    the leadership. An event before the broker began to lead never counts.
    """
    (broker,) = gap.need.subject
    ends: Sequence[TraceLine[LeadershipEnd]] = story.events(
        events.BrokerRegistered,
        events.BrokerStopped,
        events.BrokerStopping,
        events.SessionExpired,
        events.LogDirFailed,
        events.MetadataLogLost,
        events.ReplicasAssigned,
    )
    begin = _start_of_leadership(story, broker, line)
    first: tuple[int, Link] | None = None
    for number, event in lines_before(ends, line):
        if number <= begin:
            break
        if isinstance(event, events.BrokerRegistered):
            if first is not None and event.broker == broker:
                break
        else:
            end = _end_link(story, event, broker)
            if end is not None and not story.has_link_at(number):
                first = number, end
    if first is not None:
        story.tell(*first)


def _start_of_leadership(story: Story, broker: int, line: float) -> int:
    """Return the line of the election that began a broker's last leadership before a line."""
    begin = 0
    for number, election in lines_before(story.elections, line):
        if election.leader == broker:
            begin = number
        elif begin:
            break
    return begin


def _end_link(story: Story, event: LeadershipEnd, leader: int) -> Link | None:
    """Return the link for an event that ended a broker's leadership, None for any other event."""
    match event:
        case events.MetadataLogLost(node=node, is_kept=False):
            return links.metadata_log_lost(event.at_us, node, former=leader)
        case events.ReplicasAssigned(replicas=replicas) if leader not in replicas[:1]:
            return links.replicas_assigned(event.at_us, None, replicas=replicas, former=leader)
        case events.BrokerStopped(broker=broker) if broker == leader:
            return _stop_link(story, event)
        case events.BrokerStopping(broker=broker) if broker == leader:
            return links.stopping(event.at_us, broker)
        case events.LogDirFailed(broker=broker) if broker == leader and story.partition in event.partitions:
            return links.dir_failed(event.at_us, broker, log_dir=event.log_dir)
        case events.SessionExpired(broker=broker) if broker == leader and ends_registration(
            broker, event.ephemerals
        ):
            is_fenced = events.REGISTRATION in event.ephemerals
            return links.session_expired(event.at_us, broker, is_fenced=is_fenced)
        case _:
            return None


def _stop_link(story: Story, event: events.BrokerStopped) -> Link:
    """Return how a broker stopped: by itself if it had refused a truncation, else from outside."""
    history: Sequence[TraceLine[events.TruncationRefused | events.BrokerStarted]] = story.events(
        events.TruncationRefused, events.BrokerStarted
    )
    end = bisect_right(history, event.at_us, key=attrgetter("event.at_us"))
    before = (history[place].event for place in range(end - 1, -1, -1))
    last = next((each for each in before if each.broker == event.broker), None)
    if isinstance(last, events.TruncationRefused):
        return links.halted(event.at_us, event.broker)
    return links.stopped(event.at_us, event.broker, cause=event.cause)


@source(facts.AHEAD)
def _tell_refused_truncation(story: Story, line: float, gap: Gap) -> None:
    refusal = story.last(events.TruncationRefused, before=line, broker=gap.need.subject[0])
    if refusal is not None:
        story.tell_event(refusal, links.truncation_refused)


@source(facts.DOWN)
def _tell_stop(story: Story, line: float, gap: Gap) -> None:
    """Tell how a broker that came back had stopped."""
    stop = story.last(events.BrokerStopped, before=line, broker=gap.need.subject[0])
    if stop is not None:
        story.tell(stop.number, _stop_link(story, stop.event))


@source(facts.DAMAGED)
def _tell_damage(story: Story, line: float, gap: Gap) -> None:
    damage = story.last(events.BatchDamaged, before=line, broker=gap.need.subject[0])
    if damage is not None:
        offset = damage.event.offset
        values = [copy.value for copy in story.copies_at(offset) if copy.damaged == damage.number]
        story.tell_event(damage, links.damaged, value=values[0] if values else f"the batch at {offset}")


@source(facts.UNASSIGNED)
def _tell_reassignment(story: Story, line: float, gap: Gap) -> None:
    """Tell the assignment that removed a broker from the replicas of the partition."""
    (broker,) = gap.need.subject
    for assignment in lines_before(story.events(events.ReplicasAssigned), line):
        if broker not in assignment.event.replicas:
            story.tell_event(assignment, links.replicas_assigned, left=(broker,))
            return


# Brokers that lose the control plane


@source(facts.CUT_OFF)
def _tell_cut(story: Story, line: float, gap: Gap) -> None:
    """Tell what cut a broker off from the control plane: a stop, a pause, or a network fault.

    A session can expire shortly after the cut is over. A fault of the control plane itself
    counts only if nothing struck the broker.
    """
    (broker,) = gap.need.subject
    cuts, until_us = story.index.derived(_Cuts), gap.link.at_us or 0
    recent: TraceLine[Cut] | None = None
    endless: TraceLine[Cut] | None = None
    for _, cut, end in lines_before(cuts.of(story.index, broker), line):
        if cut.event.at_us >= until_us - _AT_ONCE_US or (end is not None and end.number >= line):
            _tell_cut_by(story, *cut, broker)
            return
        if end is None:
            # A cut without an end in the trace was momentary, or lasts.
            endless = endless or cut
        elif until_us - _SESSION_US <= end.event.at_us <= until_us:
            recent = recent or cut
    last = recent or endless or next(lines_before(cuts.of_control, line), None)
    if last is not None:
        _tell_cut_by(story, *last, broker)


class _EndedCut(NamedTuple):
    """A cut, and what ended it."""

    number: int
    cut: TraceLine[Cut]
    end: TraceLine[CutEnd] | None


class _Cuts:
    """The events of a run that can cut brokers off, or strike only the control plane."""

    def __init__(self, index: Index) -> None:
        cuts: Sequence[TraceLine[Cut]] = index.events(
            events.BrokerStopped, events.BrokerPaused, events.FaultStruck, events.MessageRuleApplied
        )
        # The event of the broker follows the fault that started or resumed it.
        returns = {line.number - 1 for lines in index.broker_returns.values() for line in lines}
        self._cuts = [each for each in cuts if each.number not in returns]
        self._by_broker: dict[int, Sequence[_EndedCut]] = {}
        self.of_control = [each for each in self._cuts if _strikes_control_only(each.event)]

    def of(self, index: Index, broker: int) -> Sequence[_EndedCut]:
        """Return what can cut off a broker. This object is in the *index*."""
        if broker not in self._by_broker:
            self._by_broker[broker] = [
                _EndedCut(cut.number, cut, _end_of_cut(index, cut))
                for cut in self._cuts
                if _cuts_off(cut.event, broker)
            ]
        return self._by_broker[broker]


def _cuts_off(event: Cut, broker: int) -> bool:
    """Return whether an event concerns a broker and can cut it off from the control plane."""
    if isinstance(event, events.FaultStruck):
        others = any(value != broker and 0 <= value < FIRST_ZOOKEEPER_ID for value in _nodes(event))
        return not _is_message_fault(event) and names(event, broker) and (not others or _names_control(event))
    if isinstance(event, events.MessageRuleApplied):
        ends = (event.sender, event.receiver)
        return process_name(broker) in ends and any(each.startswith(_CONTROL) for each in ends)
    return event.broker == broker


def _strikes_control_only(event: Cut) -> bool:
    """Return whether a fault struck the control plane and no broker."""
    return (
        isinstance(event, events.FaultStruck)
        and not _is_message_fault(event)
        and _names_control(event)
        and not any(0 <= value < FIRST_ZOOKEEPER_ID for value in _nodes(event))
    )


def _nodes(fault: events.FaultStruck) -> Iterator[int]:
    """Yield the integers in the details of a fault, which are ids of brokers and controllers."""
    return (value for value in detail_values(fault) if type(value) is int)


def _end_of_cut(index: Index, cut: TraceLine[Disturbance]) -> TraceLine[CutEnd] | None:
    ends: Sequence[TraceLine[CutEnd]] = ()
    if isinstance(cut.event, events.FaultStruck):
        ends = index.fault_ends.get(cut.event.strike, ())
    elif isinstance(cut.event, events.BrokerStopped | events.BrokerPaused):
        ends = index.broker_returns.get(cut.event.broker, ())
    first = bisect_right(ends, cut.number, key=itemgetter(0))
    return ends[first] if first < len(ends) else None


def _tell_cut_by(story: Story, number: int, event: Cut, broker: int) -> None:
    match event:
        case events.FaultStruck():
            tell_fault(story, number, event, struck=(broker,))
        case events.MessageRuleApplied():
            _tell_message(story, TraceLine(number, event), struck=(broker,))
        case events.BrokerPaused():
            story.tell(number, links.paused(event.at_us, broker))
        case events.BrokerStopped():
            story.tell(number, _stop_link(story, event))


def _is_message_fault(event: events.FaultStruck) -> bool:
    """Return whether a fault is a rule for messages.

    Each message that such a rule matches has an event of its own.
    """
    return any(name == "api" for name, _ in event.details) or event.fault == _RELEASE


def _names_control(event: events.FaultStruck) -> bool:
    return any(
        isinstance(value, str) and value.startswith(_CONTROL) for value in detail_values(event)
    ) or any(node >= FIRST_ZOOKEEPER_ID for node in _nodes(event))


def tell_fault(
    story: Story, number: int, event: events.FaultStruck, *, decides: bool = False, **operands: Any
) -> None:
    """Tell that a fault struck; *operands* say whom, and how."""
    details = tuple((name, value) for name, value in event.details if value is not None)
    strike = links.fault_struck(event.at_us, None, fault=event.fault, details=details, **operands)
    story.tell(number, strike, decides=decides)


def _tell_message(
    story: Story, line: TraceLine[events.MessageRuleApplied], *, decides: bool = False, **operands: Any
) -> None:
    """Tell what a fault did to a message.

    *operands* name the brokers that were cut off or hindered because of this.
    """
    story.tell_event(line, links.request_held, decides=decides, fault=line.event.rule, **operands)


def fault_end(story: Story, strike: int) -> float:
    """Return the line at which a fault ended, 0 for a fault that did not last."""
    return next((number for number, _ in story.index.fault_ends.get(strike, ())), 0)


def tell_disturbed_messages(story: Story, api: str, process: str, begin: float, end: float) -> None:
    """Tell which messages of an API, from or to a process, a fault struck between two lines."""
    for line in story.index.events(events.MessageRuleApplied):
        event = line.event
        if (
            begin < line.number < end + AFTER
            and event.api == api
            and process in (event.sender, event.receiver)
        ):
            _tell_message(story, line, decides=True)


def tell_late_updates(story: Story, leader: int, line: int) -> None:
    """Tell what faults did to the last messages from the control plane to a leader."""
    process = process_name(leader)
    updates = (
        each
        for each in lines_before(story.index.events(events.MessageRuleApplied), line)
        if each.event.receiver == process and each.event.sender.startswith(_CONTROL)
    )
    for update in reversed([*islice(updates, _LATE_UPDATES_MAX)]):
        _tell_message(story, update, decides=True)


# The ISR


def written_isr(story: Story, line: float) -> tuple[int, ...] | None:
    """Return the ISR that the control plane had before a line, even if the leader did not know it.

    The trace of a real cluster may lack the writes. In that case, the ISRs that leaders learned
    count.
    """
    change: TraceLine[IsrEvent | events.IsrChanged] | None
    written = events.IsrWritten if story.index.has(events.IsrWritten) else events.IsrChanged
    change = story.last(written, events.IsrReduced, events.LeaderElected, before=line)
    return None if change is None else change.event.isr


@source(facts.ISR)
def _tell_isr(story: Story, line: float, gap: Gap) -> None:
    """Tell the changes that led to the ISR that a link needs."""
    changes: Sequence[TraceLine[IsrEvent]] = story.events(
        events.IsrWritten, events.IsrReduced, events.LeaderElected
    )
    # Go back to the last ISR that a leader wrote; the controller has removed members since then.
    begin = story.last_link_for(facts.ISR, line)
    for number, event in lines_before(changes, line):
        if number <= begin:
            break
        departed = _departed(story, number, event)
        if isinstance(event, events.IsrWritten):
            tell_written(story, number, event)
            break
        if isinstance(event, events.LeaderElected) and event.leader >= 0:
            if departed:
                tell_election(story, TraceLine(number, event))
            break
        if departed:
            before = written_isr(story, number)
            if isinstance(event, events.LeaderElected):
                former = former_leader(story, number)
                change = links.left_leaderless(
                    event.at_us, event.controller, before=before, isr=event.isr, former=former
                )
            else:
                change = links.isr_reduced(
                    event.at_us, event.controller, before=before, isr=event.isr, gone=departed
                )
            story.tell(number, change)


def tell_written(story: Story, number: int, written: events.IsrWritten, *, decides: bool = False) -> None:
    """Tell that the control plane adopted a leader's ISR, which is smaller or was requested."""
    departed = _departed(story, number, written)
    if departed:
        before = written_isr(story, number) or ()
        change = links.isr_shrank(
            written.at_us, written.broker, before=before, isr=written.isr, left=departed
        )
    else:
        was_asked = _tell_requested_change(story, number, written)
        change = links.isr_written(written.at_us, written.broker, isr=written.isr, was_asked=was_asked)
    story.tell(number, change, decides=decides)


def tell_refused_isr(story: Story, line: TraceLine[events.IsrRefused]) -> None:
    """Tell that a leader's ISR was refused, and which ISR the control plane had then."""
    written = story.last(events.IsrWritten, before=line.number)
    if written is not None:
        tell_written(story, *written)
    story.tell_event(line, links.isr_refused, written=written_isr(story, line.number))


def _departed(story: Story, number: int, change: IsrEvent) -> tuple[int, ...]:
    return tuple(sorted(set(written_isr(story, number) or ()) - set(change.isr)))


def _tell_requested_change(story: Story, number: int, written: events.IsrWritten) -> bool:
    """If a leader had requested this ISR, tell the request. Return whether it had."""
    request = story.last(events.IsrPending, before=number, broker=written.broker)
    if request is None or set(request.event.isr) != set(written.isr):
        return False
    _tell_request(story, request)
    return True


def _tell_request(story: Story, line: TraceLine[events.IsrPending]) -> None:
    request = line.event
    is_shared = is_shared_epoch(story, request.broker, request.leader_epoch)
    story.tell_event(line, links.isr_asked, is_shared=is_shared)


def tell_forgotten_change(story: Story, leader: int, offset: int, line: int) -> None:
    """Tell that a leader forgot its request for a larger ISR, then committed without it."""
    forgotten = story.last(events.IsrForgotten, before=line, broker=leader)
    if forgotten is None:
        return
    request = story.last(events.IsrPending, before=forgotten.number, broker=leader)
    commits = [
        each
        for each in story.events(events.HighWatermarkSet)
        if each.event.broker == leader and forgotten.number < each.number < line and each.event.hw > offset
    ]
    if request is None or not commits:
        return
    isr = request.event.isr
    _tell_request(story, request)
    story.tell_event(forgotten, links.isr_forgotten, decides=True, asked=isr)
    without = tuple(sorted(set(isr) - set(forgotten.event.isr)))
    story.tell_event(commits[0], links.committed_alone, decides=True, offset=offset, without=without)


# Failed requests and lagging replicas


@source(facts.RESENT)
def _tell_retry(story: Story, line: float, gap: Gap) -> None:
    """Tell when a producer sent a record again."""
    (value,) = gap.need.subject
    for retry in lines_before(story.events(events.SentAgain), line):
        if value in retry.event.values and not story.has_link_at(retry.number):
            story.tell_event(retry, links.retried, value=value)
            return


@source(facts.DISTURBED)
def _tell_lag(story: Story, line: float, gap: Gap) -> None:
    """Tell the latest disturbance that kept a replica from fetching until it left the ISR."""
    (follower,) = gap.need.subject
    leader = gap.link.actor
    if not isinstance(leader, int) or leader == follower:
        return
    begin = story.start(max(0, (gap.link.at_us or 0) - _LAG_US))
    in_force = _disturbances(story, line, begin)
    match = _disturbance_of_followers(in_force, leader, (follower,))
    if match is not None:
        _tell_hindrance(story, match[0], leader, follower)


@source(facts.SEND_FAILED)
def _tell_failure(story: Story, line: float, gap: Gap) -> None:
    """Tell why a record had to be sent again."""
    (value,) = gap.need.subject
    for failure in lines_before(story.events(events.SendFailed), line):
        if value in failure.event.values:
            tell_failure(story, failure, value)
            return


def tell_failure(story: Story, line: TraceLine[events.SendFailed], value: Value) -> None:
    """Tell why a request failed: it got no answer, or the leader refused it."""
    failure = line.event
    if failure.error == NO_ANSWER:
        hindered = _tell_disturbance(story, line.number, failure, value)
        story.tell_event(line, links.no_answer, hindered=hindered)
        return
    isr = story.isr_at(failure.leader, line.number) if failure.error in _ISR_TOO_SMALL else None
    refusal = links.refused(
        failure.at_us, failure.leader, value=value, values=failure.values, error=failure.error, isr=isr
    )
    story.tell(line.number, refusal)


def _tell_disturbance(story: Story, line: int, failure: events.SendFailed, value: Value) -> tuple[int, ...]:
    """Tell what kept a request or its answer from arriving, and return the hindered broker.

    Disturbances in force between the send and the failure come first, then those that ended shortly
    before. The story gets the likeliest of them, in this order: a fault that struck the message, a
    stop or pause of the leader, a quota, a fault of the link. If the answer waits for the ISR, the
    disturbance may also have hindered a follower. If the trace has no such event, this adds no link
    and returns the leader.
    """
    begin = _line_of_send(story, line, failure, value)
    client, leader = failure.client, failure.leader
    followers = story.settings.replicas if _waits_for_isr(story, client) else ()
    for since in (begin, story.start(max(0, failure.at_us - _AFTERMATH_US))):
        in_force = _disturbances(story, line, since)
        match = _disturbance_of_link(in_force, client, leader, since) or _disturbance_of_followers(
            in_force, leader, followers
        )
        if match is not None:
            cause, hindered = match
            _tell_hindrance(story, cause, leader, hindered)
            return (hindered,)
    return (leader,)


class _LastingDisturbance(NamedTuple):
    """An event that can disturb requests, and the last line at which it is in force."""

    number: int
    cause: TraceLine[Disturbance]
    end: float


def _disturbances(story: Story, line: float, begin: float) -> list[TraceLine[Disturbance]]:
    """Return what began before a line and was in force after the line *begin*, latest first."""
    disturbances = lines_before(story.index.derived(_all_disturbances), line)
    return [cause for _, cause, end in disturbances if end > begin]


def _all_disturbances(index: Index) -> list[_LastingDisturbance]:
    causes: Sequence[TraceLine[Disturbance]] = index.events(
        events.MessageRuleApplied,
        events.BrokerStopped,
        events.BrokerPaused,
        events.ClientThrottled,
        events.FaultStruck,
    )
    message_strikes = {rule.strike for _, rule in index.events(events.MessageRuleApplied)}
    return [
        _LastingDisturbance(each.number, each, max(each.number, _end_of_disturbance(index, each)))
        for each in causes
        if not (
            isinstance(each.event, events.FaultStruck)
            # Each message that such a fault matches has an event of its own.
            and (_is_message_fault(each.event) or each.event.strike in message_strikes)
        )
    ]


def _line_of_send(story: Story, line: int, failure: events.SendFailed, value: Value) -> float:
    for number, again in lines_before(story.events(events.SentAgain), line):
        if again.client == failure.client and value in again.values:
            return number
    sends = story.index.sends_of(story.partition, value)
    return max(
        (story.start(send.invoked_us) for send in sends if send.invoked_us <= failure.at_us), default=0
    )


def _end_of_disturbance(index: Index, cause: TraceLine[Disturbance]) -> float:
    """Return the line at which a disturbance ended, or its own line if it was momentary."""
    if isinstance(cause.event, events.ClientThrottled):
        return index.position_at(cause.event.at_us + cause.event.throttle_us)
    if isinstance(cause.event, events.MessageRuleApplied):
        return _release_of(index, cause.event.strike) if cause.event.action == HOLD else cause.number
    end = _end_of_cut(index, cause)
    if end is not None:
        return end.number
    return END if isinstance(cause.event, events.BrokerStopped | events.BrokerPaused) else cause.number


def _release_of(index: Index, strike: int | None) -> float:
    """Return the line at which a held message continues on its way."""
    ends = (*index.fault_ends.get(strike, ())[:1], *index.events(events.Healed)[:1])
    return min((number for number, _ in ends), default=END)


def _disturbance_of_link(
    causes: Sequence[TraceLine[Disturbance]], client: str, leader: int, begin: float
) -> tuple[TraceLine[Disturbance], int] | None:
    """Return the likeliest disturbance between a client and a leader, and the leader, or None."""
    ends = {client, process_name(leader)}
    ranks: list[list[TraceLine[Disturbance]]] = [[], [], [], []]
    for cause in causes:
        match cause.event:
            case events.MessageRuleApplied(api="Produce") if {
                cause.event.sender,
                cause.event.receiver,
            } == ends:
                ranks[0].insert(0 if cause.number > begin else len(ranks[0]), cause)
            case events.BrokerStopped() | events.BrokerPaused() if cause.event.broker == leader:
                ranks[1].append(cause)
            case events.ClientThrottled(broker=broker) if broker == leader and cause.event.client == client:
                ranks[2].append(cause)
            case events.FaultStruck() if _disturbs_link(cause.event, client, leader):
                ranks[3].append(cause)
    return next(((cause, leader) for rank in ranks for cause in rank), None)


def _disturbs_link(fault: events.FaultStruck, client: str, leader: int) -> bool:
    """Return whether a fault struck the link or only the client, or slowed the leader down."""
    if names(fault, client):
        return names(fault, leader) or not (any(_nodes(fault)) or _names_control(fault))
    return names(fault, leader) and _is_delay(fault)


def _is_delay(fault: events.FaultStruck) -> bool:
    return any(name == "delay" for name, _ in fault.details)


def _disturbance_of_followers(
    causes: Sequence[TraceLine[Disturbance]], leader: int, followers: Sequence[int]
) -> tuple[TraceLine[Disturbance], int] | None:
    """Return the latest disturbance between a leader and one of its followers, and the follower."""
    for cause in causes:
        event = cause.event
        for follower in followers:
            if follower == leader:
                continue
            match event:
                case events.MessageRuleApplied(api="Fetch"):
                    is_hindered = {event.sender, event.receiver} == {
                        process_name(follower),
                        process_name(leader),
                    }
                case events.BrokerStopped() | events.BrokerPaused():
                    is_hindered = event.broker == follower
                case events.FaultStruck():
                    ends = [names(event, follower), names(event, leader)]
                    is_hindered = all(ends) or (any(ends) and _is_delay(event))
                case _:
                    is_hindered = False
            if is_hindered:
                return cause, follower
    return None


def _waits_for_isr(story: Story, client: str) -> bool:
    return any(each.name == client and each.acks == "all" for each in story.evidence.producers.values())


def _tell_hindrance(story: Story, cause: TraceLine[Disturbance], leader: int, hindered: int) -> None:
    number, event = cause
    match event:
        case events.MessageRuleApplied(api="Produce"):
            tell_lost_message(story, number, event, leader)
        case events.MessageRuleApplied():
            _tell_message(story, TraceLine(number, event), hindered=(hindered,))
        case events.ClientThrottled():
            story.tell_event(cause, links.throttled, wait_us=event.throttle_us)
        case events.FaultStruck():
            tell_fault(story, number, event, hindered=(hindered,))
        case events.BrokerPaused():
            story.tell(number, links.paused(event.at_us, event.broker))
        case events.BrokerStopped():
            story.tell(number, _stop_link(story, event))


def tell_lost_message(
    story: Story, number: int, event: events.MessageRuleApplied, leader: int, *, decides: bool = False
) -> None:
    """Tell what a fault did to a Produce request or its answer."""
    kind = links.ack_lost if event.kind == "response" else links.request_lost
    loss = kind(event.at_us, leader, fault=event.rule, action=event.action, leader=leader)
    story.tell(number, loss, decides=decides)
