"""The lives of records as the trace tells them: where each copy was stored, and how it went.

The replicas' logs are replayed from the trace. That costs as much as judging a whole run,
so it is done only when a rule has found something and has to say why.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cluster_model.trace import TraceEvent

Placed = tuple[int, TraceEvent]
"""An event and its position in the trace, which tells before from after within one instant."""

END: Final = 2**63 - 1
"""A position after every event of a trace."""

_POWER_LOSS: Final = "unflushed_lost"


class Copy:
    """A record in one replica's log. ``gone`` is the event that removed it, None if it stayed.

    ``committed`` says whether this replica's high watermark passed it while it was there.
    """

    __slots__ = ("broker", "committed", "gone", "leader_epoch", "offset", "stored", "value")

    def __init__(self, value: str, broker: int, offset: int, leader_epoch: int, stored: Placed) -> None:
        self.value = value
        self.broker = broker
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.stored = stored
        self.gone: Placed | None = None
        self.committed = False

    @property
    def appended(self) -> bool:
        """Whether the replica took the record from a producer, not from another replica."""
        return bool(self.stored[1][1] == "append")

    @property
    def lost_with_power(self) -> bool:
        """Whether the copy was not flushed and went with its broker's power."""
        return self.gone is not None and self.gone[1][1] == _POWER_LOSS

    def is_there(self, position: int) -> bool:
        """Return whether the copy exists at a position of the trace."""
        return self.stored[0] < position and (self.gone is None or self.gone[0] > position)


class PartitionCopies:
    """All copies of a partition's records, with the events that explain them.

    ``by_value`` has the copies in the order in which they were stored.
    """

    __slots__ = (
        "_around",
        "_committed",
        "_high_watermarks",
        "_logs",
        "_noted",
        "acknowledged",
        "by_value",
    )

    def __init__(self, around: Mapping[str, Sequence[Placed]] | None = None) -> None:
        # It is filled while the trace is replayed, so an empty one is not replaced.
        self._around = {} if around is None else around
        self._noted: dict[str, list[Placed]] = {}
        self._logs: dict[int, list[Copy]] = {}
        self._high_watermarks: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self.by_value: dict[str, list[Copy]] = {}
        self.acknowledged: dict[str, list[Placed]] = {}

    def of_value(self, value: str | int) -> Sequence[Copy]:
        """Return the copies of a value; those of a number, which only a recorded history has, are unknown."""
        return self.by_value.get(value, ()) if isinstance(value, str) else ()

    def acks_of(self, value: str | int) -> Sequence[Placed]:
        """Return the ``acknowledged`` events of a value."""
        return self.acknowledged.get(value, ()) if isinstance(value, str) else ()

    @property
    def elections(self) -> Sequence[Placed]:
        """The elections of the partition's leaders."""
        return self.events("election")

    def events(self, name: str) -> Sequence[Placed]:
        """Return the events of a name that tell of this partition, or of the whole cluster."""
        found = self._noted.get(name)
        return self._around.get(name, ()) if found is None else found

    def isr_at(self, broker: int, position: int) -> tuple[int, ...] | None:
        """Return the ISR as the leader *broker* knew it at a position of the trace."""
        known = self.isr_history(broker, position)
        return known[-1][1] if known else None

    def isr_before(self, position: int) -> tuple[int, ...] | None:
        """Return the partition's ISR at a position, whoever said so last."""
        known = self.isr_history(None, position)
        return known[-1][1] if known else None

    def isr_history(self, leader: int | None, position: int) -> list[tuple[Placed, tuple[int, ...]]]:
        """Return the events up to a position that tell the ISR, with it: a leader's own, or all."""
        names = _ISR_OF_LEADER if leader is not None else (*_ISR_OF_LEADER, *_ISR_OF_CONTROLLER)
        found = [
            (placed, placed[1][field])
            for name, field in names
            for placed in self.events(name)
            if placed[0] < position and (leader is None or placed[1][2] == leader)
        ]
        return sorted(found, key=lambda known: known[0][0])

    def store(self, placed: Placed) -> None:
        """Replay ``append`` or ``replicate``."""
        _, _, broker, _, base_offset, leader_epoch, _, _, values = placed[1]
        self._cut(broker, base_offset, placed)
        log = self._logs.setdefault(broker, [])
        for offset, value in enumerate(values, base_offset):
            copy = Copy(value, broker, offset, leader_epoch, placed)
            log.append(copy)
            self.by_value.setdefault(value, []).append(copy)
        # A leader alone in its ISR may raise its high watermark before it reports the append.
        self._commit(broker)

    def remove(self, placed: Placed) -> None:
        """Replay ``truncate`` or ``unflushed_lost``; the smaller offset is the new LEO."""
        _, _, broker, _, one_offset, other_offset = placed[1][:6]
        leo = min(one_offset, other_offset)
        self._cut(broker, leo, placed)
        self._high_watermarks[broker] = min(self._high_watermarks.get(broker, 0), leo)

    def recover(self, placed: Placed) -> None:
        """Replay ``recover``: what the broker found again after a restart."""
        _, _, broker, _, leo, high_watermark = placed[1]
        self._cut(broker, leo, placed)
        self._high_watermarks[broker] = high_watermark

    def raise_high_watermark(self, placed: Placed) -> None:
        """Replay ``hw``."""
        _, _, broker, _, high_watermark = placed[1]
        self._high_watermarks[broker] = high_watermark
        self._commit(broker)

    def _cut(self, broker: int, leo: int, placed: Placed) -> None:
        log = self._logs.get(broker, [])
        # Offsets, not positions, decide: a trace may begin in the middle of a log.
        while log and log[-1].offset >= leo:
            log.pop().gone = placed
        self._committed[broker] = min(self._committed.get(broker, 0), len(log))

    def _commit(self, broker: int) -> None:
        log = self._logs.get(broker, [])
        high_watermark = self._high_watermarks.get(broker, 0)
        count = self._committed.get(broker, 0)
        while count < len(log) and log[count].offset < high_watermark:
            log[count].committed = True
            count += 1
        self._committed[broker] = count

    def acknowledge(self, placed: Placed) -> None:
        """Note an ``acknowledged``."""
        for value in placed[1][6]:
            self.acknowledged.setdefault(value, []).append(placed)

    def note(self, placed: Placed) -> None:
        """Keep an event that explains others."""
        self._noted.setdefault(placed[1][1], []).append(placed)


