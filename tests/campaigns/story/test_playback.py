"""Playback of a finished run."""

from dataclasses import replace

import pytest

from harrow.campaigns.record.run_events import events_of_result
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.story.playback import Playback
from harrow.campaigns.story.run_state import state_at
from tests.played_runs import library_run, scene_at


@pytest.fixture
def loss() -> RunResult:
    return library_run("loss-by-hw-truncation")


def test_a_scene_shows_the_cluster_of_its_moment(loss: RunResult) -> None:
    for at_us in (0, 1_002_000, 25_024_500, 32_100_000, 41_000_000):
        scene, state = scene_at(loss, at_us).state, state_at(events_of_result(loss), at_us=at_us)
        assert (scene.number, scene.controller, scene.faults) == (
            state.number,
            state.controller,
            state.faults,
        )
        for name, partition in state.partitions.items():
            shown = scene.partitions[name]
            assert (shown.leader, shown.isr) == (partition.leader, partition.isr)
            for broker, replica in partition.replicas.items():
                assert shown.replicas[broker].log == replica.log
                assert shown.replicas[broker].high_watermark == replica.high_watermark


def test_a_playback_shows_time_passing_between_events(loss: RunResult) -> None:
    playback = Playback(loss)
    playback.advance(len(playback.events) - 1)
    assert playback.scene().at_us == playback.end_us
    assert playback.scene(playback.end_us + 5).at_us == playback.end_us + 5
    assert Playback(loss).scene().at_us == 0


def test_a_scene_knows_when_its_faults_end(loss: RunResult) -> None:
    faults = {fault.text: fault for fault in scene_at(loss, 32_040_200).faults}
    crash = faults["broker_crash broker=0"]
    assert crash.since_us == pytest.approx(32_039_700, abs=500)
    assert crash.until_us == pytest.approx(40_012_500, abs=500)
    pending_faults = next(
        fault for text, fault in faults.items() if text.startswith("message: hold Fetch response")
    )
    assert pending_faults.until_us == pytest.approx(40_020_000, abs=500)  # when every fault is healed


def test_a_finding_appears_once_its_last_event_has_happened(loss: RunResult) -> None:
    """A loss comes about with the last event that led to it, not with the first."""
    (finding,) = loss.verdict.rules["lost-write"].findings
    last_us = max(link.at_us for link in finding.chain if link.at_us is not None)
    before, then = scene_at(loss, last_us - 1), scene_at(loss, last_us)
    assert "lost-write" not in {anomaly.rule for anomaly in before.anomalies}
    assert "lost m1 despite acks=all" in {anomaly.sentence() for anomaly in then.anomalies}


def test_the_last_scene_has_every_finding() -> None:
    result = library_run("unclean-election")
    scene = scene_at(result, result.simulated_us + 10**9)
    finding_count = sum(len(anomaly.findings) for anomaly in scene.anomalies)
    assert finding_count == sum(len(judged.findings) for judged in result.verdict.rules.values()) > 0


def test_a_scene_lists_the_events_that_changed_the_cluster(loss: RunResult) -> None:
    events = [*scene_at(loss, 25_024_500).events, *scene_at(loss, 32_100_000).events]
    kinds = {shown.event.narration.topic.name for shown in events}
    assert {"fault", "process", "controller", "truncation", "ack"} <= kinds
    assert not kinds & {"request", "disk", "hw", "log", "read"}
    assert all(not shown.event.narration.routine and shown.event.at_us >= 0 for shown in events)


def test_acknowledgements_do_not_push_elections_away() -> None:
    scene = scene_at(library_run("standard"), 5_000_000)
    folded = [shown for shown in scene.events if shown.folded]
    assert folded
    assert {shown.event.narration.topic.name for shown in folded} == {"ack"}
    pairs = zip(scene.events, scene.events[1:], strict=False)
    assert all({one.event.event, other.event.event} != {"acknowledged"} for one, other in pairs)


def test_sends_are_counted_by_the_outcome_that_their_application_got(loss: RunResult) -> None:
    assert scene_at(loss, 25_022_700).sends == {"acked": 1, "sending": 1}
    assert scene_at(loss, 41_000_000).sends == {"acked": 2}
    assert scene_at(loss, 41_000_000).reads == 1


def test_an_invariant_that_the_release_does_not_promise_is_not_watched(loss: RunResult) -> None:
    broken = {event[2] for event in loss.evidence.trace if event[1] == "invariant_broken"}
    assert broken == {"isr-holds-committed"}
    replayed = replace(loss.plan, behaviours={"failover_removes_dead_replicas": False}, kafka="2.4")
    names = {event[2] for event in run_plan(replayed, 0).evidence.trace if event[1] == "invariant_broken"}
    assert "failover-shrinks-isr" in names
