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
from checks.history.records import Pair
from checks.history.witness import AFTER_LOSS
from checks.index import Index
from checks.loss import Loss, explain_replaced
from checks.prevention import CLEAN_ELECTIONS, FLUSHING, IDEMPOTENCE, NO_OFFSET_RESET
from checks.promise import (
    AUTO_OFFSET_RESET,
    FLUSH_INTERVAL,
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
    UNCLEAN_ELECTION,
    WRITES_INTERLEAVE,
    order_permitted_by,
)
from checks.rule import Rule, rule_result
from checks.story import seconds
from cluster_model.errors import OFFSET_OUT_OF_RANGE

_Judge = Callable[[Evidence, Index, Finding], Finding]


def _by_loss(evidence: Evidence, index: Index, finding: Finding) -> Finding:
    """Permit a consumer to go elsewhere if what it had read last is gone, and was permitted to go."""
    if finding.permitted_by is not None:
        return finding
    details = dict(finding.details)
    offset, value = details["offsets"][0], details["values"][0]
    loss = explain_replaced(evidence, index, finding.partition, value, offset)
    if loss.permitted_by is None:
        until_us = max(link.at_us for link in finding.chain if link.at_us is not None)
        loss = (
            _led_without(evidence, index, finding.partition, (offset, value), until_us)
            or _sent_elsewhere(evidence, index, finding, (offset, value), until_us)
            or loss
        )
    if loss.permitted_by is None and details.get(AFTER_LOSS):
        skipped = details["skipped"][0]
        skipped_at = index.orders.of(finding.partition).first_offset(skipped)
        loss = explain_replaced(evidence, index, finding.partition, skipped, skipped_at or 0)
    chain = sorted((*loss.chain, *finding.chain), key=_in_time)
    return replace(
        finding,
        chain=tuple(chain),
        permitted_by=loss.permitted_by,
        prevented_by=loss.prevented_by or finding.prevented_by,
    )


def _led_without(evidence: Evidence, index: Index, partition: str, last: Pair, until_us: int) -> Loss | None:
    """Explain a consumer that was ahead of its leader, though the record came back later: who led without it.

    None unless the leader had lost it with its power, or was elected uncleanly. A leader that came
    back before any controller missed it was not elected: it leads on, in a new leader epoch when
    another replica is missed.
    """
    copies = index.copies(partition)
    group = [copy for copy in copies.of_value(last[1]) if copy.offset == last[0]]
    led = [(place, event[0], event[4], event[7], "was elected") for place, event in copies.elections]
    led += [(place, event[0], event[2], False, "led") for place, event in copies.events("leader")]
    for position, at_us, leader, unclean, verb in sorted(led):
        if at_us > until_us or any(copy.broker == leader and copy.is_there(position) for copy in group):
            continue
        lost = [copy for copy in group if copy.broker == leader and copy.lost_with_power]
        if any(copy.gone is not None and copy.gone[0] < position for copy in lost):
            setting, prevented_by = FLUSH_INTERVAL, FLUSHING
        elif unclean and evidence.partitions[partition].unclean_leader_election:
            setting, prevented_by = UNCLEAN_ELECTION, CLEAN_ELECTIONS
        else:
            continue
        text = f"{seconds(at_us)} broker {leader} {verb} without {last[1]} ({setting})"
        link = Link(event="elected", text=text, at_us=at_us, broker=leader, offset=last[0])
        return Loss((link,), setting, (prevented_by,))
    return None


def _sent_elsewhere(
    evidence: Evidence, index: Index, finding: Finding, last: Pair, until_us: int
) -> Loss | None:
    """Explain a consumer whom a leader of the past told that its position is out of range.

    Such a leader never had what its successors wrote. Nothing has gone: the consumer went where
    ``auto.offset.reset`` sends it. Its metadata, which came from brokers of the past too, knew no better.
    """
    copies = index.copies(finding.partition)
    consumer = evidence.process_names[dict(finding.details)["process"]]
    wanted = ("Fetch", finding.partition, consumer, OFFSET_OUT_OF_RANGE)
    since = min((copy.stored[0] for copy in copies.of_value(last[1])), default=0)
    for position, event in enumerate(evidence.trace):
        if position < since or event[0] > until_us or event[1] != "rejected" or event[3:] != wanted:
            continue
        at_us, broker = event[0], event[2]
        led = [
            begun[4] for place, begun in copies.events("leader") if place < position and begun[2] == broker
        ]
        newest = max((elected[5] for place, elected in copies.elections if place < position), default=0)
        if led and led[-1] < newest:
            text = (
                f"{seconds(at_us)} broker {broker}, leader of epoch {led[-1]} for all that it knew, told "
                f"{consumer} that its position was out of range ({AUTO_OFFSET_RESET})"
            )
            link = Link(event="out-of-range", text=text, at_us=at_us, broker=broker)
            return Loss((link,), AUTO_OFFSET_RESET, (NO_OFFSET_RESET,))
    return None


def _in_time(link: Link) -> tuple[bool, int]:
    """Order links by their time; what has none comes at the end."""
    return link.at_us is None, link.at_us or 0


def _by_producer(evidence: Evidence, _: Index, finding: Finding) -> Finding:
    producer = evidence.producers[dict(finding.details)["process"]]
    return replace(finding, permitted_by=order_permitted_by(producer), prevented_by=(IDEMPOTENCE,))


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
    findings = [_JUDGED[name](evidence, index, finding) for finding in ANOMALIES[name].find(index.orders)]
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
