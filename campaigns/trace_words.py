"""What each event of a trace says to somebody who knows Kafka: in whose lane, of which kind, in a few words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from campaigns.replica_states import ACKED, FAILED
from campaigns.spelling import printable
from campaigns.units import fields_text, value_text
from checks.story import words

FAULTS: Final = "faults"
"""The lane of faults and of the rules for single messages."""

KINDS: Final = {
    "fault": "faults, and messages that they touch",
    "process": "processes start, stop, are paused and wake up",
    "session": "sessions and registrations of brokers",
    "controller": "controllers come and go",
    "election": "leaders are elected, replicas are taken out of the ISR by the controller",
    "epoch": "replicas begin to lead or to follow in a leader epoch, and ask where one ends",
    "isr": "leaders change their ISR",
    "truncation": "logs are opened, truncated, or lose what was not flushed",
    "hw": "high watermarks move",
    "log": "records are appended and copied",
    "ack": "brokers acknowledge records",
    "send": "clients send, and hear what became of it",
    "read": "consumers read",
    "request": "fetches, answers, refusals",
    "disk": "flushes and checkpoints",
    "invariant": "invariants break",
}
"""The kinds of events, and what each tells."""

_NOBODY: Final = -1
_CAUSES: Final = {"process": "crashed", "power_loss": "lost power"}


@dataclass(frozen=True, slots=True)
class Told:
    """What an event says. ``to`` is the lane of whom it concerns besides, None for nobody.

    ``moved`` are a high watermark before and now, where one moves.
    """

    lane: str
    kind: str
    text: str
    to: str | None = None
    routine: bool = False
    moved: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known when an event happens, and its own fields do not say.

    ``partition`` is named where there are several, else it is empty. ``sender`` is the client
    that sent the event's records, ``leader`` whom its replica follows, ``hw_before`` the replica's high
    watermark until now; ``gone`` are the values that the event removed from its log.
    """

    partition: str = ""
    sender: str | None = None
    leader: int | None = None
    hw_before: int | None = None
    gone: Sequence[str] = ()

    @property
    def which(self) -> str:
        """The partition as an object: `` t-0``."""
        return f" {self.partition}" if self.partition else ""

    @property
    def of(self) -> str:
        """The partition as an attribute: `` of t-0``."""
        return f" of {self.partition}" if self.partition else ""

    @property
    def to(self) -> str:
        """The partition as a destination: `` to t-0``."""
        return f" to {self.partition}" if self.partition else ""

    @property
    def on(self) -> str:
        """The partition as a place: `` on t-0``."""
        return f" on {self.partition}" if self.partition else ""


def broker_lane(broker: int) -> str:
    """Return the name of a broker's lane."""
    return f"broker {broker}"


def lane_of(process: str) -> str:
    """Return the lane of a process by the name that traces give it: ``broker-1`` is broker 1."""
    kind, _, number = process.rpartition("-")
    return broker_lane(int(number)) if kind == "broker" and number.isdecimal() else process


def is_broker(lane: str) -> bool:
    """Return whether a lane is a broker's."""
    kind, _, number = lane.partition(" ")
    return kind == "broker" and number.isdecimal()


def tell(name: str, fields: Mapping[str, Any], moment: Moment) -> Told:
    """Return what an event says; one that has no words of its own says its fields."""
    teller = _TELLERS.get(name)
    return _unknown(name, fields) if teller is None else teller(fields, moment)


def records(values: Sequence[str]) -> str:
    """Return values for a sentence."""
    return ", ".join(printable(str(value)) for value in values)


def _unknown(name: str, fields: Mapping[str, Any]) -> Told:
    lane = next((broker_lane(fields[key]) for key in ("broker", "controller") if key in fields), FAULTS)
    return Told(lane, "request", printable(f"{name} {fields_text(tuple(fields.items()))}".rstrip()))


def _isr(isr: Sequence[int]) -> str:
    return f"[{', '.join(map(str, isr))}]"


def _offsets(fields: Mapping[str, Any]) -> str:
    return _between(fields["base_offset"], fields["base_offset"] + len(fields["values"]))


def _between(first: int, end: int) -> str:
    return f"offset {first}" if end == first + 1 else f"offsets {first}-{end - 1}"


def _process(text: str, kind: str = "process") -> Callable[[Mapping[str, Any], Moment], Told]:
    def told(fields: Mapping[str, Any], _moment: Moment) -> Told:
        return Told(broker_lane(fields["broker"]), kind, text.format(**fields))

    return told


def _stopped(fields: Mapping[str, Any], _moment: Moment) -> Told:
    text = _CAUSES.get(fields["cause"], f"stopped: {words(fields['cause'])}")
    return Told(broker_lane(fields["broker"]), "process", text)


