"""inconsistent-offsets: one offset of a partition, two values."""

from collections.abc import Set as AbstractSet
from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.history.records import Pair, Send, Value
from checks.index import Index
from checks.lives import tell_place
from checks.loss import Cause, tell_acknowledgement, tell_lost_send, tell_replaced
from checks.prevention import FLUSHING, by_replication
from checks.promise import FLUSH_INTERVAL, INCONSISTENT_OFFSETS
from checks.resumed_epoch import RESUMED, is_excused
from checks.rule import Rule, rule_result
from checks.story import Story


class _Claim:
    """A value that somebody says stands at an offset: acks, consumers, final logs."""

    __slots__ = ("brokers", "polled", "sends", "value")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.sends: list[Send] = []
        self.polled = False
        self.brokers: list[int] = []

    def __str__(self) -> str:
        sources = [f"broker {broker}'s log" for broker in self.brokers]
        sources += ["polled"] * self.polled + ["acked"] * bool(self.sends)
        return f"{self.value} ({', '.join(sources)})"


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Find offsets about which acks, consumers and final logs disagree."""
    findings = [
        _finding(evidence, index, partition, offset, claims)
        for partition in dict.fromkeys((*index.logs, *index.polled, *index.acked))
        for offset, claims in _conflicts(evidence, index, partition).items()
    ]
    inconclusive = bool(index.unread_partitions())
    return rule_result(INCONSISTENT_OFFSETS, evidence, findings, inconclusive=inconclusive)


def _committed(evidence: Evidence, index: Index, partition: str) -> dict[int, list[str]]:
    """Return the final values of each replica of the ISR below its high watermark.

    Beyond it nothing is settled, and a replica outside the ISR has not healed yet.
    """
    replicas = evidence.replicas.get(partition, {})
    return {
        broker: values[: replicas[broker].hw]
        for broker, values in index.logs.get(partition, {}).items()
        if replicas[broker].in_sync
    }


def _conflicts(evidence: Evidence, index: Index, partition: str) -> dict[int, list[_Claim]]:
    """Return the offsets that several values claim, with the claims."""
    logs = _committed(evidence, index, partition)
    polled: AbstractSet[Pair] = index.polled.get(partition, frozenset())
    acked = [send for send in index.acked.get(partition, ()) if send.offset is not None]
    if partition not in evidence.read_back:
        # It has not healed: a record that is missing may come back, so acks prove nothing yet.
        logs, acked = {}, []
    pairs: set[Pair] = set(polled)
    previous: list[str] | None = None
    for values in logs.values():
        if values != previous:
            pairs.update(enumerate(values))
            previous = values
    pairs.update([(send.offset, send.value) for send in acked if send.offset is not None])
    if len(dict(pairs)) == len(pairs):
        return {}
    return _claims(pairs, polled, logs, acked)


def _claims(
    pairs: set[Pair], polled: AbstractSet[Pair], logs: dict[int, list[str]], acked: list[Send]
) -> dict[int, list[_Claim]]:
    claims: dict[int, dict[Value, _Claim]] = {}
    for offset, value in sorted(pairs):
        claim = claims.setdefault(offset, {})[value] = _Claim(value)
        claim.polled = (offset, value) in polled
        claim.brokers = [
            broker for broker, values in logs.items() if offset < len(values) and values[offset] == value
        ]
    for send in acked:
        if send.offset is not None:
            claims[send.offset][send.value].sends.append(send)
    return {offset: list(found.values()) for offset, found in claims.items() if len(found) > 1}


def _finding(evidence: Evidence, index: Index, partition: str, offset: int, claims: list[_Claim]) -> Finding:
    story = Story(evidence, index.copies(partition), partition)
    settled = partition in evidence.read_back
    gone = _gone(claims, None if settled else index.standing_at(partition, offset))
    causes = [cause for claim in gone for cause in _causes(evidence, story, partition, offset, claim)]
    permissions = [cause.permitted_by for cause in causes]
    prevented = [prevention for cause in causes for prevention in cause.prevented_by]
    conclusions = [conclusion for cause in causes for conclusion in cause.conclusions]
    for claim in claims:
        if claim not in gone:
            tell_place(story, offset, claim.value)
        for send in claim.sends:
            tell_acknowledgement(story, send)
    if sum(bool(claim.brokers) for claim in claims) > 1:
        # After healing all replicas hold the same; only a leader that forgets excuses it.
        resumed = is_excused(evidence, partition, offset)
        permissions.append(FLUSH_INTERVAL if resumed else None)
        prevented += [FLUSHING] if resumed else by_replication(evidence, INCONSISTENT_OFFSETS)
        # With equal logs the record that the leader does not have would still be gone.
        readable = index.readable(partition)
        diverged = [claim for claim in claims if claim.brokers and claim.value not in readable]
        for claim in diverged:
            causes = _causes(evidence, story, partition, offset, claim)
            prevented += [prevention for cause in causes for prevention in cause.prevented_by]
        conclusions += [RESUMED] if resumed else []
    claimed = f"offset {offset} is {' and '.join(str(claim) for claim in claims)}"
    return Finding(
        partition=partition,
        offset=offset,
        value=(gone or claims)[0].value,
        chain=story.chain(*dict.fromkeys(conclusions), claimed),
        permitted_by=None if None in permissions else permissions[0],
        prevented_by=tuple(dict.fromkeys(prevented)),
    )


def _gone(claims: list[_Claim], standing: Value | None) -> list[_Claim]:
    """Return the values that have to be explained: all but those that survive at their offset.

    In the logs, that is, or what is *standing* where the logs are not settled; if none is there,
    what alone consumers have read.
    """
    gone = [claim for claim in claims if not claim.brokers and claim.value != standing]
    if len(gone) == len(claims) and sum(claim.polled for claim in claims) == 1:
        return [claim for claim in claims if not claim.polled]
    return gone


def _causes(evidence: Evidence, story: Story, partition: str, offset: int, claim: _Claim) -> list[Cause]:
    """Tell how a value went; what consumers have read was committed, whatever its acks."""
    if claim.polled:
        return [tell_replaced(evidence, story, partition, claim.value, offset)]
    return [tell_lost_send(evidence, story, send) for send in claim.sends]


RULE: Final = Rule(
    name=INCONSISTENT_OFFSETS,
    definition=(
        "Acknowledgements, consumers and the final logs (below their high watermarks) name different values for "
        "one offset of a partition. If one value survives and the others are lost acked records, the loss "
        "decides; what consumers have read may only go with an unclean election or lost power."
    ),
    source="Jepsen's Kafka workload (inconsistent-offsets); KIP-101.",
    judge=judge,
)
