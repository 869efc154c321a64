"""What replicas say, and those who decide on their leaders."""

from collections.abc import Callable, Sequence
from typing import Final

from campaigns.spelling import printable
from campaigns.told import FAULTS, NOBODY, Fields, Moment, Told, between, broker_lane, offsets, records
from checks.story import words


def _isr(isr: Sequence[int]) -> str:
    return f"[{', '.join(map(str, isr))}]"


def _election(fields: Fields, moment: Moment) -> Told:
    leader, reason = fields["leader"], words(fields["reason"])
    rest = f"epoch {fields['leader_epoch']}, ISR {_isr(fields['isr'])}"
    if leader == NOBODY:
        return Told(broker_lane(fields["controller"]), "election", f"NO LEADER{moment.of}: {rest} ({reason})")
    how = "UNCLEANLY elected" if fields["unclean"] else "elected"
    text = f"{how} broker {leader} leader{moment.of}: {rest} ({reason})"
    return Told(broker_lane(fields["controller"]), "election", text, broker_lane(leader))


def _isr_reduced(fields: Fields, moment: Moment) -> Told:
    text = f"reduced the ISR{moment.of} to {_isr(fields['isr'])}, epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["controller"]), "election", text)


def _leader(fields: Fields, moment: Moment) -> Told:
    text = (
        f"LEADS{moment.which} in epoch {fields['leader_epoch']} "
        f"from offset {fields['start_offset']}, ISR {_isr(fields['isr'])}"
    )
    return Told(broker_lane(fields["broker"]), "epoch", text)


def _follower(fields: Fields, moment: Moment) -> Told:
    leader = fields["leader"]
    whom = "nobody" if leader == NOBODY else f"broker {leader}"
    text = f"follows {whom}{moment.on} in epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["broker"]), "epoch", text)


def _epoch_asked(fields: Fields, moment: Moment) -> Told:
    asked, answer, replica = fields["leader_epoch"], fields["answer_epoch"], fields["replica"]
    epoch = f"epoch {asked}" if asked == answer else f"epoch {answer} (asked for {asked})"
    text = f"told broker {replica} where {epoch}{moment.of} ends: {fields['end_offset']}"
    return Told(broker_lane(fields["broker"]), "epoch", text, broker_lane(replica))


def _append(fields: Fields, moment: Moment) -> Told:
    producer = ""
    if fields["producer_id"] >= 0:
        producer = f", producer id {fields['producer_id']} sequence {fields['base_sequence']}"
    text = (
        f"appended {records(fields['values'])}{moment.on} at {offsets(fields)}, "
        f"epoch {fields['leader_epoch']}{producer}"
    )
    return Told(broker_lane(fields["broker"]), "log", text, moment.sender)


def _replicate(fields: Fields, moment: Moment) -> Told:
    text = f"copied {records(fields['values'])}{moment.on} to {offsets(fields)}"
    to = None if moment.leader is None else broker_lane(moment.leader)
    return Told(broker_lane(fields["broker"]), "log", text, to)


def _duplicate_batch(fields: Fields, moment: Moment) -> Told:
    text = (
        f"knew the batch{moment.of} of producer id {fields['producer_id']}, sequence "
        f"{fields['base_sequence']}, already: it stands at offset {fields['base_offset']}"
    )
    return Told(broker_lane(fields["broker"]), "log", text)


def _hw(fields: Fields, moment: Moment) -> Told:
    before, now = moment.hw_before, fields["hw"]
    text = f"HW{moment.of} {now}" if before is None else f"HW{moment.of} {before} -> {now}"
    return Told(broker_lane(fields["broker"]), "hw", text, routine=before == now, moved=(before or 0, now))


def _isr_changed(fields: Fields, moment: Moment) -> Told:
    verb = {"shrink": "shrank", "expand": "expanded"}.get(fields["change"], "changed")
    text = f"{verb} the ISR{moment.of} to {_isr(fields['isr'])}, epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["broker"]), "isr", text)


def _isr_refused(fields: Fields, moment: Moment) -> Told:
    text = f"was REFUSED the ISR{moment.of} {_isr(fields['isr'])}, epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["broker"]), "isr", text)


def _isr_written(fields: Fields, moment: Moment) -> Told:
    text = f"ZooKeeper has the ISR{moment.of} {_isr(fields['isr'])}, epoch {fields['leader_epoch']}"
    return Told(broker_lane(fields["broker"]), "isr", text, routine=True)


def _truncate(fields: Fields, moment: Moment) -> Told:
    leo, before = sorted((fields["from_offset"], fields["to_offset"]))
    cut = f", cut off {records(moment.gone)}" if moment.gone else ""
    text = f"TRUNCATED{moment.which} from {before} to {leo} ({words(fields['reason'])}){cut}"
    return Told(broker_lane(fields["broker"]), "truncation", text, routine=before == leo)


def _fetcher_failed(fields: Fields, moment: Moment) -> Told:
    text = f"stopped fetching{moment.which}: got offset {fields['base_offset']} after LEO {fields['leo']}"
    return Told(broker_lane(fields["broker"]), "truncation", text)


def _recover(fields: Fields, moment: Moment) -> Told:
    gone = f", without {records(moment.gone)}" if moment.gone else ""
    text = f"opened its log{moment.of}: LEO {fields['leo']}, HW {fields['hw']}{gone}"
    return Told(broker_lane(fields["broker"]), "truncation", text)


def _unflushed_lost(fields: Fields, moment: Moment) -> Told:
    first, last = sorted((fields["from_offset"], fields["to_offset"]))
    which = f": {records(moment.gone)}" if moment.gone else ""
    text = f"LOST what was not flushed{moment.of}, {between(first, last)}{which}"
    return Told(broker_lane(fields["broker"]), "truncation", text)


def _flush(fields: Fields, moment: Moment) -> Told:
    text = f"flushed{moment.which} up to {fields['offset']}"
    return Told(broker_lane(fields["broker"]), "disk", text, routine=True)


def _checkpoint(fields: Fields, _moment: Moment) -> Told:
    offsets = ", ".join(f"{partition} {offset}" for partition, offset in fields["offsets"])
    text = f"wrote {fields['kind']}: {offsets}"
    return Told(broker_lane(fields["broker"]), "disk", text, routine=True)


def _invariant_broken(fields: Fields, moment: Moment) -> Told:
    text = printable(f"INVARIANT {fields['invariant']} broken{moment.of}: {fields['details']}")
    lane = FAULTS if fields["broker"] == NOBODY else broker_lane(fields["broker"])
    return Told(lane, "invariant", text)


TELLERS: Final[dict[str, Callable[[Fields, Moment], Told]]] = {
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
    "isr_written": _isr_written,
}
"""What tells each event."""
