"""What runs can show, and what follows from settings without any run."""

import pytest

from harrow.campaigns.advise.axes import AXES
from harrow.campaigns.advise.harm import FAILED, Needs, has_transactions
from harrow.campaigns.advise.lattice import obstacle
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.checks.rule import LOST
from tests.campaigns.advise.known_answers import ELR, MIN_ISR


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


@pytest.mark.parametrize(
    ("kafka", "chosen", "place"),
    [
        ("4.0", {}, "server.properties"),
        ("4.0", {ELR: 1}, "cluster"),
        ("4.3", {}, "cluster"),
        ("3.9", {}, "server.properties"),
    ],
)
def test_with_eligible_leader_replicas_the_cluster_has_a_dynamic_min_isr(
    kafka: str, chosen: dict[str, int], place: str
) -> None:
    (line,) = AXES[MIN_ISR].lines(plan_of(f'kafka: "{kafka}"'), {MIN_ISR: 2, **chosen})
    assert line.place == place
    assert line.text.endswith("min.insync.replicas=2")
    assert line.text.startswith("kafka-configs ") == (place == "cluster")


def test_a_bound_on_outages_also_counts_times_without_an_ack_below_a_second() -> None:
    needs = Needs(never=(), outage=("<", 300_000))
    assert needs.first_harm((), 299_999) is None
    assert needs.first_harm((), 300_000) is not None