def _client_stopped(fields: Mapping[str, Any], _moment: Moment) -> Told:
    return Told(fields["client"], "process", "stopped")


def _fault(fields: Mapping[str, Any], _moment: Moment) -> Told:
    phase = "" if fields["phase"] == "inject" else f" ({words(fields['phase'])})"
    return Told(FAULTS, "fault", f"{_struck(fields)}{phase}")


def _struck(fields: Mapping[str, Any]) -> str:
    """Return a fault as one line; what is given as null says nothing."""
    details = {name: value for name, value in fields["details"] if value is not None}
    name = fields["fault"]
    if name == "message":
        # Which message is meant is easier to read as one phrase.
        what = [str(details.pop(key)) for key in ("action", "api", "kind") if key in details]
        sender, receiver = details.pop("from", "*"), details.pop("to", "*")
        name = f"message: {' '.join(what)} {value_text(sender)} -> {value_text(receiver)}"
    return printable(f"{name} {fields_text(tuple(details.items()))}".rstrip())


def _message(fields: Mapping[str, Any], _moment: Moment) -> Told:
    text = f"{fields['api']} {fields['kind']} to {lane_of(fields['receiver'])}"
    return Told(lane_of(fields["sender"]), "request", text, lane_of(fields["receiver"]), routine=True)


_ACTIONS: Final = {"hold": "held", "drop": "dropped", "delay": "delayed", "duplicate": "doubled"}


def _message_rule(fields: Mapping[str, Any], _moment: Moment) -> Told:
    action = _ACTIONS.get(fields["action"], fields["action"])
    sender, receiver = lane_of(fields["sender"]), lane_of(fields["receiver"])
    text = f"{action} the {fields['api']} {fields['kind']} from {sender} to {receiver}"
    return Told(FAULTS, "fault", printable(text))


def _core_healed(fields: Mapping[str, Any], _moment: Moment) -> Told:
    return Told(FAULTS, "fault", f"healed brokers {', '.join(map(str, fields['brokers']))} alone")


def _election(fields: Mapping[str, Any], moment: Moment) -> Told:
    leader, reason = fields["leader"], words(fields["reason"])
    rest = f"epoch {fields['leader_epoch']}, ISR {_isr(fields['isr'])}"
    if leader == _NOBODY:
        return Told(broker_lane(fields["controller"]), "election", f"NO LEADER{moment.of}: {rest} ({reason})")
    how = "UNCLEANLY elected" if fields["unclean"] else "elected"
    text = f"{how} broker {leader} leader{moment.of}: {rest} ({reason})"
    return Told(broker_lane(fields["controller"]), "election", text, broker_lane(leader))


