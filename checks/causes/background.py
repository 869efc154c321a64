"""What made a link of a chain possible, looked up in the trace.

Rules tell what became of a record. What they leave open is here: why there was an election, how a broker was cut off, who
wrote the ISR that a leader was elected from. Each source answers for one fact of `harrow.checks.causes.facts`; `Story.chain`
asks it where a link needs the fact and no earlier link has made it so.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from harrow.checks.causes import facts, links
from harrow.checks.causes.story import AFTER, END, Story, source
from harrow.checks.history.records import Value
from harrow.checks.index import names
from harrow.checks.link import Gap, Link
from harrow.checks.replay.partition_state import LogEntry
from harrow.cluster_model import events
from harrow.cluster_model.events import ends_registration
from harrow.cluster_model.sim.message_rule import HOLD
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import FIRST_ZOOKEEPER_ID, process_name
from harrow.cluster_model.trace import TraceLine

NO_ANSWER: Final = "NETWORK_EXCEPTION"
_ISR_TOO_SMALL: Final = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
_RELEASE: Final = "release"
_CONTROL: Final = ("zookeeper", "controller")
"""How the names of processes of the control plane begin."""

Leadership = events.LeaderElected | events.BecameLeader
End = (
    events.BrokerRegistered
    | events.BrokerStopped
    | events.BrokerStopping
    | events.SessionExpired
    | events.LogDirFailed
    | events.MetadataLogLost
    | events.ReplicasAssigned
)
Cut = events.BrokerStopped | events.BrokerPaused | events.FaultStruck | events.MessageRuleApplied
Back = events.FaultEnded | events.BrokerStarted | events.BrokerResumed
Disturbance = Cut | events.ClientThrottled
IsrEvent = events.IsrWritten | events.IsrReduced | events.LeaderElected


def written_isr(story: Story, line: float) -> tuple[int, ...] | None:
    """Return the ISR that the control plane has before a line, whether its leader knows or not.

    A trace of what was seen from outside may have what leaders learned, and not what was written.
    """
    known: TraceLine[IsrEvent | events.IsrChanged] | None
    written = events.IsrWritten if story.index.has(events.IsrWritten) else events.IsrChanged
    known = story.last(written, events.IsrReduced, events.LeaderElected, before=line)
    return None if known is None else known.event.isr


def former_leader(story: Story, line: int) -> int | None:
    """Return who led before an election, None if nobody is known to have."""
    for number, event in reversed(_leaderships(story)):
        if number < line and _leader_of(event) >= 0:
            return _leader_of(event)
    return None


def former_controller(story: Story, line: int) -> int | None:
    """Return which broker was controller before an election, None for the first one."""
    known = story.last(events.ControllerElected, before=line)
    return None if known is None else known.event.broker


def _leaderships(story: Story) -> Sequence[TraceLine[Leadership]]:
    return story.events(events.LeaderElected, events.BecameLeader)


def _leader_of(event: Leadership) -> int:
    return event.leader if isinstance(event, events.LeaderElected) else event.broker


@source(facts.LEADER)
def _tell_election(story: Story, line: float, gap: Gap) -> None:
    """Tell the election after which a broker leads; where the trace has none, that it began to."""
    known = story.last(events.LeaderElected, before=line, leader=gap.need.value)
    if known is not None:
        tell_election(story, known)
        return
    led = story.last(events.BecameLeader, before=line, broker=gap.need.value)
    if led is not None:
        tell_led(story, *led)


def is_shared_epoch(story: Story, leader: int, epoch: int, *, before: float = END) -> bool:
    """Return whether another broker led in the epoch of a leader, which no correct cluster lets happen."""
    return any(
        number < before and led.leader_epoch == epoch and led.broker != leader
        for number, led in story.events(events.BecameLeader)
    )


def tell_led(story: Story, number: int, led: events.BecameLeader, *, decides: bool = False) -> None:
    """Tell that a broker began to lead, and whether another one had led in the same epoch."""
    is_second = is_shared_epoch(story, led.broker, led.leader_epoch, before=number)
    began = links.became_leader(
        led.at_us,
        led.broker,
        leader_epoch=led.leader_epoch,
        offset=led.start_offset,
        is_second=is_second,
    )
    story.tell(number, began, decides=decides or is_second)


def tell_election(
    story: Story, known: TraceLine[events.LeaderElected], *, decides: bool = False, **operands: Any
) -> None:
    """Tell an election; *operands* say what the new leader has."""
    number, event = known
    kind = links.elected_uncleanly if event.unclean else links.elected
    told = kind(
        event.at_us, event.leader, leader_epoch=event.leader_epoch, **operands, **reason(story, known)
    )
    story.tell(number, told, decides=decides)


def producer_epoch(story: Story, copy: LogEntry) -> int | None:
    """Return the epoch of the producer of a record: the trace does not have it, logs at the end of a run do."""
    if copy.producer_id < 0:
        return None
    for log in story.evidence.replicas.get(story.partition, {}).values():
        for batch in log.batches:
            if batch.base_offset <= copy.offset < batch.next_offset:
                if (batch.leader_epoch, batch.producer_id) == (copy.leader_epoch, copy.producer_id):
                    return batch.producer_epoch
                break
    return None


def reason(story: Story, known: TraceLine[events.LeaderElected]) -> dict[str, Any]:
    """Return the operands of an election that say whose place was taken, or that nobody's had to be."""
    number, event = known
    if event.reason == PREFERRED:
        return {"is_preferred": True}
    return {"former": former_leader(story, number)}


