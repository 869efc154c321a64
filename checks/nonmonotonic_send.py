"""nonmonotonic-send: records of one producer stand in another order than it sent them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.index import Index, Send
from checks.promise import FLUSH_INTERVAL, NONMONOTONIC_SEND, order_permitted_by
from checks.resumed_epoch import is_excused
from checks.rule import Rule, rule_result
from checks.story import seconds


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find acked records that stand before what the same session sent earlier.

    Only records that are still in a final log are compared: the offset of one that was
    cut off says nothing, for it has been given away again.
    """
    positions: dict[str, dict[str, int]] = {}
    findings: list[Finding] = []
    for (process, partition), sends in index.sessions.items():
        if partition not in positions:
            positions[partition] = first_positions(index, partition)
        permitted_by = order_permitted_by(evidence.producers[process])
        if permitted_by is None and is_excused(evidence, partition, None):
            permitted_by = FLUSH_INTERVAL
        placed = _placed(index, positions[partition], sends)
        findings += [
            _finding(earlier, later, permitted_by)
            for earlier, later in pairwise(placed)
            if later[0] <= earlier[0]
        ]
    return rule_result(NONMONOTONIC_SEND, evidence, findings)


def first_positions(index: Index, partition: str) -> dict[str, int]:
    """Return the first offset of each value in the last leader's log; without any log, as it was read."""
    logs = index.logs.get(partition)
    if not logs:
        return {value: offset for offset, value in sorted(index.polled.get(partition, ()), reverse=True)}
    values = logs.get(index.last_leader(partition)) or max(logs.values(), key=len)
    # The last entry of a value wins, so from the end.
    return dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))


def _placed(index: Index, positions: dict[str, int], sends: Sequence[Send]) -> list[tuple[int, Send]]:
    """Return the session's acked records that are still there, in the order of sending."""
    placed: list[tuple[int, Send]] = []
    for send in sends:
        if send.outcome != "ok" or send.value not in positions:
            continue
        # The first offset of a value that was sent again may be that of the other send.
        if len(index.sends[send.partition, send.value]) == 1:
            placed.append((positions[send.value], send))
    return placed


def _finding(earlier: tuple[int, Send], later: tuple[int, Send], permitted_by: str | None) -> Finding:
    (earlier_offset, first), (later_offset, second) = earlier, later
    return Finding(
        partition=second.partition,
        offset=later_offset,
        value=second.value,
        because=(
            f"{first.value} was sent at {seconds(first.invoked_us)} and {second.value} after it at "
            f"{seconds(second.invoked_us)}, but {second.value} stands at offset {later_offset}, "
            f"before {first.value} at offset {earlier_offset}"
        ),
        permitted_by=permitted_by,
    )


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
