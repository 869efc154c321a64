"""What runs can show, and what follows from settings without any run."""

import pytest

from harrow.campaigns.advise.axes import AXES
from harrow.campaigns.advise.harm import FAILED, LOST, Needs, has_transactions
from harrow.campaigns.advise.lattice import obstacle
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan


def plan_of(text: str) -> Plan:
    return load_text(f"name: any\n{text}\n", "any.yaml").plans[0]


@pytest.mark.parametrize(
    ("needs", "permitted_by"),
    [
        (Needs(never=(), outage=("<", 9_000_000)), "acks=0"),
        (Needs(never=(FAILED,)), "acks=0"),
        (Needs(never=()), None),
    ],
    ids=["outages", "failed sends", "nothing"],
)
def test_without_acks_no_run_shows_that_a_bound_on_outages_holds(
    needs: Needs, permitted_by: str | None
) -> None:
    assert needs.permitted_by(plan_of("settings: {acks: 0}")) == permitted_by
    assert needs.permitted_by(plan_of("settings: {acks: all}")) is None


def test_only_clients_with_transactions_can_show_uncommitted_records() -> None:
    producer = "{settings: {transactional.id: shop}, transaction: {records: 4}}"
    assert has_transactions(plan_of(f"workload: {{producers: [{producer}]}}"))
    assert not has_transactions(plan_of("settings: {acks: all}"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("delivery.timeout.ms", "has no effect"), ("placement", "no other value on this cluster"), ("acks", "")],
)
def test_advice_says_why_it_cannot_change_a_setting(name: str, reason: str) -> None:
    found = obstacle(AXES[name], [plan_of("settings: {acks: all}")], (LOST,))
    assert reason in found
    assert bool(found) == bool(reason)
