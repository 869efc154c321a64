"""A run leaves nothing behind but its result."""

import gc

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.sim.cluster import Cluster


def test_the_clusters_of_many_runs_are_not_kept() -> None:
    plan = load_campaign(resolve("ack-lost")[0]).plans[0]
    gc.collect()
    before = sum(isinstance(thing, Cluster) for thing in gc.get_objects())
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # the collector does nothing by itself
    try:
        results = [run_plan(plan, seed) for seed in range(3)]
        after = sum(isinstance(thing, Cluster) for thing in gc.get_objects())
    finally:
        gc.set_threshold(*thresholds)
    assert len(results) == 3
    assert after <= before
