"""Why a record is gone from where it was: the cause by the trace, and the setting that permits it.

A loss is judged by its cause, not by what the settings would have permitted had it
happened: a record that the high watermark had passed and a truncation took is a broken
promise although unclean elections were on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from checks.copies import END, Copy, PartitionCopies, Placed
from checks.evidence import Evidence
from checks.index import Index, Send
from checks.promise import ACKS_0, ACKS_1, FLUSH_INTERVAL, UNCLEAN_ELECTION
from checks.resumed_epoch import RESUMED, is_excused
from checks.story import Story, seconds

_FLUSHING: Final = (
    f"Kafka leaves flushing to the operating system ({FLUSH_INTERVAL}), "
    "so a record is safe only while one replica that has it keeps its power"
)


@dataclass(frozen=True, slots=True)
class Loss:
    """How a record went, in words, and the setting that permits it, None if nothing does."""

    because: str
    permitted_by: str | None = None


def explain_lost_send(evidence: Evidence, index: Index, send: Send) -> Loss:
    """Explain why an acked record is gone, against what its producer was promised."""
    copies = index.copies(send.partition)
    acked = _acknowledged(copies, send)
    group = _group(copies, send, acked)
    story = Story(copies, evidence.partitions[send.partition])
    story.tell_copies(group, with_append=acked is None)
    story.tell_ack(send, acked, group)
    acks = evidence.producers[send.process].acks
    if acks == "0":
        return Loss(story.text(f"{ACKS_0} waits for no answer"), ACKS_0)
    # Once the high watermark has passed a record, no leader is elected from the ISR without it,
    # so what becomes of it later has nothing to do with when it was acked.
    if acks == "1" and not any(copy.committed for copy in group):
        return Loss(story.text(f"{ACKS_1} does not wait for followers, and it was never committed"), ACKS_1)
    return _by_cause(evidence, send.partition, copies, group, story)


def explain_replaced(evidence: Evidence, index: Index, partition: str, value: str, offset: int) -> Loss:
    """Explain why a record that consumers have seen is no longer at its offset."""
    copies = index.copies(partition)
    group = [copy for copy in copies.by_value.get(value, ()) if copy.offset == offset]
    story = Story(copies, evidence.partitions[partition])
    story.tell_copies(group, with_append=True)
    return _by_cause(evidence, partition, copies, group, story)


def _by_cause(
    evidence: Evidence, partition: str, copies: PartitionCopies, group: Sequence[Copy], story: Story
) -> Loss:
    election = _unclean_election_without(copies, group)
    if election is not None and evidence.partitions[partition].unclean_leader_election:
        at_us, leader = election[1][0], election[1][4]
        return Loss(
            story.text(f"broker {leader}, elected uncleanly at {seconds(at_us)}, did not have it"),
            UNCLEAN_ELECTION,
        )
    if any(copy.lost_with_power for copy in _last_copies(group)):
        return Loss(story.text(_FLUSHING), FLUSH_INTERVAL)
    if is_excused(evidence, partition, group[0].offset if group else None):
        return Loss(story.text(f"{RESUMED}, so its log and its followers' have parted"), FLUSH_INTERVAL)
    return Loss(story.text())


def _acknowledged(copies: PartitionCopies, send: Send) -> Placed | None:
    """Return the broker's ack that the send's ok is about: the last one before it."""
    candidates = [
        placed
        for placed in copies.acknowledged.get(send.value, ())
        if send.invoked_us <= placed[1][0] <= (send.completed_us or 0)
    ]
    return candidates[-1] if candidates else None


def _group(copies: PartitionCopies, send: Send, acked: Placed | None) -> list[Copy]:
    """Return the copies of the record that was acked.

    A value can have been appended, cut off and appended again; the copies of one append
    have its offset and its leader epoch.
    """
    stored = copies.by_value.get(send.value, [])
    if send.offset is None:
        return stored
    at_offset = [copy for copy in stored if copy.offset == send.offset]
    if acked is None:
        return at_offset
    position, event = acked
    for copy in reversed(at_offset):
        if copy.broker == event[2] and copy.stored[0] < position:
            return [other for other in at_offset if other.leader_epoch == copy.leader_epoch]
    return at_offset


def _unclean_election_without(copies: PartitionCopies, group: Sequence[Copy]) -> Placed | None:
    """Return the first unclean election, in a later epoch, of a leader without the record.

    By its epoch, not its time: a leader that has not heard of the election goes on
    appending, and commits alone if it was alone in the ISR. What was elected after the
    last copy had gone is not the cause.
    """
    if not group:
        return None
    appended_in = group[0].leader_epoch
    gone = [copy.gone[0] for copy in group if copy.gone is not None]
    end = max(gone) if len(gone) == len(group) else END
    for position, event in copies.elections:
        leader, leader_epoch, unclean = event[4], event[5], event[7]
        if unclean and leader_epoch > appended_in and position < end:
            has_it = any(copy.broker == leader and copy.is_there(position) for copy in group)
            if not has_it:
                return position, event
    return None


def _last_copies(group: Sequence[Copy]) -> list[Copy]:
    """Return each broker's last copy: one that it fetched again makes up for one it lost."""
    return list({copy.broker: copy for copy in group}.values())
