"""The lives of records as the trace tells them: where each copy was stored, and how it went.

The replicas' logs are replayed from the trace. That costs as much as judging a whole run,
so it is done only when a rule has found something and has to say why.
"""

from collections.abc import Callable, Sequence
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
        "_committed",
        "_high_watermarks",
        "_logs",
        "acknowledged",
        "by_value",
        "elections",
        "isr_changes",
        "stops",
    )

    def __init__(self, stops: Sequence[Placed] = ()) -> None:
        self._logs: dict[int, list[Copy]] = {}
        self._high_watermarks: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self.by_value: dict[str, list[Copy]] = {}
        self.acknowledged: dict[str, list[Placed]] = {}
        self.elections: list[Placed] = []
        self.isr_changes: list[Placed] = []
        self.stops = stops

    def isr_at(self, broker: int, position: int) -> tuple[int, ...] | None:
        """Return the ISR as the leader *broker* knew it at a position of the trace."""
        for placed, event in reversed(self.isr_changes):
            if placed < position and event[2] == broker:
                isr: tuple[int, ...] = event[6] if event[1] == "leader" else event[5]
                return isr
        return None

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

    def elect(self, placed: Placed) -> None:
        """Note an ``election``."""
        self.elections.append(placed)

    def change_isr(self, placed: Placed) -> None:
        """Note an ISR as a leader knows it: ``leader``, ``isr``."""
        self.isr_changes.append(placed)


_REPLAY: Final[dict[str, Callable[[PartitionCopies, Placed], None]]] = {
    "append": PartitionCopies.store,
    "replicate": PartitionCopies.store,
    "truncate": PartitionCopies.remove,
    _POWER_LOSS: PartitionCopies.remove,
    "recover": PartitionCopies.recover,
    "hw": PartitionCopies.raise_high_watermark,
    "acknowledged": PartitionCopies.acknowledge,
    "election": PartitionCopies.elect,
    "leader": PartitionCopies.change_isr,
    "isr": PartitionCopies.change_isr,
}


def copies_by_partition(trace: Sequence[TraceEvent]) -> dict[str, PartitionCopies]:
    """Replay a trace."""
    partitions: dict[str, PartitionCopies] = {}
    stops: list[Placed] = []
    for placed in enumerate(trace):
        event = placed[1]
        replay = _REPLAY.get(event[1])
        if replay is not None:
            copies = partitions.get(event[3])
            if copies is None:
                copies = partitions[event[3]] = PartitionCopies(stops)
            replay(copies, placed)
        elif event[1] == "broker_stopped":
            stops.append(placed)
    return partitions