PREFERRED: Final = "preferred leader"
"""The reason of an election that gives a preferred replica the leadership back."""


@source(facts.GONE)
def _tell_end_of_leader(story: Story, line: float, gap: Gap) -> None:
    """Tell how a leader came to its end: the first event since it registered and led that took it out of service.

    A broker that is back before anybody missed it is replaced when it registers, so what came before that counts if nothing did since.
    What came before it began to lead never does.
    """
    (broker,) = gap.need.subject
    ends: Sequence[TraceLine[End]] = story.events(
        events.BrokerRegistered,
        events.BrokerStopped,
        events.BrokerStopping,
        events.SessionExpired,
        events.LogDirFailed,
        events.MetadataLogLost,
        events.ReplicasAssigned,
    )
    began = _began_to_lead(story, broker, line)
    found: TraceLine[End] | None = None
    for each in reversed(ends):
        if each.number >= line:
            continue
        if each.number <= began:
            break
        if isinstance(each.event, events.BrokerRegistered):
            if found is not None and each.event.broker == broker:
                break
        elif _end_link(story, each.event, broker) is not None and not story.is_told(each.number):
            found = each
    if found is not None:
        told = _end_link(story, found.event, broker)
        assert told is not None, "an end that has a link"
        story.tell(found.number, told)


def _began_to_lead(story: Story, broker: int, line: float) -> int:
    """Return the line of the election with which a broker began to lead before a line, 0 where the trace has none."""
    began = 0
    for number, election in reversed(story.elections):
        if number < line:
            if election.leader == broker:
                began = number
            elif began:
                break
    return began


def _end_link(story: Story, event: End, leader: int) -> Link | None:
    """Return how a broker came to its end as a leader, None of an event that is not about that."""
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
    """Return that a broker stopped: by itself where it had refused to truncate, else from outside."""
    known: Sequence[TraceLine[events.TruncationRefused | events.BrokerStarted]] = story.events(
        events.TruncationRefused, events.BrokerStarted
    )
    before = [each for _, each in known if each.broker == event.broker and each.at_us <= event.at_us]
    if before and isinstance(before[-1], events.TruncationRefused):
        return links.halted(event.at_us, event.broker)
    return links.stopped(event.at_us, event.broker, cause=event.cause)


@source(facts.AHEAD)
def _tell_refused_truncation(story: Story, line: float, gap: Gap) -> None:
    known = story.last(events.TruncationRefused, before=line, broker=gap.need.subject[0])
    if known is not None:
        event = known.event
        refused = links.truncation_refused(
            event.at_us, event.broker, leader=event.leader, leo=event.leo, end_offset=event.end_offset
        )
        story.tell(known.number, refused)


@source(facts.DOWN)
def _tell_stop(story: Story, line: float, gap: Gap) -> None:
    """Tell how a broker had stopped that came back."""
    known = story.last(events.BrokerStopped, before=line, broker=gap.need.subject[0])
    if known is not None:
        story.tell(known.number, _stop_link(story, known.event))


