"""nonmonotonic-send: records of one producer stand in another order than it sent them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from checks.evidence import Evidence, ProducerSettings
from checks.finding import Finding, RuleResult
from checks.history.records import Send, Value
from checks.index import Index
from checks.lives import tell_stored
from checks.prevention import FLUSHING, IDEMPOTENCE, ONE_IN_FLIGHT, WAITING_FOR_ANSWERS, by_behaviour
from checks.promise import FLUSH_INTERVAL, NONMONOTONIC_SEND, order_permitted_by
from checks.requests import tell_retry, tell_sent
from checks.resumed_epoch import is_excused
from checks.rule import Rule, rule_result
from checks.story import Story


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find acked records that stand before what the same session sent earlier.

    Only records that are still in a final log are compared: the offset of one that was
    cut off says nothing, for it has been given away again.
    """
    positions: dict[str, dict[Value, int]] = {}
    findings: list[Finding] = []
    for session in index.history.sessions:
        process, partition, sends = session.process, session.partition, session.sends
        if partition not in positions:
            positions[partition] = first_positions(index, partition)
        permitted_by = order_permitted_by(evidence.producers[process])
        if permitted_by is None and is_excused(evidence, partition, None):
            permitted_by = FLUSH_INTERVAL
        placed = _placed(index, positions[partition], sends)
        findings += [
            _finding(evidence, index, earlier, later, permitted_by)
            for earlier, later in pairwise(placed)
            if later[0] <= earlier[0]
        ]
    return rule_result(NONMONOTONIC_SEND, evidence, findings)


def first_positions(index: Index, partition: str) -> dict[Value, int]:
    """Return the first offset of each value in the last leader's log; without any log, as it was read."""
    logs = index.logs.get(partition)
    if not logs:
        return {value: offset for offset, value in sorted(index.polled.get(partition, ()), reverse=True)}
    values = logs.get(index.last_leader(partition)) or max(logs.values(), key=len)
    # The last entry of a value wins, so from the end.
    return dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))


def _placed(index: Index, positions: dict[Value, int], sends: Sequence[Send]) -> list[tuple[int, Send]]:
    """Return the session's acked records that are still there, in the order of sending."""
    placed: list[tuple[int, Send]] = []
    for send in sends:
        if send.outcome != "ok" or send.value not in positions:
            continue
        # The first offset of a value that was sent again may be that of the other send.
        if len(index.sends_of(send.partition, send.value)) == 1:
            placed.append((positions[send.value], send))
    return placed


def _finding(
    evidence: Evidence,
    index: Index,
    earlier: tuple[int, Send],
    later: tuple[int, Send],
    permitted_by: str | None,
) -> Finding:
    (earlier_offset, first), (later_offset, second) = earlier, later
    producer = evidence.producers[second.process]
    partition = second.partition
    story = Story(evidence, index.copies(partition), partition)
    for offset, send in (earlier, later):
        tell_sent(story, send, producer.name)
        appends = [copy for copy in story.copies.of_value(send.value) if copy.appended]
        for copy in appends:
            if copy.offset == offset:
                tell_stored(story, copy)
        if appends:
            begin = story.position(send.invoked_us)
            tell_retry(story, producer.name, send.value, begin, appends[-1].stored[0])
    conclusion = (
        f"{second.value} stands at offset {later_offset}, before {first.value} at offset {earlier_offset}, "
        "which was sent earlier"
    )
    return Finding(
        partition=partition,
        offset=later_offset,
        value=second.value,
        chain=story.chain(conclusion),
        permitted_by=permitted_by,
        prevented_by=_prevented_by(evidence, producer, permitted_by),
        details=(("offsets", [earlier_offset, later_offset]),),
    )


def _prevented_by(
    evidence: Evidence, producer: ProducerSettings, permitted_by: str | None
) -> tuple[str, ...]:
    if permitted_by is None:
        return by_behaviour(evidence, NONMONOTONIC_SEND)
    if permitted_by == FLUSH_INTERVAL:
        return (FLUSHING,)
    answers = (WAITING_FOR_ANSWERS,) if producer.acks == "0" else ()
    return (*answers, IDEMPOTENCE, ONE_IN_FLIGHT)


RULE: Final = Rule(
    name=NONMONOTONIC_SEND,
    definition=(
        "Two acknowledged records of one producer session stand in a partition in another order than they were "
        "sent. The first offset of each counts, and one finding is reported for each step back."
    ),
    source=(
        "Jepsen's Kafka workload (nonmonotonic-send); KIP-98; "
        "ProducerConfig.java, max.in.flight.requests.per.connection."
    ),
    judge=judge,
)
