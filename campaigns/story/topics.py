"""Story topics: the subjects of events. A story sorts, folds and colours its events by topic.

They have nothing to do with the topics of Kafka.
"""

from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StoryTopic:
    """A subject that several kinds of events share. A page lists it with the line ``doc``.

    Events of a turning-point topic change the cluster. A long story folds the events of a traffic
    topic.
    """

    name: str
    doc: str
    is_turning_point: bool = False
    is_traffic: bool = False


STORY_TOPICS: Final[dict[str, StoryTopic]] = {}
"""Every topic by name, in the order in which pages list them."""


def _topic(name: str, doc: str, *, is_turning_point: bool = False, is_traffic: bool = False) -> StoryTopic:
    return STORY_TOPICS.setdefault(name, StoryTopic(name, doc, is_turning_point, is_traffic))


FAULT: Final = _topic("fault", "faults, and messages that they affect", is_turning_point=True)
PROCESS: Final = _topic("process", "processes start, stop, pause and resume", is_turning_point=True)
SESSION: Final = _topic("session", "sessions and registrations of brokers", is_turning_point=True)
CONTROLLER: Final = _topic("controller", "controllers come and go", is_turning_point=True)
ELECTION: Final = _topic(
    "election",
    "leaders are elected, and the controller removes replicas from the ISR",
    is_turning_point=True,
)
EPOCH: Final = _topic(
    "epoch",
    "replicas become leaders or followers in a leader epoch, and ask where one ends",
    is_turning_point=True,
)
ISR: Final = _topic("isr", "leaders change the ISR", is_turning_point=True)
TRUNCATION: Final = _topic(
    "truncation", "logs are opened, truncated, or lose unflushed records", is_turning_point=True
)
HW: Final = _topic("hw", "high watermarks move", is_traffic=True)
LOG: Final = _topic("log", "records are appended and copied", is_traffic=True)
ACK: Final = _topic("ack", "brokers acknowledge records", is_traffic=True)
SEND: Final = _topic("send", "clients send records and learn the outcome", is_traffic=True)
READ: Final = _topic("read", "consumers read", is_traffic=True)
REQUEST: Final = _topic("request", "fetches, responses, rejections", is_traffic=True)
DISK: Final = _topic("disk", "flushes and checkpoints")
CLIENT: Final = _topic("client", "applications produce records, begin and end transactions")
FETCH: Final = _topic("fetch", "responses to fetches of an older leader epoch arrive")
GROUP: Final = _topic("group", "groups, their members and their assignments change")
COMMIT: Final = _topic("commit", "members process records and commit offsets")
STEP: Final = _topic("step", "applications reach a step of their loops")
REJECTION: Final = _topic("rejection", "transactions fail, and consumer positions are out of range")
INVARIANT: Final = _topic("invariant", "invariants break", is_turning_point=True)