@source(facts.DAMAGED)
def _tell_damage(story: Story, line: float, gap: Gap) -> None:
    known = story.last(events.BatchDamaged, before=line, broker=gap.need.subject[0])
    if known is not None:
        number, event = known
        stood = [copy for copy in story.copies_at(event.offset) if copy.damaged == number]
        value = stood[0].value if stood else f"the batch at {event.offset}"
        story.tell(number, links.damaged(event.at_us, event.broker, value=value, offset=event.offset))


@source(facts.CUT_OFF)
def _tell_cut(story: Story, line: float, gap: Gap) -> None:
    """Tell what kept a broker from the control plane: a stop, a pause, or a fault of the network.

    A session can expire shortly after that is over. Only where nothing was about the broker itself, it was the control plane.
    """
    (broker,) = gap.need.subject
    cuts: Sequence[TraceLine[Cut]] = story.index.events(
        events.BrokerStopped, events.BrokerPaused, events.FaultStruck, events.MessageRuleApplied
    )
    before = [each for each in reversed(cuts) if each.number < line and not _brings_back(story, each.number)]
    until_us = gap.link.at_us or 0
    own = [(each, _end_of(story, each)) for each in before if _cuts_off(each.event, broker)]
    at_once = [each for each, _ in own if each.event.at_us >= until_us - _AT_ONCE_US]
    in_force = [each for each, end in own if end is not None and end.number >= line]
    recent = [
        each for each, end in own if end is not None and until_us - _SESSION_US <= end.event.at_us <= until_us
    ]
    # What has no end in the trace happened in an instant, or lasts.
    endless = [each for each, end in own if end is None]
    of_control = [each for each in before if _cuts_all(each.event)]
    for number, event in [*at_once, *in_force, *recent, *endless, *of_control][:1]:
        _tell_cut_by(story, number, event, broker)


_AT_ONCE_US: Final = 10 * US_PER_MS
"""How soon the control plane gives a broker up whose session a fault has ended."""
_SESSION_US: Final = 30 * US_PER_SECOND
"""How long after its cause a session may still expire."""


def _cuts_off(event: Cut, broker: int) -> bool:
    """Return whether an event can keep a broker from the control plane, and is about that broker."""
    if isinstance(event, events.FaultStruck):
        others = any(value != broker and 0 <= value < FIRST_ZOOKEEPER_ID for value in _nodes(event))
        return not _is_message_fault(event) and names(event, broker) and (not others or _names_control(event))
    if isinstance(event, events.MessageRuleApplied):
        ends = (event.sender, event.receiver)
        return process_name(broker) in ends and any(each.startswith(_CONTROL) for each in ends)
    return event.broker == broker


def _cuts_all(event: Cut) -> bool:
    """Return whether an event is about the control plane, and about no broker."""
    return (
        isinstance(event, events.FaultStruck)
        and not _is_message_fault(event)
        and _names_control(event)
        and not any(0 <= value < FIRST_ZOOKEEPER_ID for value in _nodes(event))
    )


def _nodes(fault: events.FaultStruck) -> Iterator[int]:
    """Yield the numbers in the details of a fault, which are those of brokers and controllers where it strikes such."""
    for _, value in fault.details:
        yield from (
            each for each in (value if isinstance(value, list | tuple) else (value,)) if type(each) is int
        )


def _end_of(story: Story, cut: TraceLine[Cut]) -> TraceLine[Back] | None:
    """Return the event with which it was over what kept a broker away, None if the trace has none."""
    ends: Sequence[TraceLine[Back]]
    ends = story.index.events(events.FaultEnded, events.BrokerStarted, events.BrokerResumed)
    return next((end for end in ends if end.number > cut.number and _ends(end.event, cut.event)), None)


def _ends(end: Back, cut: Cut) -> bool:
    if isinstance(end, events.FaultEnded):
        return isinstance(cut, events.FaultStruck) and cut.strike == end.strike
    return isinstance(cut, events.BrokerStopped | events.BrokerPaused) and cut.broker == end.broker


