"""The anomalies of clients that a run shows in its history: what consumers skipped, read too early, and so on.

They are found as in any history; what a run adds is the cause, where the trace has it.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, Link, RuleResult
from checks.history.anomalies import ANOMALIES
from checks.index import Index
from checks.loss import explain_replaced
from checks.promise import (
    G0,
    G1A,
    G1C,
    INT_NONMONOTONIC_POLL,
    INT_NONMONOTONIC_SEND,
    INT_POLL_SKIP,
    INT_SEND_SKIP,
    NONMONOTONIC_POLL,
    POLL_SKIP,
    PRECOMMITTED_READ,
    PROMISES,
    WRITES_INTERLEAVE,
    order_permitted_by,
)
from checks.rule import Rule, rule_result

_Judge = Callable[[Evidence, Index, Finding], Finding]


def _by_loss(evidence: Evidence, index: Index, finding: Finding) -> Finding:
    """Permit a consumer to go elsewhere if what it had read last is gone, and was permitted to go."""
    if finding.permitted_by is not None:
        return finding
    details = dict(finding.details)
    offset, value = details["offsets"][0], details["values"][0]
    loss = explain_replaced(evidence, index, finding.partition, value, offset)
    chain = sorted((*loss.chain, *finding.chain), key=_in_time)
    return replace(
        finding,
        chain=tuple(chain),
        permitted_by=loss.permitted_by,
        prevented_by=loss.prevented_by or finding.prevented_by,
    )


def _in_time(link: Link) -> tuple[bool, int]:
    """Order links by their time; what has none comes at the end."""
    return link.at_us is None, link.at_us or 0


def _by_producer(evidence: Evidence, _: Index, finding: Finding) -> Finding:
    producer = evidence.producers[dict(finding.details)["process"]]
    return replace(finding, permitted_by=order_permitted_by(producer))


def _interleaved(_: Evidence, __: Index, finding: Finding) -> Finding:
    return replace(finding, permitted_by=WRITES_INTERLEAVE)


def _as_found(_: Evidence, __: Index, finding: Finding) -> Finding:
    return finding


_JUDGED: Final[dict[str, _Judge]] = {
    POLL_SKIP: _by_loss,
    NONMONOTONIC_POLL: _by_loss,
    INT_POLL_SKIP: _by_loss,
    INT_NONMONOTONIC_POLL: _by_loss,
    INT_NONMONOTONIC_SEND: _by_producer,
    INT_SEND_SKIP: _interleaved,
    G1A: _as_found,
    PRECOMMITTED_READ: _as_found,
    G0: _interleaved,
    G1C: _as_found,
}


def _judge(name: str, evidence: Evidence, index: Index) -> RuleResult:
    prevented_by = PROMISES[name].prevented_by
    findings = [
        _JUDGED[name](evidence, index, replace(finding, prevented_by=prevented_by))
        for finding in ANOMALIES[name].find(index.orders)
    ]
    return rule_result(name, evidence, findings)


HISTORY_RULES: Final = tuple(
    Rule(
        name=name,
        definition=ANOMALIES[name].definition,
        source=f"Jepsen's Kafka workload ({name}).",
        judge=partial(_judge, name),
    )
    for name in _JUDGED
)
"""The rules that need nothing but the history, in the order in which they are judged and listed."""
