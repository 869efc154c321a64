"""What happened inside the cluster, as tuples that are rendered later, if at all.

An event is ``(at_us, name, *fields)``, the fields in the order of `FIELDS`. Fields
are ints, strings, booleans, None and tuples of these, nothing else, so that the
digest of a trace is the same in every process.
"""

import hashlib
import marshal
from collections.abc import Iterator, Sequence
from typing import Any, Final

TraceEvent = tuple[Any, ...]

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    # Processes and sessions
    "broker_started": ("broker",),
    "broker_stopped": ("broker", "cause"),
    "broker_paused": ("broker",),
    "broker_resumed": ("broker",),
    "broker_registered": ("broker", "broker_epoch"),
    "client_stopped": ("client",),
    "session_expired": ("broker", "ephemerals"),
    # Faults and single messages
    "fault": ("fault", "phase", "details", "strike"),
    "fault_ended": ("fault", "details", "strike"),
    "healed": (),
    "message": ("api", "kind", "sender", "receiver"),
    "message_rule": ("rule", "action", "api", "kind", "sender", "receiver", "strike"),
    "core_healed": ("brokers",),
    # Controller
    "controller_elected": ("broker", "controller_epoch"),
    "controller_resigned": ("broker", "controller_epoch"),
    "election": ("controller", "partition", "leader", "leader_epoch", "isr", "unclean", "reason"),
    "isr_reduced": ("controller", "partition", "leader", "leader_epoch", "isr"),
    # Replicas
    "leader": ("broker", "partition", "leader_epoch", "start_offset", "isr"),
    "follower": ("broker", "partition", "leader_epoch", "leader"),
    "append": (
        "broker",
        "partition",
        "base_offset",
        "leader_epoch",
        "producer_id",
        "base_sequence",
        "values",
    ),
    "replicate": (
        "broker",
        "partition",
        "base_offset",
        "leader_epoch",
        "producer_id",
        "base_sequence",
        "values",
    ),
    "duplicate_batch": ("broker", "partition", "producer_id", "base_sequence", "base_offset"),
    "hw": ("broker", "partition", "hw"),
    "isr": ("broker", "partition", "leader_epoch", "isr", "change"),
    "isr_written": ("broker", "partition", "leader_epoch", "isr"),
    "isr_refused": ("broker", "partition", "leader_epoch", "isr", "change"),
    "truncate": ("broker", "partition", "from_offset", "to_offset", "reason"),
    "fetcher_failed": ("broker", "partition", "base_offset", "leo"),
    "recover": ("broker", "partition", "leo", "hw"),
    "unflushed_lost": ("broker", "partition", "from_offset", "to_offset"),
    "flush": ("broker", "partition", "offset"),
    "checkpoint": ("broker", "kind", "offsets"),
    "invariant_broken": ("invariant", "broker", "partition", "leader_epoch", "offset", "details"),
    "epoch_asked": ("broker", "partition", "replica", "leader_epoch", "answer_epoch", "end_offset"),
    # Requests, and what their clients make of the answers
    "send_failed": ("client", "partition", "leader", "attempt", "error", "values"),
    "sent_again": ("client", "partition", "leader", "attempt", "values"),
    "fetch": ("broker", "partition", "replica", "offset"),
    "fetch_waits": ("broker", "replica"),
    "fetch_expired": ("broker", "replica"),
    "served": ("broker", "partition", "client", "offset", "end_offset", "hw"),
    "acknowledged": ("broker", "partition", "base_offset", "acks", "values"),
    "rejected": ("broker", "api", "partition", "sender", "error"),
}
"""The names of each event's fields, in order, after the time and the name.

``strike`` numbers the faults of a run that struck, from 1, so that what they do later, and
their ends, name what struck.
``ephemerals`` are the paths of the znodes that go with a session: a broker that restarts soon has an
older session beside its own, which may hold nothing.
"""

ADDED: Final = frozenset({"strike", "ephemerals"})
"""Fields at the end of events that earlier traces do not have; nobody knows their values there."""


class Trace:
    """The events of a run, in the order in which they happened."""

    __slots__ = ("add", "events")

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        self.add = self.events.append

    def since(self, position: int) -> Sequence[TraceEvent]:
        """Return the events from *position* on."""
        return self.events[position:]

    def digest(self) -> str:
        """Return the digest (SHA-256, hex, 16 digits) of the whole trace."""
        return digest(self.events)


def digest(values: Any) -> str:
    """Return a digest of plain data (lists, tuples, ints, strings, booleans, None).

    Marshal's format 2 has neither back references nor interned strings, so equal
    values give equal bytes whatever their history in memory.
    """
    return hashlib.sha256(marshal.dumps(values, 2)).hexdigest()[:16]


def as_mapping(event: TraceEvent) -> dict[str, Any]:
    """Return an event with its fields named, as it is written to ``trace.jsonl``."""
    name = event[1]
    return {"at_us": event[0], "event": name, **dict(zip(FIELDS[name], event[2:], strict=True))}


def named(events: Sequence[TraceEvent], *names: str) -> Iterator[TraceEvent]:
    """Yield the events that have one of *names*."""
    wanted = frozenset(names)
    return (event for event in events if event[1] in wanted)
