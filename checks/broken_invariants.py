"""The invariants as rules: what was broken inside the cluster, and what permits it.

The run says where an invariant broke (`invariant_broken` in the trace); here it is judged, by the
cause in the trace. An unclean election takes a leader that lacks what was committed, and power
loss takes what was not flushed: both break what replicas know of each other, and Kafka promises
nothing else. Whatever else breaks an invariant is a flaw.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Final

from checks.copies import Copy, PartitionCopies, Placed
from checks.evidence import Evidence
from checks.finding import Finding, Link, RuleResult
from checks.index import Index
from checks.prevention import (
    CLEAN_ELECTIONS,
    FLUSHING,
    FLUSHING_OR_PLACEMENT,
    OF_CONTROL,
    by_behaviour,
    by_replication,
)
from checks.promise import DUPLICATE, FLUSH_INTERVAL, LOG_DIVERGENCE, UNCLEAN_ELECTION
from checks.resumed_epoch import RESUMED, is_excused
from checks.rule import Rule, rule_result
from checks.story import seconds, words
from cluster_model.invariants import (
    EPOCH_CACHE_MONOTONIC,
    INVARIANTS,
    ISR_HOLDS_COMMITTED,
    LOG_MATCHING,
    PRODUCER_STATE_MATCHES_LOG,
    Invariant,
)
from cluster_model.trace import TraceEvent

_BETWEEN_REPLICAS: Final = (ISR_HOLDS_COMMITTED, LOG_MATCHING)
"""What a replica without the records of the others breaks."""

_RECORDS_TOLD: Final = 3
_NOBODY: Final = -1
_WITHIN_LOGS: Final = (EPOCH_CACHE_MONOTONIC, PRODUCER_STATE_MATCHES_LOG)
"""What a log that is made of two histories breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    """What permits that an invariant broke: the setting, what happened, and what would prevent it."""

    setting: str
    because: str
    prevented_by: tuple[str, ...]
    event: Placed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Break:
    """Where an invariant broke, and the copies of records that stood there before."""

    at_us: int
    position: int
    invariant: str
    broker: int
    partition: str
    offset: int
    details: str


def judge(invariant: str, evidence: Evidence, index: Index) -> RuleResult:
    """Judge each place at which an invariant broke."""
    findings = [
        _finding(evidence, index, _placed(evidence, event))
        for event in index.broken_invariants
        if event[2] == invariant
    ]
    return rule_result(invariant, evidence, findings)


def _placed(evidence: Evidence, event: TraceEvent) -> _Break:
    first = bisect_left(evidence.trace, event[0], key=itemgetter(0))
    position = next(
        position for position in range(first, len(evidence.trace)) if evidence.trace[position] is event
    )
    at_us, _, invariant, broker, partition, _, offset, details = evidence.trace[position]
    return _Break(
        at_us=at_us,
        position=position,
        invariant=invariant,
        broker=broker,
        partition=partition,
        offset=offset,
        details=details,
    )


def _finding(evidence: Evidence, index: Index, broken: _Break) -> Finding:
    copies = index.copies(broken.partition)
    cause = _cause(evidence, copies, broken)
    links = [] if cause is None or cause.event is None else [_cause_link(cause.event)]
    cut = _last_cut(copies, broken)
    if cut is not None and (cause is None or cut != cause.event):
        links.append(_cause_link(cut))
    if broken.invariant in (*_BETWEEN_REPLICAS, PRODUCER_STATE_MATCHES_LOG):
        links += _standing(copies, broken)
    links.sort(key=lambda link: link.at_us or 0)
    text = f"{seconds(broken.at_us)} broker {broken.broker}: {broken.details}"
    links.append(
        Link(
            event="invariant-broken",
            text=text,
            at_us=broken.at_us,
            broker=broken.broker,
            offset=broken.offset,
        )
    )
    if cause is not None:
        links.append(Link(event="conclusion", text=cause.because))
    return Finding(
        partition=broken.partition,
        offset=broken.offset if broken.offset >= 0 else None,
        chain=tuple(links),
        permitted_by=None if cause is None else cause.setting,
        prevented_by=_prevented_by(evidence, broken.invariant) if cause is None else cause.prevented_by,
    )


def _prevented_by(evidence: Evidence, invariant: str) -> tuple[str, ...]:
    if invariant in OF_CONTROL:
        return by_behaviour(evidence, invariant)
    if invariant == PRODUCER_STATE_MATCHES_LOG:
        return by_behaviour(evidence, DUPLICATE)
    return by_replication(evidence, LOG_DIVERGENCE)


# Causes


def _cause(evidence: Evidence, copies: PartitionCopies, broken: _Break) -> _Cause | None:
    """Return what permits a break, None if nothing in the trace does."""
    if broken.invariant in _BETWEEN_REPLICAS:
        for group in _concerned(evidence, copies, broken):
            found = _unclean_election(evidence, copies, broken, group) or _power_loss(broken, group)
            if found is not None:
                return found
    if broken.invariant in (*_BETWEEN_REPLICAS, *_WITHIN_LOGS) and is_excused(
        evidence, broken.partition, broken.offset
    ):
        return _Cause(setting=FLUSH_INTERVAL, because=RESUMED, prevented_by=(FLUSHING,))
    return None


