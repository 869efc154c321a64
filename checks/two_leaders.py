"""two-leaders: two brokers led a partition in one leader epoch."""

from collections.abc import Sequence
from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.index import Index
from checks.prevention import by_behaviour
from checks.promise import TWO_LEADERS
from checks.rule import Rule, rule_result
from checks.story import Story, brokers


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find leader epochs with two leaders; a leader that restarts in its epoch is one leader."""
    leaders: dict[tuple[str, int], tuple[int, int]] = {}
    found: dict[tuple[str, int, int], Finding] = {}
    for at_us, _, broker, partition, leader_epoch, start_offset, *_ in index.leader_events:
        first_us, first = leaders.setdefault((partition, leader_epoch), (at_us, broker))
        if first != broker and (partition, leader_epoch, broker) not in found:
            led = ((first_us, first), (at_us, broker))
            found[partition, leader_epoch, broker] = _finding(
                evidence, index, partition, leader_epoch, led, start_offset
            )
    return rule_result(TWO_LEADERS, evidence, found.values())


def _finding(
    evidence: Evidence,
    index: Index,
    partition: str,
    leader_epoch: int,
    led: Sequence[tuple[int, int]],
    offset: int,
) -> Finding:
    copies = index.copies(partition)
    story = Story(evidence, copies, partition)
    controllers = set()
    for position, event in copies.elections:
        if event[5] == leader_epoch:
            controllers.add(event[2])
            text = f"broker {event[2]}, as controller, elected broker {event[4]} (epoch {leader_epoch})"
            story.tell(position, "elected", text, event[0], event[4])
    for position, event in copies.events("controller_elected"):
        if event[2] in controllers:
            text = f"broker {event[2]} was elected controller (controller epoch {event[3]})"
            story.tell(position, "controller-elected", text, event[0], event[2])
    for position, event in copies.events("leader"):
        if event[4] == leader_epoch and (event[0], event[2]) in led:
            text = f"broker {event[2]} became leader in epoch {leader_epoch}"
            story.tell(position, "became-leader", text, event[0], event[2], event[5])
    return Finding(
        partition=partition,
        offset=offset,
        chain=story.chain(f"{brokers(leader for _, leader in led)} both led in epoch {leader_epoch}"),
        prevented_by=by_behaviour(evidence, TWO_LEADERS),
        details=(("leader_epoch", leader_epoch),),
    )


RULE: Final = Rule(
    name=TWO_LEADERS,
    definition=(
        "Two brokers became leader of a partition in the same leader epoch: the invariant one-leader-per-epoch is "
        "broken."
    ),
    source="KIP-101; ReplicaManager.becomeLeaderOrFollower.",
    judge=judge,
)
