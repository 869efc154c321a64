"""duplicate: a record stands at two offsets of a partition."""

from collections.abc import Iterable
from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.index import Index, Pair
from checks.loss import explain_replaced
from checks.promise import DUPLICATE, FLUSH_INTERVAL, NOT_IDEMPOTENT, TRANSACTIONAL_ID
from checks.resumed_epoch import RESUMED, is_excused
from checks.rule import Rule, rule_result
from checks.story import seconds


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find values that stand twice in one final log, or were polled at two offsets."""
    findings = [
        _finding(evidence, index, partition, value, offsets)
        for partition in dict.fromkeys((*index.logs, *index.polled))
        for value, offsets in _repeated(index, partition).items()
    ]
    return rule_result(DUPLICATE, evidence, findings)


def _repeated(index: Index, partition: str) -> dict[str, list[int]]:
    """Return the values that have several offsets, with these."""
    offsets: dict[str, set[int]] = {}
    for values in index.logs.get(partition, {}).values():
        if len(set(values)) != len(values):
            _collect(offsets, enumerate(values))
    polled = index.polled.get(partition, set())
    if len(index.polled_values(partition)) != len(polled):
        _collect(offsets, polled)
    several = [(sorted(found), value) for value, found in offsets.items() if len(found) > 1]
    return {value: found for found, value in sorted(several)}


def _collect(offsets: dict[str, set[int]], pairs: Iterable[Pair]) -> None:
    """Add the offsets of the values that have several in *pairs*."""
    here: dict[str, set[int]] = {}
    for offset, value in pairs:
        here.setdefault(value, set()).add(offset)
    for value, found in here.items():
        if len(found) > 1:
            offsets.setdefault(value, set()).update(found)


def _finding(evidence: Evidence, index: Index, partition: str, value: str, offsets: list[int]) -> Finding:
    because, permitted_by = _cause(evidence, index, partition, value, offsets)
    places = "; ".join(_place(index, partition, value, offset) for offset in offsets)
    return Finding(
        partition=partition,
        offset=offsets[1],
        value=value,
        because=f"{places}; {because}",
        permitted_by=permitted_by,
    )


def _place(index: Index, partition: str, value: str, offset: int) -> str:
    for copy in index.copies(partition).by_value.get(value, ()):
        if copy.offset == offset and copy.appended:
            at = seconds(copy.stored[1][0])
            return f"offset {offset} was appended at {at} by broker {copy.broker} (epoch {copy.leader_epoch})"
    return f"it was seen at offset {offset}"


def _cause(
    evidence: Evidence, index: Index, partition: str, value: str, offsets: list[int]
) -> tuple[str, str | None]:
    sends = index.sends.get((partition, value), [])
    sent = ", ".join(
        f"by {evidence.producers[send.process].name} at {seconds(send.invoked_us)}" for send in sends
    )
    if len(offsets) <= len(sends):
        because = (
            f"the application sent it {len(sends)} times ({sent}), and without a {TRANSACTIONAL_ID} "
            "idempotence covers the retries of one producer session only"
        )
        return because, TRANSACTIONAL_ID
    because = (
        f"sent {sent}, and appended again by a retry" if sends else "no producer is known to have sent it"
    )
    if any(not evidence.producers[send.process].idempotence for send in sends):
        return because, NOT_IDEMPOTENT
    if is_excused(evidence, partition, offsets[0]):
        return f"{because}; {RESUMED}, and forgot its producers with them", FLUSH_INTERVAL
    return _cause_by_loss(evidence, index, partition, value, offsets) or (because, None)


def _cause_by_loss(
    evidence: Evidence, index: Index, partition: str, value: str, offsets: list[int]
) -> tuple[str, str | None] | None:
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
    return losses[0].because, losses[0].permitted_by


RULE: Final = Rule(
    name=DUPLICATE,
    definition=(
        "A record stands at two or more offsets of a partition, in one replica's log or as consumers read it. "
        "A record that the application itself sent again counts, with that as its cause."
    ),
    source="Jepsen's Kafka workload (duplicate); KIP-98; ProducerStateManager.scala.",
    judge=judge,
)
