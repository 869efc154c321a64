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
from checks.finding import Link
from checks.history.records import Send, Value
from checks.index import Index
from checks.lives import newer_election, tell_lives
from checks.prevention import ACKS_ALL as ACKS_ALL_SAFE
from checks.prevention import (
    CLEAN_ELECTIONS,
    FLUSHING,
    FLUSHING_OR_PLACEMENT,
    KIP_966,
    MIN_ISR,
    WAITING_FOR_ANSWERS,
    by_replication,
)
from checks.promise import ACKS_0, ACKS_1, FLUSH_INTERVAL, LOST_WRITE, UNCLEAN_ELECTION
from checks.requests import tell_ack, tell_disturbance, tell_sent
from checks.resumed_epoch import RESUMED, is_excused
from checks.story import Story
from cluster_model.virtual_time import US_PER_SECOND

_ON_THE_WAY_US: Final = US_PER_SECOND
"""How long after a send something may still happen to its request."""
_FLUSHING: Final = (
    f"Kafka leaves flushing to the operating system ({FLUSH_INTERVAL}), "
    "so a record is safe only while one replica that has it keeps its power"
)


@dataclass(frozen=True, slots=True)
class Loss:
    """How a record went, link by link; the setting that permits it, None if nothing does; what prevents it."""

    chain: tuple[Link, ...]
    permitted_by: str | None = None
    prevented_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """What a loss comes down to: a last word on it, what permits it, what would have prevented it."""

    conclusions: tuple[str, ...]
    permitted_by: str | None
    prevented_by: tuple[str, ...]


def explain_lost_send(evidence: Evidence, index: Index, send: Send) -> Loss:
    """Explain why an acked record is gone, against what its producer was promised."""
    story = Story(evidence, index.copies(send.partition), send.partition)
    cause = tell_lost_send(evidence, story, send)
    return Loss(story.chain(*cause.conclusions), cause.permitted_by, cause.prevented_by)


def explain_replaced(evidence: Evidence, index: Index, partition: str, value: Value, offset: int) -> Loss:
    """Explain why a record that consumers have seen is no longer at its offset."""
    story = Story(evidence, index.copies(partition), partition)
    cause = tell_replaced(evidence, story, partition, value, offset)
    return Loss(story.chain(*cause.conclusions), cause.permitted_by, cause.prevented_by)


def tell_lost_send(evidence: Evidence, story: Story, send: Send) -> Cause:
    """Add how an acked record went to a story, and return the cause."""
    copies = story.copies
    acked = _acknowledged(copies, send)
    group = _group(copies, send, acked)
    producer = evidence.producers[send.process]
    if not group:
        tell_sent(story, send, producer.name)
        end = story.position((send.completed_us or send.invoked_us) + _ON_THE_WAY_US)
        for broker in story.settings.replicas:
            tell_disturbance(story, producer.name, f"broker-{broker}", story.position(send.invoked_us), end)
    tell_lives(story, group)
    tell_ack(story, send, acked, group)
    if producer.acks == "0":
        instead = ACKS_ALL_SAFE if group else WAITING_FOR_ANSWERS
        return Cause((f"{ACKS_0} waits for no answer",), ACKS_0, (instead,))
    # Once the high watermark has passed a record, no leader is elected from the ISR without it,
    # so what becomes of it later has nothing to do with when it was acked.
    if producer.acks == "1" and not any(copy.committed for copy in group):
        conclusion = f"{ACKS_1} does not wait for followers, and {send.value} was never committed"
        return Cause((conclusion,), ACKS_1, (ACKS_ALL_SAFE,))
    return _cause(evidence, story, send.partition, group, alone=_was_alone(story, acked))


def tell_acknowledgement(story: Story, send: Send) -> None:
    """Add to a story who acked a record."""
    acked = _acknowledged(story.copies, send)
    tell_ack(story, send, acked, _group(story.copies, send, acked))


def tell_replaced(evidence: Evidence, story: Story, partition: str, value: Value, offset: int) -> Cause:
    """Add how a record went that stood at an offset to a story, and return the cause."""
    group = [copy for copy in story.copies.of_value(value) if copy.offset == offset]
    tell_lives(story, group)
    return _cause(evidence, story, partition, group, alone=False)


