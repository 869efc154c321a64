"""A run that goes on is followed without reading anything twice."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.story.live_playback import LivePlayback
from harrow.campaigns.story.playback import Playback, Scene
from harrow.cluster_model.history import Operation
from harrow.cluster_model.trace import TraceEvent
from tests.played_runs import library_run


class RunInPieces:
    """A finished run whose events and operations appear piece by piece."""

    def __init__(self, result: RunResult) -> None:
        self._evidence = result.evidence
        self.reads: list[int] = []
        self.at_us = -(10**12)

    def events_since(self, position: int) -> Sequence[TraceEvent]:
        self.reads.append(position)
        return [event for event in self._evidence.trace[position:] if event[0] <= self.at_us]

    @property
    def operations(self) -> Sequence[Operation]:
        operations = self._evidence.operations
        later = (place for place, each in enumerate(operations) if each.time_us > self.at_us)
        return operations[: next(later, len(operations))]

    @property
    def process_names(self) -> Any:
        return self._evidence.process_names


def shown(scene: Scene) -> Any:
    replicas = {
        (partition.name, replica.broker): (replica.leo, replica.high_watermark, replica.role)
        for partition in scene.state.partitions.values()
        for replica in partition.replicas.values()
    }
    events = [(each.event.at_us, each.event.narration.text, each.folded) for each in scene.events]
    return replicas, events, +scene.sends, scene.reads, [fault.text for fault in scene.faults]


@pytest.mark.parametrize("campaign", ["loss-by-hw-truncation", "delayed-end-txn"])
def test_a_run_in_pieces_ends_as_its_playback_does(campaign: str) -> None:
    result = library_run(campaign)
    run = RunInPieces(result)
    live = LivePlayback(result.plan, result.seed, cast("Any", run), cast("Any", run))
    whole = Playback(result)
    for run.at_us in range(-10_000_000, whole.end_us + 400_000, 400_000):
        live.catch_up()
    live.catch_up()
    whole.advance(len(whole.events) - 1)
    assert shown(live.scene(whole.end_us, ())) == shown(whole.scene())
    assert run.reads == sorted(run.reads)
    assert run.reads[-1] == len(result.evidence.trace)


def test_rates_are_those_of_the_last_seconds() -> None:
    result = library_run("loss-by-hw-truncation")
    run = RunInPieces(result)
    live = LivePlayback(
        result.plan,
        result.seed,
        cast("Any", SimpleNamespace(events_since=run.events_since)),
        cast("Any", run),
    )
    run.at_us = 10**12
    live.scene(0, ())
    live.catch_up()
    figures = live.scene(1_000_000, ("app",)).live
    assert figures is not None
    assert figures.clients == ("app",)
    assert (figures.sent_per_s, figures.acked_per_s) == (2.0, 2.0)
    later = [live.scene(at_us, ()).live for at_us in (2_000_000, 9_000_000, 13_000_000)]
    assert later[-1] is not None
    assert later[-1].sent_per_s == 0
