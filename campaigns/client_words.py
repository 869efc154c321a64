"""What clients say, and brokers about their requests and those of followers."""

from collections.abc import Callable
from typing import Final

from campaigns.replica_states import ACKED, FAILED
from campaigns.spelling import printable
from campaigns.told import NOBODY, Fields, Moment, Told, between, broker_lane, lane_of, offsets, records


def _client_stopped(fields: Fields, _moment: Moment) -> Told:
    return Told(fields["client"], "process", "stopped")


def _send_failed(fields: Fields, moment: Moment) -> Told:
    whom = broker_lane(fields["leader"])
    text = (
        f"request {fields['attempt']} with {records(fields['values'])}{moment.on} "
        f"to {whom} failed: {fields['error']}"
    )
    return Told(fields["client"], "send", text, whom)


def _sent_again(fields: Fields, moment: Moment) -> Told:
    whom = broker_lane(fields["leader"])
    text = f"sends {records(fields['values'])}{moment.on} again to {whom}, request {fields['attempt']}"
    return Told(fields["client"], "send", text, whom)


def _fetch(fields: Fields, moment: Moment) -> Told:
    replica = broker_lane(fields["replica"])
    text = f"fetches{moment.which} from offset {fields['offset']}"
    return Told(replica, "request", text, broker_lane(fields["broker"]), routine=True)


def _fetch_waits(fields: Fields, _moment: Moment) -> Told:
    return Told(broker_lane(fields["broker"]), "request", f"has {_fetcher(fields)} fetch wait", routine=True)


def _fetch_expired(fields: Fields, _moment: Moment) -> Told:
    text = f"answers {_fetcher(fields)} fetch, as its time is over"
    return Told(broker_lane(fields["broker"]), "request", text, routine=True)


def _fetcher(fields: Fields) -> str:
    return "a consumer's" if fields["replica"] < 0 else f"broker {fields['replica']}'s"


def _served(fields: Fields, moment: Moment) -> Told:
    first, end = fields["offset"], fields["end_offset"]
    what = between(first, end)
    text = f"served {fields['client']} {what}{moment.of}, HW {fields['hw']}"
    return Told(broker_lane(fields["broker"]), "read", text, fields["client"], routine=end <= first)


def _acknowledged(fields: Fields, moment: Moment) -> Told:
    acks = "all" if fields["acks"] == NOBODY else fields["acks"]
    text = f"ACKED {records(fields['values'])}{moment.on} at {offsets(fields)} (acks={acks})"
    return Told(broker_lane(fields["broker"]), "ack", text, moment.sender)


def _client_sent(fields: Fields, moment: Moment) -> Told:
    return Told(fields["client"], "send", f"sends {records([fields['value']])}{moment.to}")


def _client_ended(fields: Fields, moment: Moment) -> Told:
    name, status, offset = records([fields["value"]]), fields["status"], fields["offset"]
    error = "" if fields["error"] is None else printable(f": {fields['error']}")
    if status == ACKED:
        at = "" if offset is None else f" at offset {offset}"
        return Told(fields["client"], "send", f"{name}{moment.on} is stored{at}")
    said = "FAILED" if status == FAILED else "ended UNKNOWN"
    return Told(fields["client"], "send", f"send of {name}{moment.on} {said}{error}")


def _client_polled(fields: Fields, moment: Moment) -> Told:
    found = fields["records"]
    if not found:
        return Told(fields["client"], "read", f"read nothing{moment.of}", routine=True)
    offsets = [offset for offset, _ in found]
    at = f"offset {offsets[0]}" if len(offsets) == 1 else f"offsets {offsets[0]}-{offsets[-1]}"
    return Told(fields["client"], "read", f"READ {records([value for _, value in found])}{moment.of} at {at}")


def _rejected(fields: Fields, moment: Moment) -> Told:
    sender = lane_of(fields["sender"])
    text = f"refused {fields['api']} of {sender}{moment.on}: {fields['error']}"
    return Told(broker_lane(fields["broker"]), "request", text, sender)


TELLERS: Final[dict[str, Callable[[Fields, Moment], Told]]] = {
    "client_stopped": _client_stopped,
    "send_failed": _send_failed,
    "sent_again": _sent_again,
    "fetch": _fetch,
    "fetch_waits": _fetch_waits,
    "fetch_expired": _fetch_expired,
    "served": _served,
    "acknowledged": _acknowledged,
    "rejected": _rejected,
    "client_sent": _client_sent,
    "client_ended": _client_ended,
    "client_polled": _client_polled,
}
"""What tells each event."""
