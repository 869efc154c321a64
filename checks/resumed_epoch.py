"""A leader that loses power and resumes its epoch: what Kafka cannot tell apart.

A broker that comes back while nobody is controller finds itself still leader, in the same
epoch. If its machine had lost power, its log now ends earlier, and what it appends next has
offsets and the epoch of records that its followers have: no truncation can tell the two
apart, and no follower is told to begin again. Leader epochs guard against other leaders,
not against a leader that forgets. That it keeps what it has appended is up to flushing.
"""

from typing import Final

from checks.evidence import Evidence
from checks.promise import FLUSH_INTERVAL
from cluster_model.trace import named

RESUMED: Final = f"a leader lost what it had not flushed ({FLUSH_INTERVAL}) and resumed its epoch"
"""What happened, for the stories of findings."""


def resumed_from(evidence: Evidence, partition: str) -> int | None:
    """Return the lowest offset that a leader lost before it went on in the same epoch; else None."""
    led: dict[int, int] = {}
    forgot: dict[int, tuple[int, int]] = {}
    found: int | None = None
    for event in named(evidence.trace, "unflushed_lost", "leader"):
        if event[3] != partition:
            continue
        broker = event[2]
        if event[1] == "unflushed_lost":
            if broker in led:
                epoch, lowest = forgot.get(broker, (led[broker], event[4]))
                same = epoch == led[broker]
                forgot[broker] = (led[broker], min(lowest, event[4]) if same else event[4])
        else:
            epoch = event[4]
            if broker in forgot and forgot[broker][0] == epoch:
                found = forgot[broker][1] if found is None else min(found, forgot[broker][1])
            led[broker] = epoch
    return found


def is_excused(evidence: Evidence, partition: str, offset: int | None) -> bool:
    """Return whether an anomaly at an offset can come from a leader that resumed its epoch."""
    lowest = resumed_from(evidence, partition)
    return lowest is not None and (offset is None or offset >= lowest)
