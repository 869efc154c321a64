"""What a cluster of real brokers finds in a run."""

from typing import Any, cast

from harrow.campaigns.language.loader import load_text
from harrow.live_cluster.real_cluster import Surroundings
from harrow.live_cluster.watches.assignments_seen import AssignmentsSeen
from harrow.live_cluster.wire.reassignments import Assignment


def test_topics_of_coordinators_are_none_of_the_campaigns() -> None:
    (plan,) = load_text("name: c\ncluster: {brokers: 1, topics: [{name: t}]}", "c.yaml").plans
    nothing = cast("Any", None)
    given = Surroundings(
        plan=plan,
        folder=nothing,
        choices=nothing,
        clock=nothing,
        trace=nothing,
        activity=nothing,
        report=nothing,
    )
    seen = AssignmentsSeen(lambda *_: None)
    seen.begin({"t": [(0,)], "__consumer_offsets": [(0,)]})
    seen.take("t-1", Assignment((0,)))
    assert given.own(seen.owned_by(0)) == ("t-0", "t-1")
