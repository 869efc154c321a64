"""A cluster of which only metadata is seen is judged like one of which everything is."""

from dataclasses import replace

import pytest

from harrow.checks.judge import judge
from harrow.cluster_model.events import ANY_BROKERS, events_seen_by
from tests.scenarios.library_plans import library_plans, library_run


@pytest.mark.parametrize("name", ["unclean-election", "acks-all-degrades", "acks-1-leader-crash", "acks-0"])
def test_a_loss_is_permitted_by_what_is_seen_of_it(name: str) -> None:
    for each in [each for each, plan in library_plans().items() if plan.campaign == name]:
        run = library_run(each)
        outside = replace(
            run.evidence,
            trace=[event for event in run.evidence.trace if event[1] in events_seen_by(ANY_BROKERS)],
            in_order=False,
            follows_logs=False,
            invariants=frozenset(),
        )
        found = judge(outside).rules["lost-write"]
        assert (found.status, len(found.findings)) == (
            run.verdict.rules["lost-write"].status,
            len(run.verdict.rules["lost-write"].findings),
        )