def _brings_back(story: Story, number: int) -> bool:
    """Return whether a fault is one that starts a broker, or lets it go on."""
    after = story.evidence.trace[number : number + 1]
    return any(event[1] in (events.BrokerStarted.name, events.BrokerResumed.name) for event in after)


def _tell_cut_by(story: Story, number: int, event: Cut, broker: int) -> None:
    match event:
        case events.FaultStruck():
            tell_fault(story, number, event, struck=(broker,))
        case events.MessageRuleApplied():
            _tell_message(story, number, event, struck=(broker,))
        case events.BrokerPaused():
            story.tell(number, links.paused(event.at_us, broker))
        case events.BrokerStopped():
            story.tell(number, _stop_link(story, event))


def _is_message_fault(event: events.FaultStruck) -> bool:
    """Return whether it is a rule for messages, which tells each message that it meets."""
    return any(name == "api" for name, _ in event.details) or event.fault == _RELEASE


def _names_control(event: events.FaultStruck) -> bool:
    values = [value for _, value in event.details]
    flat = [*values, *(item for value in values if isinstance(value, list | tuple) for item in value)]
    return any(isinstance(value, str) and value.startswith(_CONTROL) for value in flat) or any(
        node >= FIRST_ZOOKEEPER_ID for node in _nodes(event)
    )


def tell_fault(
    story: Story, number: int, event: events.FaultStruck, *, decides: bool = False, **operands: Any
) -> None:
    """Tell that a fault struck."""
    details = tuple((name, value) for name, value in event.details if value is not None)
    struck = links.fault_struck(event.at_us, None, fault=event.fault, details=details, **operands)
    story.tell(number, struck, decides=decides)


def _tell_message(
    story: Story,
    number: int,
    event: events.MessageRuleApplied,
    struck: tuple[int, ...] = (),
    hindered: tuple[int, ...] = (),
    *,
    decides: bool = False,
) -> None:
    """Tell what a fault did to a message, and which brokers that kept from the control plane or from answering."""
    held = links.request_held(
        event.at_us,
        None,
        fault=event.rule,
        action=event.action,
        api=event.api,
        kind=event.kind,
        sender=event.sender,
        receiver=event.receiver,
        struck=struck,
        hindered=hindered,
    )
    story.tell(number, held, decides=decides)


@source(facts.EPOCH)
def _tell_begin_of_epoch(story: Story, line: float, gap: Gap) -> None:
    """Tell the election with which a leader epoch began."""
    known = story.last(events.LeaderElected, before=line, leader_epoch=gap.need.subject[0])
    if known is not None:
        tell_election(story, known)


@source(facts.UNCLEAN)
def _tell_unclean_election(story: Story, line: float, gap: Gap) -> None:
    """Tell the last unclean election of a broker."""
    (leader,) = gap.need.subject
    for known in reversed(story.elections):
        if known.number < line and known.event.unclean and known.event.leader == leader:
            tell_election(story, known)
            return


@source(facts.UNASSIGNED)
def _tell_reassignment(story: Story, line: float, gap: Gap) -> None:
    """Tell the assignment after which a broker is no replica of the partition."""
    (broker,) = gap.need.subject
    for number, event in reversed(story.events(events.ReplicasAssigned)):
        if number < line and broker not in event.replicas:
            story.tell(
                number, links.replicas_assigned(event.at_us, None, replicas=event.replicas, left=(broker,))
            )
            return


@source(facts.ISR)
def _tell_isr(story: Story, line: float, gap: Gap) -> None:
    """Tell the changes of an ISR after which it has the members that a link needs."""
    changes: Sequence[TraceLine[IsrEvent]] = story.events(
        events.IsrWritten, events.IsrReduced, events.LeaderElected
    )
    # Back to the last change that its leader asked for: a controller takes out what it gave up since.
    begin = story.last_told(facts.ISR, line)
    for number, event in reversed(changes):
        if number >= line or number <= begin:
            continue
        if isinstance(event, events.LeaderElected):
            if event.leader >= 0:
                if _left(story, number, event):
                    tell_election(story, TraceLine(number, event))
                break
            if _left(story, number, event):
                alone = links.left_leaderless(
                    event.at_us,
                    event.controller,
                    before=written_isr(story, number),
                    isr=event.isr,
                    former=former_leader(story, number),
                )
                story.tell(number, alone)
        elif isinstance(event, events.IsrReduced):
            gone = _left(story, number, event)
            if gone:
                before = written_isr(story, number)
                reduced = links.isr_reduced(
                    event.at_us, event.controller, before=before, isr=event.isr, gone=gone
                )
                story.tell(number, reduced)
        else:
            tell_written(story, number, event)
            break


