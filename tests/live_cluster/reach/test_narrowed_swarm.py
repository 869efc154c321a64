"""A swarm on real brokers draws only values that they support."""

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.plan import Plan, Swarm
from harrow.campaigns.record.campaign_copy import campaign_copy
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.live_cluster.local.started_effects import started_reach
from harrow.live_cluster.reach.feasible import obstacles
from harrow.live_cluster.reach.narrowed_swarm import narrow_swarm
from harrow.live_cluster.releases.kafka_release import KRAFT, ZOOKEEPER, pinned_releases, release_of

SEEDS = range(20)
TEXT = """
name: c
kafka: "2.4"
workload: {duration: 5s, producers: [{name: p, rate: 1/s}]}
swarm:
  settings: {cleanup.policy: [delete, compact], acks: [1, all]}
  tombstone_every: [0, 4]
  keys: [3]
  faults:
    in_play: 2
    rate: 6/m
    any_of: [{broker_crash: {broker: any}}, {bit_rot: {broker: any, partition: t-0}}, {disk_slow: {broker: any, delay: 1s}}]
  aims:
    share: 0.5
    any_of:
      - {probe: log-compacted, settings: {cleanup.policy: [compact]}}
      - {probe: isr-write-unheard, faults: {in_play: 1, rate: 6/m, any_of: [{broker_pause: {broker: any}}, {bit_rot: {broker: any, partition: t-0}}]}}
"""
LEFT_OUT = (
    "bit_rot: a running broker serves a batch from memory, so damage on disk has its effect at an unknown time",
    "disk_slow: all brokers share one disk, which is slow for all of them or for none",
    "harrow cannot observe what compaction removes",
    "harrow cannot distinguish tombstones on real brokers, so it sends none",
)


def on_241(text: str) -> tuple[Plan, Swarm, tuple[str, ...]]:
    reach = started_reach(release_of("2.4.1"), ZOOKEEPER)
    plan, left_out = narrow_swarm(
        load_text(text, "c.yaml").plans[0], lambda made: list(obstacles(made, reach))
    )
    assert plan.swarm is not None
    return plan, plan.swarm, left_out


def test_no_seed_draws_unsupported_faults() -> None:
    _, swarm, left_out = on_241(TEXT)
    assert swarm.faults is not None
    assert [fault.name for fault in swarm.faults.kinds] == ["broker_crash"]
    assert dict(swarm.settings) == {"cleanup.policy": ("delete",), "acks": ("1", "all")}
    assert dict(swarm.values) == {"tombstone_every": (0,), "keys": (3,)}
    assert left_out == LEFT_OUT


def test_an_aim_that_brokers_cannot_reach_is_left_out_and_others_lose_single_faults() -> None:
    _, swarm, _ = on_241(TEXT)
    assert swarm.aims is not None
    (aim,) = swarm.aims.kinds
    assert aim.probe == "isr-write-unheard"
    assert aim.instead.faults is not None
    assert [fault.name for fault in aim.instead.faults.kinds] == ["broker_pause"]


def test_a_choice_without_supported_values_stays_and_its_runs_are_skipped() -> None:
    text = TEXT.replace("{broker_crash: {broker: any}}, ", "")
    plan, swarm, _ = on_241(text)
    assert swarm.faults is not None
    assert [fault.name for fault in swarm.faults.kinds] == ["bit_rot", "disk_slow"]
    reach = started_reach(release_of("2.4.1"), ZOOKEEPER)
    draws = [draw_for_seed(plan, seed) for seed in SEEDS]
    assert all(list(obstacles(made.plan, reach)) for made in draws if "aim" not in dict(made.values))


def test_a_campaign_without_a_swarm_is_unchanged() -> None:
    plan = load_text(
        'name: c\nkafka: "2.4"\nscript: [{do: {bit_rot: {broker: 0, partition: t-0}}}]\n', "c"
    ).plans[0]
    assert narrow_swarm(plan, lambda _: ["anything"]) == (plan, ())


@pytest.mark.parametrize("name", ["swarm", "swarm-kraft", "swarm-disks", "swarm-eos"])
def test_no_seed_of_a_library_swarm_is_skipped_on_its_releases(name: str) -> None:
    (path,) = resolve(name)
    for release in pinned_releases():
        for mode in release.modes:
            overrides = (f"kafka={release.model_release}", f"cluster.metadata={mode}")
            if not (release.name.startswith(("2.4", "2.8", "3.9")) or mode == KRAFT):
                continue
            if name in {"swarm-kraft", "swarm-eos"} and mode != KRAFT:
                continue
            reach = started_reach(release, mode)
            plan = load_campaign(path, overrides).plans[0]

            def against(made: Plan) -> list[str]:
                return list(obstacles(made, reach))  # noqa: B023 - it is called within the loop

            possible, _ = narrow_swarm(plan, against)
            for seed in SEEDS:
                assert against(draw_for_seed(possible, seed).plan) == [], (release.name, mode, seed)


def test_the_campaign_copy_of_a_run_draws_the_same_plan() -> None:
    campaign = load_text(TEXT, "c.yaml")
    plan, _, _ = on_241(TEXT)
    (kept,) = load_text(campaign_copy(campaign, plan, 3), "campaign.yaml").plans
    assert kept.digest() == plan.digest() != campaign.plans[0].digest()
    assert draw_for_seed(kept, 3).plan.digest() == draw_for_seed(plan, 3).plan.digest()
