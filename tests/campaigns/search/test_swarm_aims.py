"""Swarms draw aims at rare states, and actions beside faults."""

from dataclasses import replace

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.plan import Plan, Swarm
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.swarm import Draw, draw_for_seed
from harrow.cluster_model.fields import counted_if_set

OPEN = """
kafka: "2.4"
workload: {duration: 5s, producers: [{name: p, rate: 2/s}]}
swarm:
  brokers: 2..3
  settings: {acks: ['1'], min.insync.replicas: [1]}
  faults: {rate: 30/m, any_of: [{broker_crash: {broker: any}}]}
"""
AIMED = f"""{OPEN}
  aims:
    share: 0.5
    any_of:
      - probe: isr-shrank
        settings: {{acks: [all]}}
        faults: {{rate: 60/m, in_play: 1, any_of: [{{slow_follower: {{broker: any}}}}]}}
      - probe: log-compacted
        brokers: 1
        keys: 3
        actions: {{count: 2..4, any_of: [elect_preferred_leaders, {{delete_records: {{partition: t-0}}}}]}}
"""


def plan_of(text: str, *options: str) -> Plan:
    return load_text(text, "open.yaml", list(options)).plans[0]


def by_aim(plan: Plan, seeds: int = 200) -> dict[str, list[Draw]]:
    draws: dict[str, list[Draw]] = {}
    for seed in range(seeds):
        draw = draw_for_seed(plan, seed)
        draws.setdefault(dict(draw.values).get("aim", ""), []).append(draw)
    return draws


def test_a_share_of_seeds_aims_at_one_rare_state_each() -> None:
    counts = {aim: len(draws) for aim, draws in by_aim(plan_of(AIMED)).items()}
    assert counts.keys() == {"", "isr-shrank", "log-compacted"}
    assert 80 <= counts[""] <= 120
    assert all(counts[aim] >= 30 for aim in counts)


def test_an_aim_replaces_its_own_values_and_keeps_the_rest_of_the_swarm() -> None:
    draws = by_aim(plan_of(AIMED))
    for draw in draws["isr-shrank"]:
        assert draw.plan.producers[0].settings["acks"] == "all"
        assert draw.plan.cluster.settings["min.insync.replicas"] == 1
        assert [fault.name for fault in draw.plan.faults[0].faults] == ["slow_follower"]
    assert {len(draw.plan.cluster.brokers) for draw in draws["isr-shrank"]} == {2, 3}
    for draw in draws["log-compacted"]:
        assert len(draw.plan.cluster.brokers) == 1
        assert draw.plan.producers[0].keys == 3
        assert draw.plan.producers[0].settings["acks"] == "1"
    for draw in draws[""]:
        assert draw.plan.producers[0].settings["acks"] == "1"
        assert draw.plan.script == ()


def test_a_seed_without_an_aim_draws_as_in_a_swarm_without_aims() -> None:
    never = plan_of(AIMED, "swarm.aims.share=0")
    for seed in range(20):
        one, other = draw_for_seed(never, seed), draw_for_seed(plan_of(OPEN), seed)
        assert one == other


def test_a_swarm_without_aims_and_actions_keeps_its_digest() -> None:
    assert counted_if_set(Swarm) == {"actions": None, "aims": None}
    assert plan_of(AIMED).digest() != plan_of(OPEN).digest()


def test_drawn_actions_are_in_order_of_time_within_the_workload() -> None:
    names = set()
    for draw in by_aim(plan_of(AIMED))["log-compacted"]:
        times = [step.at_us for step in draw.plan.script if step.at_us is not None]
        assert 2 <= len(times) == len(draw.plan.script) <= 4
        assert times == sorted(times)
        assert all(0 <= at_us < 5_000_000 for at_us in times)
        names |= {step.actions[0].name for step in draw.plan.script}
    assert names == {"elect_preferred_leaders", "delete_records"}


def test_an_action_that_a_release_lacks_is_not_drawn() -> None:
    aimed = replace(plan_of(AIMED, "swarm.aims.share=1"), kafka="0.10.2")
    steps = [step for seed in range(40) for step in draw_for_seed(aimed, seed).plan.script]
    assert {step.actions[0].name for step in steps} == {"elect_preferred_leaders"}


def test_a_run_performs_the_drawn_actions() -> None:
    draw = by_aim(plan_of(AIMED))["log-compacted"][0]
    assert len(run_plan(draw.plan, 0).other_actions) == len(draw.plan.script)


def test_an_aim_does_not_draw_a_value_set_by_an_option() -> None:
    draws = by_aim(plan_of(AIMED, "acks=0", "cluster.brokers=3", "swarm.aims.share=1"))
    for draw in (*draws["isr-shrank"], *draws["log-compacted"]):
        assert draw.plan.producers[0].settings["acks"] == "0"
        assert len(draw.plan.cluster.brokers) == 3


@pytest.mark.parametrize("plan", [plan_of(AIMED), load_campaign(resolve("swarm")[0]).plans[0]])
def test_aims_and_actions_are_equal_after_they_are_written_and_read(plan: Plan) -> None:
    again = load_text(campaign_text(plan), "again.yaml").plans[0]
    assert again.swarm == plan.swarm
    assert again.digest() == plan.digest()


@pytest.mark.parametrize(
    ("swarm_text", "problem"),
    [
        ("aims: {share: 0.5}", "aims: name some under `any_of`"),
        ("aims: {share: 2, any_of: [{probe: isr-shrank}]}", "1"),
        ("aims: {share: 1, any_of: [{probe: isr-shrunk}]}", "isr-shrank"),
        ("aims: {share: 1, any_of: [{probe: isr-shrank, core: true}]}", "core"),
        ("aims: {share: 1, any_of: [{probe: isr-shrank, faults: {rate: 1/m}}]}", "faults: name some"),
        ("actions: {any_of: [elect_preferred_leaders]}", "actions: write how many there are"),
        ("actions: {count: 1}", "actions: name some under `any_of`"),
        ("actions: {count: 1, any_of: [{delete_records: {partition: x-0}}]}", "x-0"),
    ],
)
def test_incomplete_or_unknown_aims_and_actions_are_reported(swarm_text: str, problem: str) -> None:
    with pytest.raises(CampaignError) as error:
        plan_of(f"{OPEN}  {swarm_text}\n")
    assert problem in str(error.value)
