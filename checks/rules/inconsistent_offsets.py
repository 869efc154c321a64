"""inconsistent-offsets: one offset of a partition has two values."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Annotated, Final

from harrow.checks import promise
from harrow.checks.causes import compaction
from harrow.checks.causes.catalogue import acked_before_commit, acked_before_replication, by_excuse
from harrow.checks.causes.copies import tell_place
from harrow.checks.causes.loss import Cause, tell_acknowledgement, tell_lost_send, tell_replaced
from harrow.checks.causes.places import explain_lost_place
from harrow.checks.causes.story import END, Story
from harrow.checks.evidence import Evidence
from harrow.checks.finding import Finding
from harrow.checks.history.records import Pair, SendRecord, Value
from harrow.checks.index import Index
from harrow.checks.link import RecordValue
from harrow.checks.link import claim as declare_claim
from harrow.checks.permission import Promise
from harrow.checks.prevention import SAFE_ACKS
from harrow.checks.replay.partition_state import LogEntry
from harrow.checks.rule import Rule
from harrow.cluster_model.events import Brokers, FieldKind, Flag, Offset
from harrow.cluster_model.lazy_dataclass import dataclass, replace

_Claims = Annotated[tuple[tuple[RecordValue, Brokers, Flag, Flag], ...], FieldKind.OBJECT]


@declare_claim("claimed")
def claimed(*, offset_claimed: Offset, claims: _Claims) -> str:
    """One offset has several values.

    ``claims`` has, for each value, the logs that have it, and whether polls and acks name it.
    """
    texts = []
    for value, in_logs, polled, acked in claims:
        sources = [f"broker {broker}'s log" for broker in in_logs]
        sources += ["polled"] * polled + ["acked"] * acked
        texts.append(f"{value} ({', '.join(sources)})")
    return f"offset {offset_claimed} is {' and '.join(texts)}"


@dataclass(slots=True, eq=False)
class _Claim:
    """A value at an offset, with the acks, the polls and the final logs that claim it is there."""

    value: Value
    polled: bool
    brokers: tuple[int, ...]
    sends: list[SendRecord] = field(default_factory=list)

    def operands(self) -> tuple[Value, tuple[int, ...], bool, bool]:
        return self.value, self.brokers, self.polled, bool(self.sends)


def find(index: Index) -> Iterator[Finding]:
    """Find offsets for which acks, consumers and final logs name different values."""
    for partition in dict.fromkeys((*index.logs, *index.polled, *index.acked)):
        if partition not in index.written and partition not in index.history.partitions:
            continue
        for offset, claims in _conflicts(index, partition).items():
            yield _finding(index, partition, offset, claims)


def _conflicts(index: Index, partition: str) -> dict[int, list[_Claim]]:
    """Return the claims at each offset that has several values."""
    logs: dict[int, list[str | None]] = {}
    acked: Sequence[SendRecord] = ()
    pairs: set[Pair] = set()
    if partition in index.evidence.read_back:
        # Before a partition is read back, a missing record may come back, so acks prove nothing.
        # Above a replica's high watermark nothing is settled, and a replica outside the ISR may
        # differ.
        replicas = index.evidence.replicas.get(partition, {})
        logs = {
            broker: values[: replicas[broker].hw]
            for broker, values in index.logs.get(partition, {}).items()
            if replicas[broker].in_sync
        }
        if _are_consistent(index, partition, list(logs.values())):
            return {}
        acked = index.acked.get(partition, ())
        pairs.update(_acked_pairs(index, partition))
    polled: AbstractSet[Pair] = index.polled.get(partition, frozenset())
    pairs.update(polled)
    previous: list[str | None] | None = None
    for values in logs.values():
        if values != previous:
            pairs.update(_pairs(values))
            previous = values
    if len(dict(pairs)) == len(pairs):
        return {}
    return _claims(pairs, polled, logs, acked)


def _are_consistent(index: Index, partition: str, logs: Sequence[list[str | None]]) -> bool:
    """Return whether the longest of the *logs* agrees with the others, with acks and with polls.

    This compares whole columns, which is much cheaper than making a pair for each record. A false
    result does not prove a conflict: retention, for example, removes records.
    """
    longest = max(logs, key=len, default=[])
    if any(log != longest[: len(log)] for log in logs):
        return False
    history = index.history.partitions.get(partition)
    if history is None:
        return True
    records = index.history.records
    values, end = records.values, len(longest)
    for rows, offsets_of in ((history.polled, records.polled_at), (history.acked, records.acked_at)):
        for row in rows:
            offset = offsets_of[row]
            if not 0 <= offset < end or longest[offset] != values[row]:
                return False
    return True


def _acked_pairs(index: Index, partition: str) -> Iterator[Pair]:
    """Yield the offsets and values that acks of a partition named."""
    records = index.history.records
    for row in index.history.partitions[partition].acked if partition in index.acked else ():
        offset = records.offset(row)
        if offset is not None:
            yield offset, records.values[row]


def _pairs(values: list[str | None]) -> list[Pair]:
    return [(offset, value) for offset, value in enumerate(values) if value is not None]


def _claims(
    pairs: set[Pair],
    polled: AbstractSet[Pair],
    logs: dict[int, list[str | None]],
    acked: Sequence[SendRecord],
) -> dict[int, list[_Claim]]:
    claims: dict[int, dict[Value, _Claim]] = {}
    for offset, value in sorted(pairs):
        brokers = tuple(broker for broker, values in logs.items() if values[offset : offset + 1] == [value])
        claim = _Claim(value, (offset, value) in polled, brokers)
        claims.setdefault(offset, {})[value] = claim
    for send in acked:
        if send.offset is not None:
            claims[send.offset][send.value].sends.append(send)
    return {offset: list(of_offset.values()) for offset, of_offset in claims.items() if len(of_offset) > 1}


def _finding(index: Index, partition: str, offset: int, claims: list[_Claim]) -> Finding:
    story = Story(index, partition)
    settled = partition in index.evidence.read_back
    standing = None if settled else index.standing_at(partition, offset)
    lost, compacted = _lost(story, offset, claims, standing)
    causes = [cause for claim in lost for cause in _causes(story, offset, claim)]
    causes += [cause for claim in compacted for cause in _causes_of_lost_place(story, offset, claim, claims)]
    permissions = [cause.permitted_by for cause in causes]
    prevented = [prevention for cause in causes for prevention in cause.prevented_by]
    conclusions = [conclusion for cause in causes for conclusion in cause.links]
    for claim in claims:
        if claim not in lost and claim not in compacted:
            tell_place(story, offset, claim.value)
        for send in claim.sends:
            tell_acknowledgement(story, send)
    if sum(bool(claim.brokers) for claim in claims) > 1 or not causes:
        # After healing, all replicas are equal, unless a replica lost part of its log.
        excuse = index.excuse(partition, offset)
        permissions.append(excuse.setting if excuse else None)
        prevented += excuse.prevented_by if excuse else ()
        # Even if the logs were made equal, the record that the leader lacks would be lost.
        readable = index.readable(partition)
        for claim in claims:
            if claim.brokers and claim.value not in readable:
                for cause in _causes(story, offset, claim):
                    prevented += cause.prevented_by
        conclusions += [by_excuse(excuse)] if excuse else []
    claim_link = claimed.conclude(offset_claimed=offset, claims=tuple(claim.operands() for claim in claims))
    once = [link for place, link in enumerate(conclusions) if link not in conclusions[:place]]
    return Finding(
        partition=partition,
        offset=offset,
        value=(lost or compacted or claims)[0].value,
        chain=story.chain(*once, claim_link),
        permitted_by=None if None in permissions else permissions[0],
        prevented_by=tuple(dict.fromkeys(prevented)),
    )


def _lost(
    story: Story, offset: int, claims: list[_Claim], standing: Value | None
) -> tuple[list[_Claim], list[_Claim]]:
    """Return the lost values, and the compacted values whose offset was assigned again.

    A value is missing if no log has it at the offset. If the partition is not read back, a value is
    missing unless it is *standing*, that is, in the leader's log. If all values are missing, the
    values that consumers did not read are lost. A value that a later record of its key replaced is
    not lost; if it was the last value at the offset, it needs no explanation.
    """
    gone = [claim for claim in claims if not claim.brokers and claim.value != standing]
    superseded = [
        claim for claim in gone if compaction.is_superseded(story.index, story.partition, claim.value, offset)
    ]
    if not superseded and len(gone) == len(claims) and sum(claim.polled for claim in claims) == 1:
        return [claim for claim in claims if not claim.polled], []
    lost = [claim for claim in gone if claim not in superseded]
    if len(gone) < len(claims):
        return lost, superseded
    return lost, [claim for claim in superseded if _reassigned_at(story, offset, claim, claims) < END]


def _reassigned_at(story: Story, offset: int, claim: _Claim, claims: list[_Claim]) -> int:
    """Return the line at which the offset of a value got another claimed value, or `END`.

    An append by a deposed leader that did not know of its successor does not count.
    """
    stored = story.copies(claim.value, offset)
    return min(
        (
            max(copy.number, stored[0].number)
            for other in claims
            if other is not claim and stored
            for copy in story.copies(other.value, offset)
            if _age(copy) > _age(stored[0])
        ),
        default=END,
    )


def _age(copy: LogEntry) -> tuple[int, int]:
    return copy.leader_epoch, copy.number


def _causes_of_lost_place(story: Story, offset: int, claim: _Claim, claims: list[_Claim]) -> list[Cause]:
    """Explain how the offset of a compacted value could be assigned again."""
    copies = story.copies(claim.value, offset)
    reassigned_at = _reassigned_at(story, offset, claim, claims)
    if copies and not any(0 < copy.committed < reassigned_at for copy in copies):
        causes = list(_causes_of_uncommitted(story, claim, reassigned_at))
        # If the value was committed later, the offset returned to it because the other was lost.
        others = [other for other in claims if other is not claim]
        return causes or [cause for other in others for cause in _causes(story, offset, other)]
    causes = _causes(story, offset, claim)
    if not copies or all(cause.permitted_by is not None for cause in causes):
        return causes
    lost = explain_lost_place(story, offset, {copy.broker: copy.number for copy in copies}, reassigned_at)
    if lost is not None:
        lost.tell(story)
        return [lost.cause]
    excuse = story.index.excuse(story.partition, offset)
    return causes if excuse is None else [Cause((by_excuse(excuse),), excuse.setting, excuse.prevented_by)]


def _causes_of_uncommitted(story: Story, claim: _Claim, reassigned_at: int) -> Iterator[Cause]:
    """Yield why a value was acked before it was committed and before its offset was assigned again.

    The next leader did not need to have an uncommitted value.
    """
    until_us = story.evidence.trace[reassigned_at - 1][0] if reassigned_at < END else END
    for send in claim.sends:
        if story.evidence.producers[send.process].acks == "1":
            because = acked_before_replication.conclude(value=claim.value)
            yield Cause((because,), promise.ACKS_1, (SAFE_ACKS,))
        elif send.completed_us is not None and send.completed_us < until_us:
            because = acked_before_commit.conclude(value=claim.value)
            yield Cause((because,))


def _causes(story: Story, offset: int, claim: _Claim) -> list[Cause]:
    """Explain how a value was lost.

    A value that consumers read was committed, whatever the acks setting of its producer.
    """
    if claim.polled:
        return [tell_replaced(story, claim.value, offset)]
    return [tell_lost_send(story, send) for send in claim.sends]


def _until_unclean_election(evidence: Evidence) -> str:
    if any(
        version.unclean_leader_election
        for settings in evidence.partitions.values()
        for version in (settings, *(earlier for _, earlier in settings.earlier))
    ):
        return f"{promise.HIGH_WATERMARK}, until an unclean election ({promise.UNCLEAN_ELECTION})"
    return promise.HIGH_WATERMARK


RULE: Final = Rule(
    name=promise.INCONSISTENT_OFFSETS,
    definition=(
        "Acknowledgements, consumers and the final logs (below their high watermarks) name different values for "
        "one offset of a partition. If one value survives and the others are lost acked records, the loss "
        "decides. Records that consumers have read may only be lost with an unclean election, a power loss or a lost disk."
    ),
    source="Jepsen's Kafka workload (inconsistent-offsets); KIP-101.",
    promise=Promise(
        promised_by=(promise.HIGH_WATERMARK,),
        permissions=(
            promise.BY_UNCLEAN_ELECTION,
            *promise.BY_POWER_LOSSES,
            *promise.BY_DISK_FAILURES,
            *(replace(permission, when="when the acked record is lost") for permission in promise.BY_ACKS),
        ),
        releases="kept since 0.11 (KIP-101), through fast leader changes since 2.0 (KIP-279)",
        to_producer=promise.durability,
        in_run=_until_unclean_election,
    ),
    find=find,
    is_tried=Index.has_sends,
    is_undecided=Index.has_unread,
    verb="different records read at",
    is_about_place=True,
)