def tell_written(story: Story, number: int, written: events.IsrWritten, *, decides: bool = False) -> None:
    """Tell that an ISR of its leader's making was written: a smaller one, or one for which the leader had asked."""
    left = _left(story, number, written)
    if left:
        before = written_isr(story, number) or ()
        shrunk = links.isr_shrank(written.at_us, written.broker, before=before, isr=written.isr, left=left)
        story.tell(number, shrunk, decides=decides)
        return
    asked = tell_change_asked(story, number, written)
    change = links.isr_written(written.at_us, written.broker, isr=written.isr, was_asked=asked)
    story.tell(number, change, decides=decides)


def tell_refused_isr(story: Story, number: int, refused: events.IsrRefused) -> None:
    """Tell that a leader was refused an ISR, and which one had been written by then."""
    for written in reversed(story.events(events.IsrWritten)):
        if written.number < number:
            tell_written(story, *written)
            break
    refusal = links.isr_refused(
        refused.at_us, refused.broker, isr=refused.isr, written=written_isr(story, number)
    )
    story.tell(number, refusal)


def _left(story: Story, number: int, change: IsrEvent) -> tuple[int, ...]:
    """Return who left an ISR with a change."""
    return tuple(sorted(set(written_isr(story, number) or ()) - set(change.isr)))


def tell_change_asked(story: Story, number: int, written: events.IsrWritten) -> bool:
    """Tell that a leader had asked for an ISR with another member, and return whether it had."""
    asked = story.last(events.IsrPending, before=number, broker=written.broker)
    if asked is None or set(asked.event.isr) != set(written.isr):
        return False
    is_shared = is_shared_epoch(story, written.broker, asked.event.leader_epoch)
    told = links.isr_asked(asked.event.at_us, written.broker, isr=asked.event.isr, is_shared=is_shared)
    story.tell(asked.number, told)
    return True


def tell_forgotten_change(story: Story, leader: int, offset: int, line: int) -> None:
    """Tell that a leader had forgotten, before a line, whom it had asked to have in the ISR, and committed an offset without them."""
    forgotten = story.last(events.IsrForgotten, before=line, broker=leader)
    if forgotten is None:
        return
    asked = story.last(events.IsrPending, before=forgotten.number, broker=leader)
    risen = [
        (number, event.hw)
        for number, event in story.events(events.HighWatermarkSet)
        if event.broker == leader and forgotten.number < number < line and event.hw > offset
    ]
    if asked is None or not risen:
        return
    is_shared = is_shared_epoch(story, leader, asked.event.leader_epoch)
    change = links.isr_asked(asked.event.at_us, leader, isr=asked.event.isr, is_shared=is_shared)
    story.tell(asked.number, change)
    event = forgotten.event
    story.tell(
        forgotten.number,
        links.isr_forgotten(event.at_us, leader, asked=asked.event.isr, isr=event.isr),
        decides=True,
    )
    number, hw = risen[0]
    without = tuple(sorted(set(asked.event.isr) - set(event.isr)))
    at_us = story.evidence.trace[number - 1][0]
    told = links.committed_alone(at_us, leader, offset=offset, hw=hw, without=without)
    story.tell(number, told, decides=True)


@source(facts.SENT_AGAIN)
def _tell_retry(story: Story, line: float, gap: Gap) -> None:
    """Tell when a record was sent again."""
    (value,) = gap.need.subject
    for number, again in reversed(story.events(events.SentAgain)):
        if number < line and value in again.values and not story.is_told(number):
            retry = links.retried(
                again.at_us, again.client, value=value, leader=again.leader, attempt=again.attempt
            )
            story.tell(number, retry)
            return


