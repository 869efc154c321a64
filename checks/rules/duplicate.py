"""duplicate: a record is at two offsets of a partition."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from harrow.checks import promise
from harrow.checks.causes import catalogue, compaction, links
from harrow.checks.causes.copies import tell_elections, tell_given_up, tell_stops, tell_stored
from harrow.checks.causes.links import seen
from harrow.checks.causes.loss import Cause, explain_replaced, tell_replaced, unclean_election_without
from harrow.checks.causes.requests import tell_client_stop, tell_retry, tell_sent
from harrow.checks.causes.story import AFTER, END, Story, deferred
from harrow.checks.finding import Finding
from harrow.checks.history.records import Pair, SendRecord, Value
from harrow.checks.index import Index
from harrow.checks.permission import Permission, Promise
from harrow.checks.prevention import (
    CLEAN_ELECTIONS,
    IDEMPOTENCE,
    ONE_IN_FLIGHT,
    TRANSACTIONS,
)
from harrow.checks.replay.partition_state import LogEntry, has_copy
from harrow.checks.rule import DOUBLED, Rule
from harrow.checks.transaction_fates import ABORTED, TransactionFate, transaction_fates
from harrow.cluster_model import events
from harrow.cluster_model.clients.producer_sequences import FATAL_SEQUENCE_ERRORS
from harrow.cluster_model.history import FAIL, INFO
from harrow.cluster_model.settings import DELIVERY_TIMEOUT

_PAIRS_SHOWN_MAX: Final = 2

_Pair = tuple[LogEntry, LogEntry]
"""Two appends of one record, one after the other."""


def find(index: Index) -> Iterator[Finding]:
    """Find values that are twice in one final log, or were polled at two offsets."""
    for partition in dict.fromkeys((*index.logs, *index.polled)):
        if partition not in index.written and partition not in index.history.partitions:
            continue
        for value, offsets in _repeated(index, partition).items():
            yield _finding(index, partition, value, offsets)


def _repeated(index: Index, partition: str) -> dict[Value, list[int]]:
    """Return the values with several offsets, with these offsets; aborted copies do not count."""
    offsets: dict[Value, set[int]] = {}
    checked: list[str | None] = []
    for broker, values in index.logs.get(partition, {}).items():
        if values == checked:
            continue  # Replicas usually have the same log.
        distinct = {*values}
        holes = values.count(None) if None in distinct else 0
        distinct.discard(None)
        if len(distinct) == len(values) - holes:
            checked = values
        else:
            fates = transaction_fates(index.evidence.replicas[partition][broker])
            _collect(offsets, ((at, value) for at, value in enumerate(values) if value is not None), fates)
    history = index.history.partitions.get(partition)
    if history is not None and history.moved:
        # Some value was polled at several offsets, though perhaps only by operations that failed.
        _collect(offsets, index.polled.get(partition, ()), index.fates(partition))
    several = [(sorted(places), str(value), value) for value, places in offsets.items() if len(places) > 1]
    return {value: places for places, _, value in sorted(several)}


def _collect(
    offsets: dict[Value, set[int]], pairs: Iterable[Pair], fates: Mapping[int, TransactionFate]
) -> None:
    """Add the values that *pairs* have at several offsets, except aborted copies, to *offsets*."""
    first: dict[Value, int] = {}
    for offset, value in pairs:
        fate = fates.get(offset) if fates else None
        if fate is not None and fate.state == ABORTED:
            continue
        earlier = first.setdefault(value, offset)
        if earlier != offset:
            offsets.setdefault(value, set()).update((earlier, offset))


def _finding(index: Index, partition: str, value: Value, offsets: list[int]) -> Finding:
    story = Story(index, partition)
    appended: dict[int, LogEntry] = {}
    for copy in story.copies(value):
        if not copy.is_copy and copy.offset in offsets:
            appended.setdefault(copy.offset, copy)
    sends = index.sends_of(partition, value)
    for before, send in pairwise((None, *sends)):
        assert send is not None, "every pair ends with a send"
        tell_sent(story, send, story.evidence.producers[send.process].name, before)
    pairs = list(pairwise(appended.values()))
    # If a record has twenty copies, the second and the last explain enough.
    shown_pairs = pairs if len(pairs) <= _PAIRS_SHOWN_MAX else [pairs[0], pairs[-1]]
    stored = {copy.number: copy for pair in shown_pairs for copy in pair} or {
        copy.number: copy for copy in appended.values()
    }
    for number, copy in enumerate(stored.values()):
        tell_stored(story, copy, again=number > 0, with_producer=copy.producer_id >= 0)
    for offset in offsets:
        if offset not in appended:
            story.tell(END, seen.conclude(value=value, offset=offset))
    for earlier, later in shown_pairs:
        _tell_between(story, sends, earlier, later)
    cause = _cause(story, value, offsets, sends, pairs if len(appended) == len(offsets) else [])
    return cause.finding(story, offset=offsets[1], value=value, details=(("offsets", offsets),))


@deferred
def _tell_between(story: Story, sends: Sequence[SendRecord], earlier: LogEntry, later: LogEntry) -> None:
    """Tell what happened between two appends: copies, stops, elections, the producer's retries."""
    begin, end = earlier.number, later.number
    stored = story.copies(earlier.value, earlier.offset)
    group = [copy for copy in stored if copy.leader_epoch == earlier.leader_epoch]
    if later.broker != earlier.broker:
        for copy in group:
            if copy.broker == later.broker and copy.number < end:
                tell_stored(story, copy)
        tell_stops(story, group, end)
        tell_elections(story, group, begin, end)
    for client in dict.fromkeys(story.evidence.producers[send.process].name for send in sends):
        tell_retry(story, client, earlier.value, begin, end)
        tell_given_up(story, begin, end, client)
        tell_client_stop(story, client, begin, end)


