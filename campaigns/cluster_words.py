"""What processes, sessions, controllers and faults say."""

from collections.abc import Callable
from typing import Final

from campaigns.spelling import printable
from campaigns.told import FAULTS, Fields, Moment, Told, broker_lane, lane_of
from campaigns.units import fields_text, value_text
from checks.story import words

_CAUSES: Final = {"process": "crashed", "power_loss": "lost power"}


def _process(text: str, kind: str = "process") -> Callable[[Fields, Moment], Told]:
    def told(fields: Fields, _moment: Moment) -> Told:
        return Told(broker_lane(fields["broker"]), kind, text.format(**fields))

    return told


def _stopped(fields: Fields, _moment: Moment) -> Told:
    text = _CAUSES.get(fields["cause"], f"stopped: {words(fields['cause'])}")
    return Told(broker_lane(fields["broker"]), "process", text)


def _session_expired(fields: Fields, _moment: Moment) -> Told:
    # A broker that restarts before its session expires has a new one by then, and the old one nothing.
    whose = "an older session of its" if fields["ephemerals"] == () else "its session"
    return Told(broker_lane(fields["broker"]), "session", f"{whose} expired")


def _fault(fields: Fields, _moment: Moment) -> Told:
    phase = "" if fields["phase"] == "inject" else f" ({words(fields['phase'])})"
    return Told(FAULTS, "fault", f"{_struck(fields)}{phase}")


def _struck(fields: Fields) -> str:
    """Return a fault as one line; what is given as null says nothing."""
    details = {name: value for name, value in fields["details"] if value is not None}
    name = fields["fault"]
    if name == "message":
        # Which message is meant is easier to read as one phrase.
        what = [str(details.pop(key)) for key in ("action", "api", "kind") if key in details]
        sender, receiver = details.pop("from", "*"), details.pop("to", "*")
        name = f"message: {' '.join(what)} {value_text(sender)} -> {value_text(receiver)}"
    return printable(f"{name} {fields_text(tuple(details.items()))}".rstrip())


def _message(fields: Fields, _moment: Moment) -> Told:
    text = f"{fields['api']} {fields['kind']} to {lane_of(fields['receiver'])}"
    return Told(lane_of(fields["sender"]), "request", text, lane_of(fields["receiver"]), routine=True)


_ACTIONS: Final = {"hold": "held", "drop": "dropped", "delay": "delayed", "duplicate": "doubled"}


def _message_rule(fields: Fields, _moment: Moment) -> Told:
    action = _ACTIONS.get(fields["action"], fields["action"])
    sender, receiver = lane_of(fields["sender"]), lane_of(fields["receiver"])
    text = f"{action} the {fields['api']} {fields['kind']} from {sender} to {receiver}"
    return Told(FAULTS, "fault", printable(text))


def _core_healed(fields: Fields, _moment: Moment) -> Told:
    return Told(FAULTS, "fault", f"healed brokers {', '.join(map(str, fields['brokers']))} alone")


def _fault_ended(fields: Fields, _moment: Moment) -> Told:
    return Told(FAULTS, "fault", f"{_struck(fields)} is over")


def _healed(_fields: Fields, _moment: Moment) -> Told:
    return Told(FAULTS, "fault", "all is healed")


TELLERS: Final[dict[str, Callable[[Fields, Moment], Told]]] = {
    "broker_started": _process("started"),
    "broker_stopped": _stopped,
    "broker_paused": _process("PAUSED"),
    "broker_resumed": _process("woke up"),
    "broker_registered": _process("registered (broker epoch {broker_epoch})", "session"),
    "session_expired": _session_expired,
    "fault": _fault,
    "message": _message,
    "message_rule": _message_rule,
    "core_healed": _core_healed,
    "controller_elected": _process("became CONTROLLER (controller epoch {controller_epoch})", "controller"),
    "controller_resigned": _process("is no longer controller", "controller"),
    "fault_ended": _fault_ended,
    "healed": _healed,
}
"""What tells each event."""
