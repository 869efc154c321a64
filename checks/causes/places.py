"""How a place in a log was lost at which no record stands: the end of a transaction, or what compaction has emptied.

What a record comes down to is told by its copies. Where there are none, what is left are the events by which logs lose their
ends: an unclean election, lost power, a lost or damaged disk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harrow.checks import prevention
from harrow.checks.causes import catalogue, links
from harrow.checks.causes.facts import LOST
from harrow.checks.causes.lives import disk_link
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import Story, source
from harrow.checks.link import Gap, Link
from harrow.checks.promise import DISK_FAILURE, FLUSH_INTERVAL, UNCLEAN_ELECTION
from harrow.checks.replay.partition_state import LogEntry
from harrow.cluster_model import events
from harrow.cluster_model.trace import TraceLine, decode


@dataclass(frozen=True, slots=True)
class LostPlace:
    """What took a place from a log, at which line, and what permits that."""

    cause: Cause
    line: int

    def tell(self, story: Story) -> None:
        """Add what took the place to a story."""
        told = loss_link(decode(story.evidence.trace[self.line - 1]))
        if told is not None:
            story.tell(self.line, told, decides=True)


def explain_lost_place(
    story: Story, offset: int, stored_at: Mapping[int, int], until: int, *, lacking: int | None = None
) -> LostPlace | None:
    """Return what permits that a place is lost by a line that some brokers had, None if nothing in the trace does.

    ``stored_at`` says of each of them at which line it had it. An unclean election counts where the leader's log did not reach that far.
    A broker that has lost the place with its power or its disk counts where it led without it, or is the one that is found *lacking* it.
    """
    place = _Place(story, offset, stored_at)
    first = min(stored_at.values(), default=until)
    if story.settings.unclean_leader_election:
        for line, election in story.elections:
            if election.unclean and first < line <= until and not place.is_reached(election.leader, line):
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
    """A place, and what those who had it have put there and behind it: who has some of that has the place, be it a hole."""

    __slots__ = ("_copies", "_stored_at")

    def __init__(self, story: Story, offset: int, stored_at: Mapping[int, int]) -> None:
        by_value = story.index.partition(story.partition).by_value
        self._copies = [copy for copies in by_value.values() for copy in copies if copy.offset >= offset]
        self._stored_at = stored_at

    def _known(self, until: int) -> set[tuple[int, int, str]]:
        return {
            _identity(copy)
            for copy in self._copies
            if self._stored_at.get(copy.broker, until) <= copy.number < until
        }

    def is_reached(self, broker: int, line: int) -> bool:
        """Return whether a broker's log has some of it at a line."""
        known = self._known(line)
        return any(
            copy.broker == broker and copy.is_there(line) and _identity(copy) in known
            for copy in self._copies
        )

    def is_regained(self, broker: int, lost: int, until: int) -> bool:
        """Return whether a broker has stored some of it anew between two lines, which was there before it lost the place."""
        known = self._known(lost)
        return any(
            copy.broker == broker and lost < copy.number < until and _identity(copy) in known
            for copy in self._copies
        )


def _identity(copy: LogEntry) -> tuple[int, int, str]:
    return copy.offset, copy.leader_epoch, copy.value


@source(LOST)
def _tell_loss(story: Story, line: float, gap: Gap) -> None:
    """Tell how a broker lost records with its power or its disk."""
    (broker,) = gap.need.subject
    known = story.last(events.UnflushedLost, events.CorruptionCut, events.LogLost, before=line, broker=broker)
    if known is not None:
        told = loss_link(known.event)
        assert told is not None, "a loss that has a link"
        story.tell(known.number, told)


def loss_link(event: events.Event) -> Link | None:
    """Return the link of what takes the end of a log whatever stands there; None of anything else."""
    match event:
        case events.LeaderElected():
            return links.elected_uncleanly(event.at_us, event.leader, leader_epoch=event.leader_epoch)
        case events.UnflushedLost() | events.CorruptionCut() | events.LogLost():
            kind = disk_link(event)
            leo = event.from_offset
            return None if kind is None else kind(event.at_us, event.broker, leo=leo, offset=leo)
        case _:
            return None