@source(facts.DISTURBED)
def _tell_lag(story: Story, line: float, gap: Gap) -> None:
    """Tell what kept a replica from fetching until it left the ISR: the last thing that was in force while it fell behind."""
    (follower,) = gap.need.subject
    leader = gap.link.actor
    if not isinstance(leader, int) or leader == follower:
        return
    begin = story.start(max(0, (gap.link.at_us or 0) - _LAG_US))
    in_force = [each for each in _disturbances(story, line) if _is_in_force(story, each, begin)]
    found = _of_followers(in_force, leader, (follower,))
    if found is not None:
        _tell_hindrance(story, found[0], leader, follower)


_LAG_US: Final = 40 * US_PER_SECOND
"""How long ago what made a replica fall behind may have ended."""


@source(facts.TURNED_AWAY)
def _tell_failure(story: Story, line: float, gap: Gap) -> None:
    """Tell why a record had to be sent again."""
    (value,) = gap.need.subject
    for number, failure in reversed(story.events(events.SendFailed)):
        if number < line and value in failure.values:
            tell_failure(story, number, failure, value)
            return


def tell_failure(story: Story, number: int, failure: events.SendFailed, value: Value) -> None:
    """Tell that a request failed: for want of an answer, or that it was refused."""
    leader, error = failure.leader, failure.error
    if error == NO_ANSWER:
        hindered = _tell_disturbance(story, number, failure, value)
        told = links.no_answer(
            failure.at_us,
            failure.client,
            values=failure.values,
            leader=leader,
            error=error,
            hindered=hindered,
        )
        story.tell(number, told)
        return
    isr = story.isr_at(leader, number) if error in _ISR_TOO_SMALL else None
    story.tell(
        number, links.refused(failure.at_us, leader, value=value, values=failure.values, error=error, isr=isr)
    )


def _tell_disturbance(story: Story, line: int, failure: events.SendFailed, value: Value) -> tuple[int, ...]:
    """Tell what kept a request or its answer from arriving, and return the broker that it hindered, the leader if nothing is found.

    What was in force between the sending and the failure counts, else what was over shortly before, the surest first: a message that was met, a stop
    or a pause of the leader, a quota, a fault on the way. Where an answer waits for the ISR, so does what hindered a
    follower. If the trace has no such event, the story gets no link.
    """
    begin = _sent_at(story, line, failure, value)
    client, leader = failure.client, failure.leader
    followers = story.settings.replicas if _waits_for_isr(story, client) else ()
    for since in (begin, story.start(max(0, failure.at_us - _AFTERMATH_US))):
        in_force = [each for each in _disturbances(story, line) if _is_in_force(story, each, since)]
        found = _of_link(in_force, client, leader, since) or _of_followers(in_force, leader, followers)
        if found is not None:
            cause, hindered = found
            _tell_hindrance(story, cause, leader, hindered)
            return (hindered,)
    return (leader,)


_AFTERMATH_US: Final = 10 * US_PER_SECOND
"""How long after a disturbance is over a request may still fail because of it: a broker that was down has to catch up."""


def _disturbances(story: Story, line: float) -> list[TraceLine[Disturbance]]:
    """Return what may disturb a request before a line, the latest first."""
    causes: Sequence[TraceLine[Disturbance]] = story.index.events(
        events.MessageRuleApplied,
        events.BrokerStopped,
        events.BrokerPaused,
        events.ClientThrottled,
        events.FaultStruck,
    )
    by_message = {rule.strike for _, rule in story.index.events(events.MessageRuleApplied)}
    return [
        each
        for each in reversed(causes)
        if each.number < line
        and not (
            isinstance(each.event, events.FaultStruck)
            # Such a fault tells each message that it meets.
            and (_is_message_fault(each.event) or each.event.strike in by_message)
        )
    ]


def _sent_at(story: Story, line: int, failure: events.SendFailed, value: Value) -> float:
    """Return the line at which the request was sent that failed at a line."""
    for number, again in reversed(story.events(events.SentAgain)):
        if number < line and again.client == failure.client and value in again.values:
            return number
    sends = story.index.sends_of(story.partition, value)
    return max(
        (story.start(send.invoked_us) for send in sends if send.invoked_us <= failure.at_us), default=0
    )