def _cause(
    story: Story, value: Value, offsets: list[int], sends: Sequence[SendRecord], pairs: Sequence[_Pair]
) -> Cause:
    evidence = story.evidence
    is_transactional = bool(sends) and all(
        evidence.producers[send.process].transactional_id for send in sends
    )
    # An aborted transaction excuses no copy that is committed.
    times = sum(send.outcome != FAIL for send in sends) if is_transactional else len(sends)
    if len(offsets) <= times:
        if is_transactional:
            in_transactions = catalogue.resent_in_transactions.conclude(times=times)
            return Cause((in_transactions,), promise.SENT_IN_TRANSACTIONS)
        conclusion = catalogue.resent_by_application.conclude(times=times)
        return Cause((conclusion,), promise.NOT_TRANSACTIONAL, (TRANSACTIONS,))
    if not sends:
        return Cause((catalogue.sender_unknown.conclude(),))
    if any(not evidence.producers[send.process].idempotence for send in sends):
        return Cause(
            (catalogue.retry_without_idempotence.conclude(value=value),),
            promise.NOT_IDEMPOTENT,
            (IDEMPOTENCE,),
        )
    excuse = story.index.excuse(story.partition, offsets[0])
    if excuse is not None:
        return Cause(
            (catalogue.by_excuse(excuse, forgot_producers=True),), excuse.setting, excuse.prevented_by
        )
    return (
        _cause_by_loss(story, value, offsets)
        or _cause_by_renumbering(story, pairs, sends)
        or _cause_by_commit(value, pairs, sends)
        or _cause_by_producer(story, pairs, sends)
        or Cause((catalogue.retry_not_recognised.conclude(value=value),))
    )


def _cause_by_loss(story: Story, value: Value, offsets: list[int]) -> Cause | None:
    """Explain a record that was read, lost, and appended by a retry at another offset.

    A leader recognises a retry by the producer state in its log. The state is lost with the record,
    so what permits the loss of the record permits the second append. A copy that compaction removed
    is lost only if every later record of its key is lost, too.
    """
    logs = story.index.logs.get(story.partition, {}).values()
    lost = [
        offset
        for offset in offsets
        if not any(values[offset : offset + 1] == [value] for values in logs)
        and not compaction.is_replaced(story.index, story.partition, story.copies(value, offset))
    ]
    if not lost or len(offsets) - len(lost) > 1:
        return None
    losses = [explain_replaced(story.index, story.partition, value, offset) for offset in lost]
    if any(loss.permitted_by is None for loss in losses):
        return None
    return [tell_replaced(story, value, offset) for offset in lost][-1]