def _isr_reduced(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = f"reduced the ISR{moment.of} to {_isr(fields['isr'])}, epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["controller"]), "election", text)


def _leader(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = (
        f"LEADS{moment.which} in epoch {fields['leader_epoch']} "
        f"from offset {fields['start_offset']}, ISR {_isr(fields['isr'])}"
    )
    return Told(broker_lane(fields["broker"]), "epoch", text)


def _follower(fields: Mapping[str, Any], moment: Moment) -> Told:
    leader = fields["leader"]
    whom = "nobody" if leader == _NOBODY else f"broker {leader}"
    text = f"follows {whom}{moment.on} in epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["broker"]), "epoch", text)


def _epoch_asked(fields: Mapping[str, Any], moment: Moment) -> Told:
    asked, answer, replica = fields["leader_epoch"], fields["answer_epoch"], fields["replica"]
    epoch = f"epoch {asked}" if asked == answer else f"epoch {answer} (asked for {asked})"
    text = f"told broker {replica} where {epoch}{moment.of} ends: {fields['end_offset']}"
    return Told(broker_lane(fields["broker"]), "epoch", text, broker_lane(replica))


def _append(fields: Mapping[str, Any], moment: Moment) -> Told:
    producer = ""
    if fields["producer_id"] >= 0:
        producer = f", producer id {fields['producer_id']} sequence {fields['base_sequence']}"
    text = (
        f"appended {records(fields['values'])}{moment.on} at {_offsets(fields)}, "
        f"epoch {fields['leader_epoch']}{producer}"
    )
    return Told(broker_lane(fields["broker"]), "log", text, moment.sender)


def _replicate(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = f"copied {records(fields['values'])}{moment.on} to {_offsets(fields)}"
    to = None if moment.leader is None else broker_lane(moment.leader)
    return Told(broker_lane(fields["broker"]), "log", text, to)


def _duplicate_batch(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = (
        f"knew the batch{moment.of} of producer id {fields['producer_id']}, sequence "
        f"{fields['base_sequence']}, already: it stands at offset {fields['base_offset']}"
    )
    return Told(broker_lane(fields["broker"]), "log", text)


def _hw(fields: Mapping[str, Any], moment: Moment) -> Told:
    before, now = moment.hw_before, fields["hw"]
    text = f"HW{moment.of} {now}" if before is None else f"HW{moment.of} {before} -> {now}"
    return Told(broker_lane(fields["broker"]), "hw", text, routine=before == now, moved=(before or 0, now))


def _isr_changed(fields: Mapping[str, Any], moment: Moment) -> Told:
    verb = {"shrink": "shrank", "expand": "expanded"}.get(fields["change"], "changed")
    text = f"{verb} the ISR{moment.of} to {_isr(fields['isr'])}, epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["broker"]), "isr", text)


def _isr_refused(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = f"was REFUSED the ISR{moment.of} {_isr(fields['isr'])}, epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["broker"]), "isr", text)


def _truncate(fields: Mapping[str, Any], moment: Moment) -> Told:
    leo, before = sorted((fields["from_offset"], fields["to_offset"]))
    cut = f", cut off {records(moment.gone)}" if moment.gone else ""
    text = f"TRUNCATED{moment.which} from {before} to {leo} ({words(fields['reason'])}){cut}"
    return Told(broker_lane(fields["broker"]), "truncation", text, routine=before == leo)


def _fetcher_failed(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = f"stopped fetching{moment.which}: got offset {fields['base_offset']} after LEO {fields['leo']}"
    return Told(broker_lane(fields["broker"]), "truncation", text)


def _recover(fields: Mapping[str, Any], moment: Moment) -> Told:
    gone = f", without {records(moment.gone)}" if moment.gone else ""
    text = f"opened its log{moment.of}: LEO {fields['leo']}, HW {fields['hw']}{gone}"
    return Told(broker_lane(fields["broker"]), "truncation", text)


def _unflushed_lost(fields: Mapping[str, Any], moment: Moment) -> Told:
    first, last = sorted((fields["from_offset"], fields["to_offset"]))
    which = f": {records(moment.gone)}" if moment.gone else ""
    text = f"LOST what was not flushed{moment.of}, {_between(first, last)}{which}"
    return Told(broker_lane(fields["broker"]), "truncation", text)


def _flush(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = f"flushed{moment.which} up to {fields['offset']}"
    return Told(broker_lane(fields["broker"]), "disk", text, routine=True)


def _checkpoint(fields: Mapping[str, Any], _moment: Moment) -> Told:
    offsets = ", ".join(f"{partition} {offset}" for partition, offset in fields["offsets"])
    text = f"wrote {fields['kind']}: {offsets}"
    return Told(broker_lane(fields["broker"]), "disk", text, routine=True)


def _invariant_broken(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = printable(f"INVARIANT {fields['invariant']} broken{moment.of}: {fields['details']}")
    lane = FAULTS if fields["broker"] == _NOBODY else broker_lane(fields["broker"])
    return Told(lane, "invariant", text)


def _send_failed(fields: Mapping[str, Any], moment: Moment) -> Told:
    whom = broker_lane(fields["leader"])
    text = (
        f"request {fields['attempt']} with {records(fields['values'])}{moment.on} "
        f"to {whom} failed: {fields['error']}"
    )
    return Told(fields["client"], "send", text, whom)


def _sent_again(fields: Mapping[str, Any], moment: Moment) -> Told:
    whom = broker_lane(fields["leader"])
    text = f"sends {records(fields['values'])}{moment.on} again to {whom}, request {fields['attempt']}"
    return Told(fields["client"], "send", text, whom)


def _fetch(fields: Mapping[str, Any], moment: Moment) -> Told:
    replica = broker_lane(fields["replica"])
    text = f"fetches{moment.which} from offset {fields['offset']}"
    return Told(replica, "request", text, broker_lane(fields["broker"]), routine=True)


def _fetch_waits(fields: Mapping[str, Any], _moment: Moment) -> Told:
    return Told(broker_lane(fields["broker"]), "request", f"has {_fetcher(fields)} fetch wait", routine=True)


def _fetch_expired(fields: Mapping[str, Any], _moment: Moment) -> Told:
    text = f"answers {_fetcher(fields)} fetch, as its time is over"
    return Told(broker_lane(fields["broker"]), "request", text, routine=True)


def _fetcher(fields: Mapping[str, Any]) -> str:
    return "a consumer's" if fields["replica"] < 0 else f"broker {fields['replica']}'s"


def _served(fields: Mapping[str, Any], moment: Moment) -> Told:
    first, end = fields["offset"], fields["end_offset"]
    what = _between(first, end)
    text = f"served {fields['client']} {what}{moment.of}, HW {fields['hw']}"
    return Told(broker_lane(fields["broker"]), "read", text, fields["client"], routine=end <= first)


def _acknowledged(fields: Mapping[str, Any], moment: Moment) -> Told:
    acks = "all" if fields["acks"] == _NOBODY else fields["acks"]
    text = f"ACKED {records(fields['values'])}{moment.on} at {_offsets(fields)} (acks={acks})"
    return Told(broker_lane(fields["broker"]), "ack", text, moment.sender)


def _isr_written(fields: Mapping[str, Any], moment: Moment) -> Told:
    text = f"ZooKeeper has the ISR{moment.of} {_isr(fields['isr'])}, epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["broker"]), "isr", text, routine=True)


def _fault_ended(fields: Mapping[str, Any], _moment: Moment) -> Told:
    return Told(FAULTS, "fault", f"{_struck(fields)} is over")


def _healed(_fields: Mapping[str, Any], _moment: Moment) -> Told:
    return Told(FAULTS, "fault", "all is healed")


def _client_sent(fields: Mapping[str, Any], moment: Moment) -> Told:
    return Told(fields["client"], "send", f"sends {records([fields['value']])}{moment.to}")


def _client_ended(fields: Mapping[str, Any], moment: Moment) -> Told:
    name, status, offset = records([fields["value"]]), fields["status"], fields["offset"]
    error = "" if fields["error"] is None else printable(f": {fields['error']}")
    if status == ACKED:
        at = "" if offset is None else f" at offset {offset}"
        return Told(fields["client"], "send", f"{name}{moment.on} is stored{at}")
    said = "FAILED" if status == FAILED else "ended UNKNOWN"
    return Told(fields["client"], "send", f"send of {name}{moment.on} {said}{error}")


def _client_polled(fields: Mapping[str, Any], moment: Moment) -> Told:
    found = fields["records"]
    if not found:
        return Told(fields["client"], "read", f"read nothing{moment.of}", routine=True)
    offsets = [offset for offset, _ in found]
    at = f"offset {offsets[0]}" if len(offsets) == 1 else f"offsets {offsets[0]}-{offsets[-1]}"
    return Told(fields["client"], "read", f"READ {records([value for _, value in found])}{moment.of} at {at}")


def _rejected(fields: Mapping[str, Any], moment: Moment) -> Told:
    sender = lane_of(fields["sender"])
    text = f"refused {fields['api']} of {sender}{moment.on}: {fields['error']}"
    return Told(broker_lane(fields["broker"]), "request", text, sender)


_TELLERS: Final[dict[str, Callable[[Mapping[str, Any], Moment], Told]]] = {
    "broker_started": _process("started"),
    "broker_stopped": _stopped,
    "broker_paused": _process("PAUSED"),
    "broker_resumed": _process("woke up"),
    "broker_registered": _process("registered (broker epoch {broker_epoch})", "session"),
    "client_stopped": _client_stopped,
    "session_expired": _process("its session expired", "session"),
    "fault": _fault,
    "message": _message,
    "message_rule": _message_rule,
    "core_healed": _core_healed,
    "controller_elected": _process("became CONTROLLER (controller epoch {controller_epoch})", "controller"),
    "controller_resigned": _process("is no longer controller", "controller"),
    "election": _election,
    "isr_reduced": _isr_reduced,
    "leader": _leader,
    "follower": _follower,
    "append": _append,
    "replicate": _replicate,
    "duplicate_batch": _duplicate_batch,
    "hw": _hw,
    "isr": _isr_changed,
    "isr_refused": _isr_refused,
    "truncate": _truncate,
    "fetcher_failed": _fetcher_failed,
    "recover": _recover,
    "unflushed_lost": _unflushed_lost,
    "flush": _flush,
    "checkpoint": _checkpoint,
    "invariant_broken": _invariant_broken,
    "epoch_asked": _epoch_asked,
    "send_failed": _send_failed,
    "sent_again": _sent_again,
    "fetch": _fetch,
    "fetch_waits": _fetch_waits,
    "fetch_expired": _fetch_expired,
    "served": _served,
    "acknowledged": _acknowledged,
    "rejected": _rejected,
    "isr_written": _isr_written,
    "fault_ended": _fault_ended,
    "healed": _healed,
    "client_sent": _client_sent,
    "client_ended": _client_ended,
    "client_polled": _client_polled,
}
