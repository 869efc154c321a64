"""How a place in a log was lost at which no record stands: the end of a transaction, or what compaction has emptied.

What a record comes down to is told by its copies. Where there are none, what is left are the events by which logs lose their
ends: an unclean election, lost power, a lost or damaged disk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harrow.checks import prevention
from harrow.checks.causes import catalogue, links
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import Story
from harrow.checks.link import Link
from harrow.checks.promise import DISK_FAILURE, FLUSH_INTERVAL, UNCLEAN_ELECTION
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
    story: Story, offset: int, stored: Mapping[int, int], before: int, *, for_good: bool = True
) -> LostPlace | None:
    """Return what permits that a place is lost that some brokers had before a line, None if nothing in the trace does.

    ``stored`` says of each of them since which line. *for_good*: a broker that has gone on behind it since has not lost it.
    """
    first = min(stored.values(), default=before)
    if story.settings.unclean_leader_election:
        for line, election in story.elections:
            if election.unclean and first < line <= before:
                because = catalogue.unclean_election_broke_invariant.conclude()
                return LostPlace(Cause((because,), UNCLEAN_ELECTION, (prevention.CLEAN_ELECTIONS,)), line)
    losses: Sequence[TraceLine[events.UnflushedLost | events.CorruptionCut | events.LogLost]]
    losses = story.events(events.UnflushedLost, events.CorruptionCut, events.LogLost)
    for line, loss in losses:
        is_between = stored.get(loss.broker, first) < line < before
        if not is_between or not loss.from_offset <= offset < loss.to_offset:
            continue
        if for_good and _went_on(story, loss.broker, offset, line, before):
            continue
        if isinstance(loss, events.UnflushedLost) or (isinstance(loss, events.CorruptionCut) and loss.torn):
            because = catalogue.power_loss_in_isr.conclude()
            return LostPlace(Cause((because,), FLUSH_INTERVAL, (prevention.FLUSHING,)), line)
        return LostPlace(Cause((catalogue.disk_loss_in_isr.conclude(),), DISK_FAILURE), line)
    return None


def loss_link(event: events.Event) -> Link | None:
    """Return the link of what takes the end of a log whatever stands there; None of anything else."""
    match event:
        case events.LeaderElected():
            return links.elected_uncleanly(event.at_us, event.leader, leader_epoch=event.leader_epoch)
        case events.UnflushedLost():
            leo = event.from_offset
            return links.unflushed_lost(event.at_us, event.broker, leo=leo, offset=leo)
        case events.CorruptionCut():
            leo = event.from_offset
            kind = links.torn if event.torn else links.corruption_cut
            return kind(event.at_us, event.broker, leo=leo, offset=leo)
        case events.LogLost():
            leo = event.from_offset
            return links.disk_lost(event.at_us, event.broker, leo=leo, offset=leo)
        case _:
            return None


def _went_on(story: Story, broker: int, offset: int, lost: int, before: int) -> bool:
    """Return whether a broker has stored something behind a place between two lines: it has fetched what stands there, or the hole."""
    stored: Sequence[TraceLine[events.BatchAppended | events.BatchReplicated]]
    stored = story.events(events.BatchAppended, events.BatchReplicated)
    return any(
        lost < line < before and batch.broker == broker and batch.base_offset > offset
        for line, batch in stored
    )
