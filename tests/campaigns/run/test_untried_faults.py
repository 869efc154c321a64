"""A run in which no fault strikes has tested nothing, and reports why each did not strike."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE

CAMPAIGN = """
name: untried
kafka: "2.4"
settings: {{acks: all, min.insync.replicas: 1}}
cluster: {{brokers: 3, topics: [{{name: t, replication_factor: 3}}]}}
workload: {{duration: 5s, producers: [{{rate: 10/s}}]}}
faults: [{faults}]
{more}
"""


def result_of(faults: str, more: str = "") -> tuple[str, tuple[str, ...]]:
    (plan,) = load_text(CAMPAIGN.format(faults=faults, more=more), "untried.yaml").plans
    verdict = run_plan(plan, 0).verdict
    return verdict.status, verdict.reasons


@pytest.mark.parametrize(
    ("faults", "more", "why"),
    [
        (
            "{at: 1s, do: {broker_restart: {broker: 1}}}",
            "",
            "broker_restart broker=1 did not strike: it found nothing to act on: broker 1 was running",
        ),
        (
            "{every: 1s, do: {broker_resume: {broker: 2}}}",
            "",
            "broker_resume broker=2 did not strike: it found nothing to act on: broker 2 was running",
        ),
        (
            "{rate: 1/h, do: {broker_crash: {broker: any}}}",
            "",
            "broker_crash broker=any did not strike: the run was over before it was due",
        ),
        (
            "{when: {leader: {t-0: 2}}, do: {broker_crash: {broker: 2}}}",
            "",
            "broker_crash broker=2 did not strike: its condition never came to hold: leader of t-0 is 0, expected 2",
        ),
        (
            "{every: 1s, do: {broker_crash: {broker: any}}}",
            "blast_radius: {keep_in_sync: 3}",
            "broker_crash broker=any did not strike: `blast_radius` did not allow it",
        ),
        (
            "{at: 1s, do: {broker_pause: {broker: 1}}, stop_when: {leader: {t-0: 0}}}",
            "",
            "broker_pause broker=1 did not strike: `stop_when` held before it struck",
        ),
    ],
    ids=["running", "not paused", "not due", "condition", "blast radius", "stopped"],
)
def test_a_run_in_which_no_fault_strikes_is_inconclusive_and_reports_why(
    faults: str, more: str, why: str
) -> None:
    assert result_of(faults, more) == (INCONCLUSIVE, (f"nothing was tried: {why}",))


def test_each_fault_that_never_struck_has_a_reason() -> None:
    faults = "{at: 1s, do: {broker_resume: {broker: 1}}}, {at: 1s, do: {broker_restart: {broker: 2}}}"
    _, reasons = result_of(faults)
    assert [reason.split(" did not strike")[0].split()[-1] for reason in reasons] == ["broker=1", "broker=2"]


def test_a_run_in_which_one_fault_strikes_can_be_conclusive() -> None:
    faults = (
        "{at: 1s, do: {broker_pause: {broker: 1, duration: 1s}}}, {at: 1s, do: {broker_restart: {broker: 2}}}"
    )
    assert result_of(faults) == (HELD, ())


def test_a_campaign_without_faults_may_hold() -> None:
    assert result_of("") == (HELD, ())