def _cause_by_renumbering(story: Story, pairs: Sequence[_Pair], sends: Sequence[SendRecord]) -> Cause | None:
    """Explain a record that its producer sent again with other sequence numbers.

    A leader that lacks the producer's previous records refuses the next record. The producer takes
    this for a permanent gap, raises its epoch and starts again at sequence 0
    (``TransactionManager.canRetry``). It also renumbers a batch that a leader has appended without
    an answer, or may still append, so the batch is appended twice. This is permitted if an unclean
    election lost the previous records, or if the producer had given up on them in flight.
    """
    clients = {story.evidence.producers[send.process].name for send in sends}
    if any(_renumbering_cause(Story(story.index, story.partition), *pair, clients) is None for pair in pairs):
        return None
    causes = [_renumbering_cause(story, *pair, clients) for pair in pairs]
    return causes[-1] if causes else None


def _renumbering_cause(
    story: Story, earlier: LogEntry, later: LogEntry, clients: Collection[str]
) -> Cause | None:
    if earlier.producer_id != later.producer_id or earlier.sequence == later.sequence:
        return None
    before = _sent_before(story, earlier)
    if before is None:
        return None
    group = [copy for copy in story.copies(before.value, before.offset) if before == copy]
    for number, failure in story.events(events.SendFailed):
        if (
            number < later.number
            and failure.client in clients
            and failure.error in FATAL_SEQUENCE_ERRORS
            and earlier.value in failure.values
            and _leader_lacked(story, group, number, failure)
        ):
            cause = _cause_of_lacking(story, group, number, failure, earlier.value)
            if cause is not None:
                refused = links.refused(
                    failure.at_us,
                    failure.leader,
                    value=earlier.value,
                    values=failure.values,
                    error=failure.error,
                )
                story.tell(number, refused, decides=True)
                return cause
    return None


def _cause_of_lacking(
    story: Story, group: Sequence[LogEntry], number: int, failure: events.SendFailed, value: Value
) -> Cause | None:
    """Return what permits that a leader lacked the previous record when it refused the next one."""
    before = group[0].value
    election = unclean_election_without(story, group)
    is_permitted = election is not None and story.settings.elects_uncleanly(election.at_us)
    if election is not None and is_permitted and election.at_us <= failure.at_us:
        elected_at = next(line.number for line in story.elections if line.event is election)
        tell_elections(story, group, elected_at - AFTER, elected_at + AFTER)
        conclusion = catalogue.renumbered_after_unclean_election.conclude(
            leader=election.leader, value=value, before=before
        )
        return Cause((conclusion,), promise.UNCLEAN_ELECTION, (CLEAN_ELECTIONS,))
    was_committed = any(0 < copy.committed < number for copy in group)
    for send in () if was_committed else story.index.sends_of(story.partition, before):
        if send.outcome == INFO and send.completed_us is not None and send.completed_us <= failure.at_us:
            given_up = catalogue.renumbered_after_giving_up.conclude(
                value=value, before=before, setting=DELIVERY_TIMEOUT
            )
            return Cause((given_up,), DELIVERY_TIMEOUT)
    return None


def _cause_by_commit(value: Value, pairs: Sequence[_Pair], sends: Sequence[SendRecord]) -> Cause | None:
    """Explain copies that the application sent one by one, although some of them were aborted."""
    failed = next((send for send in sends if send.outcome == FAIL), None)
    if failed is None or not pairs:
        return None
    for earlier, later in pairs:
        if not any(earlier.at_us < send.invoked_us <= later.at_us for send in sends):
            return None
    return Cause((catalogue.aborted_copy_committed.conclude(value=value),))