def _was_alone(story: Story, acked: Placed | None) -> bool:
    """Return whether the ISR was one replica when the record was acked, where there are more."""
    if acked is None or len(story.settings.replicas) < 2:
        return False
    isr = story.copies.isr_at(acked[1][2], acked[0])
    return isr is not None and len(isr) < 2


def _cause(evidence: Evidence, story: Story, partition: str, group: Sequence[Copy], *, alone: bool) -> Cause:
    copies = story.copies
    election = _unclean_election_without(copies, group)
    if election is not None and evidence.partitions[partition].unclean_leader_election:
        conclusion = (
            f"broker {election[1][4]}, elected uncleanly ({UNCLEAN_ELECTION}), did not have {group[0].value}"
        )
        weak = (MIN_ISR,) if alone and story.settings.min_insync_replicas < 2 else ()
        return Cause((conclusion,), UNCLEAN_ELECTION, (CLEAN_ELECTIONS, *weak))
    last = _last_copies(group)
    without_power = [copy for copy in last if copy.lost_with_power]
    if without_power:
        flushing = FLUSHING_OR_PLACEMENT if len(without_power) == len(last) else FLUSHING
        later = (KIP_966,) if _a_living_replica_had_it(copies, group) else ()
        return Cause((_FLUSHING,), FLUSH_INTERVAL, (flushing, *later))
    if is_excused(evidence, partition, group[0].offset if group else None):
        return Cause((f"{RESUMED}, so its log and its followers' have parted",), FLUSH_INTERVAL, (FLUSHING,))
    fixes = by_replication(evidence, LOST_WRITE, joined_early=_joined_early(copies, group))
    return Cause(_broken(story, group), None, fixes)


def _broken(story: Story, group: Sequence[Copy]) -> tuple[str, ...]:
    """Return what to say of a loss that nothing permits."""
    if not group:
        return ()
    if newer_election(story, group[0]) is not None:
        return (f"{group[0].value} was acked by a leader that had been succeeded",)
    if any(copy.committed for copy in group):
        return (f"{group[0].value} was committed, and no setting permits that it goes",)
    return (f"{group[0].value} was acked although it was never committed",)


def _a_living_replica_had_it(copies: PartitionCopies, group: Sequence[Copy]) -> bool:
    """Return whether a replica that lost a record with its power led again, while a living one had it."""
    stops = copies.events("broker_stopped")
    for copy in group:
        if not copy.lost_with_power or copy.gone is None:
            continue
        back = [p for p, e in copies.events("recover") if p > copy.gone[0] and e[2] == copy.broker]
        led = any(position > copy.gone[0] and e[4] == copy.broker for position, e in copies.elections)
        if back and led:
            alive = [
                other
                for other in group
                if other.is_there(back[0])
                and not any(other.stored[0] < p < back[0] and e[2] == other.broker for p, e in stops)
            ]
            if alive:
                return True
    return False


def _joined_early(copies: PartitionCopies, group: Sequence[Copy]) -> bool:
    """Return whether a leader was elected cleanly that never had the record."""
    if not group:
        return False
    had_it = {copy.broker for copy in group}
    begin, epoch = group[0].stored[0], group[0].leader_epoch
    return any(
        position > begin and event[5] > epoch and event[4] >= 0 and event[4] not in had_it
        for position, event in copies.elections
    )


def _acknowledged(copies: PartitionCopies, send: Send) -> Placed | None:
    """Return the broker's ack that the send's ok is about: the last one before it."""
    candidates = [
        placed
        for placed in copies.acks_of(send.value)
        if send.invoked_us <= placed[1][0] <= (send.completed_us or 0)
    ]
    return candidates[-1] if candidates else None


def _group(copies: PartitionCopies, send: Send, acked: Placed | None) -> Sequence[Copy]:
    """Return the copies of the record that was acked.

    A value can have been appended, cut off and appended again; the copies of one append
    have its offset and its leader epoch.
    """
    stored = copies.of_value(send.value)
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
