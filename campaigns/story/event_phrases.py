"""The words for each kind of event: its lane, its text, and a noun for counting."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, Final, Generic, TypeVar

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.units import duration_text, fields_text, value_text
from harrow.campaigns.story import topics
from harrow.campaigns.story.faults_in_force import struck_fault
from harrow.campaigns.story.narration import FAULTS, EventContext, Narration, broker_lane, lane_of
from harrow.campaigns.story.topics import StoryTopic
from harrow.checks.causes.story import words
from harrow.checks.replay.partition_state import ACKED, FAILED
from harrow.cluster_model import events
from harrow.cluster_model.clients.consumer import NO_POSITION
from harrow.cluster_model.errors import NONE
from harrow.cluster_model.events import Event, FieldKind, event_fields
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.disk import LOG_START_OFFSET_CHECKPOINT
from harrow.cluster_model.log.record_batch import record_count
from harrow.cluster_model.log.unified_log import LEADER_LOG_START
from harrow.cluster_model.topology import server_text
from harrow.faults.links import NetworkSplit

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class Phrase(Generic[E]):
    """How to narrate a kind of event.

    ``text`` is a function, or a template. A template can name the event's fields and the attributes
    of its context. ``lane`` and ``to`` are the name of such a field or attribute, or a lane. The
    default lane is that of the first process among the event's fields. ``noun`` is for counts of
    these events; the default is the event's name. ``at_start`` marks events that every start of a
    cluster has. They are routine before time zero.
    """

    event: type[E]
    topic: StoryTopic
    text: str | Callable[[E, EventContext], str]
    noun: str = ""
    lane: str = ""
    to: str = ""
    routine: bool | Callable[[E, EventContext], bool] = False
    at_start: bool = False

    def counted(self, count: int) -> str:
        """Return a count of these events in words."""
        noun = self.noun or words(self.event.name)
        if count == 1:
            return f"1 {noun}"
        if noun.endswith("y"):
            return f"{count} {noun[:-1]}ies"
        return f"{count} {noun}{'es' if noun.endswith('h') else 's'}"


def narrate(event: Event, context: EventContext) -> Narration:
    """Return the narration of an event. Its texts are safe to print on a terminal."""
    phrase = phrase_of(type(event))
    terms = _Terms(event, context)
    text = phrase.text.format_map(terms) if isinstance(phrase.text, str) else phrase.text(event, context)
    processes = (name for name, field in event_fields(event.name).items() if field in _PROCESSES)
    to = terms.lane(phrase.to) if phrase.to else None
    return Narration(
        lane=printable(terms.lane(phrase.lane or next(processes, FAULTS)) or FAULTS),
        topic=phrase.topic,
        text=printable(text),
        to=None if to is None else printable(to),
        routine=phrase.routine if isinstance(phrase.routine, bool) else phrase.routine(event, context),
    )


def phrase_of(kind: type[Event]) -> Phrase[Any]:
    """Return the phrase of a kind of event. The default phrase lists the event's fields."""
    return PHRASES.get(kind) or Phrase(kind, topics.REQUEST, _fields)


_PROCESSES: Final = frozenset({FieldKind.BROKER, FieldKind.CLIENT, FieldKind.PROCESS})


class _Terms(dict[str, str]):
    """The texts for the names in a template: fields of the event, attributes of its context."""

    def __init__(self, event: Event, context: EventContext) -> None:
        super().__init__()
        self._event = event
        self._context = context
        self._kinds = event_fields(event.name)

    def __missing__(self, name: str) -> str:
        value = self._value(name)
        return _TEXTS.get(self._kinds.get(name, FieldKind.TEXT), str)(value)

    def lane(self, name: str) -> str | None:
        value = self._value(name)
        if self._kinds.get(name) is FieldKind.BROKER:
            return broker_lane(value) if value >= 0 else None
        return lane_of(value) if value else None

    def _value(self, name: str) -> Any:
        return getattr(self._event if name in self._kinds else self._context, name, name)


