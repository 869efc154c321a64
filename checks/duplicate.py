"""duplicate: a record stands at two offsets of a partition."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final

from checks.copies import END, Copy
from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.history.records import Pair, Send, Value
from checks.index import Index
from checks.lives import tell_elections, tell_stops, tell_stored
from checks.loss import Cause, explain_replaced, tell_replaced
from checks.prevention import FLUSHING, IDEMPOTENCE, TRANSACTIONS, by_behaviour
from checks.promise import (
    DUPLICATE,
    FLUSH_INTERVAL,
    NOT_IDEMPOTENT,
    NOT_TRANSACTIONAL,
    TRANSACTIONAL_ID,
)
from checks.requests import tell_client_stop, tell_retry, tell_sent
from checks.resumed_epoch import RESUMED, is_excused
from checks.rule import Rule, rule_result
from checks.story import Story


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find values that stand twice in one final log, or were polled at two offsets."""
    findings = [
        _finding(evidence, index, partition, value, offsets)
        for partition in dict.fromkeys((*index.logs, *index.polled))
        for value, offsets in _repeated(index, partition).items()
    ]
    return rule_result(DUPLICATE, evidence, findings)


def _repeated(index: Index, partition: str) -> dict[Value, list[int]]:
    """Return the values that have several offsets, with these."""
    offsets: dict[Value, set[int]] = {}
    for values in index.logs.get(partition, {}).values():
        if len(set(values)) != len(values):
            _collect(offsets, enumerate(values))
    polled: AbstractSet[Pair] = index.polled.get(partition, frozenset())
    if len(index.polled_values(partition)) != len(polled):
        _collect(offsets, polled)
    several = [(sorted(found), str(value), value) for value, found in offsets.items() if len(found) > 1]
    return {value: found for found, _, value in sorted(several)}


def _collect(offsets: dict[Value, set[int]], pairs: Iterable[Pair]) -> None:
    """Add the offsets of the values that have several in *pairs*."""
    here: dict[Value, set[int]] = {}
    for offset, value in pairs:
        here.setdefault(value, set()).add(offset)
    for value, found in here.items():
        if len(found) > 1:
            offsets.setdefault(value, set()).update(found)


def _finding(evidence: Evidence, index: Index, partition: str, value: Value, offsets: list[int]) -> Finding:
    story = Story(evidence, index.copies(partition), partition)
    appended = _appends(story, value, offsets)
    sends = index.sends_of(partition, value)
    for number, send in enumerate(sends):
        tell_sent(story, send, evidence.producers[send.process].name, again=number > 0)
    for number, copy in enumerate(appended.values()):
        tell_stored(story, copy, again=number > 0, with_producer=copy.stored[1][6] >= 0)
    for offset in offsets:
        if offset not in appended:
            story.tell(END, "seen", f"{value} was seen at offset {offset}", offset=offset)
    _tell_between(story, evidence, sends, list(appended.values()))
    cause = _cause(evidence, index, story, partition, value, offsets, sends)
    return Finding(
        partition=partition,
        offset=offsets[1],
        value=value,
        chain=story.chain(*cause.conclusions),
        permitted_by=cause.permitted_by,
        prevented_by=cause.prevented_by,
        details=(("offsets", offsets),),
    )


def _appends(story: Story, value: Value, offsets: list[int]) -> dict[int, Copy]:
    """Return the append that put a value at each offset, in the order of the trace."""
    copies = story.copies.of_value(value)
    found: dict[int, Copy] = {}
    for copy in copies:
        if copy.appended and copy.offset in offsets:
            found.setdefault(copy.offset, copy)
    return found


def _tell_between(story: Story, evidence: Evidence, sends: Sequence[Send], appends: Sequence[Copy]) -> None:
    """Tell what lay between one append and the next: copies, stops, elections, what the producer heard."""
    for earlier, later in pairwise(appends):
        begin, end = earlier.stored[0], later.stored[0]
        group = [
            copy
            for copy in story.copies.of_value(earlier.value)
            if copy.offset == earlier.offset and copy.leader_epoch == earlier.leader_epoch
        ]
        if later.broker != earlier.broker:
            for copy in group:
                if copy.broker == later.broker and copy.stored[0] < end:
                    tell_stored(story, copy)
            tell_stops(story, group, end)
            tell_elections(story, group, begin, end)
        for client in dict.fromkeys(evidence.producers[send.process].name for send in sends):
            tell_retry(story, client, earlier.value, begin, end)
            tell_client_stop(story, client, begin, end)


def _cause(
    evidence: Evidence,
    index: Index,
    story: Story,
    partition: str,
    value: Value,
    offsets: list[int],
    sends: Sequence[Send],
) -> Cause:
    if len(offsets) <= len(sends):
        conclusion = (
            f"the application sent it {len(sends)} times, and without a {TRANSACTIONAL_ID} "
            "idempotence covers the retries of one producer session only"
        )
        return Cause((conclusion,), NOT_TRANSACTIONAL, (TRANSACTIONS,))
    if not sends:
        conclusion = "no producer is known to have sent it"
        return Cause((conclusion,), None, by_behaviour(evidence, DUPLICATE))
    if any(not evidence.producers[send.process].idempotence for send in sends):
        conclusion = f"with {NOT_IDEMPOTENT} the leader cannot tell a retry from a new record"
        return Cause((conclusion,), NOT_IDEMPOTENT, (IDEMPOTENCE,))
    if is_excused(evidence, partition, offsets[0]):
        conclusion = f"{RESUMED}, and forgot its producers with them"
        return Cause((conclusion,), FLUSH_INTERVAL, (FLUSHING,))
    return _cause_by_loss(evidence, index, story, partition, value, offsets) or Cause(
        ("the leader did not recognise the retry",), None, by_behaviour(evidence, DUPLICATE)
    )


def _cause_by_loss(
    evidence: Evidence, index: Index, story: Story, partition: str, value: Value, offsets: list[int]
) -> Cause | None:
    """Explain a record that was read, lost, and appended again elsewhere by a retry.

    What permits the loss permits that the producer's state, with which a retry is
    recognised, was lost with it.
    """
    final_logs = index.logs.get(partition, {}).values()
    gone = [
        offset
        for offset in offsets
        if not any(offset < len(values) and values[offset] == value for values in final_logs)
    ]
    if not gone or len(offsets) - len(gone) > 1:
        return None
    losses = [explain_replaced(evidence, index, partition, value, offset) for offset in gone]
    if any(loss.permitted_by is None for loss in losses):
        return None
    for offset in gone:
        cause = tell_replaced(evidence, story, partition, value, offset)
    return cause


RULE: Final = Rule(
    name=DUPLICATE,
    definition=(
        "A record stands at two or more offsets of a partition, in one replica's log or as consumers read it. "
        "A record that the application itself sent again counts, with that as its cause."
    ),
    source="Jepsen's Kafka workload (duplicate); KIP-98; ProducerStateManager.scala.",
    judge=judge,
)
