"""read-above-hw: a consumer was served what is not committed."""

from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.index import Index
from checks.lives import tell_stored
from checks.prevention import by_behaviour
from checks.promise import READ_ABOVE_HW
from checks.rule import Rule, rule_result
from checks.story import Story, brokers
from cluster_model.trace import TraceEvent


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Compare each answer to a consumer with the broker's high watermark at that moment."""
    high_watermarks: dict[tuple[int, str], int] = {}
    findings: list[Finding] = []
    for event in index.watermark_events:
        name = event[1]
        if name == "served":
            end_offset = event[6]
            high_watermark = high_watermarks.get((event[2], event[3]), 0)
            if end_offset > high_watermark:
                findings.append(_finding(evidence, index, event, high_watermark))
        else:
            high_watermarks[event[2], event[3]] = event[5] if name == "recover" else event[4]
    return rule_result(READ_ABOVE_HW, evidence, findings)


def _finding(evidence: Evidence, index: Index, event: TraceEvent, high_watermark: int) -> Finding:
    at_us, _, broker, partition, client, first, end_offset = event[:7]
    offset = max(first, high_watermark)
    copies = index.copies(partition)
    story = Story(evidence, copies, partition)
    position = evidence.trace.index(event)
    group = [
        copy
        for found in copies.by_value.values()
        for copy in found
        if copy.offset == offset and copy.is_there(position)
    ]
    for copy in group:
        tell_stored(story, copy)
    text = (
        f"broker {broker} served {client} up to offset {end_offset} (exclusive), "
        f"when its high watermark was {high_watermark}"
    )
    story.tell(position, "read", text, at_us, broker, offset)
    isr = copies.isr_at(broker, position) or ()
    without = [member for member in isr if all(copy.broker != member for copy in group)]
    lacked = f": {brokers(without)} of the ISR {list(isr)} did not have it" if without else ""
    return Finding(
        partition=partition,
        offset=offset,
        value=group[0].value if group else None,
        chain=story.chain(f"offset {offset} was not committed{lacked}"),
        prevented_by=by_behaviour(evidence, READ_ABOVE_HW),
        details=(("client", client),),
    )


RULE: Final = Rule(
    name=READ_ABOVE_HW,
    definition=(
        "A broker served a consumer records at or above its high watermark, the first offset that is not visible."
    ),
    source="ReplicaManager.readFromLocalLog (FetchHighWatermark).",
    judge=judge,
)