def _concerned(evidence: Evidence, copies: PartitionCopies, broken: _Break) -> list[list[Copy]]:
    """Return the committed records that stood at the offset until then, each as its copies.

    Of what a member of the ISR does not have, the latest alone: what it lacks of an earlier
    history does not explain that it lacks the present one. Where a leader has just committed
    it, perhaps one that has been succeeded and does not know, it is that leader's history.
    """
    groups: dict[tuple[str, int], list[Copy]] = {}
    for value, stored in copies.by_value.items():
        for copy in stored:
            if copy.offset == broken.offset and copy.stored[0] < broken.position:
                groups.setdefault((value, copy.leader_epoch), []).append(copy)
    committed = [group for group in groups.values() if any(copy.committed for copy in group)]
    if broken.invariant != ISR_HOLDS_COMMITTED:
        return committed
    lacking = [group for group in committed if not _has(group, broken.broker, broken.position)]
    committer = _committer(evidence, broken)
    of_committer = [group for group in lacking if _has(group, committer, broken.position)]
    return sorted(of_committer or lacking, key=lambda group: group[0].leader_epoch)[-1:]


def _committer(evidence: Evidence, broken: _Break) -> int:
    """Return the broker whose high watermark has just passed the offset, -1 if it broke by something else."""
    position = broken.position
    while position > 0 and evidence.trace[position][1] == "invariant_broken":
        position -= 1
    event = evidence.trace[position]
    is_commit = event[1] == "hw" and event[3] == broken.partition and event[4] > broken.offset
    return int(event[2]) if is_commit else _NOBODY


def _has(group: list[Copy], broker: int, position: int) -> bool:
    return any(copy.broker == broker and copy.is_there(position) for copy in group)


def _unclean_election(
    evidence: Evidence, copies: PartitionCopies, broken: _Break, group: list[Copy]
) -> _Cause | None:
    """Return the unclean election, in a later epoch than the record's, of a leader without it."""
    if not evidence.partitions[broken.partition].unclean_leader_election:
        return None
    for placed in copies.elections:
        position, (_, _, _, _, leader, leader_epoch, _, unclean, _) = placed
        if not unclean or position > broken.position or leader_epoch <= group[0].leader_epoch:
            continue
        if not _has(group, leader, position):
            return _Cause(
                setting=UNCLEAN_ELECTION,
                because=f"an unclean election takes a leader without what was committed ({UNCLEAN_ELECTION})",
                prevented_by=(CLEAN_ELECTIONS,),
                event=placed,
            )
    return None


def _power_loss(broken: _Break, group: list[Copy]) -> _Cause | None:
    """Return the power loss that took the record from a replica which had not got it again."""
    for copy in {copy.broker: copy for copy in group}.values():
        if copy.gone is not None and copy.lost_with_power and copy.gone[0] < broken.position:
            return _Cause(
                setting=FLUSH_INTERVAL,
                because=(
                    f"Kafka leaves flushing to the operating system ({FLUSH_INTERVAL}), "
                    "and a replica that comes back without what it had not flushed counts as before"
                ),
                prevented_by=(FLUSHING_OR_PLACEMENT,),
                event=copy.gone,
            )
    return None


# Telling


def _last_cut(copies: PartitionCopies, broken: _Break) -> Placed | None:
    """Return how the broker last lost what stood at the offset."""
    cuts = [
        copy.gone
        for stored in copies.by_value.values()
        for copy in stored
        if copy.broker == broken.broker
        and copy.offset == broken.offset
        and copy.gone is not None
        and copy.gone[0] < broken.position
    ]
    return max(cuts, default=None, key=lambda placed: placed[0])


def _standing(copies: PartitionCopies, broken: _Break) -> list[Link]:
    """Return who had stored which record at the offset, each record once, the last ones if there are many."""
    stored: dict[tuple[str, int], Copy] = {}
    for found in copies.by_value.values():
        for copy in found:
            if copy.offset == broken.offset and copy.is_there(broken.position):
                stored.setdefault((copy.value, copy.leader_epoch), copy)
    links = []
    for copy in sorted(stored.values(), key=lambda copy: copy.stored[0])[-_RECORDS_TOLD:]:
        at_us = copy.stored[1][0]
        verb = "appended" if copy.appended else "copied"
        what = f"broker {copy.broker} {verb} {copy.value} at offset {copy.offset} (epoch {copy.leader_epoch})"
        links.append(
            Link(
                event=verb,
                text=f"{seconds(at_us)} {what}",
                at_us=at_us,
                broker=copy.broker,
                offset=copy.offset,
            )
        )
    return links


def _cause_link(placed: Placed) -> Link:
    event = placed[1]
    at_us, name = event[0], event[1]
    if name == "election":
        broker, offset = event[4], None
        kind, text = "elected-uncleanly", f"broker {broker} was elected uncleanly (epoch {event[5]})"
    else:
        broker, offset = event[2], min(event[4], event[5])
        kind = "truncated"
        text = f"broker {broker} cut its log back to {offset}"
        if name == "unflushed_lost":
            kind, text = (
                "unflushed-lost",
                f"broker {broker} lost power, and what it had not flushed, from {offset} on",
            )
        elif name == "truncate":
            text = f"broker {broker} truncated to {offset} ({words(event[6])})"
    return Link(event=kind, text=f"{seconds(at_us)} {text}", at_us=at_us, broker=broker, offset=offset)


def _rule(invariant: Invariant) -> Rule:
    judge_invariant: Callable[[Evidence, Index], RuleResult] = partial(judge, invariant.name)
    return Rule(
        name=invariant.name,
        definition=f"Invariant: {invariant.definition}",
        source=invariant.source,
        judge=judge_invariant,
    )


RULES: Final = tuple(_rule(invariant) for invariant in INVARIANTS.values() if not invariant.told_by_trace)
"""A rule for each invariant that is watched during the run."""
