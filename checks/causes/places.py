"""Explains the loss of a log position that has no record, only a marker or a compaction hole.

The copies of a record explain its loss. A position without copies is explained by the events that
shorten logs: an unclean election, a power loss, a lost or damaged disk.
"""

from collections.abc import Mapping, Sequence

from harrow.checks import prevention
from harrow.checks.causes import catalogue, links
from harrow.checks.causes.copies import disk_link
from harrow.checks.causes.facts import LOST
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import Story, source
from harrow.checks.link import Gap, Link
from harrow.checks.promise import DISK_FAILURE, FLUSH_INTERVAL, UNCLEAN_ELECTION
from harrow.checks.replay.partition_state import LogEntry
from harrow.cluster_model import events
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.trace import TraceLine, decode


@dataclass(frozen=True, slots=True)
class LostPlace:
    """The event that removed a position from a log, its line in the trace, and the cause."""

    cause: Cause
    line: int

    def tell(self, story: Story) -> None:
        loss = loss_link(decode(story.evidence.trace[self.line - 1]))
        if loss is not None:
            story.tell(self.line, loss, decides=True)


def explain_lost_place(
    story: Story, offset: int, stored_at: Mapping[int, int], until: int, *, lacking: int | None = None
) -> LostPlace | None:
    """Return the event before a line that explains why a position was lost, or None.

    ``stored_at`` maps each broker that stored the position to the line of the trace at which it
    did. An unclean election counts if the leader's log did not reach the position. A broker that
    lost the position with its power or disk counts if it then led without the position, or if it is
    the broker *lacking* it.
    """
    place = _Place(story, offset, stored_at)
    first = min(stored_at.values(), default=until)
    for line, election in story.elections:
        if (
            election.unclean
            and story.settings.elects_uncleanly(election.at_us)
            and first < line <= until
            and not place.is_reached(election.leader, line)
        ):
            because = catalogue.unclean_election_broke_invariant.conclude()
            return LostPlace(Cause((because,), UNCLEAN_ELECTION, (prevention.CLEAN_ELECTIONS,)), line)
    losses: Sequence[TraceLine[events.UnflushedLost | events.CorruptionCut | events.LogLost]]
    losses = story.events(events.UnflushedLost, events.CorruptionCut, events.LogLost)
    for line, loss in losses:
        is_between = stored_at.get(loss.broker, first) < line < until
        if not is_between or not loss.from_offset <= offset < loss.to_offset:
            continue
        missed = [
            number
            for number, led in story.events(events.BecameLeader)
            if line < number < until and led.broker == loss.broker
        ]
        if loss.broker == lacking:
            missed.append(until)
        if all(place.is_regained(loss.broker, line, number) for number in missed):
            continue
        if isinstance(loss, events.UnflushedLost) or (isinstance(loss, events.CorruptionCut) and loss.torn):
            because = catalogue.power_loss_in_isr.conclude()
            return LostPlace(Cause((because,), FLUSH_INTERVAL, (prevention.FLUSHING,)), line)
        return LostPlace(Cause((catalogue.disk_loss_in_isr.conclude(),), DISK_FAILURE), line)
    return None


class _Place:
    """A position in a log. A log reaches the position if it has a record there or beyond."""

    __slots__ = ("_copies", "_stored_at")

    def __init__(self, story: Story, offset: int, stored_at: Mapping[int, int]) -> None:
        by_value = story.index.partition(story.partition).by_value
        self._copies = [copy for copies in by_value.values() for copy in copies if copy.offset >= offset]
        self._stored_at = stored_at

    def _copies_before(self, until: int) -> set[tuple[int, int, str]]:
        return {
            _identity(copy)
            for copy in self._copies
            if self._stored_at.get(copy.broker, until) <= copy.number < until
        }

    def is_reached(self, broker: int, line: int) -> bool:
        """Return whether a broker's log reaches the position at a line of the trace."""
        earlier = self._copies_before(line)
        return any(
            copy.broker == broker and copy.is_there(line) and _identity(copy) in earlier
            for copy in self._copies
        )

    def is_regained(self, broker: int, lost: int, until: int) -> bool:
        """Return whether a broker regained, between two lines, a copy from before its loss."""
        earlier = self._copies_before(lost)
        return any(
            copy.broker == broker and lost < copy.number < until and _identity(copy) in earlier
            for copy in self._copies
        )


def _identity(copy: LogEntry) -> tuple[int, int, str]:
    return copy.offset, copy.leader_epoch, copy.value


@source(LOST)
def _tell_loss(story: Story, line: float, gap: Gap) -> None:
    """Tell how a broker lost records in a power loss or a disk failure."""
    (broker,) = gap.need.subject
    loss = story.last(events.UnflushedLost, events.CorruptionCut, events.LogLost, before=line, broker=broker)
    if loss is not None:
        link = loss_link(loss.event)
        assert link is not None, "each loss has a link"
        story.tell(loss.number, link)


def loss_link(event: events.Event) -> Link | None:
    """Return the link of an event that shortens a log, None for any other event."""
    match event:
        case events.LeaderElected():
            return links.elected_uncleanly(event.at_us, event.leader, leader_epoch=event.leader_epoch)
        case events.UnflushedLost() | events.CorruptionCut() | events.LogLost():
            kind = disk_link(event)
            leo = event.from_offset
            return None if kind is None else kind(event.at_us, event.broker, leo=leo, offset=leo)
        case _:
            return None
