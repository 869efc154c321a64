"""Findings that are read back from run.json."""

import json
from dataclasses import replace

import pytest

from harrow.campaigns.record.phrases import because
from harrow.campaigns.record.recorded_findings import recorded_rules
from harrow.campaigns.record.report import finding_as_mapping, run_as_mapping
from harrow.checks.incident import incidents
from tests.campaigns.record.run_results import CHAIN, lost_record
from tests.scenarios.library_plans import library_plans, proven_library_run

PLANS = library_plans()


@pytest.mark.parametrize("name", ["unclean-election", "divergence-by-hw", "ack-lost", "visibility"])
def test_a_finding_is_read_back_with_its_links_and_preventions(name: str) -> None:
    for each in [each for each, plan in PLANS.items() if plan.campaign == name]:
        result = proven_library_run(each)
        read = recorded_rules(json.loads(json.dumps(run_as_mapping(result, "")))["rules"])
        for rule, judged in result.verdict.rules.items():
            pairs = zip(incidents(read[rule].findings), incidents(judged.findings), strict=True)
            for restored, original in ((copy.first, incident.first) for copy, incident in pairs):
                assert set(restored.prevented_by) == set(original.prevented_by)
                assert restored.causes == original.causes
                assert because(restored) == because(original)
                for link, written in zip(restored.chain, original.chain, strict=True):
                    fields = (written.kind, written.actor, written.operands)
                    assert (link.kind, link.actor, link.operands) == fields


def test_a_link_of_a_rule_that_is_not_installed_keeps_its_text() -> None:
    link = {"event": "x", "at_ms": 1, "text": "0.001s broker 0 did x", "kind": "no-such-kind", "operands": {}}
    finding = {"partition": "t-0", "chain": [link]}
    read = recorded_rules({"no-such-rule": {"status": "violated", "findings": [finding]}})
    assert because(read["no-such-rule"].findings[0]) == "0.001s broker 0 did x"


@pytest.mark.parametrize(
    "operands", [{}, {"leader": 0, "error": "x", "values": [], "hindered": [], "more": 1}]
)
def test_a_link_whose_kind_has_changed_its_operands_keeps_its_text(operands: dict[str, object]) -> None:
    link = {"at_ms": 1, "text": "0.001s p got no answer", "kind": "no-answer", "operands": operands}
    finding = {"partition": "t-0", "chain": [link]}
    read = recorded_rules({"lost-write": {"status": "violated", "findings": [finding]}})
    assert because(read["lost-write"].findings[0]) == "0.001s p got no answer"


def test_a_deciding_link_is_still_deciding_after_it_is_read_back() -> None:
    decisive = replace(CHAIN[1], decides=True)
    finding = replace(lost_record("m1"), chain=(CHAIN[0], decisive))
    recorded = recorded_rules(
        {"lost-write": {"status": "violated", "findings": [finding_as_mapping(finding)]}}
    )
    assert [link.decides for link in recorded["lost-write"].findings[0].chain] == [False, True]
