"""A search for a smaller failure: which plans it tries again, and which it never runs."""

from dataclasses import replace
from pathlib import Path

from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.search.shrink import Shrinker

CAMPAIGN = Path(__file__).parents[2] / "regressions" / "ack-before-replication.yaml"


def test_a_plan_given_up_in_one_order_is_tried_again_in_the_next() -> None:
    (plan,) = load_campaign(CAMPAIGN).plans
    search = Shrinker(plan, 0)
    candidate = replace(plan, campaign="candidate")
    start, enough = search.best, search._events_max
    search._events_max = 1
    assert not search._accept([(candidate, 0)])
    search._events_max = enough
    assert not search._accept([(candidate, 0)])
    search._restart(start, enough)
    assert search._accept([(candidate, 0)])
    assert not search._accept([(candidate, 0)])
    search._restart(start, enough)
    assert search._accept([(candidate, 0)])


WRITE_CYCLE = """
name: write-cycle
cluster:
  brokers: 3
  topics: [{name: u, replication_factor: 1}]
  network: {latency: 1ms}
workload:
  producers: [{name: app, settings: {transactional.id: app}}, {name: other}]
script:
  - at: 0s
    do: [{begin_transaction: app}, {send: {value: m0, producer: app}}]
  - at: 1s
    do: [{send: {value: m1, producer: other}}, {send: {value: m2, producer: app}}]
  - at: 2s
    do: {commit_transaction: app}
expect:
  rules: {G0: permitted}
"""


def test_a_plain_producer_does_not_take_over_a_transaction(tmp_path: Path) -> None:
    path = tmp_path / "write-cycle.yaml"
    path.write_text(WRITE_CYCLE, encoding="utf-8")
    (plan,) = load_campaign(path).plans
    search = Shrinker(plan, 0, names=["G0"])
    search.run()
    assert [producer.name for producer in search.best.plan.producers] == ["app", "other"]