def _is_in_force(story: Story, cause: TraceLine[Disturbance], begin: float) -> bool:
    """Return whether a disturbance struck after a line, or lasted until after it."""
    if cause.number > begin:
        return True
    if isinstance(cause.event, events.ClientThrottled):
        until_us = cause.event.at_us + cause.event.throttle_us
        return story.index.position_at(until_us) > begin
    if isinstance(cause.event, events.MessageRuleApplied):
        return cause.event.action == HOLD and _released(story, cause.event.strike) > begin
    end = _end_of(story, cause)  # type: ignore[arg-type]  # of the kinds left here, each with an end
    if end is None:
        return isinstance(cause.event, events.BrokerStopped | events.BrokerPaused)
    return end.number > begin


def _released(story: Story, strike: int | None) -> float:
    """Return the line at which a message that is held goes on its way."""
    known: Sequence[TraceLine[events.FaultEnded | events.Healed]] = story.index.events(
        events.FaultEnded, events.Healed
    )
    ends = (number for number, end in known if isinstance(end, events.Healed) or end.strike == strike)
    return next(ends, END)


def _of_link(
    causes: Sequence[TraceLine[Disturbance]], client: str, leader: int, begin: float
) -> tuple[TraceLine[Disturbance], int] | None:
    """Return what lies between a client and a leader, and the leader: of messages the first that was met after a line."""
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
            case events.FaultStruck() if _lies_between(cause.event, client, leader):
                ranks[3].append(cause)
    return next(((cause, leader) for rank in ranks for cause in rank), None)


def _lies_between(fault: events.FaultStruck, client: str, leader: int) -> bool:
    """Return whether a fault is about the client and the leader, about the client alone, or slows the leader down."""
    if names(fault, client):
        return names(fault, leader) or not (any(_nodes(fault)) or _names_control(fault))
    return names(fault, leader) and any(name == "delay" for name, _ in fault.details)


def _of_followers(
    causes: Sequence[TraceLine[Disturbance]], leader: int, followers: Sequence[int]
) -> tuple[TraceLine[Disturbance], int] | None:
    """Return what kept a follower from fetching, and that follower."""
    for cause in causes:
        event = cause.event
        for follower in followers:
            if follower == leader:
                continue
            match event:
                case events.MessageRuleApplied(api="Fetch"):
                    is_met = {event.sender, event.receiver} == {process_name(follower), process_name(leader)}
                case events.BrokerStopped() | events.BrokerPaused():
                    is_met = event.broker == follower
                case events.FaultStruck():
                    ends = [names(event, follower), names(event, leader)]
                    is_met = all(ends) or (any(ends) and any(name == "delay" for name, _ in event.details))
                case _:
                    is_met = False
            if is_met:
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
            _tell_message(story, number, event, hindered=(hindered,))
        case events.ClientThrottled():
            throttled = links.throttled(
                event.at_us, event.broker, client=event.client, wait_us=event.throttle_us
            )
            story.tell(number, throttled)
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
    lost = kind(event.at_us, leader, fault=event.rule, action=event.action, leader=leader)
    story.tell(number, lost, decides=decides)


def tell_held_news(story: Story, leader: int, line: int) -> None:
    """Tell the last messages from the control plane to a leader that a fault met before a line."""
    process = process_name(leader)
    held = [
        (number, event)
        for number, event in story.index.events(events.MessageRuleApplied)
        if number < line and event.receiver == process and event.sender.startswith(_CONTROL)
    ]
    for number, event in held[-_NEWS_TOLD:]:
        _tell_message(story, number, event, decides=True)


_NEWS_TOLD: Final = 2
"""How many messages that a leader did not get in time are told: of the ISR that is in question, and of the one before."""


def fault_end(story: Story, strike: int) -> float:
    """Return the line at which a fault ended; one that does not last ends when it strikes."""
    over = (number for number, end in story.index.events(events.FaultEnded) if end.strike == strike)
    return next(over, 0)


def tell_held(story: Story, api: str, process: str, begin: float, end: float) -> None:
    """Tell the messages of a kind from or to a process that a fault met between two lines."""
    for number, event in story.index.events(events.MessageRuleApplied):
        if begin < number < end + AFTER and event.api == api and process in (event.sender, event.receiver):
            _tell_message(story, number, event, decides=True)
