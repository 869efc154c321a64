"""unseen: an acked record is there to be read, and nobody ever read it."""

from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.index import Index, Send
from checks.promise import UNSEEN
from checks.rule import Rule, rule_result
from checks.story import seconds


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find acked records that the last leader's log has, but no poll."""
    found: dict[tuple[str, str], Finding] = {}
    for partition, sends in index.acked.items():
        if partition not in evidence.read_back:
            continue
        polled, readable = index.polled_values(partition), index.readable(partition)
        for send in sends:
            if send.value not in polled and send.value in readable:
                found.setdefault((partition, send.value), _finding(index, send))
    return rule_result(UNSEEN, evidence, found.values(), inconclusive=bool(index.unread_partitions()))


def _finding(index: Index, send: Send) -> Finding:
    places = [
        f"at offset {values.index(send.value)} of broker {broker}"
        for broker, values in index.logs[send.partition].items()
        if send.value in values
    ]
    return Finding(
        partition=send.partition,
        offset=send.offset,
        value=send.value,
        because=(
            f"acked at {seconds(send.completed_us or 0)}; it stands {' and '.join(places)}, "
            "but no poll returned it although the partition was read to its end"
        ),
    )


RULE: Final = Rule(
    name=UNSEEN,
    definition=(
        "A send was acknowledged and the record is still in the leader's log, but no consumer ever read it, "
        "although the partition was read back to its end after the cluster had healed."
    ),
    source="Jepsen's Kafka workload (unseen); ReplicaManager.readFromLocalLog.",
    judge=judge,
)
