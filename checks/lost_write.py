"""lost-write: an acked record is no longer there to be read."""

from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.history.records import Value
from checks.index import Index
from checks.loss import explain_lost_send
from checks.promise import LOST_WRITE
from checks.rule import Rule, rule_result


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find acked records that the last leader's log no longer has.

    What only a follower kept that has diverged is lost to consumers as well. A partition
    that was not read back is not judged: what is missing may come back.
    """
    found: dict[tuple[str, Value], Finding] = {}
    for partition, sends in index.acked.items():
        if partition not in evidence.read_back:
            continue
        readable = index.readable(partition)
        for send in sends:
            if send.value in readable:
                continue
            loss = explain_lost_send(evidence, index, send)
            # A value acked to two sessions is one loss, and the stronger promise counts.
            known = found.get((partition, send.value))
            if known is None or known.permitted_by is not None:
                found[partition, send.value] = Finding(
                    partition=partition,
                    offset=send.offset,
                    value=send.value,
                    chain=loss.chain,
                    permitted_by=loss.permitted_by,
                    prevented_by=loss.prevented_by,
                )
    return rule_result(LOST_WRITE, evidence, found.values(), inconclusive=bool(index.unread_partitions()))


RULE: Final = Rule(
    name=LOST_WRITE,
    definition=(
        "A send was acknowledged, and after the cluster has healed and the partition has been read back "
        "to its end, the record is not in the leader's log, so no consumer will read it again."
    ),
    source="Jepsen's Kafka workload (lost-write); Kafka's documentation, Replication (committed messages).",
    judge=judge,
)
