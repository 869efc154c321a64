"""How something came about, in one sentence of clauses with times in virtual seconds."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from checks.copies import END, Copy, PartitionCopies, Placed
from checks.evidence import PartitionSettings
from checks.index import Send
from cluster_model.virtual_time import US_PER_SECOND

_CLAUSES_MAX: Final = 12
_FIRST: Final = -1
_NO_LEADER: Final = -1


def seconds(time_us: int) -> str:
    """Return a time as a story tells it: ``1.20s``."""
    return f"{time_us / US_PER_SECOND:.2f}s"


def words(name: object) -> str:
    """Return a cause or reason of the trace in words: ``high_watermark`` is high watermark."""
    return str(name).replace("_", " ")


class Story:
    """Clauses about one record, in the order of the trace."""

    __slots__ = ("_clauses", "_copies", "_settings")

    def __init__(self, copies: PartitionCopies, settings: PartitionSettings) -> None:
        self._copies = copies
        self._settings = settings
        self._clauses: list[tuple[int, str]] = []

    def tell_ack(self, send: Send, acked: Placed | None, group: Sequence[Copy]) -> None:
        """Tell who acked the record, as what, and whether the ISR had shrunk by then."""
        if acked is None and send.offset is None:
            self._clauses.append((_FIRST, f"sent at {seconds(send.invoked_us)}"))
            return
        if acked is None:
            last_stored = group[-1].stored[0] if group else _FIRST
            clause = f"acked at {seconds(send.completed_us or 0)} with offset {send.offset}"
            self._clauses.append((last_stored, clause))
            return
        position, event = acked
        broker = event[2]
        stored = next((copy for copy in group if copy.broker == broker), None)
        where = f" (epoch {stored.leader_epoch}, offset {stored.offset})" if stored is not None else ""
        isr = self._copies.isr_at(broker, position)
        shrunk = isr is not None and len(isr) < 2 <= len(self._settings.replicas)
        if shrunk:
            where += f" when the ISR had shrunk to {list(isr or ())}"
            if self._settings.min_insync_replicas < 2:
                where += f" (min.insync.replicas={self._settings.min_insync_replicas})"
        self._clauses.append((position, f"acked at {seconds(event[0])} by broker {broker}{where}"))

    def tell_copies(self, group: Sequence[Copy], *, with_append: bool = False) -> None:
        """Tell where the record was copied, who led in the meantime, and how each copy went."""
        if not group:
            self._clauses.append((0, "no broker appended it"))
            return
        for copy in group:
            self._tell_copy(copy, with_append=with_append)
        begin = group[0].stored[0]
        kept_by = [copy.broker for copy in group if copy.gone is None]
        for broker in kept_by:
            self._clauses.append((END, f"broker {broker} still has it, the leader does not"))
        gone = [copy.gone[0] for copy in group if copy.gone is not None]
        self._tell_elections(begin, END if kept_by else max(gone))
        self._tell_stops(group)

    def _tell_copy(self, copy: Copy, *, with_append: bool) -> None:
        position, event = copy.stored
        if not copy.appended:
            self._clauses.append((position, f"copied by broker {copy.broker} at {seconds(event[0])}"))
        elif with_append:
            where = f"(epoch {copy.leader_epoch}, offset {copy.offset})"
            self._clauses.append(
                (position, f"appended at {seconds(event[0])} by broker {copy.broker} {where}")
            )
        if copy.gone is None:
            return
        position, event = copy.gone
        at = seconds(event[0])
        if copy.lost_with_power:
            leo = min(event[4], event[5])
            how = f"broker {copy.broker} lost what it had not flushed, from offset {leo} on, at {at}"
        elif event[1] == "truncate":
            leo = min(event[4], event[5])
            how = f"broker {copy.broker} truncated to {leo} at {at} ({words(event[6])})"
        else:
            how = f"broker {copy.broker} no longer had it at {at}"
        self._clauses.append((position, how))

    def _tell_elections(self, begin: int, end: int) -> None:
        for position, event in self._copies.elections:
            if begin < position < end:
                at_us, leader, epoch, unclean = event[0], event[4], event[5], event[7]
                how = "elected uncleanly" if unclean else "elected"
                who = "no leader" if leader == _NO_LEADER else f"broker {leader} {how} (epoch {epoch})"
                self._clauses.append((position, f"{who} at {seconds(at_us)}"))

    def _tell_stops(self, group: Sequence[Copy]) -> None:
        for position, event in self._copies.stops:
            if any(copy.broker == event[2] and copy.is_there(position) for copy in group):
                clause = f"broker {event[2]} stopped at {seconds(event[0])} ({words(event[3])})"
                self._clauses.append((position, clause))

    def text(self, conclusion: str | None = None) -> str:
        """Return the sentence; of a long story the middle is left out."""
        told = [clause for _, clause in sorted(self._clauses, key=itemgetter(0))]
        if len(told) > _CLAUSES_MAX:
            left_out = len(told) - _CLAUSES_MAX + 1
            head = _CLAUSES_MAX // 2
            told[head : head + left_out] = [f"({left_out} more events)"]
        if conclusion is not None:
            told.append(conclusion)
        return "; ".join(told)