_REPLAY: Final[dict[str, Callable[[PartitionCopies, Placed], None]]] = {
    "append": PartitionCopies.store,
    "replicate": PartitionCopies.store,
    "truncate": PartitionCopies.remove,
    _POWER_LOSS: PartitionCopies.remove,
    "recover": PartitionCopies.recover,
    "hw": PartitionCopies.raise_high_watermark,
    "acknowledged": PartitionCopies.acknowledge,
}
_NOTED: Final = frozenset(
    {
        *("election", "isr_reduced", "leader", "follower", "isr", "recover", "epoch_asked"),
        *("send_failed", "sent_again"),
    }
)
"""Events of a partition that are kept; what changes a log is replayed as well."""
_AROUND: Final = frozenset(
    {
        *("broker_stopped", "broker_started", "broker_paused", "broker_resumed"),
        *("client_stopped", "message_rule", "controller_elected", "core_healed"),
    }
)
"""Events of no partition that are kept."""
_ISR_OF_LEADER: Final = (("leader", 6), ("isr", 5))
_ISR_OF_CONTROLLER: Final = (("election", 6), ("isr_reduced", 6))
"""Which events tell the ISR, and in which field."""


def copies_by_partition(trace: Sequence[TraceEvent]) -> dict[str, PartitionCopies]:
    """Replay a trace."""
    partitions: dict[str, PartitionCopies] = {}
    around: dict[str, list[Placed]] = {}
    for placed in enumerate(trace):
        event = placed[1]
        name = event[1]
        replay = _REPLAY.get(name)
        if replay is not None or name in _NOTED:
            copies = partitions.get(event[3])
            if copies is None:
                copies = partitions[event[3]] = PartitionCopies(around)
            if replay is not None:
                replay(copies, placed)
            if name in _NOTED:
                copies.note(placed)
        elif name in _AROUND:
            around.setdefault(name, []).append(placed)
    return partitions