def _records(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


_TEXTS: Final[dict[FieldKind, Callable[[Any], str]]] = {
    FieldKind.BROKER: lambda broker: broker_lane(broker) if broker >= 0 else "no broker",
    FieldKind.BROKERS: _records,
    FieldKind.PROCESS: lane_of,
    FieldKind.VALUES: _records,
}


def _range(first: int, end: int) -> str:
    """Return a text for the offsets from *first* up to, but not including, *end*."""
    return f"offset {first}" if end == first + 1 else f"offsets {first}-{end - 1}"


def _batch_offsets(event: events.BatchAppended | events.BatchReplicated | events.BatchAcknowledged) -> str:
    return _range(event.base_offset, event.base_offset + record_count(event.values))


def _fields(event: Event, _context: EventContext) -> str:
    fields = {name: value for name, value in asdict(event).items() if name != "at_us"}
    return f"{event.name} {fields_text(tuple(fields.items()))}".rstrip()


def _fetch(event: events.FetchDelayed | events.FetchExpired) -> str:
    return "a consumer's fetch" if event.replica < 0 else f"broker {event.replica}'s fetch"


def _fault(event: events.FaultStruck | events.FaultEnded) -> str:
    """Return a fault as one line, without the fields that have no value."""
    details = {name: value for name, value in event.details if value is not None}
    name = event.fault
    if name == "message":
        # One phrase for the message is easier to read than its fields.
        what = [str(details.pop(key)) for key in ("action", "api", "kind") if key in details]
        sender, receiver = details.pop("from", "*"), details.pop("to", "*")
        name = f"message: {' '.join(what)} {value_text(sender)} -> {value_text(receiver)}"
    elif name == NetworkSplit.name:
        # The groups of nodes say more than the fields from which they follow.
        struck = struck_fault(name, event.details)
        assert isinstance(struck, NetworkSplit)
        for key in ("shape", "nodes", "order"):
            details.pop(key, None)
        groups = " | ".join(" ".join(str(server_text(node)) for node in group) for group in struck.groups())
        name = f"{name}: {words(struck.shape)} {groups}"
    return f"{name} {fields_text(tuple(details.items()))}".rstrip()


def _fault_struck(event: events.FaultStruck, _context: EventContext) -> str:
    return _fault(event) + ("" if event.phase == "inject" else f" ({words(event.phase)})")


def _stopped(event: events.BrokerStopped, _context: EventContext) -> str:
    causes = {events.KILLED: "crashed", events.POWER_LOSS: "lost power", events.SHUT_DOWN: "shut down"}
    return causes.get(event.cause) or f"stopped: {words(event.cause)}"


def _shutdown_answered(event: events.ControlledShutdownAnswered, _context: EventContext) -> str:
    begin = f"controlled shutdown, attempt {event.attempt}"
    if event.controller == events.NO_CONTROLLER:
        return f"{begin}: found no controller"
    if event.error != NONE:
        return f"{begin}: {broker_lane(event.controller)} answered {event.error}"
    if event.remaining:
        return f"{begin}: still leads {_records(event.remaining)}"
    return f"{begin}: no longer leads a partition that others could lead"


def _broker_registered(event: events.BrokerRegistered, _context: EventContext) -> str:
    return "registered" if event.broker_epoch < 0 else f"registered (broker epoch {event.broker_epoch})"


def _session_expired(event: events.SessionExpired, _context: EventContext) -> str:
    # A broker that restarts before its session expires gets a new session. Its old session then has
    # no ephemeral znode, so its expiry changes nothing.
    fenced = ", and it was fenced" if events.REGISTRATION in event.ephemerals else ""
    return f"{'its' if event.ephemerals else 'an older'} session expired{fenced}"


def _controller_changed(event: events.ControllerChanged, _context: EventContext) -> str:
    if event.controller == events.NO_CONTROLLER:
        return "has no controller"
    return f"has {broker_lane(event.controller)} as controller (controller epoch {event.controller_epoch})"


def _clock_stepped(event: events.ClockStepped, _context: EventContext) -> str:
    direction = "forward" if event.by_us > 0 else "back"
    return f"the clock of {lane_of(event.process)} jumps {direction} by {duration_text(abs(event.by_us))}"


def _message_rule(event: events.MessageRuleApplied, _context: EventContext) -> str:
    actions = {"hold": "held", "drop": "dropped", "delay": "delayed", "duplicate": "duplicated"}
    message = f"{event.api} {event.kind} from {lane_of(event.sender)} to {lane_of(event.receiver)}"
    return f"{actions.get(event.action, event.action)} the {message}"


def _election(event: events.LeaderElected, context: EventContext) -> str:
    # Real brokers do not show why the first leader of a partition was elected.
    reason = f" ({words(event.reason)})" if event.reason else ""
    rest = f"epoch {event.leader_epoch}, ISR [{_records(event.isr)}]{reason}"
    if event.leader < 0:
        return f"NO LEADER{context.of}: {rest}"
    return f"{'UNCLEANLY ' if event.unclean else ''}elected broker {event.leader} leader{context.of}: {rest}"


def _appended(event: events.BatchAppended, context: EventContext) -> str:
    what = _records(event.values) or "a marker"
    text = f"appended {what}{context.on} at {_batch_offsets(event)}, epoch {event.leader_epoch}"
    if event.producer_id < 0 or event.base_sequence < 0:
        return text
    return f"{text}, producer id {event.producer_id} sequence {event.base_sequence}"


def _copied(event: events.BatchReplicated, context: EventContext) -> str:
    return f"copied {_records(event.values) or 'a marker'}{context.on} to {_batch_offsets(event)}"


def _marker(event: events.TransactionMarkerWritten, context: EventContext) -> str:
    marker = "COMMIT" if event.committed else "ABORT"
    producer = f"producer id {event.producer_id} epoch {event.producer_epoch}"
    records = "no records" if event.first_offset < 0 else f"records from offset {event.first_offset} on"
    return f"has {marker} marker at offset {event.offset}{context.of}: {producer}, {records}, coordinator epoch {event.coordinator_epoch}"


def _transaction_state(event: events.TransactionStateChanged, _context: EventContext) -> str:
    partitions = f" in [{_records(event.partitions)}]" if event.partitions else ""
    producer = f"producer id {event.producer_id} epoch {event.producer_epoch}"
    return f"coordinates {event.transactional_id}: {event.state}{partitions}, {producer}"


def _hw(event: events.HighWatermarkSet, context: EventContext) -> str:
    return (
        f"HW{context.of} {event.hw}"
        if context.hw_before is None
        else f"HW{context.of} {context.hw_before} -> {event.hw}"
    )


def _isr_changed(event: events.IsrChanged, context: EventContext) -> str:
    verb = {"shrink": "shrank", "expand": "expanded"}.get(event.change, "changed")
    return f"{verb} the ISR{context.of} to [{_records(event.isr)}], epoch {event.leader_epoch}"


def _truncated(event: events.LogTruncated, context: EventContext) -> str:
    leo, before = sorted((event.from_offset, event.to_offset))
    removed = f", removing {_records(context.removed)}" if context.removed else ""
    return f"TRUNCATED{context.which} from {before} to {leo} ({words(event.reason)}){removed}"


def _opened(event: events.LogOpened, context: EventContext) -> str:
    removed = f", without {_records(context.removed)}" if context.removed else ""
    return f"opened its log{context.of}: LEO {event.leo}, HW {event.hw}{removed}"


def _unflushed_lost(event: events.UnflushedLost, context: EventContext) -> str:
    removed = f": {_records(context.removed)}" if context.removed else ""
    return f"LOST unflushed records{context.of}, {_range(*sorted((event.from_offset, event.to_offset)))}{removed}"


def _log_lost(event: events.LogLost, context: EventContext) -> str:
    removed = f": {_records(context.removed)}" if context.removed else ""
    return f"LOST its disk with its log{context.of}, {_range(event.from_offset, event.to_offset)}{removed}"


def _metadata_log_lost(event: events.MetadataLogLost, _context: EventContext) -> str:
    without = "" if event.is_kept else "; no majority has one any more"
    return f"LOST its disk with its metadata log up to {event.end_offset}{without}"


def _log_deleted(_: events.LogDeleted, context: EventContext) -> str:
    removed = f", with {_records(context.removed)}" if context.removed else ""
    return f"DELETED its log{context.of}, as it is no longer a replica{removed}"


def _log_start_raised(event: events.LogStartRaised, context: EventContext) -> str:
    removed = f": {_records(context.removed)}" if context.removed else ""
    if event.reason == LEADER_LOG_START:
        return (
            f"DELETED its log{context.of} below offset {event.offset}, where its leader's log starts{removed}"
        )
    if event.reason == LOG_START_OFFSET_CHECKPOINT:
        return f"starts its log{context.of} at offset {event.offset}, from {event.reason}{removed}"
    return f"DELETED its log{context.of} below offset {event.offset} ({event.reason}){removed}"


def _delete_records_answered(event: events.DeleteRecordsAnswered, context: EventContext) -> str:
    what = f"DeleteRecords{context.of} below offset {event.offset}"
    if event.error == NONE:
        return f"answered {what}: done on all live replicas"
    return f"answered {what}: {event.error}"


def _log_start_reverted(event: events.LogStartReverted, context: EventContext) -> str:
    return f"starts its log{context.of} AGAIN at offset {event.to_offset}, as no checkpoint had its start at {event.from_offset} yet"


def _offset_reset(event: events.OffsetReset, context: EventContext) -> str:
    if event.position == NO_POSITION:
        return f"STARTS to read{context.which} at offset {event.offset} (auto.offset.reset={event.policy})"
    return f"RESET its position{context.of} from {event.position} to {event.offset} (auto.offset.reset={event.policy})"


def _log_restarted(event: events.LogStartedAnew, context: EventContext) -> str:
    removed = f", without {_records(context.removed)}" if context.removed else ""
    return f"RESTARTED its log{context.of} at offset {event.offset}, where its leader's log starts; it ended at {event.leo}{removed}"


def _replication_throttle_set(event: events.ReplicationThrottleSet, _context: EventContext) -> str:
    rate = "UNTHROTTLED"
    if event.bytes_per_second >= 0:
        rate = f"THROTTLED to {event.bytes_per_second} bytes a second on each broker"
    return f"replication of throttled partitions is {rate}"


def _log_cleaned(event: events.LogCleaned, context: EventContext) -> str:
    removed = _records(context.removed) or "nothing"
    return f"COMPACTED its log{context.of} up to offset {event.to_offset}, removing {removed}"


def _keyed_send(event: events.KeyedRecordSent, context: EventContext) -> str:
    what = f"a tombstone, {event.value}," if event.tombstone else event.value
    return f"handed {what} with key {event.key} to its producer{context.partition and f' for {context.partition}'}"


def _transaction_ending(event: events.TransactionEnding, _context: EventContext) -> str:
    return "commits its transaction" if event.committed else "aborts its transaction"


def _transaction_reported(event: events.TransactionReported, _context: EventContext) -> str:
    return f"learned that its transaction is {'COMMITTED' if event.committed else 'ABORTED'}"


def _transaction_error(event: events.TransactionError, _context: EventContext) -> str:
    consequence = "can do NOTHING more" if event.fatal else "can only abort its transaction"
    return f"{consequence}: {event.error}"


def _corruption_cut(event: events.CorruptionCut, context: EventContext) -> str:
    removed = f", removing {_records(context.removed)}" if context.removed else ""
    what = "a torn batch" if event.torn else "a bad CRC"
    return f"TRUNCATED its log{context.of} from {event.to_offset} to {event.from_offset}, where recovery found {what}{removed}"


def _log_dir_failed(event: events.LogDirFailed, _context: EventContext) -> str:
    without = f", so {', '.join(event.partitions)} went offline" if event.partitions else ""
    return f"CANNOT WRITE to its log directory {event.log_dir}{without}"


def _checkpoint_reverted(event: events.CheckpointReverted, _context: EventContext) -> str:
    offsets = ", ".join(f"{partition} {offset}" for partition, offset in event.offsets)
    return f"has an OLD {event.kind} on its disk: {offsets or 'unchanged'}"


def _checkpoint(event: events.CheckpointWritten, _context: EventContext) -> str:
    return f"wrote {event.kind}: {', '.join(f'{partition} {offset}' for partition, offset in event.offsets)}"


def _epoch_end(event: events.EpochEndAnswered, context: EventContext) -> str:
    asked = "" if event.leader_epoch == event.answer_epoch else f" (asked for {event.leader_epoch})"
    epoch = f"epoch {event.answer_epoch}{asked}"
    return f"told broker {event.replica} where {epoch}{context.of} ends: {event.end_offset}"


def _outdated_fetch(event: events.OutdatedFetchAnswered, context: EventContext) -> str:
    verb = "ACCEPTED" if event.taken else "ignored"
    fetch = f"a fetch{context.of} from epoch {event.fetch_epoch}, in epoch {event.leader_epoch}"
    return f"{verb} broker {event.leader}'s response to {fetch}"


def _served(event: events.RecordsServed, context: EventContext) -> str:
    return f"served {event.client} {_range(event.offset, event.end_offset)}{context.of}, HW {event.hw}"


def _acknowledged(event: events.BatchAcknowledged, context: EventContext) -> str:
    acks = "all" if event.acks < 0 else event.acks
    return f"ACKED {_records(event.values)}{context.on} at {_batch_offsets(event)} (acks={acks})"


def _send_ended(event: events.ClientEnded, context: EventContext) -> str:
    name = f"{event.value}{context.on}"
    if event.status == ACKED:
        return f"{name} is stored{'' if event.offset is None else f' at offset {event.offset}'}"
    error = "" if event.error is None else f": {event.error}"
    return f"send of {name} {'FAILED' if event.status == FAILED else 'ended UNKNOWN'}{error}"


def _polled(event: events.ClientPolled, context: EventContext) -> str:
    if not event.records:
        return f"read nothing{context.of}"
    (first, _), (last, _) = event.records[0], event.records[-1]
    offsets = f"offset {first}" if len(event.records) == 1 else f"offsets {first}-{last}"
    return f"READ {_records(value for _, value in event.records)}{context.of} at {offsets}"


_CLUSTER: Final[tuple[Phrase[Any], ...]] = (
    Phrase(events.BrokerStarted, topics.PROCESS, "started", "start", at_start=True),
    Phrase(events.BrokerStopped, topics.PROCESS, _stopped),
    Phrase(events.BrokerStopping, topics.PROCESS, "is shutting down", "stop"),
    Phrase(
        events.ControlledShutdownBegun,
        topics.CONTROLLER,
        "begins the controlled shutdown of {broker}",
        "controlled shutdown",
        to="broker",
    ),
    Phrase(events.ControlledShutdownAnswered, topics.PROCESS, _shutdown_answered, "controlled shutdown"),
    Phrase(
        events.ControlledShutdownGivenUp,
        topics.PROCESS,
        "GAVE UP controlled shutdown (attempts: {attempts}) and stops anyway",
        "controlled shutdown given up",
    ),
    Phrase(events.BrokerPaused, topics.PROCESS, "PAUSED"),
    Phrase(events.BrokerResumed, topics.PROCESS, "resumed"),
    Phrase(events.ClientStopped, topics.PROCESS, "stopped"),
    Phrase(
        events.BrokerRegistered,
        topics.SESSION,
        _broker_registered,
        "registration",
        at_start=True,
    ),
    Phrase(events.SessionExpired, topics.SESSION, _session_expired),
    Phrase(events.SessionClosed, topics.SESSION, "closed its session"),
    Phrase(events.FaultStruck, topics.FAULT, _fault_struck),
    Phrase(events.FaultEnded, topics.FAULT, lambda event, _: f"{_fault(event)} is over"),
    Phrase(events.Healed, topics.FAULT, "every fault is healed"),
    Phrase(events.ClockStepped, topics.FAULT, _clock_stepped, "clock", lane=FAULTS),
    Phrase(events.CoreHealed, topics.FAULT, "healed only brokers {brokers}"),
    Phrase(
        events.MessageDelivered, topics.REQUEST, "{api} {kind} to {receiver}", to="receiver", routine=True
    ),
    Phrase(events.MessageRuleApplied, topics.FAULT, _message_rule, "affected message", lane=FAULTS),
    Phrase(
        events.EnsembleLeaderElected, topics.CONTROLLER, "LEADS the ensemble (epoch {epoch})", at_start=True
    ),
    Phrase(
        events.EnsembleServerSuspended, topics.CONTROLLER, "stops serving clients, as it lost its majority"
    ),
    Phrase(
        events.ControllerElected, topics.CONTROLLER, "became CONTROLLER (controller epoch {controller_epoch})"
    ),
    Phrase(events.ControllerResigned, topics.CONTROLLER, "is no longer controller"),
    Phrase(
        events.MetadataSnapshotTaken,
        topics.CONTROLLER,
        "wrote a SNAPSHOT of the metadata up to {end_offset} (epoch {epoch})",
        "metadata snapshot",
        routine=True,
    ),
    Phrase(
        events.MetadataSnapshotFetched,
        topics.CONTROLLER,
        "restarts from a metadata SNAPSHOT up to {end_offset}; its log ended at {log_end}",
        "fetched metadata snapshot",
        to="leader",
    ),
    Phrase(
        events.MetadataLogStarted,
        topics.CONTROLLER,
        "deleted its metadata log below {log_start}",
        "metadata log start",
    ),
    Phrase(
        events.ControllerChanged,
        topics.CONTROLLER,
        _controller_changed,
        "controller change",
        lane="zookeeper",
        routine=True,
    ),
    Phrase(
        events.ControllerZnodeDeleted,
        topics.CONTROLLER,
        "/controller of {broker} was deleted",
        lane="zookeeper",
    ),
)

_REPLICAS: Final[tuple[Phrase[Any], ...]] = (
    Phrase(events.LeaderElected, topics.ELECTION, _election, to="leader"),
    Phrase(events.IsrReduced, topics.ELECTION, "reduced the ISR{of} to [{isr}], epoch {leader_epoch}"),
    Phrase(
        events.BecameLeader,
        topics.EPOCH,
        "LEADS{which} in epoch {leader_epoch} from offset {start_offset}, ISR [{isr}]",
    ),
    Phrase(
        events.BecameFollower,
        topics.EPOCH,
        "follows {leader}{on} in epoch {leader_epoch}",
        "new follower",
        at_start=True,
    ),
    Phrase(events.BatchAppended, topics.LOG, _appended, "append", to="sender"),
    Phrase(events.BatchReplicated, topics.LOG, _copied, "copy", to="leader"),
    Phrase(
        events.TransactionBegun,
        topics.LOG,
        "has the first batch of a transaction{on} at offset {first_offset}: producer id {producer_id} epoch {producer_epoch}",
        "begun transaction",
    ),
    Phrase(events.TransactionMarkerWritten, topics.LOG, _marker, "marker"),
    Phrase(events.TransactionStateChanged, topics.EPOCH, _transaction_state, "transaction state"),
    Phrase(
        events.BatchDeduplicated,
        topics.LOG,
        "suppressed a duplicate batch{of}: producer id {producer_id} sequence {base_sequence} "
        "is already at offset {base_offset}",
        "suppressed duplicate",
    ),
    Phrase(
        events.HighWatermarkSet,
        topics.HW,
        _hw,
        "HW move",
        routine=lambda event, context: context.hw_before == event.hw,
    ),
    Phrase(events.IsrChanged, topics.ISR, _isr_changed, "ISR change"),
    Phrase(
        events.IsrPending,
        topics.ISR,
        "counts on the pending ISR{of} [{isr}], epoch {leader_epoch}",
        "pending ISR",
        routine=True,
    ),
    Phrase(
        events.IsrForgotten,
        topics.ISR,
        "FORGETS its pending ISR{of}, as it receives [{isr}], epoch {leader_epoch}, again",
        "forgotten ISR",
    ),
    Phrase(events.IsrRefused, topics.ISR, "was REFUSED the ISR{of} [{isr}], epoch {leader_epoch}"),
    Phrase(
        events.IsrWritten,
        topics.ISR,
        "the control plane stored the ISR{of} [{isr}], epoch {leader_epoch}",
        "written ISR",
        routine=True,
    ),
    Phrase(
        events.LogTruncated,
        topics.TRUNCATION,
        _truncated,
        routine=lambda event, _: event.from_offset == event.to_offset,
    ),
    Phrase(
        events.TruncationRefused,
        topics.LOG,
        "REFUSED to truncate{which} from {leo} to {end_offset}, where the log of {leader} ends: unclean elections are off",
        "refused truncation",
    ),
    Phrase(
        events.AppendedBatchGivenUp,
        topics.SEND,
        "GAVE UP {values}{on} ({error}), which may be in the log",
        "batch given up",
    ),
    Phrase(
        events.OutdatedFetchAnswered,
        topics.FETCH,
        _outdated_fetch,
        "outdated fetch response",
        to="leader",
    ),
    Phrase(
        events.FetcherFailed,
        topics.TRUNCATION,
        "stopped fetching{which}: got offset {base_offset} after LEO {leo}",
    ),
    Phrase(events.LogOpened, topics.TRUNCATION, _opened, "opened log", at_start=True),
    Phrase(events.UnflushedLost, topics.TRUNCATION, _unflushed_lost),
    Phrase(events.LogLost, topics.TRUNCATION, _log_lost),
    Phrase(events.MetadataLogLost, topics.DISK, _metadata_log_lost, "lost metadata log"),
    Phrase(events.LogDeleted, topics.TRUNCATION, _log_deleted),
    Phrase(
        events.ReplicasAssigned,
        topics.ELECTION,
        "the replicas{of} are [{replicas}], adding [{adding}], removing [{removing}]",
        lane="zookeeper",
    ),
    Phrase(events.CorruptionCut, topics.TRUNCATION, _corruption_cut),
    Phrase(events.LogStartRaised, topics.TRUNCATION, _log_start_raised),
    Phrase(
        events.DeleteRecordsObeyed,
        topics.TRUNCATION,
        "DELETES records{of} below offset {offset} for an administrator",
    ),
    Phrase(events.DeleteRecordsAnswered, topics.TRUNCATION, _delete_records_answered),
    Phrase(events.LogStartReverted, topics.TRUNCATION, _log_start_reverted),
    Phrase(events.LogStartedAnew, topics.TRUNCATION, _log_restarted),
    Phrase(events.LogCleaned, topics.TRUNCATION, _log_cleaned, "compacted its log"),
    Phrase(
        events.HoleReplicated,
        topics.LOG,
        "copied a hole{of}: its LEO is {to_offset}",
        "copied hole",
        routine=True,
    ),
    Phrase(events.KeyedRecordSent, topics.CLIENT, _keyed_send, "keyed record", routine=True),
    Phrase(
        events.KeyedRecordFound, topics.LOG, "read the key {key} of {value}{of}", "read key", routine=True
    ),
    Phrase(
        events.ProducerInitialized,
        topics.CLIENT,
        "got producer id {producer_id} epoch {producer_epoch} for its transactions",
        "initialized producer",
    ),
    Phrase(events.TransactionOpened, topics.CLIENT, "began a transaction", "transaction", routine=True),
    Phrase(
        events.TransactionEnding, topics.CLIENT, _transaction_ending, "end of a transaction", routine=True
    ),
    Phrase(events.TransactionReported, topics.CLIENT, _transaction_reported, "transaction's outcome"),
    Phrase(events.TransactionError, topics.REJECTION, _transaction_error, "failed transaction"),
    Phrase(
        events.OffsetReset,
        topics.REJECTION,
        _offset_reset,
        "offset reset",
    ),
    Phrase(
        events.BatchDamaged,
        topics.LOG,
        "has DAMAGED bytes on its disk at offset {offset}{of}",
        "damaged batch",
    ),
    Phrase(
        events.CorruptBatchFetched,
        topics.TRUNCATION,
        "got a batch with a bad CRC from {broker}, offset {offset}{of}",
        "corrupt batch",
        to="broker",
    ),
    Phrase(events.LogDirFailed, topics.DISK, _log_dir_failed, "failed log directory"),
    Phrase(
        events.RequestQueueFull,
        topics.DISK,
        "has a FULL request queue: {requests} wait",
        "full request queue",
    ),
    Phrase(events.CheckpointReverted, topics.DISK, _checkpoint_reverted, "old checkpoint"),
    Phrase(events.LogFlushed, topics.DISK, "flushed{which} up to {offset}", "flush", routine=True),
    Phrase(events.CheckpointWritten, topics.DISK, _checkpoint, "checkpoint", routine=True),
    Phrase(
        events.InvariantBroken,
        topics.INVARIANT,
        "INVARIANT {invariant} broken{of}: {details}",
        "broken invariant",
    ),
    Phrase(events.EpochEndAnswered, topics.EPOCH, _epoch_end, to="replica"),
)


def _pairs(offsets: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{partition} up to {offset}" for partition, offset in offsets) or "nothing"


def _group_state(event: events.GroupStateChanged, _: EventContext) -> str:
    members = ", ".join(event.members) or "no member"
    return f"group {event.group} is {event.state} in generation {event.generation}, with {members}: {event.reason}"


def _group_assigned(event: events.GroupAssigned, _: EventContext) -> str:
    reads = "; ".join(
        f"{member} reads {', '.join(names) or 'nothing'}" for member, names in event.assignments
    )
    return f"assigned generation {event.generation} of group {event.group}: {reads}"


def _target_assigned(event: events.TargetAssigned, _: EventContext) -> str:
    reads = "; ".join(
        f"{member} should read {', '.join(names) or 'nothing'}" for member, names in event.assignments
    )
    return f"set the target of group {event.group} in epoch {event.epoch} ({event.assignor}): {reads or 'no member'}"


def _member_reconciled(event: events.MemberReconciled, _: EventContext) -> str:
    if event.epoch == -1:
        return f"{event.member} is no longer in group {event.group} and owns nothing"
    revoking = f", has to revoke {', '.join(event.revoking)}" if event.revoking else ""
    owns = ", ".join(event.assigned) or "nothing"
    return f"{event.member} of group {event.group} is {event.state} in epoch {event.epoch}: it owns {owns}{revoking}"


def _offsets_committed(event: events.OffsetsCommitted, _: EventContext) -> str:
    author = (
        f"{event.member} in generation {event.generation}" if event.member else "a client outside the group"
    )
    return f"stored the offsets of group {event.group}: {_pairs(event.offsets)}, committed by {author}"


def _partitions_assigned(event: events.PartitionsAssigned, _: EventContext) -> str:
    names = ", ".join(event.partitions) or "nothing more"
    return f"READS {names} in generation {event.generation} of group {event.group}"


def _partitions_revoked(event: events.PartitionsRevoked, _: EventContext) -> str:
    reason = "others may have them already" if event.lost else "others may get them"
    return f"GIVES UP {', '.join(event.partitions) or 'nothing'} of group {event.group}: {reason}"


def _group_offset(event: events.GroupOffsetFound, _: EventContext) -> str:
    if event.offset < 0:
        return f"finds no committed offset of {event.partition}"
    return f"resumes {event.partition} at offset {event.offset}, which its group committed"


_CLIENTS: Final[tuple[Phrase[Any], ...]] = (
    Phrase(
        events.SendFailed,
        topics.SEND,
        "request {attempt} with {values}{on} to {leader} failed: {error}",
        "failed request",
        to="leader",
    ),
    Phrase(
        events.SentAgain,
        topics.SEND,
        "sends {values}{on} again to {leader}, request {attempt}",
        "retry",
        to="leader",
    ),
    Phrase(
        events.FollowerFetched,
        topics.REQUEST,
        "fetches{which} from offset {offset}, its remote LEO now",
        "fetch",
        lane="replica",
        to="broker",
        routine=True,
    ),
    Phrase(
        events.ClientThrottled,
        topics.REQUEST,
        lambda event, _: (
            f"THROTTLES {event.client} for {duration_text(event.throttle_us)} ({event.api}): it exceeded its quota"
        ),
        "throttled request",
        lane="broker",
        to="client",
    ),
    Phrase(
        events.ReplicaThrottled,
        topics.REQUEST,
        "sends {replica} nothing{of} from offset {offset} on: leader.replication.throttled.rate is exceeded",
        "throttled fetch",
        to="replica",
        routine=True,
    ),
    Phrase(
        events.FollowerThrottled,
        topics.REQUEST,
        "does not fetch{which} from offset {offset} on: follower.replication.throttled.rate is exceeded",
        "throttled partition",
        routine=True,
    ),
    Phrase(
        events.ReplicationThrottleSet,
        topics.FAULT,
        _replication_throttle_set,
        lane=FAULTS,
    ),
    Phrase(
        events.FetchDelayed,
        topics.REQUEST,
        lambda event, _: f"put {_fetch(event)} into purgatory",
        "waiting fetch",
        routine=True,
    ),
    Phrase(
        events.FetchExpired,
        topics.REQUEST,
        lambda event, _: f"answered {_fetch(event)}, which expired in purgatory",
        "expired fetch",
        routine=True,
    ),
    Phrase(
        events.RecordsServed,
        topics.READ,
        _served,
        "consumer fetch",
        to="client",
        routine=lambda event, _: event.end_offset <= event.offset,
    ),
    Phrase(
        events.ReadReplicaPreferred,
        topics.READ,
        "told {client} to read{which} from {replica}",
        "preferred read replica",
        to="client",
    ),
    Phrase(
        events.ReadReplicaCleared,
        topics.READ,
        "no longer reads{which} from {replica}: {reason}",
        "cleared read replica",
        lane="client",
        to="replica",
    ),
    Phrase(events.BatchAcknowledged, topics.ACK, _acknowledged, "ack", to="sender"),
    Phrase(
        events.RequestRejected,
        topics.REQUEST,
        "rejected {api} from {sender}{on}: {error}",
        "rejection",
        to="sender",
    ),
    Phrase(
        events.FetchFenced,
        topics.REQUEST,
        "fenced a fetch from {sender} at offset {offset}{on}: its epoch was {fetch_epoch}, not {leader_epoch}",
        "rejection",
        to="sender",
    ),
    Phrase(events.ClientSent, topics.SEND, "sends {value}{to}", "send"),
    Phrase(events.ClientEnded, topics.SEND, _send_ended, "ended send"),
    Phrase(events.ClientPolled, topics.READ, _polled, "read", routine=lambda event, _: not event.records),
)

_GROUPS: Final[tuple[Phrase[Any], ...]] = (
    Phrase(events.GroupStateChanged, topics.GROUP, _group_state, "group state"),
    Phrase(events.GroupAssigned, topics.GROUP, _group_assigned, "assignment"),
    Phrase(events.TargetAssigned, topics.GROUP, _target_assigned, "target assignment"),
    Phrase(events.MemberReconciled, topics.GROUP, _member_reconciled, "member"),
    Phrase(events.OffsetsCommitted, topics.COMMIT, _offsets_committed, "commit", routine=True),
    Phrase(
        events.OffsetsExpired,
        topics.GROUP,
        lambda event, _: f"FORGOT offsets of group {event.group}: {_pairs(event.offsets)}",
    ),
    Phrase(events.OffsetsDeleted, topics.GROUP, "deleted offsets of group {group}: {partitions}"),
    Phrase(events.PartitionsAssigned, topics.GROUP, _partitions_assigned, "assignment"),
    Phrase(events.PartitionsRevoked, topics.GROUP, _partitions_revoked, "revocation"),
    Phrase(events.GroupOffsetFound, topics.COMMIT, _group_offset, "committed offset"),
    Phrase(
        events.RecordsProcessed,
        topics.COMMIT,
        "processed {values} of {partition}",
        "processed poll",
        routine=True,
    ),
    Phrase(events.ApplicationStep, topics.STEP, "reaches step {step}", "step", routine=True),
    Phrase(events.ApplicationEnded, topics.GROUP, "ENDS with an error: {error}", "ended application"),
    Phrase(
        events.CommitFailed,
        topics.COMMIT,
        lambda event, _: f"could NOT commit {_pairs(event.offsets)}: {event.error}",
        "failed commit",
    ),
    Phrase(
        events.MembershipLost,
        topics.GROUP,
        "is no longer in group {group}: {reason}",
        "lost membership",
    ),
)

PHRASES: Final[dict[type[Event], Phrase[Any]]] = {
    phrase.event: phrase for phrase in (*_CLUSTER, *_REPLICAS, *_CLIENTS, *_GROUPS)
}
