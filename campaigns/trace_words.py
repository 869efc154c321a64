"""What each event of a run says to somebody who knows Kafka."""

from typing import Final

from campaigns import client_words, cluster_words, replica_words
from campaigns.spelling import printable
from campaigns.told import FAULTS, Fields, Moment, Told, broker_lane
from campaigns.units import fields_text

_TELLERS: Final = {**cluster_words.TELLERS, **replica_words.TELLERS, **client_words.TELLERS}


def tell(name: str, fields: Fields, moment: Moment) -> Told:
    """Return what an event says; one that has no words of its own says its fields."""
    teller = _TELLERS.get(name)
    return _unknown(name, fields) if teller is None else teller(fields, moment)


def _unknown(name: str, fields: Fields) -> Told:
    lane = next((broker_lane(fields[key]) for key in ("broker", "controller") if key in fields), FAULTS)
    return Told(lane, "request", printable(f"{name} {fields_text(tuple(fields.items()))}".rstrip()))
