"""A diff narrates only the events that it shows."""

from pathlib import Path

import pytest

from harrow.campaigns.record.recorded_run import read_run
from harrow.campaigns.story import run_diff, stages, trace_story
from harrow.campaigns.story.event_phrases import narrate
from harrow.campaigns.story.narration import EventContext, Narration
from harrow.campaigns.story.run_diff import DiffMoment
from harrow.cluster_model.events import Event
from tests.written_runs import written_run


def test_a_diff_narrates_only_the_events_of_its_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrated: list[str] = []

    def counted(event: Event, context: EventContext) -> Narration:
        narrated.append(event.name)
        return narrate(event, context)

    for module in (stages, trace_story):
        monkeypatch.setattr(module, "narrate", counted)
    recorded = read_run(written_run(tmp_path, "loss-by-hw-truncation"))
    difference = run_diff.diff_run(recorded, DiffMoment())
    assert difference.partitions[0].notes
    assert narrated == []

    (partition,) = run_diff.diff_run(recorded, DiffMoment(), with_stages=True).partitions
    assert len(narrated) >= sum(len(stage.texts) for stage in partition.stages) > 0
    assert len(narrated) < len(difference.run.events) / 2
