"""Losses are judged alike with full evidence and with what is visible from outside a cluster."""

from dataclasses import replace

import pytest

from harrow.checks.judge import judge
from harrow.cluster_model.events import ANY_BROKERS, events_seen_by
from tests.scenarios.library_plans import library_plans, library_run


@pytest.mark.parametrize("name", ["unclean-election", "acks-all-degrades", "acks-1-leader-crash", "acks-0"])
def test_losses_get_the_same_permission_from_outside_evidence(name: str) -> None:
    for plan_name in [plan_name for plan_name, plan in library_plans().items() if plan.campaign == name]:
        run = library_run(plan_name)
        outside = replace(
            run.evidence,
            trace=[event for event in run.evidence.trace if event[1] in events_seen_by(ANY_BROKERS)],
            in_order=False,
            follows_logs=False,
            invariants=frozenset(),
        )
        result = judge(outside).rules["lost-write"]
        assert (result.status, len(result.findings)) == (
            run.verdict.rules["lost-write"].status,
            len(run.verdict.rules["lost-write"].findings),
        )
