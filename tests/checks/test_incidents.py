"""Findings of one cause form one incident."""

from dataclasses import replace

from harrow.campaigns.record.numbered_findings import numbered
from harrow.campaigns.record.recorded_findings import recorded_rules
from harrow.campaigns.record.report import others_of, run_as_mapping
from harrow.checks.causes.catalogue import acked_before_commit
from harrow.checks.finding import Finding
from harrow.checks.incident import incidents
from tests.campaigns.record.run_results import CHAIN, lost_record, run_result
from tests.checks.evidence_builder import RunBuilder

APPEND, CUT, CAUSE = CHAIN


def finding_of_truncated_record(
    value: str, at_us: int = 1_400_500, permitted_by: str | None = None
) -> Finding:
    deciding = replace(CUT, at_us=at_us, decides=True, operands={**CUT.operands, "value": value})
    return replace(lost_record(value, permitted_by), chain=(APPEND, deciding, CAUSE))


def incident_sizes(*findings: Finding) -> list[int]:
    return [len(incident.findings) for incident in incidents(findings)]


def test_records_removed_by_one_truncation_are_one_incident() -> None:
    assert incident_sizes(
        finding_of_truncated_record("m1"),
        finding_of_truncated_record("m2"),
        finding_of_truncated_record("m3"),
    ) == [3]


def test_findings_of_different_truncation_cause_partition_or_permission_are_separate_incidents() -> None:
    first = finding_of_truncated_record("m1")
    assert incident_sizes(first, finding_of_truncated_record("m2", at_us=9)) == [1, 1]
    assert incident_sizes(first, finding_of_truncated_record("m2", permitted_by="acks=1")) == [1, 1]
    assert incident_sizes(first, replace(finding_of_truncated_record("m2"), partition="t-1")) == [1, 1]
    other = acked_before_commit.conclude(value="m2")
    assert incident_sizes(
        first,
        replace(
            finding_of_truncated_record("m2"), chain=(*finding_of_truncated_record("m2").chain[:2], other)
        ),
    ) == [1, 1]


def test_a_finding_without_a_deciding_link_is_an_incident_of_its_own() -> None:
    assert incident_sizes(lost_record("m1"), lost_record("m2")) == [1, 1]


def test_all_losses_of_a_run_by_one_truncation_are_one_incident() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    for number in range(31):
        run.write(producer, f"m{number}", 0, 1)
    run.truncate(1, 0)
    run.elect(1, 1, (1,))
    run.truncate(0, 0)
    run.read_to_end(1)
    result = run.judge("lost-write")
    (incident,) = incidents(result.findings)
    assert len(incident.findings) == 31
    assert others_of(incident) == "and m1, m2, m3, m4 and 26 more by the same cause"


def test_the_members_of_an_incident_survive_json() -> None:
    findings = (
        finding_of_truncated_record("m1"),
        replace(finding_of_truncated_record("m2"), offset=2),
        finding_of_truncated_record("m3", at_us=9),
    )
    rule = run_as_mapping(run_result(*findings), "")["rules"]["lost-write"]
    assert rule["count"] == 3
    assert [(finding["value"], finding["count"]) for finding in rule["findings"]] == [("m1", 2), ("m3", 1)]
    assert rule["findings"][0]["members"] == [
        {"partition": "t-0", "offset": 1, "value": "m1"},
        {"partition": "t-0", "offset": 2, "value": "m2"},
    ]
    again = recorded_rules({"lost-write": rule})
    assert [(each.value, each.offset) for each in again["lost-write"].findings] == [
        ("m1", 1),
        ("m2", 2),
        ("m3", 1),
    ]
    assert [(each.number, each.values) for each in numbered(again)] == [(1, ("m1", "m2")), (2, ("m3",))]
    assert numbered(again)[0].title() == "lost-write m1, t-0 offset 1, and m2 by the same cause"
