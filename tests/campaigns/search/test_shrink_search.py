"""A search retries in another order the plans that it gave up."""

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