def _cause_by_producer(story: Story, pairs: Sequence[_Pair], sends: Sequence[SendRecord]) -> Cause | None:
    """Accuse a real producer that gave a record a new sequence number each time.

    No setting permits this. For the model's producer, the trace shows how the producer reacted to
    answers, which explains more. For a real producer, the trace has at most the refusals of
    leaders; on a cluster that harrow has not started, it has not even these refusals.
    """
    if not pairs or any(_sequence(earlier) == _sequence(later) for earlier, later in pairs):
        return None
    clients = {story.evidence.producers[send.process].name for send in sends}
    if any(again.client in clients for _, again in story.events(events.SentAgain)):
        return None
    earlier, later = pairs[-1]
    for number, refusal in reversed(story.index.events(events.RequestRejected)):
        is_of_producer = refusal.sender in clients and refusal.error in FATAL_SEQUENCE_ERRORS
        if is_of_producer and earlier.number < number < later.number:
            conclusion = catalogue.retry_renumbered.conclude(
                value=earlier.value,
                client=refusal.sender,
                refused_by=refusal.broker,
                refused_in=refusal.partition,
                error=refusal.error,
            )
            break
    else:
        client = story.evidence.producers[sends[-1].process].name
        conclusion = catalogue.retry_renumbered.conclude(value=earlier.value, client=client)
    return Cause((conclusion,), prevented_by=(ONE_IN_FLIGHT,))


def _sequence(entry: LogEntry) -> tuple[int, int]:
    return entry.producer_id, entry.sequence


def _sent_before(story: Story, copy: LogEntry) -> LogEntry | None:
    """Return a record of the producer's previous batch in the log to which a copy was appended."""
    for offset in range(copy.offset - 1, -1, -1):
        for other in story.copies_at(offset):
            is_of_producer = other.producer_id == copy.producer_id and other.batch != copy.batch
            if is_of_producer and other.broker == copy.broker and other.is_there(copy.number):
                return other
    return None


def _leader_lacked(story: Story, group: Sequence[LogEntry], number: int, failure: events.SendFailed) -> bool:
    """Return whether a leader lacked a record when it refused the next record.

    The leader may have copied the record later.
    """
    refusal = story.last(
        events.RequestRejected,
        before=number,
        broker=failure.leader,
        sender=failure.client,
        error=failure.error,
    )
    return not has_copy(group, failure.leader, number if refusal is None else refusal.number)


RULE: Final = Rule(
    name=promise.DUPLICATE,
    definition=(
        "A record is at two or more offsets of a partition, in one replica's log or as consumers read it. A record that its "
        "application sent again counts, with that as its cause. A copy that was aborted with its transaction does not count."
    ),
    source="Jepsen's Kafka workload (duplicate); KIP-98; ProducerStateManager.scala; KafkaProducer (what to do when a record expires).",
    promise=Promise(
        promised_by=(promise.IDEMPOTENT,),
        permissions=(
            Permission(
                setting=promise.NOT_IDEMPOTENT,
                stated=lambda settings: not settings.idempotence,
                prevented_by=(IDEMPOTENCE,),
            ),
            Permission(
                setting=promise.NOT_TRANSACTIONAL,
                when="when the application sends the record again",
                prevented_by=(TRANSACTIONS,),
            ),
            Permission(
                setting=promise.SENT_IN_TRANSACTIONS,
                when="when the application commits the record in two of them",
            ),
            promise.BY_UNCLEAN_ELECTION,
            *promise.BY_POWER_LOSSES,
            *promise.BY_DISK_FAILURES,
            Permission(
                setting=DELIVERY_TIMEOUT,
                when="when the producer gave up on the record before it while that was still in flight",
            ),
        ),
        releases="since 0.11 (KIP-98)",
        to_producer=promise.single_copy,
    ),
    find=find,
    is_tried=Index.has_sends,
    verb="doubled",
    fate=DOUBLED,
)
