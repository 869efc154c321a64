"""unseen: an acked record is there to be read, and nobody ever read it."""

from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.history.records import Send, Value
from checks.index import Index
from checks.lives import tell_place
from checks.loss import tell_acknowledgement
from checks.prevention import by_replication
from checks.promise import UNSEEN
from checks.rule import Rule, rule_result
from checks.story import Story


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find acked records that the last leader's log has, but no poll."""
    found: dict[tuple[str, Value], Finding] = {}
    for partition, sends in index.acked.items():
        if partition not in evidence.read_back:
            continue
        polled, readable = index.polled_values(partition), index.readable(partition)
        for send in sends:
            if send.value not in polled and send.value in readable:
                found.setdefault((partition, send.value), _finding(evidence, index, send))
    return rule_result(UNSEEN, evidence, found.values(), inconclusive=bool(index.unread_partitions()))


def _finding(evidence: Evidence, index: Index, send: Send) -> Finding:
    partition = send.partition
    places = [
        f"at offset {values.index(send.value)} of broker {broker}"
        for broker, values in index.logs[partition].items()
        if send.value in values
    ]
    story = Story(evidence, index.copies(partition), partition)
    tell_place(story, _offset(index, send), send.value)
    tell_acknowledgement(story, send)
    conclusion = f"it stands {' and '.join(places)}, but no poll returned it although the partition was read to its end"
    return Finding(
        partition=partition,
        offset=send.offset,
        value=send.value,
        chain=story.chain(conclusion),
        prevented_by=by_replication(evidence, UNSEEN),
    )


def _offset(index: Index, send: Send) -> int:
    """Return the offset of a record that somebody still has."""
    return next(
        values.index(send.value) for values in index.logs[send.partition].values() if send.value in values
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
