"""two-leaders: two brokers led a partition in one leader epoch."""

from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.index import Index
from checks.promise import TWO_LEADERS
from checks.rule import Rule, rule_result
from checks.story import seconds


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find leader epochs with two leaders; a leader that restarts in its epoch is one leader."""
    leaders: dict[tuple[str, int], tuple[int, int]] = {}
    found: dict[tuple[str, int, int], Finding] = {}
    for at_us, _, broker, partition, leader_epoch, start_offset, *_ in index.leader_events:
        first_us, first = leaders.setdefault((partition, leader_epoch), (at_us, broker))
        if first != broker and (partition, leader_epoch, broker) not in found:
            found[partition, leader_epoch, broker] = Finding(
                partition=partition,
                offset=start_offset,
                because=(
                    f"broker {first} at {seconds(first_us)} and broker {broker} at {seconds(at_us)} "
                    f"became leader in epoch {leader_epoch}"
                ),
            )
    return rule_result(TWO_LEADERS, evidence, found.values())


RULE: Final = Rule(
    name=TWO_LEADERS,
    definition="Two brokers became leader of a partition in the same leader epoch.",
    source="KIP-101; ReplicaManager.becomeLeaderOrFollower.",
    judge=judge,
)
