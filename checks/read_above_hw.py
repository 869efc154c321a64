"""read-above-hw: a consumer was served what is not committed."""

from typing import Final

from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.index import Index
from checks.promise import READ_ABOVE_HW
from checks.rule import Rule, rule_result
from checks.story import seconds


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
                at_us, _, broker, partition, client, offset = event[:6]
                findings.append(
                    Finding(
                        partition=partition,
                        offset=max(offset, high_watermark),
                        because=(
                            f"broker {broker} served client {client} up to offset {end_offset} (exclusive) at "
                            f"{seconds(at_us)}, when its high watermark was {high_watermark}"
                        ),
                    )
                )
        else:
            high_watermarks[event[2], event[3]] = event[5] if name == "recover" else event[4]
    return rule_result(READ_ABOVE_HW, evidence, findings)


RULE: Final = Rule(
    name=READ_ABOVE_HW,
    definition=(
        "A broker served a consumer records at or above its high watermark, the first offset that is not visible."
    ),
    source="ReplicaManager.readFromLocalLog (FetchHighWatermark).",
    judge=judge,
)
