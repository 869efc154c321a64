"""What events are about: the topics by which stories sort, fold and colour them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Topic:
    """What kinds of events have in common, with the line that a page shows for it.

    After an event of a topic that ``is_turning_point`` a cluster is another one. Events of a topic that ``is_traffic`` are
    folded in a long story.
    """

    name: str
    doc: str
    is_turning_point: bool = False
    is_traffic: bool = False


TOPICS: Final[dict[str, Topic]] = {}
"""Every topic by its name, in the order in which pages list them."""


def _topic(name: str, doc: str, *, is_turning_point: bool = False, is_traffic: bool = False) -> Topic:
    return TOPICS.setdefault(name, Topic(name, doc, is_turning_point, is_traffic))


FAULT: Final = _topic("fault", "faults, and messages that they touch", is_turning_point=True)
PROCESS: Final = _topic("process", "processes start, stop, are paused and wake up", is_turning_point=True)
SESSION: Final = _topic("session", "sessions and registrations of brokers", is_turning_point=True)
CONTROLLER: Final = _topic("controller", "controllers come and go", is_turning_point=True)
ELECTION: Final = _topic(
    "election",
    "leaders are elected, replicas are taken out of the ISR by the controller",
    is_turning_point=True,
)
EPOCH: Final = _topic(
    "epoch",
    "replicas begin to lead or to follow in a leader epoch, and ask where one ends",
    is_turning_point=True,
)
ISR: Final = _topic("isr", "leaders change their ISR", is_turning_point=True)
TRUNCATION: Final = _topic(
    "truncation", "logs are opened, truncated, or lose what was not flushed", is_turning_point=True
)
HW: Final = _topic("hw", "high watermarks move", is_traffic=True)
LOG: Final = _topic("log", "records are appended and copied", is_traffic=True)
ACK: Final = _topic("ack", "brokers acknowledge records", is_traffic=True)
SEND: Final = _topic("send", "clients send, and hear what became of it", is_traffic=True)
READ: Final = _topic("read", "consumers read", is_traffic=True)
REQUEST: Final = _topic("request", "fetches, answers, refusals", is_traffic=True)
DISK: Final = _topic("disk", "flushes and checkpoints")
CLIENT: Final = _topic("client", "applications hand over records, begin transactions and end them")
FETCH: Final = _topic("fetch", "answers to fetches of an older leader epoch arrive")
GROUP: Final = _topic("group", "groups and their members change, and so does what each member reads")
COMMIT: Final = _topic("commit", "members process records, and commit how far they have got")
STEP: Final = _topic("step", "applications come to a step of their loops")
REJECTION: Final = _topic("rejection", "transactions fail, and positions of consumers are out of range")
INVARIANT: Final = _topic("invariant", "invariants break", is_turning_point=True)
